"""References of a git repository: one look for all of them, as `git ls-remote` prints them or a server sends them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

from unstale.listings.packed import unpacked
from unstale.listings.taking import Taker

_REF = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})[\t ](\S{1,1024})\Z")
#: where a server tells of its references (Git's HTTP protocol, version 0)
WHERE = "/info/refs"
ASKED = f"{WHERE}?service=git-upload-pack"
#: where forges serve what a reference leads to; an owner may say otherwise with the option `member`
_USUAL = "{repository}/archive/{ref}.tar.gz"


def read_refs(data: bytes, to: Taker) -> None:
    """Every reference by its commit; peeled tags and HEAD, which is one of the others, are passed over.

    Members are where the content of a reference is served: the option `member` says it with {repository} (without
    .git), {ref} and {name} (main for refs/heads/main).

    >>> from unstale.listings.readers import read_listing
    >>> line = b"1b3a5c7d9e0f1a2b3c4d5e6f708192a3b4c5d6e7\\trefs/heads/main\\n"
    >>> entry, = read_listing("refs", line, "https://example.org/a.git", now=2e9).entries
    >>> entry.address, entry.tag[:7]
    ('https://example.org/a/archive/refs/heads/main.tar.gz', '1b3a5c7')
    """
    shape = str(to.options.get("member") or _USUAL)
    repository = to.base.partition(WHERE)[0].rstrip("/").removesuffix(".git")
    for line in _lines(unpacked(data)):
        found = _REF.match(line)
        if found is None:
            to.refused["no reference"] += bool(line)
            continue
        ref = found[2]
        if ref == "HEAD" or ref.endswith("^{}"):
            continue
        name = ref.removeprefix("refs/").partition("/")[2] or ref
        told = {"repository": repository, "ref": quote(ref), "name": quote(name)}
        if not to.take(filled_in(shape, told), None, found[1]):
            return


def filled_in(shape: str, told: dict[str, str]) -> str:
    """A text with {names} replaced by what was told; names that were not stay as they are.

    >>> filled_in("/items/{id}", {"id": "7"})
    '/items/7'
    """
    return re.sub(r"\{(\w{1,100})\}", lambda found: told.get(found[1], found[0]), shape)


def _lines(data: bytes) -> Iterator[str]:
    """Lines of text, or of packets: four hexadecimal digits that count them, then the line, its features behind NUL."""
    if not re.match(rb"[0-9a-f]{4}# service=", data):
        yield from (line.strip() for line in data.decode("utf-8", "replace").splitlines())
        return
    at = 0
    while at + 4 <= len(data):
        try:
            size = int(data[at : at + 4], 16)
        except ValueError:
            yield "broken"
            return
        line = data[at + 4 : at + max(size, 4)].partition(b"\0")[0].decode("utf-8", "replace").strip()
        at += max(size, 4)
        if size > 4 and not line.startswith("# service="):
            yield line
