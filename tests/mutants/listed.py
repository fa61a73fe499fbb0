"""The mutations that the nearest tests must notice: what, where, the text as it is, the text instead, and who notices.

Rules of this file:
1. `old` stands in its file exactly once. Who rewrites the line rewrites the entry, and the runner says where.
2. `tests` are the nearest ones: those that someone who changes the function would run.
3. A mutation is a mistake that someone could make, never a syntax error and never a change without a meaning.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake."""

    #: the function and what is wrong with it now
    name: str
    #: a pattern below the repository that fits one file
    file: str
    old: str
    new: str
    #: files of tests below `tests`
    tests: tuple[str, ...]


_LIMITS = ("unit/engine/test_host_limits.py", "unit/engine/test_host_limits_boundaries.py")
_JUDGE = ("unit/engine/test_judge.py", "unit/engine/test_judge_boundaries.py")
_BRAIN = ("unit/keeper/test_scheduler.py", "unit/keeper/test_scheduler_boundaries.py")
_PRICE = ("unit/core/test_price.py", "unit/core/test_price_boundaries.py")
_LEARN = ("unit/core/test_learning.py", "unit/core/test_learning_boundaries.py")
_STORE = ("contracts/test_stores_boundaries.py",)
_RULES = ("unit/server/proxy/test_proxy_rules_boundaries.py",)
_BOUNDS = ("unit/server/test_server_bounds.py",)

