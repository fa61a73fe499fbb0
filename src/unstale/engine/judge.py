"""Has the source changed? Its validator decides first, then the hash of what counts in its body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from unstale.errors import InputError, StoreError
from unstale.fingerprint import Content, Selective, fingerprint
from unstale.keeper.outcomes import Answer
from unstale.ports import Aside, Body, Claim, Copy, Fetched

if TYPE_CHECKING:
    from unstale.engine.store_executor import StoreExecutor

#: the body of the newest copy of a claimed source
KeptBody = Callable[[Claim], Awaitable[Body | None]]

#: a body of so many bytes is parsed in milliseconds, whatever is in it
SMALL = 4096
#: bodies beyond so many bytes are compared in a thread
LARGE = 1 << 18


def judge(claim: Claim, fetched: Fetched, content: Content | None) -> tuple[Answer, Body | None]:
    """The answer of a poll, and the body to be kept if there is one.

    `content` gives the part of a body that counts; without it all of it does. A body that differs only in what does
    not count is no change: with new validators it goes along for them alone.
    """
    if fetched.answer is not Answer.CHANGED or fetched.body is None:
        return fetched.answer, None
    return _compared(claim, fetched, fetched.body, fingerprint(fetched.body, fetched.media_type, content))


async def judge_aside(
    claim: Claim, fetched: Fetched, content: Content | None, aside: Aside
) -> tuple[Answer, Body | None]:
    """The same, where what is parsed of a large body can be ended; InputError says why it was."""
    body = fetched.body
    if fetched.answer is not Answer.CHANGED or body is None or content is None:
        return judge(claim, fetched, content)
    if len(body) <= SMALL and not (isinstance(content, Selective) and content.unbounded):
        return judge(claim, fetched, content)
    found = await aside.run(fingerprint, body, fetched.media_type, content)
    return _compared(claim, fetched, body, found)


async def judge_apart(
    claim: Claim, fetched: Fetched, content: Content | None, aside: Aside | None, kept: KeptBody | None = None
) -> tuple[Answer, Body | None]:
    """The same, wherever it holds up nobody. Where other things count than when the newest copy came, which `kept`
    gives, that is judged anew: what counted before makes no change."""
    answer, body = await _apart(claim, fetched, content, aside)
    if body is None or kept is None or not unjudged(claim) or (held := await kept(claim)) is None:
        return answer, body
    # What cannot be judged any more is taken for another one.
    with suppress(InputError):
        _, before = await _apart(claim, Fetched(Answer.CHANGED, 0.0, held.data, held.media_type), content, aside)
        if before is not None and before.fingerprint == body.fingerprint:
            return Answer.UNCHANGED, body
    return answer, body


async def _apart(
    claim: Claim, fetched: Fetched, content: Content | None, aside: Aside | None
) -> tuple[Answer, Body | None]:
    if content is not None and aside is not None:
        return await judge_aside(claim, fetched, content, aside)
    if fetched.body is not None and (content is not None or len(fetched.body) > LARGE):
        import asyncio  # who only lists sources needs no loop

        return await asyncio.to_thread(judge, claim, fetched, content)
    return judge(claim, fetched, content)


def unjudged(claim: Claim) -> bool:
    """Whether there is a copy of which it is not known what it is by what counts now."""
    return claim.fingerprint is None and claim.version > 0


def kept_bodies(executor: StoreExecutor[Any]) -> KeptBody:
    """The newest copies of claimed sources, None where they are gone or damaged."""

    async def kept(claim: Claim) -> Body | None:
        try:
            copy: Copy | None = await executor.do(lambda store: store.copy(claim.source, claim.version))
        except StoreError:
            return None
        return None if copy is None else copy.body

    return kept


def _compared(claim: Claim, fetched: Fetched, bytes_: bytes, found: str) -> tuple[Answer, Body | None]:
    known = bytes.fromhex(found)
    same = claim.fingerprint == known
    if same and (fetched.etag, fetched.last_modified) == (claim.etag, claim.last_modified):
        return Answer.UNCHANGED, None
    body = Body(bytes_, fetched.media_type, fetched.etag, fetched.last_modified, known, fetched.address, fetched.via)
    return (Answer.UNCHANGED if same else Answer.CHANGED), body


def changed_when(claim: Claim, answer: Answer, fetched: Fetched) -> float | None:
    """When the source says it last changed, if it was after the last look: then it teaches exactly."""
    if answer is not Answer.CHANGED or not fetched.changed_at:
        return None
    when = fetched.changed_at[-1]
    return when if claim.last < when <= fetched.polled_at else None
