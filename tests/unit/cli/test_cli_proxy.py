"""Naming origins for the proxy, and running it as the command does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner

from support.loopback import Loopback, answer
from unstale.cli.proxy import origins, run
from unstale.cli.serve import serve
from unstale.errors import InputError


@pytest.mark.parametrize(
    "texts", [["http://a.example", "http://b.example"], ["a.example", "a.example=http://b.example"]]
)
def test_a_host_has_one_origin(texts: list[str]) -> None:
    with pytest.raises(InputError, match="given twice: name one origin for each host"):
        origins(texts)


@pytest.mark.parametrize("text", ["a.example=ftp://b", "a.example=b.example", "http://a.example/path", "="])
def test_what_is_no_origin_is_one_sentence(text: str) -> None:
    async def scene() -> None:
        await run([text], "127.0.0.1", 0, name="", allow_networks=[], token=None, stop=asyncio.Event())

    with pytest.raises(InputError, match=r"origin .* must be a scheme and a host"):
        asyncio.run(scene())


def test_it_answers_from_its_stock() -> None:
    async def scene() -> tuple[list[bytes], int]:
        stop, port = asyncio.Event(), asyncio.get_running_loop().create_future()
        async with Loopback({"/x": answer(b"news", cache_control="max-age=60")}) as origin:
            serving = asyncio.create_task(
                run(
                    [origin.origin],
                    "127.0.0.1",
                    0,
                    name="",
                    allow_networks=["127.0.0.0/8"],
                    token=None,
                    stop=stop,
                    ready=port.set_result,
                )
            )
            got = []
            for _ in range(3):
                reader, writer = await asyncio.open_connection("127.0.0.1", await port)
                writer.write(b"GET /x HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                got.append((await reader.read()).split(b"\r\n\r\n")[1])
                writer.close()
            stop.set()
            await serving
            return got, len(origin.asked)

    assert asyncio.run(scene()) == ([b"news"] * 3, 1)


def test_a_restart_keeps_what_was_kept(tmp_path: Path) -> None:
    async def once(origin: Loopback) -> bytes:
        stop, port = asyncio.Event(), asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(
            run(
                [origin.origin],
                "127.0.0.1",
                0,
                name="edge",
                allow_networks=["127.0.0.0/8"],
                token=None,
                stop=stop,
                budget=1.0,
                stock=str(tmp_path / "stock.db"),
                ready=port.set_result,
            )
        )
        reader, writer = await asyncio.open_connection("127.0.0.1", await port)
        writer.write(b"GET /x HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        got = await reader.read()
        writer.close()
        stop.set()
        await serving
        return got

    async def scene() -> tuple[bytes, bytes, int]:
        async with Loopback({"/x": answer(b"news", cache_control="max-age=60")}) as origin:
            return await once(origin), await once(origin), len(origin.asked)

    first, second, asked = asyncio.run(scene())
    assert (b"stored" in first, b"edge; hit; ttl=" in second, asked) == (True, True, 1)


@pytest.mark.parametrize("more", [["--budget", "5/h"], ["--stock", "s.db"]])
def test_what_is_for_a_proxy_needs_one(more: list[str]) -> None:
    done = CliRunner().invoke(serve, more)
    assert done.exit_code == 2
    assert "--proxy" in done.output
