"""What the addresses of an origin hold, read by other readers."""

from __future__ import annotations

import csv
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from unstale.errors import InputError
from unstale.listings.readers import read_listing
from unstale.moments import moment
from unstale.origin.site import ENTRIES, Document, Site
from unstale.traces.feed import read_feed
from unstale.traces.read import read

START = 1.7e9
BASE = "http://127.0.0.1:1234"


def site(sources: int = 5, rate: float = 0.5, **options: object) -> Site:
    return Site.of(sources, rate, start=START, seed=3, **options)  # type: ignore[arg-type]


def found(where: Site, path: str, t: float = START + 60.0) -> Document:
    document = where.find(path.encode(), t, BASE)
    assert document is not None
    return document


def test_a_source_tells_its_version_and_since_when() -> None:
    here = site()
    times = here.changing.times(2, START + 60.0)
    document = found(here, "/s/2")
    assert document.version == len(times) > 10
    assert f"Source 2, version {len(times)}".encode() in document.body()
    stated = document.body().split(b"<time>")[1].split(b"</time>")[0].decode()
    assert moment(stated)[0] == pytest.approx(times[-1], abs=1e-6)
    assert found(here, "/s/2", float(times[3])).version == 4
    assert found(here, "/s/2").version == len(times)


def test_every_version_has_its_own_body_and_validator() -> None:
    here = site()
    moments = np.concatenate([[START], here.changing.times(0, START + 60.0), here.changing.times(1, START + 60.0)])
    documents = {(i, d.version): d for i in (0, 1) for t in moments.tolist() if (d := found(here, f"/s/{i}", t))}
    assert len(documents) == found(here, "/s/0").version + found(here, "/s/1").version + 2
    assert len({document.etag for document in documents.values()}) == len(documents)
    assert len({document.body() for document in documents.values()}) == len(documents)
    later = Site.of(5, 0.5, start=START + 1.0, seed=3)
    assert found(later, "/s/0", START + 1.0).etag != found(here, "/s/0", START).etag


@pytest.mark.parametrize("size", [2000, 100_000, 0])
def test_bodies_have_their_size_or_what_they_need(size: int) -> None:
    body = found(site(rate=0.0, size=size), "/s/1").body()
    assert len(body) == size if size else len(body) < 300
    assert body.startswith(b"<!doctype html>")
    assert b"version 0" in body
    assert body.endswith(b"</html>\n")


@pytest.mark.parametrize("path", ["/s/5", "/s/-1", "/s/01", "/s", "/s/²", "/s/1/", "/feed/5", "//s/1", "", "x"])
def test_nothing_is_anywhere_else(path: str) -> None:
    assert site().find(path.encode(), START) is None


def test_lists_name_every_source() -> None:
    here = site(7)
    addresses = [f"{BASE}/s/{i}" for i in range(7)]
    assert found(here, "/list.txt").body().decode().split() == addresses
    rows = list(csv.DictReader(found(here, "/list.csv").body().decode().splitlines()))
    assert [row["address"] for row in rows] == addresses
    assert {row["weight"] for row in rows} == {"1"}
    tree = ElementTree.fromstring(found(here, "/sitemap.xml").body())
    names = {"m": "http://www.sitemaps.org/schemas/sitemap/0.9"}
    assert [loc.text for loc in tree.findall("m:url/m:loc", names)] == addresses
    for i, lastmod in enumerate(tree.findall("m:url/m:lastmod", names)):
        assert moment(str(lastmod.text))[0] == pytest.approx(here.changing.at(i, START + 60.0)[1], abs=1e-6)
    assert b"7 sources" in found(here, "/").body()


def test_collections_tell_when_sources_changed_and_one_of_them_lies() -> None:
    here = site(30, 0.2)
    truth = {f"{BASE}/s/{i}": here.changing.at(i, START + 60.0)[1] for i in range(30)}

    def told(path: str, form: str) -> dict[str, float | None]:
        poll = read_listing(form, found(here, path).body(), BASE + path, now=START + 60.0)
        return {entry.address: entry.time for entry in poll.entries}

    assert told("/sitemap.xml", "sitemap") == pytest.approx(truth, abs=1e-6)
    assert told("/s/", "index") == pytest.approx({address: float(int(t)) for address, t in truth.items()})
    newest = dict(sorted(truth.items(), key=lambda one: -one[1])[:20])
    assert told("/recent.atom", "feed") == pytest.approx(newest, abs=1e-6)
    lies = told("/lying-sitemap.xml", "sitemap")
    assert not any(lies[address] == pytest.approx(t, abs=1e-3) for address, t in truth.items() if t > START)


def test_a_feed_tells_the_newest_changes(tmp_path: Path) -> None:
    here = site()
    file = tmp_path / "feed.xml"
    file.write_bytes(found(here, "/feed/1").body())
    trace, problems = read_feed([str(file)], now=START + 60.0)
    assert not problems.counts()
    assert trace.times == pytest.approx(here.changing.times(1, START + 60.0)[-ENTRIES:], abs=1e-6)
    assert found(here, "/feed/1").version == found(here, "/s/1").version
    assert found(here, "/feed/1").etag != found(here, "/s/1").etag
    assert b"<entry>" not in found(here, "/feed/1", START).body()


def test_the_truth_is_a_trace_that_others_read(tmp_path: Path) -> None:
    here = site(4, 0.2)
    file = tmp_path / "truth.csv"
    file.write_bytes(found(here, "/truth.csv").body())
    trace, problems = read(str(file), now=START + 60.0)
    truth = here.truth(START + 60.0, BASE)
    assert not problems.counts()
    assert trace.names == truth.names
    assert np.array_equal(trace.times, truth.times)


def test_several_processes_are_dealt_out_in_turn() -> None:
    here = site(4, 0.1, process=["constant", "poisson"])
    for i, even in enumerate([True, False, True, False]):
        gaps = np.diff(here.changing.times(i, START + 300.0))
        assert np.allclose(gaps, 10.0) == even


def test_a_process_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="process 'fractal' is not known"):
        site(process="fractal")
    with pytest.raises(InputError, match="size -1"):
        site(size=-1)
