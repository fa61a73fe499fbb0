"""What counts of a page that a browser drew: its text as it is seen, unless its source says otherwise."""

from __future__ import annotations

from hashlib import sha256

from unstale.fingerprint import Content, Selective
from unstale.frozen import dataclass
from unstale.html_text import html_text
from unstale.pictured import apart


@dataclass(frozen=True, slots=True)
class BrowserContent:
    """The text of the markup, or what `inner` makes of it; with `picture`, also every pixel.

    >>> from unstale.pictured import with_picture
    >>> one, two = (with_picture(b"<p class=%d>Trains" % i, b"%d" % i) for i in (1, 2))
    >>> BrowserContent()(one, "text/html") == BrowserContent()(two, "text/html") == b"Trains"
    True
    >>> BrowserContent(picture=True)(one, "text/html") == BrowserContent(picture=True)(two, "text/html")
    False
    """

    inner: Content | None = None
    picture: bool = False

    @property
    def unbounded(self) -> bool:
        """Whether looking at a small body may take long."""
        return isinstance(self.inner, Selective) and self.inner.unbounded

    def __call__(self, body: bytes, media_type: str) -> bytes:
        """What counts."""
        markup, picture = apart(body)
        text = "\n".join(html_text(markup)).encode() if self.inner is None else self.inner(markup, media_type)
        return text + (b"\npicture " + sha256(picture).hexdigest().encode() if self.picture and picture else b"")

    def fires(self, old: bytes, old_type: str, new: bytes, new_type: str) -> bool:
        """Every change of what counts is news."""
        return True
