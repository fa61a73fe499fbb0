"""Telling of changes by HTTP: one signed POST per event, through the same gate as polls.

Headers and signature are those of Standard Webhooks, so that receivers can check them with libraries that exist.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ssl
import time
from collections.abc import Callable, Sequence
from hashlib import sha256

import pycurl

from unstale.adapters.addresses import Gate, web_address
from unstale.adapters.curl_driver import CurlDriver, PlainDriver, driver
from unstale.adapters.event_text import event_text
from unstale.adapters.transfer import SPARE, Transfer
from unstale.errors import InputError, sentence
from unstale.ports import Event

#: seconds that one POST may take, name to answer
SECONDS = 10.0
_PREFIX = "whsec_"


class Webhook:
    """POSTs each event as JSON to `address`. An answer 2xx is taken; redirects are not followed.

    `webhook-id` and `Idempotency-Key` are the same whenever an event comes again. With a `secret`, which the caller
    takes from the environment, `webhook-signature` proves who sent it and when. `ca_file` replaces the system's
    trusted certificates. As many are under way at a time as the receiver answers quickly, at most `width`.
    """

    batch, width = 1, 64

    def __init__(
        self,
        address: str,
        gate: Gate | None = None,
        *,
        secret: str = "",
        agent: str = "unstale",
        ca_file: str = "",
        seconds: float = SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._address = web_address(address)
        # A path may be a secret in itself, so the name shows none.
        self.name = f"webhook {self._address.host} {sha256(self._address.text.encode()).hexdigest()[:8]}"
        self._key = _key(secret)
        self._seconds, self._now = seconds, now
        self._gate, self._agent = gate or Gate(), agent
        self._trusted = ca_file or ssl.get_default_verify_paths().cafile
        #: handles that rest
        self._spare: list[Transfer] = []
        self._driver: CurlDriver | PlainDriver | None = None

    async def tell(self, events: Sequence[Event]) -> tuple[int, str]:
        """POST each in turn, up to the first that fails; how many were taken, and why not the next."""
        for taken, event in enumerate(events):
            if reason := await self._post(event):
                return taken, f"{self._address.host}: {reason}"
        return len(events), ""

    async def close(self) -> None:
        """Give back the connections."""
        if self._driver is not None:
            await self._driver.close()
        while self._spare:
            self._spare.pop().curl.close()

    def _handle(self, driver: CurlDriver | PlainDriver) -> Transfer:
        """A handle that nobody uses."""
        if self._spare:
            return self._spare.pop()
        return Transfer(self._gate).watched(driver.watching).known_as(self._agent, self._trusted)

    async def _post(self, event: Event) -> str:
        body = event_text(event)
        if self._driver is None:
            # Here, because it belongs to the loop that runs.
            self._driver = driver(self.width)
        transfer = self._handle(self._driver)
        curl = transfer.begin(self._address.text, self._lines(event, body), self._seconds, SPARE)
        curl.setopt(pycurl.POSTFIELDS, body)
        code = await self._driver.exchange(curl)
        reason = self._reason(transfer, code, curl.errstr()) if code else ""
        status = transfer.end(self._address, reason).status
        self._spare.append(transfer)
        if 200 <= status < 300:
            # It said so before whatever went wrong with the rest of its answer.
            return ""
        if 300 <= status < 400:
            return f"it answered {status}, and redirects are not followed"
        return reason if not status else f"it answered {status}"

    def _lines(self, event: Event, body: bytes) -> list[str]:
        # A number alone would come back if a store was begun anew.
        message, at = f"{event.number}-{event.digest.hex()[:16]}", int(self._now())
        lines = [
            "Content-Type: application/json",
            "Expect:",
            f"Idempotency-Key: {message}",
            f"webhook-id: {message}",
            f"webhook-timestamp: {at}",
        ]
        return [*lines, f"webhook-signature: {signature(self._key, message, at, body)}"] if self._key else lines

    def _reason(self, transfer: Transfer, code: int, text: str) -> str:
        if transfer.refused and code == pycurl.E_COULDNT_CONNECT:
            return f"its address {transfer.refused} is not public, add it to allow_networks if it may be told"
        if code == pycurl.E_OPERATION_TIMEDOUT:
            return f"no answer within {self._seconds:g} s"
        return text or f"the exchange broke off (libcurl error {code})"


def signature(key: bytes, message: str, at: int, body: bytes) -> str:
    """Standard Webhooks' signature, version 1: HMAC-SHA256 over `message.at.body`.

    >>> signature(b"key", "7-00", 1000000000, b"{}")
    'v1,WzXvj7vXteBbvD1DVMHDH6cfSVSJbUtQ5MJoAM/7Q20='
    """
    signed = hmac.digest(key, b"%s.%d.%s" % (message.encode(), at, body), "sha256")
    return f"v1,{base64.b64encode(signed).decode()}"


def _key(secret: str) -> bytes:
    """The bytes of a secret: base64 behind `whsec_`, as the standard writes them, or any text."""
    if not secret.startswith(_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raise InputError(
            sentence(
                "secret", "(not shown)", f"must be base64 behind {_PREFIX}", "copy it whole, or use a text without it"
            )
        ) from None
