"""Which budget is in force, who said so, and what waits to be taken up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import PurePath

from unstale.engine.said import BUDGET, BudgetSaid
from unstale.service.records import Budget
from unstale.service.service_settings import ServiceSettings
from unstale.service.words import ago, per

_WAYS = {"api": "over the API or the dashboard", "command": "with `unstale budget`", "option": "with --budget"}


def in_force(
    settings: Mapping[str, bytes], terms: ServiceSettings, engine: Mapping[str, float], running: bool | None, now: float
) -> Budget:
    """The budget that an engine on this store goes by, or would go by if it were started now.

    What was said to the store counts at once. The settings file is read at a start: what it says anew waits until then.
    """
    word, changed = BudgetSaid.read(settings.get(BUDGET, b"")), terms.changed_at()
    settled, file = terms.config.settled, PurePath(terms.file).name
    told = engine.get("started_at")
    started = float(told) if isinstance(told, int | float) else math.inf
    waits = running is not False and bool(file) and changed > started
    waiting = f"{file} was changed {ago(changed, now)}: restart the engine to take it up" if waits else ""
    if word is not None and (running or word.outlasts(settled, changed)):
        when = f" {ago(word.at, now)}" if word.at > 0.0 else ""
        words = f"as was said {_WAYS[word.by]}{when}"
        return Budget(word.budget, word.by, word.at if word.at > 0.0 else -math.inf, words, waiting)
    # What it was started with: what it goes by may be a word that was taken back since it last wrote.
    going = engine.get("settled")
    rate = float(going) if running and word is None and isinstance(going, int | float) and going > 0.0 else settled
    if not file:
        return Budget(rate, "default", -math.inf, "which is the default")
    return Budget(rate, "settings", changed, f"as {file} says", waiting)


def settle(settings: Mapping[str, bytes], terms: ServiceSettings, option: float | None, now: float) -> dict[str, bytes]:
    """What a start has to write into the store, so that the last word is in force: nothing, if it is already.

    An option of the command is the last word. A settings file that says another budget since the last word is one too.
    """
    if option is not None:
        return {BUDGET: BudgetSaid(option, "option", now, terms.config.settled).kept()}
    word = BudgetSaid.read(settings.get(BUDGET, b""))
    if word is not None and not word.outlasts(terms.config.settled, terms.changed_at()):
        return {BUDGET: b""}
    return {}


def sentence(budget: Budget) -> str:
    """One line for people: the budget and why it is this one."""
    return f"{per(budget.rate)}, {budget.words}{'; ' + budget.waiting if budget.waiting else ''}"
