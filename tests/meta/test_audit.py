"""What an audit says, where a version that nobody looked up is not called safe; and what the page on security names."""

from __future__ import annotations

import importlib.util
import re

import pytest

from support.documents import ROOT

SAFE = {"name": "a", "version": "1", "vulns": []}
WEAK = {"name": "b", "version": "2", "vulns": [{"id": "X-1", "fix_versions": ["3"]}]}
SKIPPED = {"name": "c", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("every", "code", "first"),
    [
        ([SAFE], 0, "1 locked versions, no known weakness"),
        ([SAFE, WEAK], 1, "b 2: X-1, mended in 3"),
        ([SAFE, SKIPPED], 2, "1 of 2 were not audited: the service has no word of them"),
        ([WEAK, SKIPPED], 1, "b 2: X-1, mended in 3"),
        ([SKIPPED], 2, "nothing was audited: whoever answered knows none of the 1 versions; ask with internet"),
        (None, 2, "nothing was audited: the service that knows of weaknesses did not answer"),
    ],
)
def test_what_was_not_looked_up_is_not_called_safe(every: list[object] | None, code: int, first: str) -> None:
    spec = importlib.util.spec_from_file_location("audit", ROOT / "tests/audit/__main__.py")
    assert spec is not None
    assert spec.loader is not None
    audit = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(audit)
    said, lines = audit.judged(None if every is None else {"dependencies": every})
    assert (said, lines[0]) == (code, first)


def test_the_page_on_security_names_what_there_is() -> None:
    page, makefile = (ROOT / "SECURITY.md").read_text("utf-8"), (ROOT / "Makefile").read_text("utf-8")
    paths = re.findall(r"`((?:tests|deploy)/[^`]*)`", page) + re.findall(r"\]\((\S+?)\)", page)
    targets = re.findall(r"`make (\w+)`", page)
    assert len(paths) > 8
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert targets
    assert [target for target in targets if f"\n{target}:" not in makefile] == []
    # One page.
    assert len(page.splitlines()) < 50
