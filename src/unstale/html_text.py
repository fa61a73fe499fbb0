"""The text of a page as a reader would see it, line by line, and its title: in time that grows with its length alone.

Rules of this file:
1. Nothing here is markup any more: what comes out is text, to be shown as text.
2. What strangers left open ends with the page; nothing is read twice.
"""

from __future__ import annotations

import html
import re

#: bytes of a page that are read
BYTES = 2**21
#: elements whose content nobody sees, and those that begin a new line
_UNSEEN = ("script", "style", "template", "noscript", "svg", "head", "title")
_LINES = re.compile(
    r"address|article|aside|blockquote|br|caption|d[dlt]|details|div|fieldset|figcaption|figure|footer|form|h[1-6]|"
    r"header|hr|legend|li|main|nav|ol|option|p|pre|section|summary|table|tbody|td|tfoot|th|thead|tr|ul"
)
_NAME = re.compile(r"/?([a-zA-Z][a-zA-Z0-9]*)")
_SPACE = re.compile(r"[ \t\r\f\v\u00a0]+")
_TITLE = re.compile(r"<title[^>]{0,1000}>([^<]{0,8192})", re.IGNORECASE)


def html_text(data: bytes) -> list[str]:
    """The lines that a reader would see, without empty ones.

    >>> html_text(b"<h1>Trains</h1><script>x<p>y</script><p>to <b>Bern</b> &amp; Basel<br>daily")
    ['Trains', 'to Bern & Basel', 'daily']
    """
    text = data[:BYTES].decode("utf-8", "replace")
    lower, parts, at = text.lower(), list[str](), 0
    while (begin := text.find("<", at)) >= 0:
        parts.append(html.unescape(text[at:begin]).replace("\n", " "))
        if lower.startswith("<!--", begin):
            end = text.find("-->", begin + 4)
            at = len(text) if end < 0 else end + 3
            continue
        name = _NAME.match(text, begin + 1)
        if name is None and text[begin + 1 : begin + 2] not in ("!", "?"):
            # A sign for less, and no tag.
            parts.append("<")
            at = begin + 1
            continue
        end = text.find(">", begin)
        at = len(text) if end < 0 else end + 1
        tag = "" if name is None else name[1].lower()
        if tag in _UNSEEN and text[begin + 1] != "/":
            close = lower.find(f"</{tag}", at)
            at = len(text) if close < 0 else close
        elif _LINES.fullmatch(tag):
            parts.append("\n")
    parts.append(html.unescape(text[at:]).replace("\n", " "))
    lines = (_SPACE.sub(" ", line).strip() for line in "".join(parts).split("\n"))
    return [line for line in lines if line]


def html_title(data: bytes) -> str:
    """What a page calls itself, in one line; nothing if it does not.

    >>> html_title(b"<title> Trains &amp;\\n buses</title>")
    'Trains & buses'
    """
    found = _TITLE.search(data[: 2**17].decode("utf-8", "replace"))
    return " ".join(html.unescape(found[1]).split())[:300] if found else ""


def is_html(media_type: str) -> bool:
    """Whether a copy is HTML.

    >>> is_html("text/html; charset=utf-8"), is_html("text/plain")
    (True, False)
    """
    return "html" in media_type.partition(";")[0].lower()


def is_json(media_type: str) -> bool:
    """Whether a copy is JSON.

    >>> is_json("application/ld+json"), is_json("text/html")
    (True, False)
    """
    return media_type.partition(";")[0].strip().lower().endswith("json")
