"""Learning how sources change from what polls find."""
