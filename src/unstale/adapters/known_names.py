"""When libcurl looks through the names of hosts whose addresses it knows, to let go of old ones.

By itself it does so at the end of every exchange, which takes longer than the exchange where there are thousands of
hosts. Here one exchange in a second does, and the others take what is known for young enough.
"""

from __future__ import annotations

import math

#: seconds for which the addresses of a name are used again, as long as libcurl does by itself, and between two looks;
#: never, to libcurl
RESOLVED, EVERY, NEVER = 60, 1.0, -1


class KnownNames:
    """When that was done last, by a steady clock.

    >>> names = KnownNames()
    >>> names.old(now=5.0), names.looked(now=5.1), names.old(now=5.2), names.old(now=6.1)
    (True, None, False, True)
    """

    def __init__(self) -> None:
        self._at = -math.inf

    def old(self, now: float) -> bool:
        """Whether the next exchange is to look: all are, until one of them has ended well."""
        return now >= self._at + EVERY

    def looked(self, now: float) -> None:
        """An exchange that was to look has ended well."""
        self._at = now
