"""Runs of copies told to a server of OpenLineage: every event is POSTed as JSON, through the same gate as polls.

Rules of this file:
1. A thread of its own tells, in order: no copy waits for who is told, and none fails because of it.
2. What could not be told is said in the log and lost; of more than WAITING events the newest are.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Thread

import pycurl

from unstale.adapters.addresses import Gate, web_address
from unstale.adapters.transfer import SPARE, Transfer
from unstale.logs import log

#: events that may wait, the seconds that one POST may take, and those that are waited for all at the end
WAITING, SECONDS, PATIENCE = 1000, 10.0, 5.0


class LineagePost:
    """Takes events as lines of JSON; `token` is what a server asks for who comes, `ca_file` certificates to trust."""

    def __init__(self, address: str, gate: Gate, *, token: str = "", agent: str = "unstale", ca_file: str = "") -> None:
        self._address = web_address(address)
        self._gate, self._agent = gate, agent
        self._trusted = ca_file or ssl.get_default_verify_paths().cafile
        self._lines = ["Content-Type: application/json", "Expect:"]
        if token:
            self._lines.append(f"Authorization: Bearer {token}")
        self._waiting: Queue[bytes | None] = Queue(WAITING)
        self._teller: Thread | None = None

    def __call__(self, line: bytes) -> None:
        """Tell this when its turn comes."""
        if self._teller is None:
            self._teller = Thread(target=self._run, name="unstale-lineage", daemon=True)
            self._teller.start()
        try:
            self._waiting.put_nowait(line)
        except Full:
            self._failed("too many events wait to be told")

    def close(self) -> None:
        """Tell what waits, for as long as there is patience."""
        if self._teller is not None:
            with suppress(Full):
                self._waiting.put_nowait(None)
            self._teller.join(PATIENCE)

    def _run(self) -> None:
        transfer = Transfer(self._gate).known_as(self._agent, self._trusted)
        try:
            while (line := self._waiting.get()) is not None:
                if reason := self._post(transfer, line):
                    self._failed(reason)
        finally:
            transfer.curl.close()
            with suppress(Empty):
                while True:
                    self._waiting.get_nowait()

    def _post(self, transfer: Transfer, line: bytes) -> str:
        curl = transfer.begin(self._address.text, self._lines, SECONDS, SPARE)
        curl.setopt(pycurl.POSTFIELDS, line)
        reason = ""
        try:
            curl.perform()
        except pycurl.error as error:
            reason = str(error.args[-1]) or "the exchange broke off"
            if transfer.refused:
                reason = f"its address {transfer.refused} is not public, add it to allow_networks if it may be told"
        status = transfer.end(self._address, reason).status
        if 200 <= status < 300:
            return ""
        return f"it answered {status}" if status else reason

    def _failed(self, reason: str) -> None:
        # A path may be a secret in itself.
        log("lineage_failed", {"file": self._address.host, "reason": reason})
