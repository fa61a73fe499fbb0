"""Who adds sources over the network names nothing of the environment but what the settings grant."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import requests

from unstale.cli.serve import run
from unstale.cli.service import terms_of, write_store
from unstale.cli.settings import Settings, load
from unstale.cli.token import Token
from unstale.errors import InputError

OURS = "https://a.example/?x=$UNSTALE_TOKEN"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    config = tmp_path / "unstale.toml"
    granted = '[server]\nenvironment = ["SITE_*"]\n[defaults]\nheaders = { X-Key = "$EVERYBODY" }\n'
    config.write_text(f'store = "{tmp_path}/s.db"\n{granted}')
    return load(str(config))


def test_a_command_may_name_what_its_user_can_read(settings: Settings) -> None:
    assert terms_of(settings).listing({"address": OURS}, None).address == OURS


def test_who_is_afar_is_refused_by_line_and_in_lists(settings: Settings) -> None:
    terms = terms_of(settings, afar=True)
    with pytest.raises(InputError, match=r"\$UNSTALE_TOKEN is not granted .* under \[server\]"):
        terms.listing({"address": OURS}, None)
    found = terms.lists(f"{OURS}\nhttps://a.example/?x=$SITE_KEY\n".encode())
    assert [one.address for one in found.listings] == ["https://a.example/?x=$SITE_KEY"]
    assert [line for line, _ in found.problems] == [1]


def test_the_server_takes_words_from_afar(settings: Settings) -> None:
    """Asked as a program would ask it, with the token that may do everything."""
    write_store(settings, create=True).close()
    token = Token("t" * 32, "the test", True)

    async def scene() -> list[requests.Response]:
        stop, port = asyncio.Event(), asyncio.get_running_loop().create_future()
        running = asyncio.create_task(run(settings, "127.0.0.1", 0, ready=port.set_result, stop=stop, token=token))
        where = f"http://127.0.0.1:{await port}/api/v1/sources"
        said = {"headers": {"Authorization": f"Bearer {token.text}"}, "timeout": 30}
        try:
            one, other = [{"address": OURS}], [{"address": "https://a.example/?x=$SITE_KEY"}]
            refused = await asyncio.to_thread(requests.post, where, json=one, **said)
            taken = await asyncio.to_thread(requests.post, where, json=other, **said)
            sent = {"options": {"headers": {"X-Key": "$UNSTALE_TOKEN"}}}
            return [refused, taken, await asyncio.to_thread(requests.patch, f"{where}/1", json=sent, **said)]
        finally:
            stop.set()
            await running

    refused, taken, edited = asyncio.run(scene())
    assert (refused.status_code, taken.status_code, edited.status_code) == (422, 201, 422), edited.text
    assert "$UNSTALE_TOKEN is not granted to those who write over the network" in refused.json()["detail"]
    assert "$UNSTALE_TOKEN is not granted" in edited.json()["detail"]
