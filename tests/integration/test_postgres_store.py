"""The PostgreSQL store where it differs from a file: servers that go away, many clients, hosts, partitions."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psycopg
import pytest

from support.patience import SOON
from support.postgres import Postgres, postgres
from unstale.adapters import postgres_observations, postgres_schema
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.adapters.postgres_replica import PostgresReplica
from unstale.adapters.postgres_schema import worded
from unstale.adapters.postgres_store import PostgresStore
from unstale.adapters.postgres_tables import MIGRATIONS
from unstale.errors import InputError, StoreError
from unstale.keeper.outcomes import Answer
from unstale.keeper.shares import granted, wanted_shares
from unstale.listings.records import CollectionMember
from unstale.ports import Body, Checkpoint, Claim, Entry, Epoch, HostWord, Listing, Price

SCHEMAS = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


@pytest.fixture
def opened(server: Postgres) -> Iterator[Callable[..., PostgresCrew]]:
    """Opens connections to one store."""
    schema, stores = f"t{next(SCHEMAS)}", []

    def opened(**given: Any) -> PostgresCrew:
        stores.append(PostgresCrew(server.address(), schema=schema, **({"own_time": False} | given)))
        return stores[-1]

    yield opened
    for store in stores:
        store.close()


def cut(server: Postgres, store: PostgresStore) -> None:
    assert store._db is not None
    server.run(f"SELECT pg_terminate_backend({store._db.info.backend_pid})")


def done(claim: Claim, at: float, **given: Any) -> Entry:
    return Entry(claim, Answer.UNCHANGED, at, **({"due": at + 60.0} | given))


def test_what_cannot_be_opened_is_said_in_a_sentence_without_secrets(server: Postgres) -> None:
    for dsn, words in (
        ("postgresql://me:s3cret@127.0.0.1:1/x", r"^store postgresql://127.0.0.1:1/x cannot be reached: check host"),
        ("postgresql://me:s3cret@no-such-host.invalid/x", "cannot be reached"),
        (server.address("nothing"), r'cannot be opened \(database "nothing" does not exist\): check the names'),
        (server.address(user="nobody"), r'cannot be opened \(role "nobody" does not exist\)'),
    ):
        with pytest.raises(StoreError, match=words) as error:
            PostgresStore(dsn)
        assert "s3cret" not in str(error.value)
        assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="is no address of a PostgreSQL database: write postgresql://"):
        PostgresStore("nonsense s3cret=")
    with pytest.raises(InputError, match="schema 'A b' must be a word in lower case"):
        PostgresStore(server.address(), schema="A b")
    with pytest.raises(StoreError, match="holds no store yet: check its name, or add a source"):
        PostgresReplica(server.address(), schema="empty")
    with pytest.raises(StoreError, match="holds no store yet"):
        PostgresStore(server.address(), schema="empty", create=False)


def test_a_server_that_ends_at_any_question_of_opening_is_told_in_a_sentence(
    server: Postgres, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is cut before the first, the second, … statement of opening a store, and of listening."""
    opened().close()
    execute, left, said = psycopg.Connection.execute, [0], list[str]()

    def cut_at_last(self: psycopg.Connection[Any], *words: Any, **given: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            left[0] = 10**9
            server.run(f"SELECT pg_terminate_backend({self.info.backend_pid})")
        return execute(self, *words, **given)

    monkeypatch.setattr(psycopg.Connection, "execute", cut_at_last)
    for statement in itertools.count(1):
        left[0] = statement
        try:
            store = opened(patience=0.0)
        except StoreError as error:
            said.append(str(error))
            continue
        break
    assert len(said) > 3, "every statement of opening was cut, until there was none left"
    assert not any("\n" in sentence for sentence in said)
    left[0] = 1
    before = store.moved()
    assert store.moved() > before, "deaf for a moment, then it listens"


def test_another_version_and_another_program_are_not_touched(server: Postgres, opened: Any) -> None:
    store = opened()
    server.run(f"UPDATE {store.schema}.version SET number = 99")
    with pytest.raises(StoreError, match=rf"has version 99, this program knows {len(MIGRATIONS)}: install a newer"):
        opened()
    server.run("CREATE SCHEMA other", "CREATE TABLE other.things(x int)")
    with pytest.raises(StoreError, match="has tables of another program in its schema other: choose another database"):
        PostgresStore(server.address(), schema="other")


def test_many_who_open_an_empty_database_at_once_make_one_store(server: Postgres) -> None:
    failures: list[BaseException] = []

    def open_it() -> None:
        try:
            PostgresStore(server.address(), schema="race").close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_server_that_may_only_be_read_says_so(server: Postgres, opened: Any) -> None:
    store = opened()
    (source,) = store.add([Listing("a")], 0.0)
    store._db.execute("SET default_transaction_read_only = on")
    with pytest.raises(StoreError, match="may only be read: connect to the primary server"):
        store.set_due([source], [1.0])
    assert store.find("a") == source


def test_a_lost_connection_is_opened_again_and_nothing_is_lost_or_done_twice(server: Postgres, opened: Any) -> None:
    store = opened()
    ids = store.add([Listing(f"s{n}") for n in range(3)], 0.0)
    cut(server, store)
    claims = store.claim(1.0, 9, lease=60.0, owner="a")
    assert [claim.source for claim in claims] == ids
    cut(server, store)
    assert store.record([done(claim, 2.0) for claim in claims]) == [True] * 3
    cut(server, store)
    counted = {"claimed": 3, "recorded": 3, "unchanged": 3, "requests": 3, "spent": 3_000_000}
    assert store.counters() == {"added": 3, "edited": 1, **counted}


class _Deaf:
    """A connection that commits, and loses the word of it."""

    def __init__(self, db: Any) -> None:
        self._db = db

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def transaction(self) -> Any:
        whole = self._db.transaction()

        class Lost:
            def __enter__(self) -> Any:
                return whole.__enter__()

            def __exit__(inner, *given: Any) -> Any:
                whole.__exit__(*given)
                self._db.close()
                raise psycopg.OperationalError("server closed the connection unexpectedly")

        return Lost()


def test_a_commit_of_which_no_word_came_is_found_by_its_tokens(opened: Any) -> None:
    store = opened()

    def deafen() -> None:
        store._db = _Deaf(store._db)

    deafen()
    ids = store.add([Listing(f"s{n}") for n in range(4)], 5.0)
    assert ids == [1, 2, 3, 4]
    deafen()
    claims = store.claim(6.0, 2, lease=60.0, owner="a")
    # Nobody knew the tokens of the first attempt, so those claims were given back.
    assert [(claim.source, claim.token) for claim in claims] == [(1, 3), (2, 4)]
    store.record([])
    deafen()
    assert store.record([done(claim, 7.0, body=Body(b"x")) for claim in claims]) == [True, True]
    assert [len(store.observations(source)) for source in ids] == [1, 1, 0, 0]
    tally = store.counters()
    assert (tally["added"], tally["claimed"], tally["given_back"], tally["recorded"]) == (4, 4, 2, 2)
    assert "dropped" not in tally
    # A list that was added by somebody else is refused as ever.
    deafen()
    with pytest.raises(InputError, match="is listed already"):
        store.add([Listing("s0")], 8.0)


def test_a_server_that_stays_away_is_an_error_after_a_while(server: Postgres, opened: Any) -> None:
    store = opened(patience=0.3)
    cut(server, store)
    store._dsn = "postgresql://127.0.0.1:1/x"
    begun = time.monotonic()
    with pytest.raises(StoreError, match="cannot be reached"):
        store.counters()
    assert time.monotonic() - begun < SOON
    store._dsn = server.address()
    assert store.counters() == {}


def test_others_are_heard_without_asking_the_server(opened: Any) -> None:
    mine, other = opened(), opened()
    ids = mine.add([Listing("a"), Listing("b")], 0.0)
    before = mine.moved()
    mine.set_due(ids, [1.0, 2.0])
    (held,) = other.claim(1.0, 1, lease=9.0, owner="o")
    other.record([done(held, 1.0)])
    assert mine.moved() == before

    def heard(edit: Callable[[], Any]) -> bool:
        now = mine.moved()
        edit()
        for _ in range(100):
            if mine.moved() != now:
                return True
            time.sleep(0.01)
        return False

    assert heard(lambda: other.set_due(ids, [3.0, 4.0]))
    assert heard(lambda: other.add([Listing("c")], 0.0))
    assert heard(lambda: other.record([], price=Price(1.0, 2.0, 3.0)))
    assert heard(lambda: other.remove(ids))


def test_claims_of_many_at_once_are_disjoint(opened: Any) -> None:
    count, stores = 2000, [opened() for _ in range(4)]
    stores[0].add([Listing(f"s{n}") for n in range(count)], 0.0)
    found: list[list[Claim]] = [[] for _ in stores]

    def work(i: int) -> None:
        while claims := stores[i].claim(1.0, 37, lease=60.0, owner=f"w{i}"):
            found[i] += claims
            assert all(stores[i].record([done(claim, 1.0) for claim in claims]))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everyone = [claim for claims in found for claim in claims]
    assert sorted(claim.source for claim in everyone) == list(range(1, count + 1))
    assert sorted(claim.token for claim in everyone) == list(range(1, count + 1))
    tally = stores[0].counters()
    assert tally["claimed"] == tally["recorded"] == count


def test_a_session_that_the_server_ended_for_being_idle_is_begun_anew(opened: Any, server: Postgres) -> None:
    store = opened()
    (source,) = store.add([Listing("http://h/0")], 0.0)
    tries = 0

    def stopped(db: Any, again: bool) -> int:
        # As if the process had been stopped in the middle of a transaction.
        nonlocal tries
        tries += 1
        if not again:
            db.execute("SET LOCAL idle_in_transaction_session_timeout = 1")
            pid = db.info.backend_pid
            with server.connect() as other:
                gone = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
                while other.execute(gone, (pid,)).fetchone() != (0,):
                    time.sleep(0.01)
        return len(db.execute("SELECT id FROM sources").fetchall())

    assert store._write(stopped) == 1
    assert tries == 2
    with pytest.raises(StoreError, match="ended our session, which was idle for too long: try again"), worded("x"):
        raise psycopg.errors.IdleInTransactionSessionTimeout("terminating connection")
    assert store.claim(1.0, 9, lease=60.0, owner="a")[0].source == source


def test_claims_go_by_the_servers_clock_whatever_time_workers_say_it_is(opened: Any, server: Postgres) -> None:
    one, two = (opened(own_time=True) for _ in range(2))
    one.add([Listing(f"http://{n}/") for n in range(6)], 0.0)
    mine = one.claim(0.0, 3, lease=600.0, owner="a")
    assert [claim.source for claim in mine] == [1, 2, 3]
    # Clocks far ahead, or an hour behind: leases are held.
    now = one.server_time()
    for said in (now + 3600.0, now - 3600.0, 0.0):
        two.give_back("b", others := two.claim(said, 9, lease=600.0, owner="b"))
        assert [claim.source for claim in others] == [4, 5, 6]
    assert two.counters().get("expired", 0) == 0
    assert one.record([done(claim, now) for claim in mine]) == [True] * 3
    # A commit that was lost is ended by the time that the server said then.
    cut(server, two)
    two.set_due([4, 5, 6], [0.0] * 3)
    assert len(two.claim(0.0, 1, lease=600.0, owner="b")) == 1
    assert two.counters()["claimed"] - two.counters()["given_back"] - two.counters()["recorded"] == 1


def test_old_observations_go_by_partitions_and_leave_a_checkpoint(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_observations, "FIRST", 10)
    monkeypatch.setattr(postgres_observations, "SMALLEST", 10)
    monkeypatch.setattr(postgres_observations, "_DAY", 0.0)
    store = opened(horizon=100.0)
    ids = store.add([Listing("often"), Listing("once")], 0.0)
    belief = np.zeros(1)
    for now in range(1, 400):
        claims = store.claim(float(now), 9, lease=60.0, owner="a")
        if claims:
            belief += 1.0
            store.record(
                [
                    done(
                        claim,
                        float(now),
                        due=now + (5.0 if claim.source == ids[0] else math.inf),
                        belief=belief.tobytes(),
                    )
                    for claim in claims
                ]
            )
        if now % 50 == 0:
            # Checkpoint and the observations after it are all there is to know.
            for source in ids:
                from_here = store.checkpoint(source) or Checkpoint(0, 0.0, 0.0, np.zeros(1).tobytes())
                after = [o for o in store.observations(source) if o.token > from_here.latest]
                row = ids.index(source)
                assert np.frombuffer(from_here.belief)[0] + len(after) == store.fleet(1).beliefs[row, 0]
    kept = store.observations(ids[0])
    assert kept[0].polled_at - kept[-1].polled_at >= 100.0
    assert 20 <= len(kept) < 50
    assert store.observations(ids[1]) == []
    parts = store._db.execute("SELECT count(*) FROM pg_inherits WHERE inhparent = 'observations'::regclass").fetchone()
    assert parts[0] < 8


def test_the_planner_is_one_and_another_follows(server: Postgres, opened: Any) -> None:
    one, two = opened(), opened()
    first = one.elect()
    assert (first > 0, two.elect(), one.elect()) == (True, 0, first)
    cut(server, one)
    for _ in range(100):
        if two.elect():
            break
        time.sleep(0.02)
    second = two.elect()
    assert (second > 0, one.elect()) == (True, 0)
    # Who wins again at once after a lost session is told so: it may have missed another one's plans.
    cut(server, two)
    assert (again := two.elect()) > 0
    assert again != second
    two.close()
    assert one.elect() or (time.sleep(0.5) or one.elect())


def test_shares_change_hands_without_ever_adding_up_to_more(opened: Any) -> None:
    store = opened()

    def beat(owner: str, held: float) -> float:
        return store.beat(owner, held, 0.0, 1.0, {"polls": 1}, None).share

    def divided() -> list[tuple[str, float]]:
        return [(member.owner, member.share) for member in store.divide(6.0)[0]]

    assert beat("a", 0.0) == 0.0
    assert [share for _, share in divided()] == [6.0]
    assert beat("a", 0.0) == 6.0
    assert beat("b", 0.0) == 0.0
    assert [share for _, share in divided()] == [3.0, 0.0]
    # a has not heard of it yet, so b has to wait, however often the planner looks before a's next sign of life.
    assert [share for _, share in divided()] == [3.0, 0.0]
    assert beat("a", 6.0) == 3.0
    assert [share for _, share in divided()] == [3.0, 0.0]
    assert beat("a", 3.0) == 3.0
    assert [share for _, share in divided()] == [3.0, 3.0]
    assert (beat("a", 3.0), beat("b", 0.0)) == (3.0, 3.0)
    # a is silent, and b has what was a's. Whoever comes back takes only what is granted anew, also if the answer to its
    # first sign of life was lost and it still goes by what it had.
    store._write(lambda db, again: db.execute("UPDATE workers SET at = 0 WHERE owner = 'a'"))
    assert divided() == [("b", 6.0)]
    assert (beat("b", 3.0), beat("a", 3.0), beat("a", 3.0)) == (6.0, 0.0, 0.0)
    rows = store._read(lambda db: db.execute("SELECT owner, greatest(share, held) FROM workers ORDER BY 1").fetchall())
    assert rows == [("a", 0.0), ("b", 6.0)]
    store.leave("a")
    assert divided() == [("b", 6.0)]


def test_shares_are_right_in_the_end_and_never_too_much() -> None:
    rng = np.random.default_rng(1)
    for n in range(200):
        members = [(0.0, 0.0) for _ in range(int(rng.integers(1, 6)))]
        for _ in range(40):
            rate = 10.0
            demands = [(share, float(place * (n % 2))) for place, (share, _) in enumerate(members)]
            shares = granted(rate, wanted_shares(rate, demands), members)
            assert sum(max(new, held) for new, (_, held) in zip(shares, members, strict=True)) <= rate * (1 + 1e-12)
            # Some have heard of it, some have not yet.
            members = [
                (new, new if rng.random() < 0.7 else held) for new, (_, held) in zip(shares, members, strict=True)
            ]
        assert sum(shares) == pytest.approx(10.0)
        if n % 2 == 0:
            assert shares == pytest.approx([10.0 / len(members)] * len(members))
        elif len(members) > 1:
            # By demand, but for a tenth of them.
            total = sum(range(len(members)))
            wanted = [1.0 / len(members) + 9.0 * place / total for place in range(len(members))]
            assert shares == pytest.approx(wanted, rel=0.26)


def test_lessons_are_taken_up_with_the_plan_they_taught(opened: Any) -> None:
    store = opened()
    store.beat("a", 0.0, 0.0, 1.0, {}, b"one")
    store.beat("a", 0.0, 0.0, 1.0, {}, b"two")
    lessons = store.lessons()
    assert [lesson.value for lesson in lessons] == [b"one", b"two"]
    store.publish({"learner": b"state"}, None, [lessons[0].number])
    assert [lesson.value for lesson in store.lessons()] == [b"two"]
    assert store.epochs() == [Epoch(1, b"state")]


def test_a_million_listings_could_be_added_in_a_minute(opened: Any) -> None:
    store, count = opened(), 50_000
    begun = time.perf_counter()
    ids = store.add([Listing(f"https://h{n % 997}.example/{n}") for n in range(count)], 0.0)
    assert time.perf_counter() - begun < 4 * SOON, "by rows it would take many minutes"
    assert len(set(ids)) == count
    assert store.search("EXAMPLE/4999", limit=3) == [5000, 50_000 - 9, 50_000 - 8]


def test_a_schema_of_the_first_version_learns_of_collections(server: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_schema, "MIGRATIONS", MIGRATIONS[:1])
    PostgresStore(server.address(), schema="first").close()
    monkeypatch.undo()
    server.run(
        "INSERT INTO first.sources VALUES (4, 'x', 'http://x/', 'http', 1, 1, 1, 0, 'Infinity', NULL, false, 7)",
        "INSERT INTO first.hosts(name) VALUES ('')",
    )
    store = PostgresStore(server.address(), schema="first", own_time=False)
    (new,) = store.add([Listing("http://y/")], 8.0)
    store.enlist([CollectionMember(4, new, "http://y/", 1.0)])
    assert store.members() == [CollectionMember(4, new, "http://y/", 1.0)]
    assert store.observations(4) == []
    store.close()


def test_what_hosts_of_a_version_before_have_asked_for_still_holds(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_schema, "MIGRATIONS", MIGRATIONS[:4])
    PostgresStore(server.address(), schema="unpaced").close()
    monkeypatch.undo()
    server.run("INSERT INTO unpaced.hosts(name, asked, blocked) VALUES ('h', 2.5, 7)")
    store = PostgresCrew(server.address(), schema="unpaced", own_time=False)
    # It wants pauses, and was to be left alone until a time that is over.
    assert store.host_words() == [HostWord("h", 2.5, 7.0)]
    store.keep_words([HostWord("h", 2.5, 2e9, 3, 10.0)])
    assert store.host_words() == [HostWord("h", 2.5, 2e9, 3, 10.0)]
    store.close()


def test_what_polls_change_is_written_in_its_place(server: Postgres, opened: Callable[..., PostgresCrew]) -> None:
    store = opened()
    store.add([Listing(f"s{n}") for n in range(400)], 0.0)

    def polled(at: float, count: int) -> None:
        claims = store.claim(at, count, lease=60.0, owner="w")
        assert len(claims) == count
        store.record([done(claim, at, belief=bytes(152)) for claim in claims])

    def updates() -> dict[str, tuple[int, int]]:
        # Statistics are kept by each session and told when it is idle.
        store._read(lambda db: db.execute("SELECT pg_stat_force_next_flush()"))
        query = "SELECT relname, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname = %s"
        with server.connect() as db:
            return {name: (updated, hot) for name, updated, hot in db.execute(query, (store.schema,))}

    # Rows grow once, with their first belief.
    polled(100.0, 400)
    before = updates()
    for round_ in range(2, 42):
        polled(100.0 * round_, 40)
    after = updates()
    updated = {name: (all_ - before[name][0], hot - before[name][1]) for name, (all_, hot) in after.items()}
    # A claim updates nothing, an outcome a belief in its place and a row of the schedule; a whole batch is deleted.
    assert updated["batches"] == (0, 0)
    assert updated["schedule"][0] == updated["beliefs"][0] == 40 * 40
    assert updated["beliefs"][1] > 0.9 * updated["beliefs"][0]


def test_what_changes_at_every_poll_is_in_no_index(opened: Any) -> None:
    rows = opened().at_once(
        lambda db: db.execute(
            "SELECT DISTINCT i.indrelid::regclass::text, a.attname FROM pg_index i JOIN pg_attribute a "
            "ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) "
            "WHERE i.indrelid IN ('schedule'::regclass, 'beliefs'::regclass)"
        ).fetchall()
    )
    assert sorted(rows) == [("beliefs", "source"), ("schedule", "source")]
