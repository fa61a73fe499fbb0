"""What the documentation says is executed: examples, commands with their output, the generated reference."""

from __future__ import annotations

import doctest
import importlib.util
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from support.documents import PAGES, ROOT, blocks, commands, files, name
from unstale.cli.main import main

_WITH_EXAMPLES = [page for page in PAGES if blocks(page, "python")]
_WITH_COMMANDS = [page for page in PAGES if commands(page)]


@pytest.mark.examples
@pytest.mark.parametrize("page", _WITH_EXAMPLES, ids=name)
def test_python_examples_give_what_they_show(page: Path) -> None:
    test = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    names: dict[str, object] = {}
    for block in blocks(page, "python"):
        assert ">>> " in block.text, f"{name(page)}:{block.line}: a python block that nothing executes"
        parsed = doctest.DocTestParser().get_doctest(block.text, names, name(page), str(page), block.line)
        # examples of a page follow on from each other
        test.run(parsed, clear_globs=False)
        names = parsed.globs
    assert test.summarize(verbose=False).failed == 0


@pytest.mark.examples
@pytest.mark.parametrize("page", _WITH_COMMANDS, ids=name)
def test_commands_print_what_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for file, text in files(page).items():
        Path(file).write_text(text, "utf-8")
    for command, shown in commands(page):
        words = shlex.split(command)
        if words[0] != "unstale":
            continue
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as exit_:
            main()
        printed = capsys.readouterr()
        assert not exit_.value.code, f"{command}: exit {exit_.value.code}: {printed.err}"
        if shown.strip():
            got, want = _bare(printed.out), _bare(shown)
            same = doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS)
            assert same, f"{name(page)}: {command}\nprints\n{got}\ninstead of\n{want}"


@pytest.mark.parametrize("file", ["cli.md", "kinds.md", "api.md", "core.md", "study.md"])
def test_the_generated_reference_is_current(file: str) -> None:
    generate = _generator()
    stands = (ROOT / "docs/reference" / file).read_text("utf-8")
    assert stands == generate.PAGES[file](), "the code moved on: run python docs/generate.py"


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    # never --quiet: warnings that are not shown are not counted either
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        html = page.read_text("utf-8")
        for outside in ('src="http', 'rel="stylesheet" href="http', "fonts.g" + "oogleapis"):
            assert outside not in html, f"{page.name} loads something from elsewhere: {outside}"


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _bare(text: str) -> str:
    """Without the spaces that pad lines on the right, which no reader sees."""
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"