MUTANTS = [
    # Who waits for a host, and how long.
    Mutant(
        "slot: a slot at the very end of the time is not taken",
        "src/unstale/engine/host_limits.py",
        "if at <= now + within:",
        "if at < now + within:",
        _LIMITS,
    ),
    Mutant(
        "slot: who is sent away from an unspaced host comes back with all the others",
        "src/unstale/engine/host_limits.py",
        "host.pile += max(host.spacing, BREATH)",
        "host.pile += host.spacing",
        _LIMITS,
    ),
    Mutant(
        "heard: a shorter Retry-After overwrites a longer one",
        "src/unstale/engine/host_limits.py",
        "host.blocked = max(host.blocked, now + pause)",
        "host.blocked = now + pause",
        _LIMITS,
    ),
    # Has it changed, and when?
    Mutant(
        "changed_when: a change at the last look is taken for a new one",
        "src/unstale/engine/judge.py",
        "claim.last < when <= fetched.polled_at",
        "claim.last <= when <= fetched.polled_at",
        _JUDGE,
    ),
    Mutant(
        "changed_when: a change in the moment of the poll is not believed",
        "src/unstale/engine/judge.py",
        "claim.last < when <= fetched.polled_at",
        "claim.last < when < fetched.polled_at",
        _JUDGE,
    ),
    Mutant(
        "judge: new validators of an equal body are dropped",
        "src/unstale/engine/judge.py",
        "if same and (fetched.etag, fetched.last_modified) == (claim.etag, claim.last_modified):",
        "if same:",
        _JUDGE,
    ),
    # When is it due again?
    # Every step over many sources is there twice, in NumPy and compiled; how many there are says which is used.
    Mutant(
        "decide: three times the jitter",
        "src/unstale/core/learning/column_due.py",
        "at) * (1.0 + SPREAD * spreads(numbers, last))",
        "at) * (1.0 + 3.0 * SPREAD * spreads(numbers, last))",
        _BRAIN,
    ),
    Mutant(
        "decide, compiled: three times the jitter",
        "src/unstale/core/learning/due.py",
        "(1.0 + SPREAD * spread(number, last))",
        "(1.0 + 3.0 * SPREAD * spread(number, last))",
        (*_BRAIN, "unit/core/test_column_twins.py"),
    ),
    Mutant(
        "decide: a failure does not lengthen the interval",
        "src/unstale/keeper/rows.py",
        "self.failures[rows] = np.where(answered, 0, self.failures[rows] + 1)",
        "self.failures[rows] = np.where(answered, 0, 0)",
        _BRAIN,
    ),
    Mutant(
        "decide: what the source asked for is forgotten",
        "src/unstale/keeper/rows.py",
        "        due = self._awaited(rows, planned)\n",
        "        due = planned\n",
        _BRAIN,
    ),
    # What a shared cache may keep and serve.
    Mutant(
        "use: a copy of exactly max-age is refused",
        "src/unstale/server/proxy/rules.py",
        'old > (seconds(wish["max-age"])',
        'old >= (seconds(wish["max-age"])',
        _RULES,
    ),
    Mutant(
        "use: a copy fresh for exactly min-fresh is refused",
        "src/unstale/server/proxy/rules.py",
        'left < (seconds(wish["min-fresh"])',
        'left <= (seconds(wish["min-fresh"])',
        _RULES,
    ),
    Mutant(
        "use: a request with no-store is answered from the stock",
        "src/unstale/server/proxy/rules.py",
        'if bare or "no-cache" in wish or "no-store" in wish:',
        'if bare or "no-cache" in wish:',
        _RULES,
    ),
    Mutant(
        "use: a copy is fresh in the moment in which its lifetime ends",
        "src/unstale/server/proxy/rules.py",
        "if left > 0.0:",
        "if left >= 0.0:",
        _RULES,
    ),
    Mutant(
        "use: a copy stale for exactly max-stale is refused",
        "src/unstale/server/proxy/rules.py",
        '-left <= (seconds(wish["max-stale"]) or 0.0)',
        '-left < (seconds(wish["max-stale"]) or 0.0)',
        _RULES,
    ),
    Mutant(
        "storable: the answer to a request with no-store is kept",
        "src/unstale/server/proxy/rules.py",
        'if status < 200 or status == 304 or "no-store" in directives(request.joined("cache-control")):',
        "if status < 200 or status == 304:",
        _RULES,
    ),
    Mutant(
        "storable: an answer with no-store is kept",
        "src/unstale/server/proxy/rules.py",
        'if "no-store" in control and "must-understand" not in control:',
        "if False:",
        _RULES,
    ),
    Mutant(
        "unmet: a copy checked exactly max-age ago is refused",
        "src/unstale/server/bounds.py",
        "age > self.max_age and not polled:",
        "age >= self.max_age and not polled:",
        _BOUNDS,
    ),
    Mutant(
        "unmet: a copy fresh for exactly min-fresh is refused",
        "src/unstale/server/bounds.py",
        "left < self.min_fresh:",
        "left <= self.min_fresh:",
        _BOUNDS,
    ),
    # What follows from a poll, in one transaction.
    Mutant(
        "record (SQLite): prices are kept for ever",
        "src/unstale/adapters/sqlite_store.py",
        'db.execute("DELETE FROM prices WHERE at < ?", (self._retention.limit(db, price.at),))',
        "pass",
        _STORE,
    ),
    Mutant(
        "record (SQLite): bytes of entries that came too late are counted",
        "src/unstale/adapters/sqlite_store.py",
        "**tally(mine),",
        '**{**tally(mine), "bytes": tally(entries)["bytes"]},',
        _STORE,
    ),
    Mutant(
        "record (SQLite): old observations are kept for ever",
        "src/unstale/adapters/sqlite_store.py",
        "drop_old(db, now, limit, self._retention.last_old(), len(mine))",
        "pass",
        _STORE,
    ),
    Mutant(
        "record (PostgreSQL): prices are kept for ever",
        "src/unstale/adapters/postgres_recording.py",
        'db.execute("DELETE FROM prices WHERE at < %s", (price.at - horizon,))',
        "pass",
        _STORE,
    ),
    Mutant(
        "record (PostgreSQL): bytes of entries that came too late are counted",
        "src/unstale/adapters/postgres_store.py",
        "**tally(mine),",
        '**{**tally(mine), "bytes": tally(entries)["bytes"]},',
        _STORE,
    ),
    Mutant(
        "record (PostgreSQL): old observations are kept for ever",
        "src/unstale/adapters/postgres_observations.py",
        "    drop_old(db, now, horizon)\n    return beyond",
        "    return beyond",
        _STORE,
    ),
    # The price that meets a budget.
    Mutant(
        "_meet: sources that tie get the whole step instead of their share",
        "src/unstale/core/price.py",
        "share = (target - dear.spent) / (cheap.spent - dear.spent)",
        "share = 1.0",
        _PRICE,
    ),
    Mutant(
        "_meet: a price too small for a number is no error",
        "src/unstale/core/price.py",
        "if root.low[0] >= HUGE or root.low[0] < 1e-300:",
        "if root.low[0] >= HUGE:",
        _PRICE,
    ),
    # What a poll teaches.
    Mutant(
        "learn: how well a half-life foretold is never forgotten",
        "src/unstale/core/learning/mixture.py",
        "row[2 * count + k] = MEMORY * row[2 * count + k] + told",
        "row[2 * count + k] = row[2 * count + k] + told",
        _LEARN,
    ),
    Mutant(
        "learn, in columns: old evidence does not fade",
        "src/unstale/core/learning/column_beliefs.py",
        "kept = exp2(-elapsed / shared.half_lives[:, None])",
        "kept = exp2(-0.0 * elapsed / shared.half_lives[:, None])",
        (*_LEARN, "unit/core/test_column_twins.py"),
    ),
    Mutant(
        "learn: old evidence does not fade",
        "src/unstale/core/learning/mixture.py",
        "kept = math.exp2(-elapsed / shared.half_lives[k])",
        "kept = 1.0",
        _LEARN,
    ),
]
