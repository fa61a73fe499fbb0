"""How long tests wait on a busy machine.

A test that says "it ends in time" compares what it ended in with what it would take otherwise: minutes, or for
ever. It does not measure the machine: a bound of a second fails wherever others are at work too.
"""

from __future__ import annotations

#: seconds within which a thing has happened that would else take minutes or for ever
SOON = 30.0
#: how many times as long as usual a test waits for a thing that will happen
BUSY = 6.0
