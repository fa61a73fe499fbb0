"""What a shell may say that no test is meant to hear: proxies, accounts, other servers, colours, one's own store."""

from __future__ import annotations

import os
import re

#: Tests talk to servers on this machine, as nobody in particular, and never to the store of who runs them.
SAID = re.compile(
    r"\w*_proxy|PG[A-Z]+|AWS_\w+|MYSQL_\w+|\w*_CA_BUNDLE|SSL_CERT_\w+|(NO|FORCE|PY)_COLORS?|CLICOLOR\w*|TTY_\w+"
    r"|UNSTALE_(STORE|CONFIG|TOKEN)|PYTHONWARNINGS|GIT_[A-Z]+|DASK_\w+",
    re.IGNORECASE,
)


def unsaid() -> None:
    """Forget it, before anything reads it."""
    for name in [name for name in os.environ if SAID.fullmatch(name)]:
        del os.environ[name]
