"""`unstale init`: three questions, and a file of settings that explains itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import click

from unstale.cli.settings import NAME, TABLES, Settings
from unstale.errors import InputError, sentence

#: setting -> what is asked; the names are those of the file, as are the sentences about wrong answers
QUESTIONS = {
    "budget": "What may all polls together cost? A poll costs 1",
    "http.contact": "Where can the owners of polled sites reach you? An address, or nothing",
    "http.allow_networks": "Which networks of your own may be polled, like 10.0.0.0/8? Nothing: the internet alone",
}
_HEAD = """\
# Settings of unstale. All are optional: a line that begins with # shows what holds without it.
# Times are written "15m" or "90d", rates "1000/day" or "3/s". A secret is the name of an environment variable, "$NAME".
"""
_TAIL = """
# One host that wants to be treated otherwise than [http] says:
# [hosts."slow.example.org"]
# spacing = "30s"
# budget = "100/day"

# Whom to tell of changes; a table for each:
# [[on_change]]
# log = "changes.jsonl"
"""


@click.command()
@click.option("--budget", metavar="RATE", help="What all polls together may cost, like 1000/day.")
@click.option("--contact", metavar="TEXT", help="Where the owners of polled sites can reach you.")
@click.option(
    "--network",
    "networks",
    multiple=True,
    metavar="NETWORK",
    help="A network of your own that may be polled, like 10.0.0.0/8.",
)
@click.option("-o", "--output", default=NAME, show_default=True, metavar="FILE", help="The file to write.")
def init(budget: str | None, contact: str | None, networks: tuple[str, ...], output: str) -> None:
    """Write a commented unstale.toml: every setting, what it means, what holds without it.

    On a terminal you are asked what options have not said; elsewhere that is left as it is. A file that is there
    already is never touched.

    \b
      unstale init
      unstale init --budget 500/day --contact me@example.org
    """
    said = {"budget": budget, "http.contact": contact, "http.allow_networks": list(networks) or None}
    chosen = {}
    _refuse_existing(output)
    for name, question in QUESTIONS.items():
        about = _field(name).metadata
        answer = said[name]
        if answer is not None:
            about["read"](name, answer)
        chosen[name] = answer if answer is not None else _ask(name, question, about) if asking() else about["written"]
    try:
        with Path(output).open("x", encoding="utf-8") as file:
            file.write(written(chosen))
    except OSError as error:
        raise InputError(
            sentence("output", repr(output), f"cannot be written ({error.strerror})", "choose another")
        ) from None
    click.echo(f"wrote {output}: change it as you like. Next: `unstale add ADDRESS`, then `unstale run`")


def asking() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty()


def written(chosen: Mapping[str, Any]) -> str:
    """A file of settings with these, by name, and all others as comments.

    >>> written({"budget": "7/day"}).splitlines()[6:8]
    ['# What all polls together may cost; a poll costs 1 unless its source says otherwise.', 'budget = "7/day"']
    """
    parts = [_HEAD, *_lines(Settings, "", chosen)]
    for name, kind in TABLES.items():
        parts += [f"\n# {kind.__doc__}\n[{name}]\n", *_lines(kind, f"{name}.", chosen)]
    return "".join([*parts, _TAIL])


def _lines(kind: type, where: str, chosen: Mapping[str, Any]) -> Iterator[str]:
    for one in fields(kind):
        if one.metadata:
            name, default = where + one.name, one.metadata["written"]
            value = chosen.get(name, default)
            # Nothing, or an empty list, is what holds anyhow.
            mark = "" if chosen.get(name) else "# "
            gap = "" if where else "\n"
            yield f"{gap}# {one.metadata['meaning']}\n{mark}{one.name} = {json.dumps(value, ensure_ascii=False)}\n"


def _ask(name: str, question: str, about: Mapping[str, Any]) -> Any:
    """An answer that the setting accepts; what is wrong with others is said."""
    default = about["written"]
    shown = default if isinstance(default, str) else ""
    while True:
        answer: Any = click.prompt(question, default=shown, show_default=bool(shown))
        if isinstance(default, list):
            answer = _words(answer)
        try:
            about["read"](name, answer)
        except InputError as error:
            click.echo(f"{error}")
        else:
            return answer


def _words(text: str) -> Sequence[str]:
    return text.replace(",", " ").split()


def _field(name: str) -> Field[Any]:
    table, _, own = name.rpartition(".")
    return next(one for one in fields(TABLES[table] if table else Settings) if one.name == own)


def _refuse_existing(output: str) -> None:
    if Path(output).exists():
        raise InputError(sentence("output", repr(output), "is there already", "edit it, or choose another with -o"))
