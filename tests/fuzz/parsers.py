"""Every parser that strangers feed, as a function of bytes: what it may refuse is swallowed, what it may not is raised.

Rules of this file:
1. A parser takes or refuses: `InputError`, or the one exception that its own contract names. Anything else is a fault.
2. A parser whose output is bounded is held to its bound.
3. Whatever one writes, it reads again to the same: where there is a way back it is gone.
"""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Callable
from pathlib import Path

from protego import Protego

from unstale.adapters.addresses import Gate, web_address
from unstale.adapters.api_pages import next_place
from unstale.adapters.api_records import RecordReading, columns_of, last_of_each, read_json, records_in, values_in
from unstale.adapters.api_terms import ApiTerms
from unstale.adapters.feed_content import feed_content, feed_times
from unstale.adapters.http_message import AnswerReader, Broken
from unstale.adapters.normalise import Normaliser
from unstale.adapters.replica_status import read_status
from unstale.adapters.retry_headers import http_date, retry_after, wait
from unstale.adapters.triggers import Triggers
from unstale.calendar import parse_hours
from unstale.cli.settings import load
from unstale.codings import BrokenCoding, Decoder, TooMuch
from unstale.errors import InputError
from unstale.feed_links import advertised, meant_as_feed
from unstale.feeds import read_feed
from unstale.listings.readers import READERS, read_listing
from unstale.lists.read import FORMATS, read_list
from unstale.moments import moment
from unstale.server.headers import matches
from unstale.server.proxy.fields import Fields, directives, http_age, members, targeted
from unstale.server.ranges import cut
from unstale.units import parse_duration, parse_rate

NOW, ROOM, BASE = 2e9, 100_000, "https://example.org/list/"
HTML, JSON = "text/html; charset=utf-8", "application/json"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _feeds(data: bytes) -> None:
    for repair in (False, True):
        with contextlib.suppress(InputError):
            read_feed(data, repair=repair)
    feed_content(data)
    times = feed_times(data, NOW)
    assert times is None or all(map(math.isfinite, times))


def _feed_links(data: bytes) -> None:
    meant_as_feed(data)
    for address in advertised(data, BASE):
        assert address.startswith(("http://", "https://"))


def _dates(data: bytes) -> None:
    text = _text(data)
    for found in (http_date(text), retry_after(text, NOW)):
        assert found is None or math.isfinite(found)
    at, _ = moment(text)
    assert not math.isinf(at)


def _waits(data: bytes) -> None:
    first, _, second = _text(data).partition("\n")
    headers = {"retry-after": first, "x-ratelimit-remaining": "0", "x-ratelimit-reset": second, "ratelimit": second}
    found = wait(429, headers, NOW)
    assert found is None or math.isfinite(found)


def _fields(data: bytes) -> None:
    text = _text(data)
    members(text)
    directives(text)
    matches(text, '"a"')
    fields = Fields.of([("cdn-cache-control", text), ("age", text), ("connection", text)])
    targeted(fields)
    fields.end_to_end()
    assert http_age(fields) >= 0.0


def _status(data: bytes) -> None:
    first, _, second = _text(data).partition("\n")
    found = read_status({"replica-status": first, "cache-status": second, "expires": second})
    assert found is None or math.isfinite(found.as_of)


def _ranges(data: bytes) -> None:
    answer = cut(b"0123456789" * 10, _text(data), b"text/plain", '"bound"')
    assert answer is None or len(answer.body) < 20_000


def _answers(data: bytes) -> None:
    reader = AnswerReader("GET")
    try:
        for begin in range(0, len(data), 7):
            reader.feed(data[begin : begin + 7])
        reader.close()
    except Broken:
        pass


def _codings(data: bytes) -> None:
    for coding in ("gzip", "deflate", "br", "zstd"):
        decoder, size = Decoder([coding]), 0
        try:
            for begin in range(0, len(data), 11):
                size += len(decoder.feed(data[begin : begin + 11], ROOM - size))
        except (BrokenCoding, TooMuch):
            pass
        assert size <= ROOM


