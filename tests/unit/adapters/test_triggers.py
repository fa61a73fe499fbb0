"""Only what is asked for counts, and only its happening is news; whoever looks for an expression can be ended."""

from __future__ import annotations

import asyncio
import json
import pickle
import time

import pytest

from unstale.adapters.admission import checked_options
from unstale.adapters.normalise import Normaliser
from unstale.adapters.sandbox import Sandbox, SandboxError
from unstale.adapters.triggers import Triggers
from unstale.cli.compose import content_of
from unstale.engine.judge import judge_aside
from unstale.errors import InputError
from unstale.fingerprint import fingerprint
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched

SHOP = "<html><body><p class=clock>%d</p><h2 class=price>%s EUR</h2><p>%s</p><script>in stock</script></body></html>"


def shop(price: str = "25", word: str = "Sold out", clock: int = 1) -> bytes:
    return (SHOP % (clock, price, word)).encode()


@pytest.mark.parametrize(
    ("triggers", "old", "new", "counts", "news"),
    [
        ({"appear": ["in stock"]}, shop(), shop(clock=2), False, False),
        ({"appear": ["in stock"]}, shop(), shop(word="IN STOCK now"), True, True),
        ({"appear": ["in stock"]}, shop(word="in stock"), shop(), True, False),
        ({"vanish": ["sold out"]}, shop(), shop(word="in stock"), True, True),
        ({"vanish": ["sold out"]}, shop(word="in stock"), shop(), True, False),
        ({"below": 20}, shop("25"), shop("21"), False, False),
        ({"below": 20}, shop("25"), shop("19,99"), True, True),
        ({"below": 20}, shop("19,99"), shop("1.025,00"), True, False),
        ({"above": 1000}, shop("999.99"), shop("1,000.50"), True, True),
        ({"added": True}, b"<p>a<p>b<p>c", b"<p>c<p>  a", True, False),
        ({"added": True}, b"<p>a<p>b", b"<p>b<p>d", True, True),
    ],
)
def test_what_counts_and_what_is_news(
    triggers: dict[str, object], old: bytes, new: bytes, counts: bool, news: bool
) -> None:
    options = {"triggers": triggers, "normalise": {"keep": ["h2.price", "p"], "selectors": [".clock"]}}
    checked_options(options)
    content = content_of(Claim(1, 1, "", "http", 0.0, options))
    assert isinstance(content, Triggers)
    content = pickle.loads(pickle.dumps(content))
    assert (fingerprint(old, "text/html", content) != fingerprint(new, "text/html", content)) == counts
    assert content.fires(old, "text/html", new, "text/html") == news


@pytest.mark.parametrize(
    ("normalise", "left"),
    [
        ({"xpath": ["//h2[@class='price']/text()"]}, "25 EUR"),
        ({"xpath": ["count(//p)", "//h2"]}, '2.0\n<h2 class="price">25 EUR</h2>'),
        ({"text": True}, "1\n25 EUR\nSold out"),
        ({"text": True, "patterns": [r"(\d+) EUR", "^Sold"]}, "25\nSold"),
        ({"text": True, "drop_patterns": [r"^\d+$"], "whitespace": True}, "25 EUR Sold out"),
        (
            {"between": [["<h2 class=price>", "</h2>"], ["<script>", "no such"]]},
            "25 EUR\nin stock</script></body></html>",
        ),
        ({"text": True, "digits": True}, "0\n0 EUR\nSold out"),
    ],
)
def test_parts_that_are_kept(normalise: dict[str, list[object]], left: str) -> None:
    checked_options({"normalise": normalise})
    assert Normaliser(**json.loads(json.dumps(normalise)))(shop(), "text/html").decode() == left  # type: ignore[arg-type]


def test_dates_do_not_count() -> None:
    one, two = (
        Normaliser(dates=True)(text.encode(), "") for text in ("at 9:05 on 3 May 2026: 7", "at 17:45 on 28 Nov 2026: 7")
    )
    assert one == two
    assert Normaliser(dates=True)(b"at 9:05 on 3 May 2026: 8", "") != one


@pytest.mark.parametrize(
    "options",
    [
        {"normalise": {"patterns": ["("]}},
        {"normalise": {"patterns": "x"}},
        {"normalise": {"patterns": [7]}},
        {"normalise": {"xpath": ["//["]}},
        {"normalise": {"xpath": ["no:such()"]}},
        {"normalise": {"between": ["ab"]}},
        {"normalise": {"between": [["a"]]}},
        {"normalise": {"between": [["", "b"]]}},
        {"triggers": {}},
        {"triggers": {"appear": []}},
        {"triggers": {"appear": "word"}},
        {"triggers": {"above": "7"}},
        {"triggers": {"above": True}},
        {"triggers": {"often": 1}},
    ],
)
def test_what_cannot_be_followed_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        checked_options(options)


def test_an_expression_that_never_ends_is_ended() -> None:
    """Even in a body of a few bytes: 30 letters keep this expression busy for hours."""
    options = {"normalise": {"patterns": ["^(a|aa)+$"]}}
    claim = Claim(1, 1, "https://a/", "http", 0.0, options)
    fetched = Fetched(Answer.CHANGED, 1.0, b"a" * 60 + b"!", "text/plain")

    async def judged() -> None:
        sandbox = Sandbox(quick=0.1, slow=0.2, processes=1)
        try:
            await judge_aside(claim, fetched, content_of(claim), sandbox)
        finally:
            await sandbox.close()

    began = time.monotonic()
    with pytest.raises(SandboxError):
        asyncio.run(judged())
    assert time.monotonic() - began < 60


def test_nothing_is_loaded_by_an_expression_or_a_document() -> None:
    bomb = b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname"><!ENTITY y "yy">]><a><b>&x;</b><c>&y;</c></a>'
    assert Normaliser(xpath=["string(//b)", "string(//c)"])(bomb, "application/xml").strip() == b""
