"""Looks at a collection as the engine does, without one: through the program's own fetchers, readers and gate."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unstale.cli.compose import member_of
from unstale.cli.fetchers import Fetchers
from unstale.cli.settings import load
from unstale.engine.joining import compared
from unstale.engine.listed import parsed
from unstale.keeper.outcomes import Answer
from unstale.listings.forms import form_of
from unstale.listings.records import CollectionMember
from unstale.ports import Claim, Fetched


class Looking:
    """Looks at a collection as the engine does, and remembers what was said."""

    def __init__(self, address: str, options: Mapping[str, Any], folder: Path) -> None:
        config = folder / "unstale.toml"
        config.write_text(
            'store = "s.db"\n[http]\nallow_networks = ["127.0.0.0/8"]\nrobots = false\n'
            f'[files]\nroots = ["{folder}"]\nschemes = ["ftp", "sftp", "s3"]\n'
        )
        settings = load(str(config))
        self.fetchers, self.member_of = Fetchers(settings, time.time), member_of(settings)
        form = options.get("collection") or form_of(address)
        kind = {"folder": "file", "catalogue": "sql"}.get(form, "http")
        self.claim = Claim(1, 1, address, kind, 0.0, {**options, "collection": form})
        self.known: list[CollectionMember] = []

    async def look(self) -> tuple[Fetched, set[str]]:
        """One look: what came, and the addresses of those who are said to have changed. Who is new joins."""
        fetched = await self.fetchers.look(self.claim)
        assert fetched.answer is not Answer.FAILED, fetched.reason
        shown = await parsed(self.claim, fetched, None)
        if shown is None:
            return fetched, set()
        heard = compared(self.known, shown, fetched.polled_at)
        words = {member.address: member for member in heard.words}
        self.known = [words.get(member.address, member) for member in self.known]
        first = 2 + len(self.known)
        self.known += [CollectionMember(1, first + k, e.address, e.time, e.tag) for k, e in enumerate(heard.new)]
        by_source = {member.source: member.address for member in self.known}
        self.claim = Claim(1, 1, self.claim.address, self.claim.kind, 0.0, self.claim.options, etag=fetched.etag)
        return fetched, {by_source[source] for source in heard.signals}

    async def poll(self, address: str) -> Fetched:
        """Poll a member as it would be listed."""
        one = self.member_of(self.claim, address, "")
        return await self.fetchers.look(Claim(2, 2, one.address, one.kind, 0.0, one.options))
