"""Icons of sites: only if asked, only small pictures, only from us, and nobody waits for one."""

from __future__ import annotations

import asyncio
import io
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from support.asgi import Got, Kept, ask
from unstale.cli.service import service_of
from unstale.cli.settings import Settings
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Listing
from unstale.server.app import replica
from unstale.server.dashboard.icons import LARGEST
from unstale.server.dashboard.sniffed import SIDE, picture_type
from unstale.server.dashboard.views import views

EVIL = b"<script>window.pwned=1</script>"
TYPES = {"PNG": "image/png", "GIF": "image/gif", "JPEG": "image/jpeg", "WEBP": "image/webp", "ICO": "image/x-icon"}


def drawn(form: str, side: int = 32, **more: Any) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (side, side), "teal").save(out, form, **more)
    return out.getvalue()


@pytest.mark.parametrize("form", TYPES)
def test_what_others_draw_is_known_for_what_it_is(form: str) -> None:
    assert picture_type(drawn(form)) == TYPES[form]
    for cut in range(10):
        assert picture_type(drawn(form)[:cut]) is None
    if form != "ICO":
        assert picture_type(drawn(form, SIDE + 1)) is None


def test_a_bitmap_in_an_icon_and_both_other_forms_of_webp() -> None:
    assert picture_type(drawn("ICO", bitmap_format="bmp", sizes=[(16, 16)])) == "image/x-icon"
    assert picture_type(drawn("WEBP", lossless=True)) == "image/webp"
    assert picture_type(drawn("WEBP", exif=b"Exif\0\0more")) == "image/webp"


def test_what_is_no_small_picture_is_none() -> None:
    large = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 50_000, 50_000)
    inside = struct.pack("<HHH", 0, 1, 1) + bytes(8) + struct.pack("<II", len(large), 22) + large
    hostile = [
        *(
            b"",
            EVIL,
            b"<svg xmlns='http://www.w3.org/2000/svg' onload='window.pwned=1'/>",
            b"<?xml version='1.0'?><svg/>",
        ),
        *(b"GIF89a/*" + EVIL + b"*/=1;", b"\x89PNG\r\n\x1a\n" + EVIL, b"\xff\xd8\xff" + EVIL, b"RIFF" + EVIL + b"WEBP"),
        *(large, inside, struct.pack("<HHH", 0, 1, 60_000), struct.pack("<HHH", 0, 1, 1) + bytes(16) + EVIL),
        struct.pack("<HHH", 0, 1, 1) + bytes(8) + struct.pack("<II", 99, 2**31) + EVIL,
    ]
    assert [picture_type(one) for one in hostile] == [None] * len(hostile)


class Sites:
    """Answers what a test put there, by address."""

    def __init__(self) -> None:
        self.there: dict[str, bytes] = {}
        self.looked: list[Listing] = []

    async def look(self, listing: Listing) -> Fetched:
        self.looked.append(listing)
        body = self.there.get(listing.address)
        return Fetched(Answer.FAILED if body is None else Answer.CHANGED, 0.0, body, "text/html", reason="nobody")

    async def counted(self, kind: str, options: Mapping[str, Any], data: bytes, media_type: str) -> str:
        raise NotImplementedError


class Iconed(Kept):
    """A store whose dashboard shows icons, if it is said to."""

    def __init__(self, path: Path, icons: bool = True) -> None:
        super().__init__(path, 2)
        self.sites, self.service = Sites(), service_of(Settings(store=str(path)))
        self.app = replica(self.shelf, clock=self.clock, more=views(self.service, tries=self.sites, icons=icons))

    def icons(self, *sources: int) -> list[Got]:
        """What is answered to each in turn, with time between them for what goes on meanwhile."""

        async def all_of_them() -> list[Got]:
            found = []
            for source in sources:
                found.append(await ask(self.app, f"/dashboard/sources/{source}/icon"))
                for _ in range(5):
                    await asyncio.sleep(0)
            return found

        return asyncio.run(all_of_them())

    def close(self) -> None:
        self.service.close()
        super().close()


def test_without_the_setting_there_are_none(tmp_path: Path) -> None:
    assert Settings().server.icons is False
    seen = Iconed(tmp_path / "s.db", icons=False)
    assert (seen.icons(1)[0].status, seen.sites.looked) == (404, [])
    seen.close()


def test_an_icon_is_fetched_once_and_sent_as_a_picture_that_can_do_nothing(tmp_path: Path) -> None:
    seen, png = Iconed(tmp_path / "s.db"), drawn("PNG") + EVIL
    seen.sites.there["https://a.example/favicon.ico"] = png
    # Another source of this host has the same one, and one that is not there has none.
    first, found, other, none = seen.icons(1, 1, 2, 99)
    assert (first.status, first.fields["content-type"], first.fields["cache-control"]) == (200, "image/gif", "no-store")
    assert (found.body, found.fields["content-type"]) == (png, "image/png")
    assert found.fields["content-security-policy"] == "sandbox; default-src 'none'"
    assert found.fields["x-content-type-options"] == "nosniff"
    assert (other.body, none.status) == (png, 404)
    assert [(one.address, one.kind, one.options["limit"]) for one in seen.sites.looked] == [
        ("https://a.example/favicon.ico", "http", LARGEST)
    ]
    seen.close()


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ("/i.png", "https://a.example/i.png"),
        ("i.ico?v=2", "https://a.example/i.ico?v=2"),
        ("/i?a=$HOME", "https://a.example/i?a=%24HOME"),
        ("https://elsewhere.example/i.png", "https://a.example/favicon.ico"),
        ("http://127.0.0.1/i.png", "https://a.example/favicon.ico"),
        ("javascript:alert(1)", "https://a.example/favicon.ico"),
        ("data:image/png;base64,AAAA", "https://a.example/favicon.ico"),
        ("/drawn.svg", "https://a.example/favicon.ico"),
    ],
)
def test_a_page_says_where_its_icon_is_at_its_own_host(tmp_path: Path, said: str, place: str) -> None:
    seen = Iconed(tmp_path / "s.db")
    seen.poll(f"<link rel='icon' href='{said}'>".encode(), media_type="text/html")
    seen.icons(1)
    assert [one.address for one in seen.sites.looked] == [place]
    seen.close()


@pytest.mark.parametrize("body", [EVIL, b"\x89PNG\r\n\x1a\n" + EVIL, drawn("PNG") + bytes(LARGEST)])
def test_what_is_no_icon_stays_blank(tmp_path: Path, body: bytes) -> None:
    seen = Iconed(tmp_path / "s.db")
    seen.sites.there["https://a.example/favicon.ico"] = body
    _, found, _ = seen.icons(1, 1, 1)
    assert (found.fields["content-type"], len(found.body)) == ("image/gif", 43)
    assert found.fields["cache-control"] == "private, max-age=3600"
    assert len(seen.sites.looked) == 1
    seen.close()
