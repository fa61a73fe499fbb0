"""Ports of loopback for programs that must be told one.

A port that the system chooses is out of those that it also gives to connections: between the choice and the program's
start, somebody else's connection may have it. These are below all that Linux gives away.
"""

from __future__ import annotations

import random
import socket

#: above the servers that people run, below net.ipv4.ip_local_port_range
BELOW, ABOVE = 32_768, 20_000

# A generator of its own, not the one that tests seed: two processes must not go through the same ports.
_RANDOM = random.SystemRandom()


def free_port() -> int:
    """A port of loopback at which nobody listens, and which no connection will be given."""
    while True:
        port = _RANDOM.randrange(ABOVE, BELOW)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
