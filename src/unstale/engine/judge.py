"""Has the source changed? Its validator decides first, then the hash of what counts in its body."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Claim, Fetched

Content = Callable[[bytes, str], bytes]


def judge(claim: Claim, fetched: Fetched, content: Content | None) -> tuple[Answer, Body | None]:
    """The answer of a poll, and the body to be kept if there is one.

    `content` gives the part of a body that counts; without it all of it does. A body that differs only in what does
    not count is no change: with new validators it goes along for them alone.
    """
    if fetched.answer is not Answer.CHANGED or fetched.body is None:
        return fetched.answer, None
    counted = fetched.body if content is None else content(fetched.body, fetched.media_type)
    fingerprint = hashlib.sha256(counted).digest()
    same = claim.fingerprint == fingerprint
    if same and (fetched.etag, fetched.last_modified) == (claim.etag, claim.last_modified):
        return Answer.UNCHANGED, None
    body = Body(
        fetched.body, fetched.media_type, fetched.etag, fetched.last_modified, fingerprint, fetched.address, fetched.via
    )
    return (Answer.UNCHANGED if same else Answer.CHANGED), body


def changed_when(claim: Claim, answer: Answer, fetched: Fetched) -> float | None:
    """When the source says it last changed, if it was after the last look: then it teaches exactly."""
    if answer is not Answer.CHANGED or not fetched.changed_at:
        return None
    when = fetched.changed_at[-1]
    return when if claim.last < when <= fetched.polled_at else None
