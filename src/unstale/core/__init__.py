"""Pure numbers: processes, penalties, staleness, value, price. No clock, no I/O, no global randomness."""
