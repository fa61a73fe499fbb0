"""Parts of a page by XPath (extra `xpath`): what stands there in one spelling, or the text or number asked for."""

from __future__ import annotations

from collections.abc import Sequence

from unstale.errors import InputError, MissingExtraError, sentence


def by_xpath(body: bytes, paths: Sequence[str], *, xml: bool) -> str:
    """What expressions find in HTML or XML, one find a line; nothing where a body is not what it says it is.

    Nothing is loaded; a document that has entities of its own, which may stand for anything, has no parts.
    """
    try:
        from lxml import etree
    except ImportError:
        raise MissingExtraError("lxml", "xpath") from None
    asked = []
    for path in paths:
        try:
            asked.append(etree.XPath(path))
        except (etree.XPathError, ValueError):  # Characters that no XML may have are a ValueError.
            what = sentence("xpath", repr(path[:60]), "is no XPath 1.0", "write it like //h2[@class='price']/text()")
            raise InputError(what) from None
    if xml and b"<!ENTITY" in body:
        return ""
    parser = (
        etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, recover=True)
        if xml
        else etree.HTMLParser(encoding="utf-8", no_network=True)
    )
    try:
        tree = etree.fromstring(body, parser)
    except (etree.ParseError, ValueError):
        return ""
    if tree is None:
        return ""
    finds: list[str] = []
    for one in asked:
        try:
            found = one(tree)
        except etree.XPathError:
            # It can be read, and asks for what is not there: a name of a function or of a namespace.
            what = sentence("xpath", repr(one.path[:60]), "asks for what XPath 1.0 has not", "correct it")
            raise InputError(what) from None
        for part in found if isinstance(found, list) else [found]:
            node = isinstance(part, etree._Element)
            finds.append(etree.tostring(part, encoding="unicode", with_tail=False) if node else str(part))
    return "\n".join(finds)
