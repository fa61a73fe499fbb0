"""Who asks an API: a bearer token, a name with a password, or OAuth2 client credentials; all from the environment.

A token that was asked for is kept in memory until a minute before it ends, and asked for anew when it is refused.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from collections import defaultdict
from collections.abc import Callable
from urllib.parse import urlencode

import pycurl

from unstale.adapters.addresses import Gate, web_address
from unstale.adapters.api_records import read_json
from unstale.adapters.api_terms import ApiTerms
from unstale.adapters.curl_driver import driver
from unstale.adapters.environment import filled
from unstale.adapters.transfer import Transfer
from unstale.errors import InputError

#: seconds before its end at which a token counts as over, and for which one without an end is taken
EARLY, USUAL = 60.0, 3600.0
_LIMIT, _SECONDS = 65_536, 30.0


class ApiAuth:
    """The headers that say who asks."""

    def __init__(
        self, gate: Gate, *, agent: str = "unstale", ca_file: str = "", now: Callable[[], float] = time.time
    ) -> None:
        self._gate, self._agent, self._now = gate, agent, now
        self._trusted = ca_file or ssl.get_default_verify_paths().cafile
        #: tokens that were asked for, by who asked where, and until when they hold
        self._tokens: dict[tuple[str, str, str], tuple[str, float]] = {}
        self._turns: defaultdict[tuple[str, str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def headers(self, terms: ApiTerms, *, anew: bool = False) -> dict[str, str]:
        """The headers for a request now; with `anew` no kept token is taken."""
        if terms.token:
            return {"Authorization": f"Bearer {filled(terms.token)}"}
        if terms.username:
            pair = f"{filled(terms.username)}:{filled(terms.password)}"
            return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
        if not terms.token_address:
            return {}
        who = (terms.token_address, terms.client, terms.scope)
        async with self._turns[who]:
            kept = self._tokens.get(who)
            if anew or kept is None or kept[1] <= self._now():
                kept = self._tokens[who] = await self._ask(terms)
        return {"Authorization": f"Bearer {kept[0]}"}

    async def _ask(self, terms: ApiTerms) -> tuple[str, float]:
        """A token by client credentials (RFC 6749, section 4.4), and until when it holds."""
        place = web_address(terms.token_address)
        self._gate.check_host(place.host)
        form = {"grant_type": "client_credentials", **({"scope": terms.scope} if terms.scope else {})}
        pair = base64.b64encode(f"{filled(terms.client)}:{filled(terms.client_secret)}".encode()).decode()
        lines = ["Content-Type: application/x-www-form-urlencoded", "Expect:", f"Authorization: Basic {pair}"]
        # For this one exchange: tokens are asked for once an hour.
        way = driver(1)
        transfer = Transfer(self._gate).watched(way.watching).known_as(self._agent, self._trusted)
        try:
            curl = transfer.begin(place.text, [*lines, "Accept: application/json"], _SECONDS, _LIMIT)
            curl.setopt(pycurl.POSTFIELDS, urlencode(form))
            code = await way.exchange(curl)
            reply = transfer.end(place, "the exchange broke off" if code else "")
        finally:
            await way.close()
            transfer.curl.close()
        said = read_json(bytes(reply.body)) if reply.status == 200 and not reply.reason else {}
        token = said.get("access_token") if isinstance(said, dict) else None
        if not isinstance(token, str) or not token:
            why = f"it answered {reply.status}" if reply.status else reply.reason
            raise InputError(f"{place.host}: it gave no token ({why}): check client and client_secret under [apis]")
        lasts = said.get("expires_in")
        return token, self._now() + max((float(lasts) if isinstance(lasts, int) else USUAL) - EARLY, 1.0)
