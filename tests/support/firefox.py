"""Debian's Firefox, driven over WebDriver BiDi: what a walk needs of it, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.patience import BUSY

FIREFOX = "/usr/bin/firefox-esr"
_LISTENING = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
#: no word to anybody else
_PREFS = """
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("app.update.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("browser.safebrowsing.update.enabled", false);
user_pref("remote.active-protocols", 1);
"""


class Window:
    """One page. Elements are found by what a person reads: their role is their tag, their name their text or label."""

    def __init__(self, send: Any) -> None:
        self._send = send
        self._tab = send("browsingContext.getTree", {})["contexts"][0]["context"]
        noting = "addEventListener('securitypolicyviolation', (e) => (window.broken ??= []).push(e.violatedDirective))"
        send("script.addPreloadScript", {"functionDeclaration": f"() => {{ {noting}; }}"})

    def go(self, address: str) -> None:
        """Open a page."""
        self._send("browsingContext.navigate", {"context": self._tab, "url": address, "wait": "complete"})

    def run(self, script: str) -> Any:
        """What an expression gives, JSON alone; it may be a promise."""
        wrapped = f"Promise.resolve({script}).then((found) => JSON.stringify(found ?? null))"
        asked = {"expression": wrapped, "target": {"context": self._tab}, "awaitPromise": True}
        found = self._send("script.evaluate", asked)
        assert found["type"] == "success", found
        return json.loads(found["result"]["value"])

    def broken(self) -> list[str]:
        """Rules of the page's own policy that something tried to break."""
        found: list[str] = self.run("window.broken ?? []")
        return found

    def until(self, script: str, seconds: float = 20.0 * BUSY) -> None:
        """Wait until something is so."""
        end = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < end, f"{script}: {self.run('document.body.innerText.slice(0, 3000)')}"
            time.sleep(0.1)

    def sees(self, text: str) -> None:
        """Wait until a text is shown."""
        self.until(f"document.body.innerText.includes({json.dumps(text)})")

    def click(self, name: str, which: str = "button, a") -> None:
        """Press a button or follow a link of this name, as soon as it is there."""
        found = (
            f"[...document.querySelectorAll({which!r})].find((one) => !one.disabled && one.offsetParent "
            f"&& one.textContent.trim() === {json.dumps(name)})"
        )
        self.until(f"Boolean({found})")
        self.run(f"void {found}.click()")

    def type(self, label: str, text: str) -> None:
        """Write into a field, found by its label."""
        named = f"[...document.querySelectorAll('label')].find((one) => one.textContent.trim() === {json.dumps(label)})"
        self.until(f"Boolean({named})")
        place = f"document.getElementById({named}.htmlFor)"
        self.run(f"void ({place}.focus(), {place}.select?.())")
        keys = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        actions = [{"type": "key", "id": "keys", "actions": keys}]
        self._send("input.performActions", {"context": self._tab, "actions": actions})


@contextmanager
def firefox() -> Iterator[Window]:
    """The browser in a profile of its own, and one window of it."""
    ready, loop = threading.Event(), asyncio.new_event_loop()
    made: dict[str, Any] = {}

    async def begin() -> None:
        import aiohttp

        folder = made["folder"] = tempfile.mkdtemp()
        Path(folder, "user.js").write_text(_PREFS, "utf-8")
        made["process"] = process = await asyncio.create_subprocess_exec(
            *(FIREFOX, "--headless", "--no-remote", "--profile", folder, "--remote-debugging-port=0", "about:blank"),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "HOME": folder, "MOZ_REMOTE_SETTINGS_DEVTOOLS": "1"},
            start_new_session=True,
        )
        assert process.stderr is not None
        async with asyncio.timeout(60.0 * BUSY):
            while True:
                line = await process.stderr.readline()
                assert line, "Firefox ended"
                if found := _LISTENING.search(line.decode("utf-8", "replace")):
                    break
        made["drain"] = asyncio.ensure_future(_drained(process.stderr))
        made["client"] = client = aiohttp.ClientSession()
        made["socket"] = await client.ws_connect(f"{found[1]}/session", max_msg_size=2**26)
        made["number"], made["lock"] = 0, asyncio.Lock()

    async def ask(method: str, given: dict[str, Any]) -> Any:
        async with made["lock"], asyncio.timeout(60.0 * BUSY):
            made["number"] += 1
            number = made["number"]
            await made["socket"].send_json({"id": number, "method": method, "params": given})
            while True:
                told = await made["socket"].receive_json()
                if told.get("id") == number:
                    assert told["type"] == "success", told
                    return told["result"]

    async def end() -> None:
        with contextlib.suppress(Exception):
            await made["client"].close()
        with contextlib.suppress(ProcessLookupError, KeyError):
            os.killpg(made["process"].pid, signal.SIGKILL)
            await made["process"].wait()
        if "drain" in made:
            # Its end closes the pipe.
            await made["drain"]
            made["process"]._transport.close()
        await asyncio.sleep(0.1)

    def live() -> None:
        asyncio.set_event_loop(loop)
        ready.set()
        loop.run_forever()

    def send(method: str, given: dict[str, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(ask(method, given), loop).result()

    thread = threading.Thread(target=live, daemon=True)
    thread.start()
    ready.wait()
    try:
        asyncio.run_coroutine_threadsafe(begin(), loop).result()
        send("session.new", {"capabilities": {}})
        yield Window(send)
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _drained(stream: asyncio.StreamReader) -> None:
    while await stream.read(65_536):
        pass
