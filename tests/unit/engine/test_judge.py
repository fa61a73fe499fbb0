"""Whether a source has changed."""

from __future__ import annotations

import hashlib

import pytest

from unstale.engine.judge import changed_when, judge
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched


def claim(body: bytes | None = None, **more: object) -> Claim:
    fingerprint = None if body is None else hashlib.sha256(body).digest()
    return Claim(1, 1, "http://a.example/", "http", 0.0, fingerprint=fingerprint, **more)


def fetched(body: bytes | None, **more: object) -> Fetched:
    return Fetched(Answer.CHANGED, 50.0, body=body, media_type="text/plain", **more)


def test_another_body_is_a_change_and_is_kept() -> None:
    answer, body = judge(claim(b"old"), fetched(b"new", etag='"2"'), None)
    assert answer is Answer.CHANGED
    assert body is not None
    assert (body.data, body.etag, body.fingerprint) == (b"new", '"2"', hashlib.sha256(b"new").digest())


def test_the_same_body_is_no_change_and_renews_its_validators() -> None:
    assert judge(claim(b"same", etag='"1"'), fetched(b"same", etag='"1"'), None) == (Answer.UNCHANGED, None)
    answer, body = judge(claim(b"same", etag='"1"'), fetched(b"same", etag='"2"'), None)
    assert answer is Answer.UNCHANGED
    assert body is not None
    assert body.etag == '"2"'


def test_what_does_not_count_is_no_change() -> None:
    def content(body: bytes, media_type: str) -> bytes:
        return body.partition(b"|")[0]

    held = claim(b"news", etag='"1"')
    assert judge(held, fetched(b"news|12:00", etag='"1"'), content) == (Answer.UNCHANGED, None)
    answer, body = judge(held, fetched(b"news|12:00", etag='"2"'), content)
    assert answer is Answer.UNCHANGED
    assert body is not None
    assert body.etag == '"2"'
    answer, body = judge(held, fetched(b"more|12:00"), content)
    assert answer is Answer.CHANGED
    assert body is not None
    assert body.data == b"more|12:00"


@pytest.mark.parametrize("answer", [Answer.UNCHANGED, Answer.FAILED])
def test_other_answers_stay_what_they_are(answer: Answer) -> None:
    assert judge(claim(b"x"), Fetched(answer, 5.0), None) == (answer, None)


def test_a_told_time_counts_only_if_it_is_after_the_last_look() -> None:
    seen = claim(b"x", last=20.0)
    assert changed_when(seen, Answer.CHANGED, fetched(b"", changed_at=(10.0, 30.0))) == 30.0
    assert changed_when(seen, Answer.CHANGED, fetched(b"", changed_at=(10.0,))) is None
    assert changed_when(seen, Answer.CHANGED, fetched(b"", changed_at=(60.0,))) is None
    assert changed_when(seen, Answer.UNCHANGED, fetched(b"", changed_at=(30.0,))) is None
