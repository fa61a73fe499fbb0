"""Pages as listings of the pages they link to: a crawl, one look at a time, within its scope."""

from __future__ import annotations

from html.parser import HTMLParser

from unstale.listings.packed import unpacked
from unstale.listings.taking import Taker

#: bytes of a page that are looked at for links
_LOOKED_AT = 5 * 2**20
#: what a link may end with that is no page
_NO_PAGES = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".ico", ".css", ".js", ".woff2", ".mp4", ".zip", ".gz")


def read_links(data: bytes, to: Taker) -> None:
    """The pages that a page links to. With a `depth` above 1 each of them is a collection itself.

    Links that say nofollow are passed over, all of them if the page says so; what a page calls its canonical address
    is the one that counts, so that of another one nothing is followed.

    >>> from unstale.listings.readers import read_listing
    >>> page = b'<a href="b#top">b</a> <a rel="nofollow" href="c">c</a> <a href="mailto:x@example.org">x</a>'
    >>> [entry.address for entry in read_listing("links", page, "https://example.org/a", now=2e9).entries]
    ['https://example.org/b']
    """
    found = _Links()
    found.feed(unpacked(data)[:_LOOKED_AT].decode("utf-8", "replace"))
    own = to.base.partition("#")[0]
    if found.base:
        to.base = to.placed(found.base) or to.base
    if found.canonical and (canonical := to.placed(found.canonical)) and canonical != own:
        to.take(canonical)
        return
    deeper = int(float(str(to.options.get("depth", 1)))) > 1
    for target in [] if found.nofollow else found.targets:
        if target.partition(":")[0].lower() in ("mailto", "tel", "javascript", "data", "ftp"):
            continue
        whole = to.placed(target.partition("#")[0])
        if whole is None or whole == own or whole.partition("?")[0].lower().endswith(_NO_PAGES):
            continue
        if deeper:
            to.inner(whole)
        elif not to.take(whole):
            return


class _Links(HTMLParser):
    """Targets of links in the order of the page, each once, and what the page says of itself."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.targets: dict[str, None] = {}
        self.base = self.canonical = ""
        self.nofollow = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One element; what is not understood is passed over."""
        own = {name: value or "" for name, value in attrs}
        said = own.get("rel", "").lower().split()
        if tag == "a" and own.get("href") and "nofollow" not in said:
            self.targets[own["href"].strip()] = None
        elif tag == "base" and not self.base:
            self.base = own.get("href", "").strip()
        elif tag == "link" and "canonical" in said:
            self.canonical = own.get("href", "").strip()
        elif tag == "meta" and own.get("name", "").lower() == "robots":
            self.nofollow = self.nofollow or not {"nofollow", "none"}.isdisjoint(
                word.strip() for word in own.get("content", "").lower().split(",")
            )
