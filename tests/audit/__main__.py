"""What is installed with us: known weaknesses of every locked version, and a bill of materials for the release.

`python tests/audit` needs a service that knows of weaknesses. Where it cannot be reached nothing was audited: that is
said, and the exit code is 2; 1 says that something was found. The bill, CycloneDX 1.6, is written to dist/ in any case.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LOCK, BILL = ROOT / "requirements/run.lock", ROOT / "dist/unstale.cdx.json"


def judged(report: Mapping[str, Any] | None) -> tuple[int, list[str]]:
    """The exit code and the sentences that a report of pip-audit makes; None if there was none.

    A version that it skipped was not audited, whatever its own exit code says.
    """
    if report is None:
        return 2, ["nothing was audited: the service that knows of weaknesses did not answer"]
    every = report["dependencies"]
    skipped = [one["name"] for one in every if "skip_reason" in one]
    found = [
        f"{one['name']} {one['version']}: {weak['id']}, mended in {', '.join(weak['fix_versions']) or 'no version'}"
        for one in every
        for weak in one.get("vulns", ())
    ]
    if skipped and len(skipped) == len(every):
        # A mirror answers for files and knows nothing of weaknesses: so it is where there is no way to the internet.
        return 2, [f"nothing was audited: whoever answered knows none of the {len(every)} versions; ask with internet"]
    if skipped:
        return (1 if found else 2), [
            *found,
            f"{len(skipped)} of {len(every)} were not audited: the service has no word of them",
        ]
    return (1 if found else 0), found or [f"{len(every)} locked versions, no known weakness"]


def main() -> int:
    """Write the bill, ask the service, say what it said."""
    tools = Path(sys.executable).parent
    BILL.parent.mkdir(exist_ok=True)
    bill = [tools / "cyclonedx-py", "requirements", LOCK, "--pyproject", ROOT / "pyproject.toml", "--of", "JSON"]
    subprocess.run([*bill, "--output-reproducible", "-o", BILL], check=True, stderr=subprocess.DEVNULL)
    print(f"wrote {BILL.relative_to(ROOT)}: {len(json.loads(BILL.read_bytes())['components'])} components")
    asked = subprocess.run(
        [tools / "pip-audit", "--require-hashes", "--disable-pip", "-r", LOCK, "--format", "json", "--timeout", "15"],
        capture_output=True,
        text=True,
    )
    try:
        report = json.loads(asked.stdout)
    except ValueError:
        report = None
    code, lines = judged(report)
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main())
