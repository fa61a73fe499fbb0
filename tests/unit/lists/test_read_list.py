"""Lists as people keep them, and as accidents leave them: every bad line is named, every good one is kept."""

from __future__ import annotations

import gzip
import json
import math
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstale.adapters.admission import Admission
from unstale.adapters.ways import granted
from unstale.errors import InputError
from unstale.kinds import KINDS
from unstale.lists import read as reading
from unstale.lists.read import format_of, read_list
from unstale.lists.rows import Parsed
from unstale.ports import Listing

OPML = b"""<?xml version="1.0"?>
<opml version="1.0"><head/><body>
<outline text="News">
  <outline text="BBC &amp; co" xmlUrl="https://bbc.example/rss.xml" type="rss"/>
  <outline text="deeper"><outline title="2024" text="x" xmlurl="https://two.example/feed"/></outline>
</outline>
<outline text="no feed" htmlUrl="https://example.org/"/>
</body></opml>"""
SITEMAP = b"""<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
<url><loc> https://example.org/a </loc><lastmod>2024-01-01</lastmod><priority>1.0</priority>
  <image:image><image:loc>https://example.org/a.png</image:loc></image:image></url>
<url><loc>https://example.org/b?x=1&amp;y=2</loc></url>
<url><loc>https://example.org/c</loc><priority>high</priority></url>
</urlset>"""


#: everything that settings can grant
ADMISSION = Admission(granted(roots=["/"], schemes=KINDS["file"].schemes))


def read(text: str | bytes, **kwargs: object) -> Parsed:
    data = text.encode() if isinstance(text, str) else text
    return read_list(data, check=ADMISSION, **kwargs)  # type: ignore[arg-type]


def addresses(parsed: Parsed) -> list[str]:
    return [listing.address for listing in parsed.listings]


def problems(parsed: Parsed) -> dict[int, str]:
    return {problem.line: problem.reason for problem in parsed.problems}


def test_plain_text() -> None:
    parsed = read(
        "# my list\n\nhttps://example.org/it's#top\n  https://example.org/b  weight=3 min=15m max=1d cost=0.5 # often\n"
        "https://example.org/c.rss host=group paused=yes options.title='All of it' headers.X-Key=$KEY\n"
        "s3://bucket/key\nsqlite:///a.db kind=sql options.table=t\n"
    )
    assert parsed.problems == []
    assert parsed.listings == [
        Listing("https://example.org/it's", host="example.org"),
        Listing("https://example.org/b", "http", 3.0, 0.5, "example.org", 900.0, 86400.0),
        Listing(
            "https://example.org/c.rss",
            "feed",
            host="group",
            paused=True,
            options={"title": "All of it", "headers": {"X-Key": "$KEY"}},
        ),
        Listing("s3://bucket/key", "file", host="bucket"),
        Listing("sqlite:///a.db", "sql", options={"table": "t"}),
    ]


def test_the_sentence_names_what_is_wrong() -> None:
    parsed = read(
        "https://a.org/1 weight=nan\nhttps://a.org/2 wieght=3\nhttps://a.org/3 weight\nhttps://a.org/4 kind=ftp\n"
        "https://a.org/5 options.title='x\nexample.org\nhttps://a.org/6 min=2h max=1h\nhttps://a.org/7 paused=maybe\n"
        "gopher://a.org/8\nhttps://a.org/9 max=0\nhttps://a.org/10 cost=0\nhttps://me:pw@a.org/\n"
        "https://a.org/11 headers.Cookie=abc\nmysql://me:hunter2@h/d\nhttps://a.org/12 options=[1]\n"
    )
    assert parsed.listings == []
    assert problems(parsed) == {
        1: "weight 'nan' is not a number: write it like 2 or 0.5",
        2: "column 'wieght' is unknown: did you mean 'weight'?",
        3: "word 'weight' says nothing: write name=value, like weight=3",
        4: "kind 'ftp' is unknown: did you mean 'file'?",
        5: 'line "options.title=\'x" has a quote that does not end: end it',
        6: "address 'example.org' has no scheme: write it like https://example.org/news",
        7: "min_interval 7200 s must not exceed max_interval 3600 s: swap them",
        8: "paused 'maybe' is neither yes nor no: write yes, no or nothing",
        9: "address with scheme 'gopher' is of no known kind: name its kind, one of http, feed, file, sql, api, "
        "browser, replica",
        10: "max_interval 0 must be above 0: leave it out for no limit",
        11: "cost 0.0 must be a finite number above 0 and at most 1e+100: correct it",
        12: "address holds credentials: give them as a header instead",
        13: "options.headers.Cookie (not shown) must not hold a secret: "
        "put it in the environment and write its name there, as $NAME",
        14: "address 'mysql://me:…' holds a password: put it in the environment and write its name there, as $NAME",
        15: 'options given must be a JSON object: write it like {"title": "News"}',
    }


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e400", "-1", "1_000", "٣", "0x10", "9" * 5000, "true", "1,5"])
@pytest.mark.parametrize("column", ["weight", "cost"])
def test_numbers_that_are_none(column: str, text: str) -> None:
    if text == "9" * 5000:
        text = "1" + text  # beyond the largest float, too
    parsed = read(f'address,{column}\nhttps://a.org/,"{text}"\n')
    assert (parsed.listings, [p.line for p in parsed.problems]) == ([], [2])
    assert parsed.problems[0].reason.startswith(f"{column} ")


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999", "true", '"nan"', "-0.5", "[1]", "1" + "0" * 400])
def test_numbers_in_json_that_are_none(value: str) -> None:
    parsed = read(f'{{"address": "https://a.org/", "weight": {value}}}\n')
    assert (parsed.listings, [p.line for p in parsed.problems]) == ([], [1])


