"""Who is told of a change: the same words for a log, a command and a webhook, and honest counts of what was taken."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from support.loopback import Loopback, answer, redirect
from support.patience import SOON
from unstale.adapters.addresses import Gate
from unstale.adapters.command_sink import CommandSink
from unstale.adapters.event_text import event_text
from unstale.adapters.log_sink import LogSink
from unstale.adapters.webhook import Webhook, signature
from unstale.errors import InputError
from unstale.ports import Event

HOME = Gate(["127.0.0.0/8"])


def event(number: int, address: str = "http://x/ä") -> Event:
    return Event(number, 4, address, 2, 1.5e9, bytes(range(32)))


def tell(sink: Any, *events: Event) -> tuple[int, str]:
    async def once() -> tuple[int, str]:
        try:
            return await sink.tell(events)
        finally:
            await sink.close()

    return asyncio.run(once())


def numbers(path: Path) -> list[int]:
    return [json.loads(line)["number"] for line in path.read_text("utf-8").splitlines()]


def test_an_event_is_told_in_plain_words() -> None:
    assert json.loads(event_text(event(7))) == {
        "number": 7,
        "source": 4,
        "address": "http://x/ä",
        "version": 2,
        "at": 1.5e9,
        "time": "2017-07-14T02:40:00+00:00",
        "digest": bytes(range(32)).hex(),
        "first": False,
    }
    # A clock that stood anywhere at all does not stop the telling.
    assert json.loads(event_text(Event(1, 1, "a", 1, 1e300, b"")))["time"] is None


# The log.


def test_lines_are_appended_and_the_name_stays(tmp_path: Path) -> None:
    path = tmp_path / "changes.jsonl"
    assert tell(LogSink(path), event(1), event(2, 'http://x/\u2028 "quoted"')) == (2, "")
    assert tell(LogSink(path), event(3)) == (1, "")
    lines = path.read_bytes().split(b"\n")
    assert [json.loads(line)["number"] for line in lines[:-1]] == [1, 2, 3]
    assert LogSink(path).name == LogSink(str(path)).name == f"log {path}"


def test_half_a_line_of_ours_is_cut_off_wherever_a_kill_fell(tmp_path: Path) -> None:
    path = tmp_path / "log"
    whole, next_line = event_text(event(1)) + b"\n", event_text(event(2)) + b"\n"
    for kept in range(len(next_line)):
        path.write_bytes(whole + next_line[:kept])
        assert tell(LogSink(path), event(2)) == (1, "")
        assert path.read_bytes() == whole + next_line
    path.write_bytes(next_line[:5])
    tell(LogSink(path), event(2))
    assert path.read_bytes() == next_line
    long = event_text(event(1, "a" * 200_000))[:-9]
    path.write_bytes(whole + long)
    tell(LogSink(path), event(2))
    assert path.read_bytes() == whole + next_line


def test_what_others_wrote_is_ended_but_never_cut(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"# my notes")
    tell(LogSink(path), event(1))
    assert path.read_bytes() == b"# my notes\n" + event_text(event(1)) + b"\n"


def test_a_log_that_was_moved_away_is_begun_anew(tmp_path: Path) -> None:
    path, old = tmp_path / "log", tmp_path / "log.1"

    async def rotate() -> None:
        sink = LogSink(path)
        await sink.tell([event(1)])
        path.rename(old)
        await sink.tell([event(2)])
        await sink.tell([event(3)])
        path.unlink()
        await sink.tell([event(4)])
        # Cut to nothing in place, as some rotations do.
        os.truncate(path, 0)
        await sink.tell([event(5)])
        await sink.close()

    asyncio.run(rotate())
    assert (numbers(old), numbers(path)) == ([1], [5])


def test_a_log_that_cannot_be_written_takes_nothing_and_heals(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "folder" / "log"
    assert tell(LogSink(path), event(1)) == (0, f"{path}: No such file or directory")
    path.parent.mkdir()
    really, sink = os.write, LogSink(path)

    async def full_then_free() -> None:
        monkeypatch.setattr(os, "write", lambda file, data: really(file, data[:10]))
        assert await sink.tell([event(1), event(2)]) == (0, f"{path}: no room for a whole line")
        monkeypatch.setattr(os, "write", really)
        assert await sink.tell([event(1), event(2)]) == (2, "")
        await sink.close()

    asyncio.run(full_then_free())
    assert numbers(path) == [1, 2]


# The command.


def script(text: str, *words: str) -> list[str]:
    return [sys.executable, "-c", text, *words]


def test_a_command_gets_the_event_on_its_input_and_in_its_environment(tmp_path: Path) -> None:
    out = tmp_path / "out"
    text = (
        "import os, sys; open(sys.argv[1], 'ab').write(sys.stdin.buffer.read() + b'\\n'); "
        "open(sys.argv[1], 'a').write(' '.join(os.environ['UNSTALE_' + n] for n in sys.argv[2:]) + '\\n')"
    )
    names = ("EVENT", "SOURCE", "ADDRESS", "VERSION", "AT", "DIGEST")
    address = "http://x/$(touch;rm)&*"
    assert tell(CommandSink(script(text, str(out), *names)), event(1, address), event(2)) == (2, "")
    first, fields, second, _ = out.read_bytes().splitlines()
    assert (first, second) == (event_text(event(1, address)), event_text(event(2)))
    assert fields.decode() == f"1 4 {address} 2 1500000000.0 {bytes(range(32)).hex()}"


def test_a_command_that_fails_stops_the_telling_there() -> None:
    text = "import os, sys; sys.exit(3 * (os.environ['UNSTALE_EVENT'] == '2'))"
    assert tell(CommandSink(script(text)), event(1), event(2), event(3)) == (1, f"{sys.executable}: it exited with 3")
    ended = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    assert tell(CommandSink(script(ended)), event(1)) == (0, f"{sys.executable}: it was ended by SIGTERM")
    assert tell(CommandSink(["/none"]), event(1)) == (0, "/none: it could not be run, No such file or directory")


def test_a_command_that_reads_nothing_is_fine() -> None:
    long = event(1, "http://x/" + "a" * 8000)
    assert tell(CommandSink(["true"]), *[long] * 5) == (5, "")


def all_gone(pids: Path) -> None:
    """The processes whose numbers are in a file end soon."""
    deadline = time.monotonic() + SOON
    for pid in map(int, pids.read_text().split()):
        with suppress(FileNotFoundError, ProcessLookupError):
            while "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]:
                assert time.monotonic() < deadline
                time.sleep(0.01)


@pytest.mark.parametrize("patience", [0.5, 60.0])
def test_a_command_beyond_its_time_is_killed_with_all_it_started(tmp_path: Path, patience: float) -> None:
    pids = tmp_path / "pids"
    command = ["sh", "-c", 'sleep 600 & echo $! $$ > "$0.new"; mv "$0.new" "$0"; wait', str(pids)]

    async def run(patience: float) -> None:
        task = asyncio.create_task(CommandSink(command, seconds=patience).tell([event(1)]))
        while not (pids.exists() or task.done()):
            await asyncio.sleep(0.01)
        if not pids.exists():
            # A busy machine has not even started the shell by then: once more, with more time.
            await task
            await run(4.0 * patience)
        elif patience >= 60.0:
            # The engine stops, and does not wait so long.
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            assert await task == (0, f"sh: it took more than {patience:g} s")

    asyncio.run(run(patience))
    all_gone(pids)


def test_a_stop_while_a_command_is_started_ends_it_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids, start = tmp_path / "pids", asyncio.create_subprocess_exec
    command = ["sh", "-c", 'sleep 600 & echo $! $$ > "$0.new"; mv "$0.new" "$0"; wait', str(pids)]

    async def run() -> None:
        async def slow(*given: Any, **options: Any) -> Any:
            # The process runs, and whoever asked for it does not hold it yet.
            process = await start(*given, **options)
            while not pids.exists():
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.sleep(0.01)
            return process

        monkeypatch.setattr(asyncio, "create_subprocess_exec", slow)
        task = asyncio.create_task(CommandSink(command).tell([event(1)]))
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    all_gone(pids)


def test_names_of_commands_differ_by_their_arguments_and_show_none() -> None:
    one, two = CommandSink(["/bin/notify", "--token", "s3cret"]), CommandSink(["/bin/notify"])
    assert one.name != two.name
    assert one.name == CommandSink(("/bin/notify", "--token", "s3cret")).name
    assert one.name.startswith("command notify ")
    assert "s3cret" not in one.name
    for bad in ([], ["a\0b"]):
        with pytest.raises(
            InputError, match=rf"command of {len(bad)} words must be a program and its arguments: write them"
        ):
            CommandSink(bad)


# The webhook.


class Receiver(Loopback):
    """Keeps the bodies it is sent, and answers what its path says."""

    def __init__(self, *statuses: str) -> None:
        super().__init__({})
        self.bodies: list[bytes] = []
        self.statuses = list(statuses)

        async def hook(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                self.bodies.append(await reader.readexactly(int(self.asked[-1]["content-length"])))
                writer.write(answer(b"x" * 100, self.statuses.pop(0) if self.statuses else "204 No Content"))
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                lines = dict(line.split(": ", 1) for line in head[1:] if ": " in line)
                self.asked.append({"": head[0]} | {name.lower(): value for name, value in lines.items()})

        self.speeches["/hook?key=s3cret"] = hook


def post(receiver: Loopback, *events: Event, path: str = "/hook?key=s3cret", **given: Any) -> tuple[int, str]:
    async def run() -> tuple[int, str]:
        async with receiver:
            sink = Webhook(receiver.origin + path, **({"gate": HOME, "now": lambda: 1234.9} | given))
            try:
                return await sink.tell(events)
            finally:
                await sink.close()

    return asyncio.run(run())


def test_events_are_posted_in_order_over_one_connection() -> None:
    receiver = Receiver("200 OK", "202 Accepted")
    assert post(receiver, event(1), event(2), event(3)) == (3, "")
    assert receiver.bodies == [event_text(event(n)) for n in (1, 2, 3)]
    assert receiver.connections == 1
    first = receiver.asked[0]
    assert first[""] == "POST /hook?key=s3cret HTTP/1.1"
    assert (first["content-type"], first["webhook-timestamp"]) == ("application/json", "1234")
    assert first["idempotency-key"] == first["webhook-id"] == "1-0001020304050607"
    assert "webhook-signature" not in first
    assert "expect" not in first


def test_the_signature_is_the_standard_s() -> None:
    # The example that the libraries of Standard Webhooks are tested with.
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    assert signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}') == (
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )
    for secret, key in (("plain text", b"plain text"), ("whsec_" + base64.b64encode(b"\0\1").decode(), b"\0\1")):
        receiver = Receiver()
        assert post(receiver, event(5), secret=secret) == (1, "")
        signed = f"5-0001020304050607.1234.{receiver.bodies[0].decode()}".encode()
        expected = base64.b64encode(hmac.new(key, signed, "sha256").digest()).decode()
        assert receiver.asked[0]["webhook-signature"] == f"v1,{expected}"
    with pytest.raises(InputError, match=r"secret \(not shown\) must be base64 behind whsec_") as error:
        Webhook("http://x/", secret="whsec_s3cret!")
    assert "s3cret!" not in str(error.value)


@pytest.mark.parametrize("status", ["400 Bad Request", "410 Gone", "429 Too Many Requests", "503 Unavailable"])
def test_any_other_answer_stops_the_telling_there(status: str) -> None:
    receiver = Receiver("200 OK", status)
    assert post(receiver, event(1), event(2), event(3)) == (1, f"127.0.0.1: it answered {status[:3]}")
    assert len(receiver.bodies) == 2


def test_redirects_are_not_followed() -> None:
    receiver = Loopback({"/": redirect("/elsewhere"), "/elsewhere": answer()})
    assert post(receiver, event(1), path="/") == (0, "127.0.0.1: it answered 302, and redirects are not followed")
    assert [asked[""].split()[1] for asked in receiver.asked] == ["/"]


def test_an_endless_answer_is_taken_at_its_first_word() -> None:
    async def drone(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    assert post(Loopback({"/": drone}), event(1), path="/") == (1, "")


def test_a_receiver_that_hangs_or_hangs_up_is_left_in_time() -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60.0)

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    begin = time.monotonic()
    assert post(Loopback({"/": hang}), event(1), path="/", seconds=0.3) == (0, "127.0.0.1: no answer within 0.3 s")
    assert time.monotonic() - begin < SOON
    taken, reason = post(Loopback({"/": hang_up}), event(1), path="/")
    assert taken == 0
    assert reason.startswith("127.0.0.1: ")


def test_the_gate_stands_before_webhooks_too(monkeypatch: Any) -> None:
    receiver = Receiver()
    # A proxy of the environment would dial past it.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    taken, reason = post(receiver, event(1), gate=None)
    assert (taken, receiver.connections) == (0, 0)
    assert reason == "127.0.0.1: its address 127.0.0.1 is not public, add it to allow_networks if it may be told"
    assert post(Receiver(), event(1)) == (1, "")


def test_stopping_in_the_middle_of_a_post_leaves_nothing_open() -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60.0)

    async def run() -> None:
        async with Loopback({"/": hang}) as receiver:
            sink = Webhook(f"{receiver.origin}/", HOME)
            task = asyncio.create_task(sink.tell([event(1)]))
            while not receiver.asked:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await sink.close()

    asyncio.run(run())


def test_names_of_webhooks_differ_by_address_and_show_no_path() -> None:
    one, two = (Webhook(f"https://hooks.example/T0/{key}") for key in ("s3cret", "other"))
    assert one.name != two.name
    assert one.name == Webhook("HTTPS://hooks.example/T0/s3cret").name
    assert one.name.startswith("webhook hooks.example ")
    assert "s3cret" not in one.name
    with pytest.raises(InputError, match="must be http or https"):
        Webhook("ftp://x/")
