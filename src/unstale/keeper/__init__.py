"""Pure decisions: what was known, what a poll taught, today's price and the time; out comes when to look again.

The same brain serves the simulator and the engine: no clock, no files, no randomness but what is handed in.
"""

from unstale.keeper.decisions import admit, decide, reprice
from unstale.keeper.intervals import poisson_interval
from unstale.keeper.outcomes import Answer, Outcome
from unstale.keeper.records import Record, Source

__all__ = ["Answer", "Outcome", "Record", "Source", "admit", "decide", "poisson_interval", "reprice"]
