"""Pure decisions: what was known, what a poll taught, today's price and the time; out comes when to look again.

One brain, `scheduler.Scheduler`, serves the engine, the workers, the simulator, the backtest and anybody's own loop: no
clock, no files, no randomness.
"""

from unstale.keeper.outcomes import Answer, Outcome

__all__ = ["Answer", "Outcome"]
