"""The 32 goals: what is done how often, what must hold, which campaign measures it, and which tests show it besides."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Goal:
    """`rounds` of a fault; `campaigns` measure it; `tests` show some of it in every run of the tests.

    `gap` says what of the goal nothing here measures.
    """

    number: int
    fault: str
    rounds: int
    must_hold: str
    campaigns: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    gap: str = ""


_CLI = "tests/integration/test_postgres_workers.py"
GOALS = (
    Goal(
        1,
        "kill -9 of who polls, adds, backs up, brings up (SQLite)",
        10_000,
        "nothing lost, doubled or corrupt",
        ("kills", "command kills", "restarts"),
        ("tests/integration/test_engine_kill.py", "tests/integration/test_store_kill.py"),
        "restarts were measured while others kept ten times as many processors busy: what counts is processor time",
    ),
    Goal(
        2,
        "kill -9 of workers on PostgreSQL; stops, crashes, ended sessions, clocks set by 5 min, a silent network",
        2_000,
        "the same",
        ("workers",),
        (_CLI,),
        "every fifth fault is a kill; workers poll within themselves, not over a network; the 1,100 faults of "
        "2026-11-19 came faster than workers poll (polls among faults); those to come wait for polls",
    ),
    Goal(
        3,
        "kill -9 of all of PostgreSQL",
        500,
        "nothing acknowledged lost",
        ("server kills",),
        ("tests/integration/test_postgres_store.py",),
        "by one process that claims and records, not by workers",
    ),
    Goal(
        4,
        "failover to an asynchronous replica",
        50,
        "the lost tail is polled again, no number given twice",
        ("failover",),
        gap="by one process that claims and records, not by an engine or workers",
    ),
    Goal(
        5, "power cuts: unsynced writes lost, torn, reordered", 10_000, "nothing lost, torn or corrupt", ("power cuts",)
    ),
    Goal(
        6,
        "the Nth operation of the disk fails, once or for ever, for every N",
        1_000,
        "no false word, one sentence, heals",
        ("failing disk",),
    ),
    Goal(
        7,
        "every fail-point with exception, cancellation, kill",
        100,
        "exact accounts",
        ("fail-points",),
        ("tests/integration/test_engine_faults.py",),
        "fail-points are the questions to the store in memory, of one engine",
    ),
    Goal(
        8,
        "the disk is full at every write, then free",
        200,
        "nothing lost, writing resumes",
        ("failing disk", "full disk"),
        ("tests/integration/test_engine_faults.py",),
    ),
    Goal(
        9,
        "bits flip, files are cut",
        1_000,
        "no wrong byte served, each flip found that changes one",
        ("flips",),
        ("tests/unit/cli/test_restoring.py",),
    ),
    Goal(
        10,
        "stopped past its lease, resumed",
        500,
        "nothing applied twice",
        ("sleepers",),
        ("tests/integration/test_engine_faults.py", "tests/integration/test_postgres_workers.py"),
        "at the stores, with their clock set on; whole processes are stopped by the tests",
    ),
    Goal(
        11,
        "clock jumps of both signs",
        1_000,
        "nobody late, no budget broken, nothing old",
        ("clock jumps",),
        (
            "tests/integration/test_engine_clock.py",
            "tests/unit/engine/test_clock.py",
            "tests/unit/engine/test_set_clock.py",
        ),
        "on a busy machine: the time without a processor is allowed for, which may hide lateness of seconds",
    ),
    Goal(
        12,
        "loss, delay, partition of networks",
        500,
        "exact accounts",
        ("network", "database network", "replica network"),
        gap="connections are harmed, packets are not",
    ),
    Goal(
        13,
        "deterministic simulation of faults",
        20_000,
        "all invariants",
        ("seeds",),
        ("tests/simulation", "tests/unit/engine/test_set_clock.py"),
        "one engine at a time; five virtual minutes a seed, every twentieth 19, not 30 days",
    ),
    Goal(
        14,
        "stateful tests of the stores against a model",
        1_000_000,
        "model = SQLite = PostgreSQL",
        ("stores",),
        ("tests/contracts/test_stores.py",),
        "every fortieth life has PostgreSQL beside the others; of learners, plans and replicas no model is walked",
    ),
    Goal(
        15,
        "parsers fuzzed with coverage",
        100_000_000,
        "none breaks, hangs or grows",
        ("fuzzing",),
        ("tests/property/test_parsers_fuzzed.py",),
    ),
    Goal(
        16,
        "hostile servers among healthy ones",
        10_000,
        "healthy sources keep 95 % of their polls",
        ("hostile", "memory"),
        (
            "tests/integration/test_engine_hostile.py",
            "tests/integration/test_hostile_table.py",
            "tests/integration/test_memory.py",
        ),
    ),
    Goal(
        17,
        "addresses that lead inside",
        5_000,
        "none is dialled",
        ("inner addresses",),
        ("tests/unit/adapters/test_addresses.py", "tests/unit/adapters/test_dialling.py"),
        "at the gate, packets are not counted",
    ),
    Goal(18, "bodies that grow: codings, sizes, nested", 500, "stopped, at most 32 MB more", ("bombs",)),
    Goal(
        19,
        "scripts in what is shown",
        20_000,
        "none runs",
        ("renders",),
        ("tests/e2e/test_dashboard.py",),
    ),
    Goal(
        20,
        "every route, method and identity",
        1_000,
        "none unexpected",
        ("routes",),
        ("tests/unit/server/test_every_route.py",),
    ),
    Goal(21, "schemathesis", 10_000, "no fault, no breach", ("cases",), ("tests/integration/test_api_contract.py",)),
    Goal(
        22,
        "slow and large requests",
        2_000,
        "health within 1 s, at most 64 MB more",
        ("slow",),
        gap="ten seconds of it, not five minutes; bodies of 600 MB are announced, not sent. Each reader of a large "
        "copy has two buffers of 128 kB that are granian's own; without them it is 47 MB",
    ),
    Goal(
        23,
        "canaries in every place of a secret",
        25,
        "none shown",
        ("canaries",),
        (
            "tests/integration/test_engine_hostile.py",
            "tests/unit/adapters/test_admission.py",
            "tests/unit/cli/test_words_of_strangers.py",
        ),
        "through faults of sources and receivers; not of the disk",
    ),
    Goal(
        24,
        "replicas that lie",
        10_000,
        "nothing bogus accepted",
        ("liars",),
        ("tests/unit/adapters/test_replica_peering.py", "tests/unit/engine/test_engine_peers.py"),
        "who announces false bytes with their own hash is believed until our own next poll: `copies as announced`",
    ),
    Goal(
        25,
        "noisy and lying sources",
        1_000,
        "rates of each kind within 20 %, 99 % of changes caught within two intervals",
        ("noisy",),
        ("tests/simulation",),
        "of who fails every fifth poll by chance 96 % is the most without polling it sooner than its interval",
    ),
    Goal(26, "numbers that are none, in every field", 300, "all refused", ("numbers",)),
    Goal(
        27,
        "soak of a virtual year",
        365,
        "memory, files, handles flat",
        ("soak",),
        gap="twelve sources, of whom one in twenty polls fails; none of the faults of the other rows happens meanwhile",
    ),
    Goal(
        28,
        "overload 2, 5, 10 times for 25 minutes, 100 times for four hours",
        4,
        "worth most first: 95 % of the freshness that a plan for the room left has; bounded queues",
        ("overload",),
        ("tests/unit/core/test_urgency.py",),
        "workers on PostgreSQL claim who is due first. At 100x a source changes twenty times between two polls of it: "
        "why others are then polled as often as the valuable is not found",
    ),
    Goal(
        29,
        "every earlier schema, killed on the way",
        200,
        "resumes, nothing lost",
        ("command kills",),
        ("tests/earlier",),
    ),
    Goal(
        30,
        "static: rules for security, types, rooms",
        1,
        "nothing found",
        ("rules",),
        ("pyproject.toml",),
        "ruff's rules instead of bandit and semgrep",
    ),
    Goal(
        31,
        "coverage and mutants",
        1,
        "95 % of branches, 85 % of mutants",
        ("branches", "mutants"),
        ("tests/mutants",),
        "of the parts that were run, fast tests first; what numba compiles is seen from the 22nd on",
    ),
    Goal(
        32,
        "SQLite with the WAL-reset bug",
        3,
        "refused",
        ("builds",),
        ("tests/unit/adapters/test_sqlite_store.py",),
        "builds are told apart by their number, as the program does it",
    ),
)