def test_a_table_and_its_columns() -> None:
    parsed = read(
        "URL;Weight;shortest;longest;note;headers.Accept;options.timeout;options\n"
        'https://a.org/;2;90s;;"; and more";text/html;3;"{""title"": ""A""}"\n'
        "https://b.org/;;;;;;;\n\n"
    )
    assert parsed.unused == ("note",)
    assert parsed.listings == [
        Listing(
            "https://a.org/",
            weight=2.0,
            host="a.org",
            shortest=90.0,
            options={"title": "A", "timeout": 3, "headers": {"Accept": "text/html"}},
        ),
        Listing("https://b.org/", host="b.org"),
    ]


def test_lines_are_counted_as_an_editor_does() -> None:
    parsed = read(
        'address,options\r\nhttps://a.org/,"{""title"":\r\n""two lines""}"\r\n\r\nbad\r\nhttps://a.org/,x,y\r\n'
        'https://b.org/,\r\n"https://c.org/"x,\r\n"open\r\n'
    )
    assert addresses(parsed) == ["https://a.org/", "https://b.org/"]
    assert parsed.listings[0].options == {"title": "two lines"}
    assert list(problems(parsed)) == [5, 6, 8, 9]


def test_a_table_without_addresses_says_what_it_has() -> None:
    with pytest.raises(InputError, match="columns name, weight has no column 'address'"):
        read("name,weight\nx,1\n", format="csv")
    with pytest.raises(InputError, match="column 'url' means the same as 'address'"):
        read("address,url\na,b\n")


def test_duplicates_after_spelling() -> None:
    parsed = read("https://Example.org\nhttps://example.org:443/#a\nhttps://b.org/\nHTTPS://EXAMPLE.ORG/\n")
    assert addresses(parsed) == ["https://example.org/", "https://b.org/"]
    reason = "address 'https://example.org/' is listed already in line 1: list it once"
    assert problems(parsed) == {2: reason, 4: reason}


def test_international_names_are_encoded() -> None:
    assert addresses(read("https://bücher.example/ä\n")) == ["https://xn--bcher-kva.example/%C3%A4"]


def test_long_addresses() -> None:
    good, long = "https://a.org/" + "x" * (8192 - 14), "https://a.org/" + "x" * (8193 - 14)
    parsed = read(f"{good}\n{long}\nhttps://a.org/{'ä' * 2000}\n")
    assert addresses(parsed) == [good]
    assert problems(parsed) == {
        2: "address of 8193 characters must have at most 8192: shorten it",
        3: "address of 12014 characters must have at most 8192: shorten it",
    }


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_and_line_ends(encoding: str) -> None:
    for end in ("\n", "\r\n", "\r"):
        text = f"address,weight{end}https://a.org/,2{end}https://bücher.example/,3{end}"
        parsed = read(text.encode(encoding))
        assert [(one.address, one.weight) for one in parsed.listings] == [
            ("https://a.org/", 2.0),
            ("https://xn--bcher-kva.example/", 3.0),
        ]


def test_latin_1_is_reported_by_line() -> None:
    parsed = read("https://a.org/\nhttps://bücher.example/\nhttps://c.org/\n".encode("latin-1"))
    assert addresses(parsed) == ["https://a.org/", "https://c.org/"]
    assert problems(parsed) == {2: "address 'https://b?cher.example/' is not UTF-8: save the list as UTF-8"}


def test_nul_and_garbage() -> None:
    parsed = read(b"https://a.org/\nhttps://b.org/\x00\nhttps://c.org/\x1b[31m\n")
    assert addresses(parsed) == ["https://a.org/"]
    assert list(problems(parsed)) == [2, 3]
    with pytest.raises(InputError, match="is not text"):
        read(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4)


