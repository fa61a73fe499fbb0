"""What strangers write stays an address of the web: no value of ours, no file, no other scheme, no line of a header."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from unstale.adapters.api_pages import next_place
from unstale.adapters.api_terms import ApiTerms
from unstale.adapters.environment import filled_address
from unstale.cli.compose import member_of
from unstale.cli.fetchers import Fetchers, admission_of
from unstale.cli.settings import Settings, load
from unstale.cli.strangers import strangers_check
from unstale.errors import InputError
from unstale.feed_links import advertised, icon_of
from unstale.ports import Claim, Listing

HOME, CANARY = "https://a.example", "canary-7d41"
#: what somebody may write where an address is expected; {folder} is one whose files we may poll
WORDS = (
    "https://a.example/x?a=$STRANGE",
    "https://a.example/x?a=${{STRANGE}}&b=1",
    "https://a.example/$STRANGE/x",
    "https://b.example/${{STRANGE}}",
    "/x?a=$STRANGE",
    "//b.example/$STRANGE",
    "?a=$STRANGE",
    "$STRANGE",
    "https://$STRANGE.example/",
    "https://$STRANGE@a.example/",
    "https://a.example/%24STRANGE",
    "file://{folder}/private",
    "{folder}/private",
    "../../../../../../../../{folder}/private",
    "ftp://a.example/private",
    "s3://bucket/private",
    "sftp://$STRANGE@a.example/private",
    "sqlite:///{folder}/private",
    "postgresql://$STRANGE@a.example/private",
    "javascript:alert(1)",
    "data:text/html,x",
    "https://a.example/x\r\nX-Injected: 1",
    "https://a.example/{{{{7*7}}}}",
)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("STRANGE", CANARY)
    (tmp_path / "private").write_text("ours")
    config = tmp_path / "unstale.toml"
    config.write_text(f'store = "s.db"\n[files]\nroots = ["{tmp_path}"]\nschemes = ["ftp", "sftp", "s3"]\n')
    return load(str(config))


def member(kind: str) -> Callable[[Settings, str], list[str]]:
    """A sitemap, feed or index of this kind lists it."""

    def listed(settings: Settings, word: str) -> list[str]:
        claim = Claim(1, 1, f"{HOME}/list", kind, 0.0, {"collection": "sitemap"})
        one = member_of(settings)(claim, word, "")
        # As it is asked for when it is polled.
        fetchers = Fetchers(settings, lambda: 0.0)
        return [fetchers._request(Claim(2, 2, one.address, one.kind, 0.0, one.options)).address]

    return listed


def in_a_list(settings: Settings, word: str) -> list[str]:
    check = strangers_check(admission_of(settings), f"{HOME}/list.csv", Listing(f"{HOME}/list.csv"))
    return [filled_address(check(word, "http", {}))]


def linked(settings: Settings, word: str) -> list[str]:
    page = f"<link rel=alternate type=application/rss+xml href='{word}'><link rel=icon href='{word}'>".encode()
    found = [*advertised(page, HOME + "/"), icon_of(page, HOME + "/")]
    return [filled_address(one) for one in found if one]


def next_page(settings: Settings, word: str) -> list[str]:
    told = next_place(f"{HOME}/x", {"link": f'<{word}>; rel="next"'}, {}, ApiTerms(), 5, 1)
    more = next_place(f"{HOME}/x", {}, {"next": word}, ApiTerms(next="/next", paging="cursor"), 5, 1)
    return [one for one in (told, more) if one]


PLACES: dict[str, Callable[[Settings, str], list[str]]] = {
    "sitemap": member("http"),
    "feed": member("feed"),
    "page in a browser": member("browser"),
    "list on the web": in_a_list,
    "page with links": linked,
    "API": next_page,
}


@pytest.mark.parametrize("place", PLACES)
def test_what_strangers_write_is_an_address_of_the_web_and_names_nothing_of_ours(
    place: str, settings: Settings, tmp_path: Path
) -> None:
    taken = 0
    for word in (one.format(folder=tmp_path) for one in WORDS):
        found: list[str] = []
        with suppress(InputError):
            found = PLACES[place](settings, word)
        for address in found:
            taken += 1
            assert CANARY not in address, word
            assert address.startswith(("http://", "https://")), word
            assert not set("\r\n") & set(address), word
    assert taken, "nothing is taken at all: the table proves nothing"


@pytest.mark.parametrize("index", ["s3://bucket/index", "ftp://a.example/index"])
def test_a_listing_elsewhere_names_no_file_of_ours(index: str, settings: Settings, tmp_path: Path) -> None:
    claim = Claim(1, 1, index, "file", 0.0, {"collection": "folder"})
    for word in (f"file://{tmp_path}/private", f"{tmp_path}/private", "private", "sftp://a.example/private"):
        with pytest.raises(InputError):
            member_of(settings)(claim, word, "")


def test_what_a_replica_calls_its_sources_is_not_filled_in(settings: Settings) -> None:
    for word in WORDS:
        claim = Claim(2, 2, word, "replica", 0.0, {"upstream": HOME})
        assert CANARY not in Fetchers(settings, lambda: 0.0)._request(claim).address