def _robots(data: bytes) -> None:
    Protego.parse(_text(data)).can_fetch("https://example.org/a?b", "unstale")


def _addresses(data: bytes) -> None:
    text = _text(data)
    try:
        address = web_address(text)
    except InputError:
        return
    # One spelling: what it made of it is made of itself.
    assert web_address(address.text).text == address.text
    gate = Gate()
    try:
        gate.check_host(address.host)
    except InputError:
        return
    assert address.host.strip("[]") not in ("localhost", "127.0.0.1", "::1", "0.0.0.0")


def _listings(data: bytes) -> None:
    for kind in READERS:
        try:
            page = read_listing(kind, data, BASE, now=NOW, most=1000)
        except InputError:
            continue
        assert len(page.entries) <= 1000


def _lists(data: bytes) -> None:
    for kind in (None, *FORMATS):
        if kind != "parquet":
            with contextlib.suppress(InputError):
                read_list(data, format=kind)


def _selectors(data: bytes) -> None:
    with contextlib.suppress(InputError):
        Normaliser(selectors=[_text(data)])(b"<div class=clock>1</div><p>a", HTML)
    Normaliser(selectors=["div.clock", "p > a[href]"], whitespace=True)(data, HTML)


def _pointers(data: bytes) -> None:
    with contextlib.suppress(InputError):
        Normaliser(pointers=["/" + _text(data)])(b'{"a": [1, {"b": 2}]}', JSON)
    Normaliser(pointers=["/a", "/items/*/views", "/~01/0"])(data, JSON)


def _parts(data: bytes) -> None:
    text = _text(data)[:200]
    for given in ({"xpath": [text]}, {"between": [[text[:20], text[20:]]]}):
        with contextlib.suppress(InputError):
            Normaliser(**given)(b"<div class=clock>1</div><p>a", HTML)
    kept = Normaliser(
        xpath=["//p", "//a/@href"],
        between=[["<", ">"]],
        patterns=["(\\d+) EUR", "[a-z]+"],
        text=True,
        dates=True,
        case=True,
    )
    stock = Triggers.said({"appear": ["in stock"], "vanish": ["sold"], "above": 1, "below": 9}, kept)
    for kind in (HTML, "text/xml", "text/plain"):
        stock(data, kind)
        stock.fires(b"<p>1 EUR</p>", kind, data, kind)


def _api(data: bytes) -> None:
    head, _, body = data.partition(b"\n")
    terms = ApiTerms(next="meta.next", key=("id",))
    try:
        page = read_json(body)
        assert values_in(body) >= 1
        records = last_of_each(records_in(page, ""), terms.key)
        reading = RecordReading(columns_of(records, {}), terms.key, records)
        for _ in reading.rows():
            pass
        place = next_place(BASE, {"link": _text(head)}, page, terms, len(records), 1)
    except InputError:
        return
    assert not place or web_address(place).origin == web_address(BASE).origin


def _settings(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "unstale.toml"
        file.write_bytes(data)
        with contextlib.suppress(InputError):
            load(file)


def _units(data: bytes) -> None:
    text = _text(data)
    for parse in (parse_rate, parse_duration, parse_hours):
        with contextlib.suppress(InputError):
            parse(text)


#: by name, what reads the bytes
PARSERS: dict[str, Callable[[bytes], None]] = {
    "addresses": _addresses,
    "answers": _answers,
    "api": _api,
    "codings": _codings,
    "dates": _dates,
    "feed_links": _feed_links,
    "feeds": _feeds,
    "fields": _fields,
    "listings": _listings,
    "lists": _lists,
    "parts": _parts,
    "pointers": _pointers,
    "ranges": _ranges,
    "robots": _robots,
    "selectors": _selectors,
    "settings": _settings,
    "status": _status,
    "units": _units,
    "waits": _waits,
}
