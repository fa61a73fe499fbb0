"""The pictures of copies, and where two of them differ (extra `browser`)."""

from __future__ import annotations

import io

from unstale.errors import InputError, MissingExtraError, sentence
from unstale.pictured import apart
from unstale.ports import Body

#: pixels of a picture that is compared
MOST = 40_000_000


def picture_of(body: Body) -> bytes | None:
    """The picture that a copy has, PNG."""
    found = apart(body.data)[1]
    return found if found is not None and found.startswith(b"\x89PNG\r\n\x1a\n") else None


def pictures_compared(old: bytes, new: bytes) -> tuple[bytes, float]:
    """The new picture, pale, with what differs from the old one in red; and the share of pixels that do."""
    try:
        from PIL import Image, ImageChops
    except ImportError:
        raise MissingExtraError("Pillow", "browser") from None
    try:
        before, after = (_opened(one) for one in (old, new))
        size = max(before.width, after.width), max(before.height, after.height)
        # What one of them has not is white there, and differs unless the other is white too.
        spread = []
        for one in (before, after):
            sheet = Image.new("RGB", size, "white")
            sheet.paste(one)
            spread.append(sheet)
        differs = ImageChops.difference(*spread).convert("L").point(lambda level: 255 if level > 8 else 0)
        pale = Image.blend(spread[1], Image.new("RGB", size, "white"), 0.7)
        pale.paste(Image.new("RGB", size, "#d01010"), mask=differs)
        out = io.BytesIO()
        pale.save(out, "PNG")
        return out.getvalue(), differs.histogram()[255] / (size[0] * size[1])
    except (OSError, ValueError, SyntaxError, MemoryError):
        raise InputError(sentence("picture", "of a version", "cannot be read", "poll it anew")) from None


def _opened(data: bytes):  # type: ignore[no-untyped-def]
    from PIL import Image

    found = Image.open(io.BytesIO(data), formats=["PNG"])
    if found.width * found.height > MOST:
        raise ValueError
    return found.convert("RGB")
