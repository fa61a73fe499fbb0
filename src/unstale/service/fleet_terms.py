"""What a fleet goes by, as operators say it while it runs: its budget and settings, who is told, who may ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from unstale.engine.host_grants import HostGrant
from unstale.engine.said import BUDGET, BudgetSaid, By
from unstale.engine.said_settings import SAID
from unstale.ports import Edit
from unstale.service import budget as budgets
from unstale.service import live_settings
from unstale.service.edits import difference
from unstale.service.fleet_changes import FleetChanges
from unstale.service.live_settings import SettingView
from unstale.service.moment import ENGINE, engine_says
from unstale.service.receivers import RECEIVERS, NewsReceiver, kept_receivers, read_receivers
from unstale.service.records import Budget
from unstale.service.saved import SAVED, SavedSearch, kept_searches, read_searches
from unstale.service.service_settings import Granted
from unstale.service.tokens import TOKENS, ScopedToken, kept_tokens, read_tokens
from unstale.units import DAY

_Named = NewsReceiver | ScopedToken | SavedSearch


class FleetTerms(FleetChanges):
    """What is said to the store and counts from then on; each word is noted in the log of edits."""

    def budget(self) -> Budget:
        """The budget in force, and who said so."""
        told = {name: self.store.setting(name) for name in (BUDGET, ENGINE)}
        return self._budget(told, self.clock())

    def running(self) -> bool | None:
        """Whether something keeps this store fresh now; None where that cannot be told."""
        alive = self.store.alive()
        return self.terms.running() if alive is None else bool(alive)

    def set_budget(self, budget: float | None, by: By) -> Budget:
        """Say a budget, or that the settings' holds again: the last word counts. The one in force then."""
        word = b"" if budget is None else BudgetSaid(budget, by, self.clock(), self.terms.config.settled).kept()
        self.writer.record([], settings={BUDGET: word})
        self.note("budget as the settings say" if budget is None else f"budget {DAY * budget:,.6g}/day")
        return self.budget()

    def settle(self, option: float | None) -> Budget:
        """At a start: make the last word count, an option of the command being one. The budget in force then."""
        told = {BUDGET: self.store.setting(BUDGET)}
        words = budgets.settle(told, self.terms, option, self.clock())
        words |= live_settings.settle(self.store.setting(SAID), self.terms)
        if words:
            self.writer.record([], settings=words)
        # What the engine before said of itself no longer counts.
        return budgets.in_force({**told, **words}, self.terms, {}, False, self.clock())

    def _budget(self, settings: Mapping[str, bytes], now: float) -> Budget:
        return budgets.in_force(settings, self.terms, engine_says(settings), self.running(), now)

    def _granted(self, name: str, said: Mapping[str, HostGrant]) -> Granted:
        """What a host is granted by the settings, with what operators have said since."""
        own, word = self.terms.granted(name), said.get(name)
        if word is None or word == self.terms.config.granted.get(name):
            return own
        return replace(own, spacing=word.spacing, concurrency=word.concurrency or own.concurrency)

    def settings(self) -> list[SettingView]:
        """The settings that concern the fleet as a whole: what is in force, and what can be changed while it runs."""
        return live_settings.views(self.store.setting(SAID), self.terms, self.running())

    def say(self, name: str, value: str | None, by: By) -> list[SettingView]:
        """Change a setting while things run, or have the settings file's hold again: the last word counts."""
        words = live_settings.said(self.store.setting(SAID), self.terms, name, value, by, self.clock())
        self.writer.record([], settings={SAID: words})
        self.note(f"{name} as the settings say" if value is None else f"{name} {value or 'empty'}")
        return self.settings()

    def edits(self, limit: int = 1000, before: int | None = None) -> list[Edit]:
        """Who changed what, the newest first."""
        return self.store.edits(limit, before)

    def receivers(self) -> list[NewsReceiver]:
        """Those who were set up to be told, in the order in which they are shown."""
        return read_receivers(self.store.setting(RECEIVERS))

    def save_receivers(self, receivers: Sequence[NewsReceiver]) -> None:
        """Have these told of all that changes from now on, and nobody else who was set up so."""
        before = self.receivers()
        self.writer.record([], settings={RECEIVERS: kept_receivers(receivers)})
        self.writer.subscribe([one.listener for one in receivers], others=True)
        self._compared("receiver", before, receivers)

    def tokens(self) -> list[ScopedToken]:
        """The tokens that may do a few things for a while."""
        return read_tokens(self.store.setting(TOKENS))

    def save_tokens(self, tokens: Sequence[ScopedToken]) -> None:
        """Keep these tokens, and no others."""
        before = self.tokens()
        self.writer.record([], settings={TOKENS: kept_tokens(tokens)})
        self._compared("token", before, tokens)

    def searches(self) -> list[SavedSearch]:
        """The searches that were saved, in the order in which they are shown."""
        return read_searches(self.store.setting(SAVED))

    def save_searches(self, searches: Sequence[SavedSearch]) -> None:
        """Save searches in place of those that were."""
        before = self.searches()
        self.writer.record([], settings={SAVED: kept_searches(searches)})
        self._compared("view", before, searches)

    def _compared(self, kind: str, before: Sequence[_Named], after: Sequence[_Named]) -> None:
        if what := difference(kind, [(one.name, one) for one in before], [(one.name, one) for one in after]):
            self.note(what)