@given(st.binary(max_size=300), st.sampled_from([None, *reading.FORMATS]))
def test_nothing_but_a_sentence_comes_of_garbage(data: bytes, format: str | None) -> None:
    try:
        parsed = read(data, format=format)
    except InputError as error:
        reasons = [str(error)]
    else:
        reasons = [problem.reason for problem in parsed.problems]
        assert parsed.listings or reasons
    for reason in reasons:
        assert reason.isprintable(), reason


@given(st.text(max_size=200))
def test_a_cell_of_any_text_is_taken_or_refused(text: str) -> None:
    quoted = text.replace('"', '""')
    data = f'address,options.x\nhttps://a.org/,"{quoted}"\n'.encode("utf-8", "surrogatepass")
    parsed = read(data)
    assert len(parsed.listings) + len(parsed.problems) == 1


def test_a_hundred_thousand_bad_lines_are_a_hundred_thousand_problems() -> None:
    lines = ["address,weight", *(f"https:/a.org/{i},nan" for i in range(100_000)), "https://a.org/,1"]
    begin = time.process_time()
    parsed = read("\n".join(lines))
    assert time.process_time() - begin < 20
    assert (len(parsed.listings), len(parsed.problems)) == (1, 100_000)
    assert [p.line for p in parsed.problems] == list(range(2, 100_002))


def test_json_lines() -> None:
    parsed = read(
        '{"url": "https://a.org/", "weight": 2, "paused": true, "headers": {"A": "b"}, "tags": [1]}\n'
        '{"address": "https://b.org/", "options": {"normalise": {"selectors": ["p"]}}, "min_interval": "5m"}\n'
        '[1]\n{"address": 7}\n{broken\n{"address": "https://c.org/", "headers": {"A": 1}}\n'
    )
    assert parsed.unused == ("tags",)
    assert parsed.listings == [
        Listing("https://a.org/", weight=2.0, host="a.org", paused=True, options={"headers": {"A": "b"}}),
        Listing("https://b.org/", host="b.org", shortest=300.0, options={"normalise": {"selectors": ["p"]}}),
    ]
    assert list(problems(parsed)) == [3, 4, 5, 6]


def test_parquet(tmp_path: Path) -> None:
    file = tmp_path / "list.bin"
    table = {"address": ["https://a.org/", None, "https://c.org/"], "weight": [2.0, 1.0, math.nan], "x": [1, 2, 3]}
    pq.write_table(pa.table(table), file)
    parsed = read_list(str(file), check=ADMISSION)
    assert [(one.address, one.weight) for one in parsed.listings] == [("https://a.org/", 2.0)]
    assert parsed.unused == ("x",)
    assert list(problems(parsed)) == [2, 3]


def test_opml() -> None:
    assert read(OPML).listings == [
        Listing(
            "https://bbc.example/rss.xml", "feed", host="bbc.example", options={"title": "BBC & co", "tags": ["News"]}
        ),
        Listing(
            "https://two.example/feed",
            "feed",
            host="two.example",
            options={"title": "2024", "tags": ["News", "deeper"]},
        ),
    ]


def test_a_feed_in_several_folders_is_one_source_with_all_their_tags() -> None:
    one = '<outline text="one" xmlUrl="https://a.org/feed"/>'
    folders = f'<outline text="A">{one}</outline><outline text="B"><outline text="C">{one}</outline></outline>{one}'
    parsed = read(f'<opml><body>{folders}<outline text="A">{one}</outline></body></opml>')
    assert parsed.problems == []
    options = {"title": "one", "tags": ["A", "B", "C"]}
    assert parsed.listings == [Listing("https://a.org/feed", "feed", host="a.org", options=options)]


def test_broken_xml_keeps_what_came_before() -> None:
    parsed = read(OPML[: OPML.index(b'<outline text="no feed"')] + b"<oops")
    assert len(parsed.listings) == 2
    assert problems(parsed) == {7: "the XML is broken here (unclosed token): correct it"}


@pytest.mark.parametrize("name", ["opml", "urlset"])
def test_document_types_are_refused(name: str) -> None:
    bomb = f'<?xml version="1.0"?>\n<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>\n<{name}>&b;</{name}>'
    parsed = read(bomb)
    assert parsed.listings == []
    assert [p.line for p in parsed.problems] == [2]
    assert "document type" in parsed.problems[0].reason


def test_sitemap() -> None:
    parsed = read(SITEMAP)
    assert addresses(parsed) == ["https://example.org/a", "https://example.org/b?x=1&y=2", "https://example.org/c"]
    assert {one.weight for one in parsed.listings} == {1.0}
    weighed = read(SITEMAP, weigh=True)
    assert [(one.address[-1], one.weight) for one in weighed.listings] == [("a", 2.0), ("2", 1.0)]
    assert problems(weighed) == {6: "weight 'high' is not a number: write it like 2 or 0.5"}


