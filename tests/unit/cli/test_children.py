"""Who is to end does, whatever state it is in when patience ends."""

from __future__ import annotations

import asyncio
import sys

import pytest

from unstale.cli.children import ended_within

# It begins somebody who holds its output open, and ends.
LEAVES = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(0.5)'])"
STAYS = "import time; time.sleep(60)"


@pytest.mark.parametrize(("program", "code"), [("", 0), (LEAVES, 0), (STAYS, -9)], ids=["quick", "leaves", "stays"])
def test_a_process_ends_and_nothing_is_raised(program: str, code: int) -> None:
    async def scene() -> int | None:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=pipe, stderr=pipe)
        if program == LEAVES:
            async with asyncio.timeout(60):
                while process.returncode is None:
                    await asyncio.sleep(0.01)
        await ended_within(process, 0.1 if program else 60.0)
        # Whoever held it open has ended, too.
        await process.communicate()
        return process.returncode

    assert asyncio.run(scene()) == code


def test_who_ended_while_patience_did_is_not_missed() -> None:
    """The system has told that it ended, its waiters were not woken yet: there is nobody to be killed."""

    class Ended:
        waited = 0

        async def wait(self) -> int:
            self.waited += 1
            if self.waited == 1:
                await asyncio.sleep(60)
            return 0

        def kill(self) -> None:
            raise ProcessLookupError

    process = Ended()
    asyncio.run(ended_within(process, 0.01))  # type: ignore[arg-type]
    assert process.waited == 2
