"""`unstale` and `python -m unstale`. Loading the command takes a moment, in which Ctrl-C must not be a traceback."""

from __future__ import annotations

import os
import signal


def main() -> None:
    """Load the command and run it; Ctrl-C is one sentence and exit code 130 from the first moment on."""
    before = signal.signal(signal.SIGINT, _stop)
    from unstale.cli.main import main as command

    signal.signal(signal.SIGINT, before)
    command()


def _stop(*_: object) -> None:
    # Nothing has begun, so nothing is left behind; whatever is half loaded is not asked.
    os.write(2, b"unstale: stopped by Ctrl-C before anything was done: start it again when you like\n")
    os._exit(130)


if __name__ == "__main__":
    main()
