"""`unstale.planning.topology`: books that balance, optima against brute force, and limits that are limits."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from unstale.core.processes import Constant, Pareto, Poisson, Process, Weibull
from unstale.core.replication import (
    best_tree,
    cascade_freshness,
    cooperation_for,
    cooperation_limit,
    cooperative_freshness,
    drawn_freshness,
)
from unstale.core.replication.layers import asked_freshness
from unstale.core.replication.redundancy import freshest_freshness, service_for
from unstale.core.staleness import freshness
from unstale.errors import InfeasibleError, InputError
from unstale.planning.combined import layers_of
from unstale.planning.cooperating import _blended, blend
from unstale.planning.shapes import _cascade_rate, tabulated
from unstale.planning.topology import SHAPES, Design, Question, Topology, ceiling, curves, topology

#: a scarce source, an ample one, bursts, even changes, and machines too slow to keep up by themselves
QUESTIONS = [
    Question(2.0, 20, 100.0, 0.8, 30.0),
    Question(2.0, 20, 100.0, 0.8, 1e6),
    Question(Pareto.from_rate(2.5, 1.0), 30, 12.0, 0.5, 6.0),
    Question(Constant(1.0), 12, 40.0, 0.7, 9.0),
    Question(1.0, 20, 1.0, 0.9, 100.0),
    Question(1.0, 400, 10.0, 0.4),
]


@cache
def asked(question: Question) -> Topology:
    """The answer, which several tests look at."""
    return topology(question)


def design(question: Question, shape: str) -> Design:
    """The best of one shape; InfeasibleError if there is none."""
    return topology(replace(question, shapes=[shape])).winner


@pytest.mark.parametrize("question", QUESTIONS, ids=range(len(QUESTIONS)))
def test_the_books_balance(question: Question) -> None:
    """What all machines can do is what they send, what they answer each other, and what they answer clients."""
    found = asked(question)
    for each in found.designs:
        if not each.feasible:
            assert each.clients == each.machines == each.source_polls == 0
            continue
        assert each.clients <= found.bound * (1 + 1e-12)
        if each.shape == "combined":
            continue
        below = each.machines - each.levels[0] if each.levels else 0
        sent = each.machines * (each.sync_rate + each.peer_rate)
        answered = each.machines * each.peer_rate + below * each.sync_rate
        assert each.clients * each.asked + sent + answered == pytest.approx(each.machines * question.limit, rel=1e-12)
        assert 0 < each.machines <= question.count
        assert each.source_polls <= question.source * (1 + 1e-9)
        at_source = each.levels[0] if each.levels else each.machines
        assert each.source_polls == pytest.approx(at_source * each.sync_rate, rel=1e-12)
        if each.levels:
            assert sum(each.levels) == each.machines
            assert (1 + each.branching) * each.sync_rate <= question.limit * (1 + 1e-9)


@pytest.mark.parametrize("question", QUESTIONS, ids=range(len(QUESTIONS)))
def test_clients_see_the_target_and_no_more(question: Question) -> None:
    u = question.process
    for each in asked(question).designs:
        if not each.feasible:
            continue
        # the blend that stands for bursts is good to 1e-3
        rough = each.shape == "cooperation" and not isinstance(u, Poisson)
        assert _seen(u, each) == pytest.approx(question.target, abs=1e-3 if rough else 1e-9), each.shape
        assert each.freshness == question.target


def _seen(changes: Process, each: Design) -> float:
    even = Constant(1.0 / each.sync_rate)
    match each.shape:
        case "turns":
            return float(freshness(changes, each.asked * each.sync_rate))
        case "redundancy":
            return freshest_freshness(changes, even, each.asked)
        case "tree":
            return cascade_freshness(changes, [even] * each.depth)
        case "combined":
            return asked_freshness(changes.rate, layers_of(each), each.asked)
        case "cooperation" if isinstance(changes, Poisson):
            return cooperative_freshness(changes.rate, each.sync_rate, each.peer_rate, each.machines)
        case "cooperation":
            rng = np.random.default_rng(1)
            polls, contacts = Poisson(each.sync_rate), Poisson(each.peer_rate)
            mean, error = drawn_freshness(changes, polls, contacts, each.machines, 1, rng, runs=20_000)
            assert error < 2e-3
            return each.freshness if abs(mean - each.freshness) < 5 * error else mean
    return float(freshness(changes, even))


def test_independent_machines_are_those_of_the_service_rate() -> None:
    for target in (0.2, 0.5, 0.8):
        want = service_for(1.0, target, capacity=10.0)
        whole = service_for(1.0, target, capacity=10.0, replicas=math.floor(want.replicas))
        got = design(Question(1.0, 1000, 10.0, target), "independent")
        assert got.machines == math.floor(want.replicas)
        assert got.clients == pytest.approx(whole.requests, rel=1e-12)


def test_a_scarce_source_by_hand() -> None:
    """Even polls against Poisson changes: freshness x(1 − e^(−1/x)) at x polls per change, 0.8 at x = 2.1541847."""
    found = asked(QUESTIONS[0])
    one = next(each for each in found.designs if each.shape == "independent")
    assert one.machines == 6
    assert one.clients == pytest.approx(6 * (100 - 2 * 2.154184671936), rel=1e-11)
    # a tree of two hops: the product of equal parts, sqrt(0.8) each
    tree = next(each for each in found.designs if each.shape == "tree")
    x = tree.sync_rate / 2.0
    assert (x * -math.expm1(-1 / x)) ** 2 == pytest.approx(0.8, rel=1e-11)
    assert tree.levels == (3, 17)
    assert tree.branching == 6
    # rates of their own: two at the source use its 30 polls up, and the rest polls as rarely as the product allows
    top, leaf = found.winner.rates
    assert (found.winner.levels, round(2 * top, 3)) == ((2, 18), 30.0)
    assert math.prod(x / 2.0 * -math.expm1(-2.0 / x) for x in (top, leaf)) == pytest.approx(0.8, rel=1e-9)
    # the bound of many machines: each pulls 2·2.1541847 and answers as much, but for what the source answers
    assert found.bound == pytest.approx(20 * (100 - 4 * 2.154184671936) + 30, rel=1e-11)
    assert "only 6 of 20 machines" in found.reason


@pytest.mark.parametrize("source", [4.0, 9.0, 25.0])
@pytest.mark.parametrize("machines", [2, 5, 9])
def test_the_best_tree_among_all(machines: int, source: float) -> None:
    """Every split of up to 9 machines into levels that capacities allow, at the rate its depth needs."""
    question = Question(1.0, machines, 12.0, 0.6, source, ["tree"])
    best = 0.0
    for depth in range(2, machines + 1):
        rate = _cascade_rate(question.process, depth, 0.6)
        for levels in itertools.product(range(1, machines + 1), repeat=depth):
            fed = levels[0] * rate <= source and all(
                rate * (1 + -(-below // above)) <= 12.0 for above, below in itertools.pairwise(levels)
            )
            if fed and sum(levels) <= machines and (12.0 - rate * (depth > 1)) > 0:
                best = max(best, sum(levels) * 12.0 - (2 * sum(levels) - levels[0]) * rate)
        if machines**depth > 1e5:
            break
    assert topology(question).winner.clients == pytest.approx(best, rel=1e-9)


def test_a_tree_serves_no_less_than_one_of_equal_branches() -> None:
    for capacity, most in ((20.0, 1554), (100.0, 9723)):
        want = best_tree(1.0, 0.5, capacity, most_replicas=most)
        assert design(Question(1.0, most, capacity, 0.5), "tree").clients >= want.requests * (1 - 1e-12)


@pytest.mark.parametrize("target", [0.4, 0.5, 0.6, 0.7])
def test_cooperation_is_that_of_the_core_with_answers_charged(target: float) -> None:
    got = design(Question(1.0, 500, 10.0, target), "cooperation")
    same = cooperation_for(1.0, target, 10.0, got.machines)
    assert got.peer_rate == pytest.approx(same.peer_rate, rel=1e-8)
    assert got.sync_rate == pytest.approx(same.source_rate, rel=1e-12)
    assert same.requests - got.clients == pytest.approx(got.machines * got.peer_rate, rel=1e-8)


@pytest.mark.parametrize("source", [3.0, 10.0, 40.0])
@pytest.mark.parametrize("target", [0.4, 0.6])
def test_the_best_number_of_cooperating_machines(source: float, target: float) -> None:
    """Every number of machines up to 60, each with the least contacts found by halving."""
    best = 0.0
    for m in range(2, 61):
        polls = min(source / m, target / (1 - target))
        low, high = 0.0, (10.0 - polls) / 2
        if cooperative_freshness(1.0, polls, high, m) < target:
            continue
        if cooperative_freshness(1.0, polls, 0.0, m) >= target * (1 - 1e-14):
            high = 0.0
        while high - low > 1e-12:
            middle = (low + high) / 2
            enough = cooperative_freshness(1.0, polls, middle, m) >= target
            low, high = (low, middle) if enough else (middle, high)
        best = max(best, m * (10.0 - polls - 2 * high))
    assert design(Question(1.0, 60, 10.0, target, source), "cooperation").clients == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize(("capacity", "source"), [(10.0, 10.0), (1.0, 30.0), (3.0, 1000.0)])
def test_the_best_number_asked(capacity: float, source: float) -> None:
    from unstale.core.replication.redundancy import sync_rate_for_freshest

    best = 0.0
    for k in range(2, 25):
        rate = sync_rate_for_freshest(1.0, 0.8, k)
        m = min(24, math.floor(source / rate))
        if m >= k and rate < capacity:
            best = max(best, m * (capacity - rate) / k)
    assert design(Question(1.0, 24, capacity, 0.8, source), "redundancy").clients == pytest.approx(best, rel=1e-9)


def test_groups_are_small_and_nearly_the_best() -> None:
    question = Question(2.0, 2000, 10.0, 0.5)
    got = design(question, "turns")
    together = got.asked * got.sync_rate
    best = max(g * (10.0 - together / (2000 // g)) for g in range(1, 1001) if g * together <= 10.0)
    assert 0.99 * best <= got.clients <= best
    assert got.asked < 20


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("capacity", "source"), [(10.0, 10.0), (10.0, 4.0), (4.0, 30.0)])
def test_the_best_freshness_named_is_the_best_there_is(shape: str, capacity: float, source: float) -> None:
    question = Question(1.0, 12, capacity, 0.9999, source, [shape])
    with pytest.raises(InfeasibleError, match=f"freshness 0.9999 is out of reach: {shape} comes closest, to 0"):
        topology(question)
    all_shapes = asked(Question(1.0, 12, capacity, 0.3, source))
    assert all(each.feasible for each in all_shapes.designs)
    low, high = 0.3, 0.9999
    while high - low > 1e-5:
        middle = (low + high) / 2
        try:
            topology(replace(question, freshness=middle))
            low = middle
        except InfeasibleError:
            high = middle
    try:
        topology(replace(question, freshness=0.9999))
    except InfeasibleError as error:
        said = float(str(error).split("to ")[-1].split(":")[0])
    assert said <= low + 2e-5
    assert said == pytest.approx(low, abs=1.1e-4)


def test_no_talk_reaches_the_limit_of_theorem_6() -> None:
    limit = cooperation_limit(1.0, Poisson(10.0 / 30), 30)
    with pytest.raises(InfeasibleError, match=r"cooperation comes closest, to 0\.\d{4}: lower it, or raise the cap"):
        topology(Question(1.0, 30, 10.0, limit, shapes=["cooperation"]))
    found = topology(Question(1.0, 30, 10.0, limit))
    problem = next(each.problem for each in found.designs if each.shape == "cooperation")
    assert f"{math.floor(limit * 1e4) / 1e4:.4f} if it were free" in problem


def test_where_the_source_feeds_all_nothing_beats_independent_machines() -> None:
    for target, changes in itertools.product((0.3, 0.6, 0.9), (Poisson(1.0), Pareto.from_rate(2.5, 1.0))):
        found = topology(Question(changes, 10, 100.0, target, 1e6))
        assert found.winner.shape == "independent"
        assert found.winner.machines == 10
        assert "feed every machine" in found.reason


def test_ties_go_to_fewer_polls_of_the_source_and_one_machine_is_one() -> None:
    found = topology(Question(1.0, 1, 10.0, 0.5))
    assert [each.shape for each in found.designs[:2]] == ["single", "independent"]
    assert found.designs[0].clients == found.designs[1].clients
    assert all("too few" in each.problem for each in found.designs[2:])


def test_where_polls_take_most_of_a_machine_they_are_shared() -> None:
    found = topology(Question(1.0, 4, 5.0, 0.9, 1e6))
    assert [each.shape for each in found.designs[:2]] == ["turns", "redundancy"]
    # two groups of two serve 2·(5 − x/2): x, the polls of a group, make even polls fresh 0.9 of the time
    x = 10.0 - found.winner.clients
    assert x * -math.expm1(-1 / x) == pytest.approx(0.9, rel=1e-11)
    assert "to poll by itself takes 93.2 % of a machine's capacity" in found.reason


def test_slow_machines_reach_together_what_none_can_alone() -> None:
    found = asked(QUESTIONS[4])
    assert [each.shape for each in found.designs if each.feasible] == ["turns", "redundancy"]
    assert "no machine can poll often enough" in found.reason


@pytest.mark.parametrize(
    "changes", [Pareto.from_rate(1.2, 3.0), Pareto.from_rate(3.0, 1.0), Weibull.from_rate(0.4, 1.0)]
)
def test_bursts_are_a_blend_of_poisson_changes(changes: Process) -> None:
    """One machine without peers, and machines that tell each other everything, have formulas of their own."""
    mixed = blend(changes)
    assert mixed is not None
    for rate in np.array([0.01, 0.3, 5.0, 100.0]) * changes.rate:
        assert _blended(mixed, rate, 0.0, 1) == pytest.approx(freshness(changes, Poisson(rate)), abs=1e-4)
        limit = cooperation_limit(changes, Poisson(rate), 7)
        assert _blended(mixed, rate, math.inf, 7) == pytest.approx(limit, abs=1e-4)


def test_even_changes_are_no_blend() -> None:
    assert blend(Constant(1.0)) is None
    found = asked(QUESTIONS[3])
    assert "more even than Poisson" in next(each.problem for each in found.designs if each.shape == "cooperation")


def test_rates_of_trees_from_a_table() -> None:
    rate_at = tabulated(Poisson(3.0), 4)
    for depth, target in itertools.product((2, 3, 4), (0.03, 0.3, 0.7, 0.95, 0.99)):
        assert rate_at(depth, target) == pytest.approx(_cascade_rate(Poisson(3.0), depth, target), rel=1e-3)
    assert rate_at(5, 0.1) == math.inf
    assert rate_at(2, 0.99999) == math.inf


def test_curves_fall_and_pass_through_the_designs() -> None:
    found = asked(QUESTIONS[0])
    drawn = curves(found, 12)
    assert list(drawn) == [each.shape for each in found.designs]
    for each in found.designs:
        fresh, clients = drawn[each.shape]
        assert clients[fresh == 0.8] == pytest.approx(each.clients, rel=0.01 if each.shape == "combined" else 1e-3)
        # groups of machines are only best to within 1 %
        assert np.all(np.diff(clients) <= 0.011 * clients[:-1])
    assert fresh[-1] <= ceiling(found.question)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"machines": 0}, "machines 0.0 must be a finite number at least 1"),
    ({"machines": 2.5}, "machines 2.5 must be a whole number"),
    ({"machines": True}, "machines True must be a number"),
    ({"machines": 10**7}, "at most 100000"),
    ({"capacity": 0}, "capacity 0 must be above 0"),
    ({"capacity": math.nan}, "capacity nan must be"),
    ({"capacity": [1]}, r"capacity \[1\] is not a rate"),
    ({"capacity": "fast"}, "capacity 'fast' is not a rate"),
    ({"source_limit": -1}, "source_limit -1 must be"),
    ({"freshness": math.nan}, "freshness nan must be"),
    ({"freshness": 0}, "freshness 0.0 must be a finite number above 0"),
    ({"freshness": 1.0}, "freshness 1 is out of reach of any finite number of polls: these machines come to 0.9"),
    ({"changes": "poisson"}, "changes 'poisson' has no rate: write it like poisson 2/h"),
    ({"changes": "noisy 2/h"}, "process 'noisy' is not known"),
    ({"changes": 0}, "changes 0 must be above 0"),
    ({"changes": None}, "changes None has no rate"),
    ({"shapes": []}, r"shapes \[\] must be a list"),
    ({"shapes": "tree"}, "shapes 'tree' must be a list"),
    ({"shapes": 3}, "shapes 3 must be a list"),
    ({"shapes": ["star"]}, "shape 'star' is not known: use single, "),
]


@pytest.mark.parametrize(("change", "words"), BAD, ids=str)
def test_bad_questions_get_one_sentence(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as raised:
        Question(**{"changes": 1.0, "machines": 4, "capacity": 10.0, "freshness": 0.5} | change)
    assert "\n" not in str(raised.value)


def test_text_and_numbers_mean_the_same() -> None:
    text = Question("pareto:2.5 2/h", 4, "100/min", 0.5, "3/h")
    assert text.process == Pareto.from_rate(2.5, 48.0)
    assert (text.limit, text.source) == (144_000.0, 72.0)
    assert Question(" 2/h ", 4, 1.0, 0.5).process == Poisson(48.0)
    assert Question("2 per 5min", 4, 7.0, 0.5).process == Poisson(576.0)
    assert Question(1, 4, 7.0, 0.5).source == 7.0
