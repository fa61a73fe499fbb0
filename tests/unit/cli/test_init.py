"""`unstale init`: a file that is read as it was meant, that explains every setting, and that nobody loses."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from unstale.cli import init as module
from unstale.cli.init import init
from unstale.cli.settings import TABLES, Settings, load
from unstale.errors import InputError
from unstale.units import DAY

NAMES = [f.name for f in fields(Settings) if f.metadata]
ALL = {*NAMES, *(f.name for kind in TABLES.values() for f in fields(kind) if f.metadata)}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(init, words, input=typed)


def test_without_a_terminal_nothing_is_asked_and_everything_is_as_without_a_file() -> None:
    done = run()
    assert (done.exit_code, done.output[:19]) == (0, "wrote unstale.toml:")
    with_file = load()
    text = Path("unstale.toml").read_text("utf-8")
    Path("unstale.toml").unlink()
    without = load()
    assert all(getattr(with_file, name) == getattr(without, name) for name in [*NAMES, *TABLES, "hosts", "on_change"])
    assert tomllib.loads(text) == {"budget": "1000/day", **{name: {} for name in TABLES}}


def test_every_setting_is_there_and_can_be_uncommented() -> None:
    run()
    text = Path("unstale.toml").read_text("utf-8")
    assert set(re.findall(r"^#? ?(\w+) = ", text, re.MULTILINE)) >= ALL
    # Without their marks the lines are what holds anyhow; the two examples at the end are somebody's own.
    begin = text.index("# One host that")
    Path("unstale.toml").write_text(re.sub(r"^# (\w+ = )", r"\1", text[:begin], flags=re.MULTILINE))
    with_all = load()
    Path("unstale.toml").write_text("")
    assert with_all == load()
    Path("unstale.toml").write_text(re.sub(r"^# (\w+ = |\[)", r"\1", text[begin:], flags=re.MULTILINE))
    assert load().hosts["slow.example.org"].spacing == 30.0
    assert Path(load().on_change[0].log).name == "changes.jsonl"


def test_options_are_taken_without_asking() -> None:
    run("--budget", "20/h", "--contact", 'Ann "A" <ann@example.org>', "--network", "10.0.0.0/8", "--network", "::1/128")
    settings = load()
    assert settings.budget * DAY == pytest.approx(480.0)
    assert settings.http.contact == 'Ann "A" <ann@example.org>'
    assert settings.http.allow_networks == ("10.0.0.0/8", "::1/128")


def test_three_questions_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "asking", lambda: True)
    done = run(typed="many\n300/day\nme@example.org\nhome\n192.168.0.0/16, 127.0.0.0/8\n")
    assert done.exit_code == 0, done.output
    assert "budget 'many' is" in done.output
    assert "http.allow_networks" in done.output, "what is wrong is said, and asked again"
    assert load().budget * DAY == pytest.approx(300.0)
    assert load().http.allow_networks == ("192.168.0.0/16", "127.0.0.0/8")


def test_return_takes_what_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "asking", lambda: True)
    assert run(typed="\n\n\n").exit_code == 0
    assert load().budget * DAY == pytest.approx(1000.0)
    assert load().http.allow_networks == ()


def test_a_file_is_never_touched_and_nothing_is_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "asking", lambda: True)
    Path("unstale.toml").write_text("# mine")
    done = run()
    assert isinstance(done.exception, InputError)
    assert str(done.exception) == "output 'unstale.toml' is there already: edit it, or choose another with -o"
    assert Path("unstale.toml").read_text() == "# mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--budget", "much"), "budget 'much'"),
        (("--network", "home"), "http.allow_networks"),
        (("-o", "none/unstale.toml"), "output 'none/unstale.toml' cannot be written"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_no_file(words: tuple[str, ...], said: str) -> None:
    done = run(*words)
    assert isinstance(done.exception, InputError)
    assert str(done.exception).startswith(said)
    assert not Path("unstale.toml").exists()
