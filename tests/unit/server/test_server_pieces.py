"""Ranges, codings, dates and structured fields, each against somebody else's reading of them."""

from __future__ import annotations

import email.utils
import gzip
import math
from hashlib import sha256

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from support.asgi import START
from unstale.errors import StoreError
from unstale.ports import Edition, Head
from unstale.server import encodings, headers, ranges
from unstale.server.dates import as_date

DATA = bytes(range(100))


def edition(**given: object) -> Edition:
    fields = {
        "version": 2,
        "taken_at": START,
        "media_type": "text/html",
        "last_modified": None,
        "digest": bytes(32),
        "size": 100,
        "before": 0.0,
    } | given
    return Edition(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("bytes=0-0", [(0, 1)]),
        ("bytes=90-", [(90, 100)]),
        ("bytes=-5", [(95, 100)]),
        ("bytes=-500", [(0, 100)]),
        ("Bytes = 3-5, 7-9", [(3, 6), (7, 10)]),
        ("bytes=50-1000", [(50, 100)]),
        ("bytes=100-", []),
        ("bytes=-0", []),
        ("bytes=0-9,200-300", [(0, 10)]),
        ("bytes=0-60,40-99", []),
        ("bytes=" + ",".join(f"{2 * i}-{2 * i}" for i in range(17)), []),
        ("bytes=" + "0-0," * 1000 + "1-1", []),
        ("bytes=5-3", None),
        ("bytes=a-b", None),
        ("bytes", None),
        ("bytes=", None),
        ("bytes=-", None),
        ("items=0-1", None),
    ],
)
def test_ranges(header: str, wanted: list[tuple[int, int]] | None) -> None:
    assert ranges.wanted(header, 100) == wanted


@given(st.text(alphabet="bytes=0123456789-, x", max_size=60), st.integers(0, 300))
def test_ranges_lie_within_the_copy(header: str, size: int) -> None:
    found = ranges.wanted("bytes=" + header, size) or []
    assert all(0 <= begin < end <= size for begin, end in found)
    assert sum(end - begin for begin, end in found) <= size


def test_several_ranges_read_as_mime() -> None:
    part = ranges.cut(DATA, "bytes=1-2,-3", b"text/plain", '"0123"')
    assert part is not None
    kind = dict(part.fields)[b"content-type"]
    message = email.message_from_bytes(b"content-type: " + kind + b"\r\n\r\n" + bytes(part.body))
    pieces = [(piece["content-range"], piece.get_payload(decode=True)) for piece in message.get_payload()]  # type: ignore[union-attr]
    assert pieces == [("bytes 1-2/100", DATA[1:3]), ("bytes 97-99/100", DATA[97:])]


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("", ("identity",)),
        ("gzip", ("gzip", "identity")),
        ("gzip, zstd", ("zstd", "gzip", "identity")),
        ("zstd;q=0.3, gzip;q=0.9", ("gzip", "zstd", "identity")),
        ("*", ("zstd", "gzip", "identity")),
        ("gzip;q=0, *;q=0.1", ("zstd", "identity")),
        ("identity;q=0, gzip", ("gzip", "identity")),
        ("identity;q=0", ("identity",)),
        ("br, deflate", ("identity",)),
        ("gzip;q=many", ("identity",)),
    ],
)
def test_codings(header: str, wanted: tuple[str, ...]) -> None:
    assert encodings.accepted(header) == wanted


def test_what_does_not_shrink_goes_out_plain() -> None:
    assert encodings.choose("zstd", 1000, 905) == "identity"
    assert encodings.choose("zstd", 1000, 895) == "zstd"


def test_bytes_are_checked() -> None:
    packed, digest = zstandard.compress(DATA), sha256(DATA).digest()
    assert encodings.unpack(packed, digest, 100) == DATA
    for broken in (packed[:-1], packed[:8] + b"\xff" + packed[9:], b"", zstandard.compress(DATA[:99])):
        with pytest.raises(StoreError, match="is damaged on the disk"):
            encodings.unpack(broken, digest, 100)
    assert gzip.decompress(encodings.gzipped(DATA)) == DATA
    assert encodings.gzipped(DATA) == encodings.gzipped(DATA)


