"""Has the source changed? Its validator decides first, then the hash of what counts in its body."""

from __future__ import annotations

from unstale.fingerprint import Content, fingerprint
from unstale.keeper.outcomes import Answer
from unstale.ports import Aside, Body, Claim, Fetched

#: a body of so many bytes is parsed in milliseconds, whatever is in it
SMALL = 4096


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
    if fetched.answer is not Answer.CHANGED or body is None or content is None or len(body) <= SMALL:
        return judge(claim, fetched, content)
    found = await aside.run(fingerprint, body, fetched.media_type, content)
    return _compared(claim, fetched, body, found)


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
