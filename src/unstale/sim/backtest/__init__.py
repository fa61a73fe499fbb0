"""The backtest: real changes replayed against ways of polling that see only what a poller would see."""
