"""Reading a source's copy from several replicas at once: one body, the heads of the rest, and the freshest wins.

Rules of this file:
1. Which of two copies is fresher is told by when each was equal to the source, not by who answered first.
2. A replica that fails is replaced by another one. Only if nobody has a copy there is no answer.
3. Replicas that turn out to be behind are told so that they can look; nobody waits for what they make of it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unstale.adapters.addresses import Gate, web_address
from unstale.adapters.http_upstream import HttpUpstream
from unstale.adapters.replica_fetcher import copy_address
from unstale.adapters.replica_status import SKEW, read_status
from unstale.adapters.transfer import NO_CODING, NO_END
from unstale.codings import BrokenCoding, Decoder, TooMuch, codings_of
from unstale.core.replication.redundancy import whole
from unstale.errors import InputError, ReplicaError, require
from unstale.frozen import dataclass

#: bytes of a body, and seconds for one answer and for telling one that it is behind
LARGEST, SECONDS, TELLING = 64 * 2**20, 10.0, 2.0
#: the caller names the replicas, so all addresses may be dialled; redirects are not followed
_ANYWHERE = ("0.0.0.0/0", "::/0")


@dataclass(frozen=True, slots=True)
class Reading:
    """A copy as one replica has it. `body` is None where only its head was asked for; `reason` says why there is none.

    `as_of` is when it was equal to its source, as far as anybody along its way knows.
    """

    replica: str
    as_of: float = -math.inf
    version: int = 0
    etag: str = ""
    media_type: str = ""
    via: tuple[str, ...] = ()
    place: str = ""
    body: bytes | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Freshest:
    """The freshest copy, every answer that was compared, and the replicas that were told that they are behind."""

    reading: Reading
    body: bytes
    answers: tuple[Reading, ...]
    told: tuple[str, ...]


class ReplicaClient:
    """Asks `k` random ones of several replicas: `await ReplicaClient(["http://a:8600", "http://b:8600"]).get(source)`.

    `token` goes with every question, and lets those that are behind be hinted; without it they are asked for a copy as
    young as the winner's, which has them poll if they may.
    """

    def __init__(
        self,
        replicas: Sequence[str],
        *,
        k: int = 2,
        seconds: float = SECONDS,
        limit: int = LARGEST,
        token: str = "",
        rng: np.random.Generator | None = None,
    ) -> None:
        self._replicas = [web_address(one).text.rstrip("/") for one in dict.fromkeys(replicas)]
        require(
            whole("k", k) <= len(self._replicas),
            "k",
            k,
            f"must be at most {len(self._replicas)}",
            "name more replicas, or ask fewer",
        )
        self._k, self._seconds, self._limit, self._token = k, seconds, limit, token
        self._lines = [("accept", "*/*"), *([("authorization", f"Bearer {token}")] if token else [])]
        self._gate, self._rng = Gate(_ANYWHERE), rng or np.random.default_rng()

    async def get(self, source: str) -> Freshest:
        """The freshest of `k` copies; ReplicaError if there is none."""
        upstream = HttpUpstream(self._gate, seconds=self._seconds, connections=16)
        try:
            return await self._get(upstream, source)
        finally:
            await upstream.close()

    async def _get(self, upstream: HttpUpstream, source: str) -> Freshest:
        order = [self._replicas[i] for i in self._rng.permutation(len(self._replicas)).tolist()]
        first, spare = order[: self._k], order[self._k :]
        methods = ["GET", *["HEAD"] * (len(first) - 1)]
        asked = zip(methods, first, strict=True)
        answers = list(await asyncio.gather(*(self._ask(upstream, method, one, source) for method, one in asked)))
        while spare and sum(not answer.reason for answer in answers) < self._k:
            answers.append(await self._ask(upstream, "HEAD", spare.pop(0), source))
        good = sorted((answer for answer in answers if not answer.reason), key=lambda answer: -answer.as_of)
        if not good:
            raise ReplicaError("no replica has a copy: " + "; ".join(answer.reason for answer in answers))
        best, body = await self._best(upstream, source, good)
        # Who was asked twice may have polled in between: it is not behind itself.
        older = (answer for answer in good if answer.replica != best.replica and answer.as_of < best.as_of)
        behind = [answer for answer in older if answer.etag != best.etag]
        await asyncio.gather(*(self._tell(upstream, answer, source, best) for answer in behind))
        return Freshest(
            best,
            body,
            tuple(replace(answer, body=None) for answer in answers),
            tuple(answer.replica for answer in behind),
        )

    async def _best(self, upstream: HttpUpstream, source: str, good: Sequence[Reading]) -> tuple[Reading, bytes]:
        """The freshest answer and its body, which may have come from another one that holds the same bytes."""
        bodies = {answer.etag: answer.body for answer in good if answer.body is not None}
        why = ""
        for answer in good:
            if (body := bodies.get(answer.etag)) is not None:
                return answer, body
            again = await self._ask(upstream, "GET", answer.replica, source)
            # By now it may have a newer one, but not an older one.
            if not again.reason and again.body is not None and again.as_of >= answer.as_of:
                return again, again.body
            why = again.reason or "its copy went back in time"
        raise ReplicaError(f"{good[0].replica}: {why}")

    async def _ask(self, upstream: HttpUpstream, method: str, where: str, source: str) -> Reading:
        try:
            return await asyncio.wait_for(self._answer(upstream, method, where, source), self._seconds)
        except TimeoutError:
            return Reading(where, reason=f"{where}: no answer within {self._seconds:g} s")
        except (ConnectionError, InputError) as error:
            return Reading(where, reason=f"{where}: {error}")

    async def _answer(self, upstream: HttpUpstream, method: str, where: str, source: str) -> Reading:
        answered = await upstream.ask(method, copy_address(where, source), self._lines)
        try:
            headers = dict(reversed(answered.lines))
            body = b""
            async for piece in answered.body:
                body += piece
                if len(body) > self._limit:
                    return Reading(where, reason=f"{where}: its copy has more than {self._limit} bytes")
        finally:
            await answered.close()
        if answered.status == 404:
            return Reading(where, reason=f"{where}: it has no such source")
        if answered.status != 200:
            return Reading(where, reason=f"{where}: it answered {answered.status}")
        if method == "GET" and (coding := headers.get("content-encoding")):
            try:
                decoder = Decoder(codings_of(coding))
                body = decoder.feed(body, self._limit)
                if not decoder.whole:
                    return Reading(where, reason=f"{where}: {NO_END}")
            except (BrokenCoding, TooMuch):
                return Reading(where, reason=f"{where}: {NO_CODING}")
        status = read_status(headers)
        if status is None:
            return Reading(where, reason=f"{where}: its answer has no Replica-Status: is it a replica?")
        if status.as_of > time.time() + SKEW:
            return Reading(where, reason=f"{where}: its copy is from the future: compare the clocks")
        return Reading(
            where,
            status.as_of,
            status.version,
            headers.get("etag", ""),
            headers.get("content-type", ""),
            status.via,
            headers.get("content-location", ""),
            None if method == "HEAD" else body,
        )

    async def _tell(self, upstream: HttpUpstream, behind: Reading, source: str, best: Reading) -> None:
        age = max(int(time.time() - best.as_of), 0)
        method, address = "HEAD", f"{copy_address(behind.replica, source)}&max_age={age}s"
        if self._token and behind.place.startswith("/copies/"):
            number = behind.place.removeprefix("/copies/")
            method, address = "POST", f"{behind.replica}/api/v1/sources/{number}/hint"
        try:
            answered = await asyncio.wait_for(upstream.ask(method, address, self._lines), TELLING)
            await answered.close()
        except (OSError, InputError, TimeoutError):
            return  # It was a favour.