def test_dates() -> None:
    assert as_date(784111777) == "Sun, 06 Nov 1994 08:49:37 GMT"
    assert headers.read_date("Sun, 06 Nov 1994 08:49:37 GMT") == 784111777
    assert headers.read_date("soon") is None
    assert as_date(1e18).endswith("9999 23:59:59 GMT")


@given(st.floats(0.0, 253402300799.9))
def test_dates_are_those_of_the_library(at: float) -> None:
    assert as_date(at) == email.utils.formatdate(math.floor(at), usegmt=True)


@pytest.mark.parametrize(
    ("claim", "before", "wanted"),
    [
        (None, 0.0, START),
        ("Sat, 15 Nov 2025 19:00:00 GMT", 0.0, START - 3600),
        ("Sat, 15 Nov 2025 19:00:00 GMT", START - 1800, START),
        ("Sat, 15 Nov 2025 21:00:00 GMT", 0.0, START),
        ("yesterday", 0.0, START),
    ],
    ids=["none", "plausible", "older than the version before", "in the future", "no date"],
)
def test_last_modified_is_the_source_s_claim_if_that_can_be_true(
    claim: str | None, before: float, wanted: float
) -> None:
    assert headers.modified(edition(last_modified=claim, before=before)) == wanted


def test_times_of_a_copy_parse_as_structured_fields() -> None:
    import http_sf

    about = dict(
        headers.times(Head(1, 9, 2, START + 10.7, START + 610.7, 1), edition()).at(
            START + 100.2, headers.Believed(0.91234, 60.0, "a")
        )
    )
    status = http_sf.parse(about[b"replica-status"], tltype="dictionary")
    seen = {name: getattr(value[0], "timestamp", lambda v=value[0]: v)() for name, value in status.items()}
    assert {name: float(value) for name, value in seen.items()} == {
        "as-of": START + 10,
        "checked": START + 10,
        "changed": START,
        "version": 2,
        "hops": 1,
        "failures": 1,
        "fresh": 0.912,
        "gap": 60,
    }
    ((name, parameters),) = http_sf.parse(about[b"cache-status"], tltype="list")
    assert str(name) == "a"
    assert parameters == {"hit": True, "ttl": -90}, "while it fails, nothing is promised"
    assert about[b"age"] == b"89"
    assert about[b"cache-control"] == b"stale-while-revalidate=600, stale-if-error=6000"


def test_times_without_end() -> None:
    about = dict(
        headers.times(Head(1, 9, 2, START, math.inf, 0), edition()).at(START, headers.Believed(1.0, 60.0, "a"))
    )
    assert headers.read_date(about[b"expires"].decode()) == START + headers.YEAR
    overdue = dict(
        headers.times(Head(1, 9, 2, START, START + 5, 0), edition()).at(START + 65, headers.Believed(0.5, 60.0, "a"))
    )
    assert overdue[b"cache-status"] == b"a; hit; ttl=-60"


@pytest.mark.parametrize(
    ("media_type", "wanted", "shown"),
    [
        ("text/plain; charset=utf-8", "text/plain; charset=utf-8", True),
        ("image/png", "image/png", True),
        ("text/html", "text/html", False),
        ("image/svg+xml", "image/svg+xml", False),
        ("application/xhtml+xml", "application/xhtml+xml", False),
        ("", "application/octet-stream", False),
        ("text/plain\r\nset-cookie: a=b", "application/octet-stream", False),
        ("text/plaïn", "application/octet-stream", False),
    ],
)
def test_only_passive_types_are_shown(media_type: str, wanted: str, shown: bool) -> None:
    fields = dict(headers.content(7, edition(media_type=media_type)))
    assert fields[b"content-type"].decode() == wanted
    assert (b"content-disposition" not in fields) is shown
    assert fields[b"x-content-type-options"] == b"nosniff"
    assert b"sandbox" in fields[b"content-security-policy"]


def test_names() -> None:
    assert headers.structured_name('a "b" \\ ü\r\n') == b'"a \\"b\\" \\\\ "'
