"""What the origin's collections say at any time: a sitemap, one that lies, a feed of the last changes, a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from html import escape

#: changes that the feed of the site tells, and addresses that the format of sitemaps allows in one file
RECENT, SITEMAP = 20, 50_000
#: when source i last changed, by the law that a listing goes by
Changed = Callable[[int], float]


def sitemap(base: str, paths: Sequence[str], changed: Changed) -> str:
    """Every source with the time of its last change."""
    rows = "".join(
        f"<url><loc>{escape(base + path)}</loc><lastmod>{moment(changed(i))}</lastmod></url>\n"
        for i, path in enumerate(paths[:SITEMAP])
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{rows}</urlset>\n'
    )


def recent(base: str, paths: Sequence[str], changed: Changed, begun: float) -> str:
    """The sources that changed last, newest first; who has not changed since the site began is not told."""
    times = sorted(((changed(i), path) for i, path in enumerate(paths)), reverse=True)
    entries = "".join(
        f"<entry><id>{escape(base + path)}#{at!r}</id><title>{escape(path)}</title><updated>{moment(at)}</updated>"
        f'<link href="{escape(base + path)}"/></entry>\n'
        for at, path in times[:RECENT]
        if at > begun
    )
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom"><id>{escape(base)}</id>'
        f"<title>What changed</title><author><name>origin</name></author>"
        f"<updated>{moment(times[0][0] if times else begun)}</updated>\n{entries}</feed>\n"
    )


def folder(paths: Sequence[str], changed: Changed) -> str:
    """The sources as servers show a folder: names with times, to the second."""
    rows = "".join(
        f'<a href="{path.rpartition("/")[2]}">{path.rpartition("/")[2]}</a> {_second(changed(i))} -\n'
        for i, path in enumerate(paths)
    )
    return f"<html><head><title>Index of /s/</title></head><body><pre>{rows}</pre></body></html>\n"


def moment(t: float) -> str:
    """A time as Atom and sitemaps write it."""
    return datetime.fromtimestamp(t, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _second(t: float) -> str:
    return datetime.fromtimestamp(t, UTC).strftime("%d-%b-%Y %H:%M:%S")
