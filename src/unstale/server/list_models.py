"""What the API takes and gives where whole lists of sources are sent, each under its name."""

from __future__ import annotations

from unstale.server import shapes
from unstale.server.models import TAGS
from unstale.server.shapes import model, record, several, text, whole

LIST = model(
    "List",
    record(
        ["content"],
        content=text(2**25, least=1),
        base64=shapes.FLAG,
        add=shapes.FLAG,
        replace=shapes.FLAG,
        keep_good=shapes.FLAG,
        tags=TAGS,
    ),
)
_LISTED = record(address=text(8192), kind=text(), title=text(300), tags=several(text(8192)), new=shapes.FLAG)
LIST_TAKEN = model(
    "ListTaken",
    record(
        sources=whole(0),
        new=whole(0),
        added=shapes.FLAG,
        first=several(_LISTED),
        problems=several(record(line=whole(0), reason=text(2000))),
        bad=whole(0),
        unused=several(text(200)),
    ),
)
