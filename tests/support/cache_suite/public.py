"""The public conformance suite for HTTP caches (npm `http-cache-tests`), run against the proxy on loopback.

`python -m support.cache_suite.public DIRECTORY`, in the tests folder, prints how many of its tests pass. The directory
is a checkout with its packages installed; node runs it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from support.ports import free_port
from unstale.adapters.addresses import Gate
from unstale.adapters.http_upstream import HttpUpstream
from unstale.server.proxy.app import Proxy
from unstale.server.proxy.wire import serve

#: the suite's origin listens at every address of the machine: here it is held to this machine
NEAR = """
import net from 'node:net'
const listen = net.Server.prototype.listen
net.Server.prototype.listen = function (port, ...more) {
  return listen.call(this, { port: Number(port), host: '127.0.0.1' }, ...more.filter(f => typeof f === 'function'))
}
"""


async def run(directory: Path) -> dict[str, Any]:
    """The suite's own verdicts by test: True, or why not."""
    node = shutil.which("node")
    assert node is not None, "node is not installed"
    origin, port = free_port(), free_port()
    settings = {
        "npm_config_protocol": "http",
        "npm_config_port": str(origin),
        "npm_config_id": "",
        "npm_package_config_id": "",
        "npm_config_base": f"http://127.0.0.1:{port}",
        "npm_config_pidfile": os.devnull,
    }
    environment = os.environ | settings
    engine = directory / "test-engine" if (directory / "test-engine").is_dir() else directory
    near = "data:text/javascript," + quote(NEAR)
    quiet = [node, "--no-warnings"]
    server = await asyncio.create_subprocess_exec(
        *quiet, "--import", near, "server/server.mjs", cwd=engine, env=environment, stdout=asyncio.subprocess.DEVNULL
    )
    stop = asyncio.Event()
    proxy = Proxy(HttpUpstream(Gate(["127.0.0.0/8"]), seconds=8.0), {"*": f"http://127.0.0.1:{origin}"})
    serving = asyncio.create_task(serve(proxy, "127.0.0.1", port, stop=stop))
    try:
        await asyncio.sleep(2.0)
        client = await asyncio.create_subprocess_exec(
            *quiet, "cli.mjs", cwd=engine, env=environment, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await asyncio.wait_for(client.communicate(), 300.0)
    finally:
        if server.returncode is None:
            server.terminate()
        await server.wait()
        stop.set()
        await serving
        await proxy.close()
    found: dict[str, Any] = json.loads(output[output.index(b"{") :])
    return found


def kinds(directory: Path) -> dict[str, str]:
    """What the suite says of each test: that it is required, optimal, or only looks."""
    node = shutil.which("node")
    assert node is not None, "node is not installed"
    listing = (
        "const {default: groups} = await import(process.argv[1]);"
        "console.log(JSON.stringify(Object.fromEntries("
        "groups.flatMap(group => group.tests).map(test => [test.id, test.kind || 'required']))))"
    )
    order = [node, "--input-type=module", "-e", listing, (directory / "tests" / "index.mjs").resolve().as_uri()]
    found: dict[str, str] = json.loads(subprocess.run(order, check=True, capture_output=True).stdout)
    return found


if __name__ == "__main__":
    verdicts, judged = asyncio.run(run(Path(sys.argv[1]))), kinds(Path(sys.argv[1]))
    for name, verdict in verdicts.items():
        if verdict is not True:
            sys.stdout.write(f"{name} ({judged[name]}): {verdict}\n")
    for kind in sorted(set(judged.values())):
        passing = [verdict is True for name, verdict in verdicts.items() if judged[name] == kind]
        sys.stdout.write(f"{kind}: {sum(passing)} of {len(passing)}\n")
    sys.stdout.write(f"{sum(v is True for v in verdicts.values())} of {len(verdicts)} pass\n")