def test_an_index_is_followed_through_what_loads() -> None:
    index = (
        b'<sitemapindex xmlns="x">\n<sitemap><loc>https://e.org/1.xml.gz</loc></sitemap>\n'
        b"<sitemap><loc>https://e.org/2.xml</loc></sitemap>\n<sitemap><loc>https://e.org/3.xml</loc></sitemap>\n"
        b"</sitemapindex>"
    )
    web = {"https://e.org/1.xml.gz": gzip.compress(SITEMAP), "https://e.org/2.xml": index}

    def load(address: str) -> bytes:
        if address not in web:
            raise InputError("e.org: it answered 404")
        return web[address]

    parsed = read(index, load=load)
    assert len(parsed.listings) == 3
    assert [str(p) for p in parsed.problems] == [
        *(f"line {n} of https://e.org/2.xml: it is an index inside an index: give it on its own" for n in (2, 3, 4)),
        "line 4: e.org: it answered 404",
    ]
    with pytest.raises(InputError, match="list of 3 sitemaps is an index"):
        read(index)


def test_packed_lists_and_bombs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert addresses(read(gzip.compress(b"https://a.org/\n") + gzip.compress(b"https://b.org/\n"))) == [
        "https://a.org/",
        "https://b.org/",
    ]
    monkeypatch.setattr(reading, "UNPACKED", 1000)
    assert len(read(gzip.compress(b"#" * 985 + b"\nhttps://a.org")).listings) == 1
    for data, rule in (
        (gzip.compress(b"#" * 1001), "unpacks to more than 1,000 bytes"),
        (gzip.compress(b"https://a.org/")[:-4], "its end is missing"),
        (b"\x1f\x8bnonsense....", "cannot be unpacked"),
    ):
        with pytest.raises(InputError, match=rule):
            read(data)


def test_formats_are_told_apart() -> None:
    found = {
        name: format_of(name, data)
        for name, data in (
            ("a.csv", b"x"),
            ("a.TSV", b"x"),
            ("a.csv.gz", b"x"),
            ("a.ndjson", b"x"),
            ("a.txt", b"address,weight"),
            ("a", b"PAR1"),
            ("b", b"\xef\xbb\xbf <!-- <html> --><opml>"),
            ("c", b"<ns:urlset>"),
            ("d", b"{}"),
            ("e", b"weight\turl\n"),
            ("f", b"https://a.org/?url=1,2\n"),
            ("g", OPML),
            ("h", SITEMAP),
        )
    }
    assert list(found.values()) == [
        "csv",
        "csv",
        "csv",
        "jsonl",
        "text",
        "parquet",
        "opml",
        "sitemap",
        "jsonl",
        "csv",
        "text",
        "opml",
        "sitemap",
    ]
    with pytest.raises(InputError, match="is a feed, not a list of feeds: add its address itself"):
        format_of("x", b"<?xml version='1.0'?>\n<rss>")
    with pytest.raises(InputError, match="is <html>: give OPML or a sitemap"):
        format_of("x", b"<!doctype html><html>")


def test_where_lists_are(tmp_path: Path) -> None:
    file = tmp_path / "list"
    file.write_text("https://a.org/\n")
    assert len(read_list(str(file)).listings) == 1
    assert len(read_list("https://a.org/list", load=lambda _: b"https://b.org/").listings) == 1
    for place, rule in (
        (str(tmp_path / "none"), "cannot be read \\(no such file or directory\\)"),
        (str(tmp_path), "cannot be read \\(is a directory\\)"),
        ("https://a.org/list", "is on the web: save it and give the file"),
        ("a\0b", "is no path"),
    ):
        with pytest.raises(InputError, match=rule):
            read_list(place)
    with pytest.raises(InputError, match="has no sources"):
        read_list(b"# nothing\n")
    with pytest.raises(InputError, match="format 'doc' is unknown"):
        read_list(b"x", format="doc")


def test_what_a_list_leaves_open_comes_from_the_base() -> None:
    base = Listing("", "feed", 5.0, 2.0, "", 60.0, 3600.0, {"headers": {"A": "1", "B": "2"}})
    parsed = read("https://a.org/\nhttps://b.org/ weight=1 kind=http headers.B=3 max=1d\n", base=base)
    assert parsed.listings == [
        Listing("https://a.org/", "feed", 5.0, 2.0, "a.org", 60.0, 3600.0, {"headers": {"A": "1", "B": "2"}}),
        Listing("https://b.org/", "http", 1.0, 2.0, "b.org", 60.0, 86400.0, {"headers": {"A": "1", "B": "3"}}),
    ]


def test_rows_that_say_the_same_share_what_they_say() -> None:
    rows = "".join(json.dumps({"address": f"https://a.org/{i}", "options.title": "y"}) + "\n" for i in range(3))
    first, second, third = (one.options for one in read(rows).listings)
    assert first == {"title": "y"}
    assert first is second is third
