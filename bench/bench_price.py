"""How fast a fleet is priced: against sorting it, against SciPy, and in a fresh process.

python bench/bench_price.py            # 1e7 sources
python bench/bench_price.py --full     # 1e8 sources, about 10 GB
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaincinv

from harness import Table, peak_memory
from unstale.core import kernels, price
from unstale.core.checks import Floats
from unstale.core.fleet import Fleet
from unstale.core.plan import Plan
from unstale.core.values import PoissonFreshness

FIRST_CALL = """
import time
import numpy as np
import unstale
from unstale.core.fleet import Fleet
from unstale.core.price import plan
from unstale.core.values import PoissonFreshness
rng = np.random.default_rng(0)
rate, weight = np.exp(2 * rng.standard_normal({size})), rng.pareto(1.5, {size}) + 1
begin, begun = time.perf_counter(), time.process_time()
plan(Fleet.of(PoissonFreshness(rate), weight=weight), 0.3 * rate.size)
print(time.perf_counter() - begin, time.process_time() - begun)
"""


#: what NumPy calls the vector instructions that its sort uses where a processor has them
VECTORS = "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"


def fleet(size: int) -> tuple[Floats, Floats]:
    """Change rates over eight orders of magnitude, weights with an infinite variance."""
    rng = np.random.default_rng(2000)
    rate = np.exp(2.0 * rng.standard_normal(size))
    return rate, rng.pareto(1.5, size) + 1.0


def plan(rate: Floats, weight: Floats, budget: float, out: Floats | None = None) -> Plan:
    """Ours, as a user calls it: columns checked, the price found, the rates written."""
    return price.plan(Fleet.of(PoissonFreshness(rate), weight=weight), budget, out)


def scipy_plan(rate: Floats, weight: Floats, budget: float) -> tuple[float, Floats]:
    """The same from SciPy, as well as one would write it: the abandoned are left out before the inverse."""
    u = rate / weight

    def at(price: float) -> Floats:
        out = np.zeros(rate.size)
        polled = price * u < 1.0
        out[polled] = rate[polled] / gammaincinv(2.0, price * u[polled])
        return out

    high = 1.0 / float(u.min())
    low = min(high, float(np.sqrt(rate * weight).sum() / budget) ** 2 / 2)
    while at(low).sum() < budget:
        high, low = low, low / 8
    log_price = brentq(lambda z: np.log(at(np.exp(z)).sum() / budget), np.log(low), np.log(high), xtol=1e-13)
    price = float(np.exp(log_price))
    return price, at(price)


def against_sorting(table: Table, size: int, rounds: int) -> None:
    rate, weight = fleet(size)
    budget = 0.3 * size
    kernels.warm()
    plan(rate[:300_000].copy(), weight[:300_000].copy(), 1e5)
    before = peak_memory()
    out = plan(rate, weight, budget).sync_rate
    extra = (peak_memory() - before) / out.nbytes
    error = abs(float(out.sum()) / budget - 1)
    room = out
    seconds = table.measure(
        f"{size:.0e} sources",
        {
            "np.argsort(weight/rate)": lambda: np.argsort(weight / rate),
            "price and rates": lambda: plan(rate, weight, budget),
            "the same into a column of the caller's": lambda: plan(rate, weight, budget, room),
        },
        reference="np.argsort(weight/rate)",
        rounds=rounds,
    )
    ratio = seconds["the same into a column of the caller's"] / seconds["np.argsort(weight/rate)"]
    table.fact(f"{size:.0e}: time over argsort", f"{ratio:.4f}", "0.06")
    busy = {row["candidate"]: row["cpu_seconds"] for row in table.rows}
    spent = busy["the same into a column of the caller's"] / busy["np.argsort(weight/rate)"]
    name = "np.argsort without vector instructions"
    scalar, cpu = scalar_argsort(size)
    table.row(f"{size:.0e} sources", name, scalar, cpu, scalar / seconds["np.argsort(weight/rate)"], 1)
    ratio = seconds["the same into a column of the caller's"] / scalar
    table.fact(f"{size:.0e}: time over argsort without vector instructions", f"{ratio:.4f}", "0.06")
    table.fact(f"{size:.0e}: processor time over argsort's, which has one thread", f"{spent:.4f}", "-")
    table.fact(f"{size:.0e}: extra memory over the output, output included", f"{extra:.3f}", "1.5")
    table.fact(f"{size:.0e}: budget missed by", f"{error:.1e}", "1e-9")


def scalar_argsort(size: int) -> tuple[float, float]:
    """Seconds by the clock and of the processor of the sort that NumPy has where a processor has no AVX2 or AVX-512.

    With them it sorts two to three times faster, and what a plan is in sorts says as much of the sort as of the plan.
    """
    code = (
        "import sys, time, numpy as np, bench_price; rate, weight = bench_price.fleet(int(sys.argv[1])); "
        "begin, begun = time.perf_counter(), time.process_time(); np.argsort(weight / rate); "
        "print(time.perf_counter() - begin, time.process_time() - begun)"
    )
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, f"{size}"],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
        env=os.environ | {"NPY_DISABLE_CPU_FEATURES": VECTORS},
    ).stdout
    clock, processor = map(float, told.split())
    return clock, processor


def against_scipy(table: Table, size: int, rounds: int) -> None:
    rate, weight = fleet(size)
    budget = 0.3 * size
    ours, (_, theirs) = plan(rate, weight, budget).sync_rate, scipy_plan(rate, weight, budget)
    error = float(np.abs(ours - theirs).max() / theirs.max())
    seconds = table.measure(
        f"{size:.0e} sources",
        {
            "scipy gammaincinv + brentq": lambda: scipy_plan(rate, weight, budget),
            "price and rates": lambda: plan(rate, weight, budget),
        },
        reference="scipy gammaincinv + brentq",
        rounds=rounds,
    )
    ratio = seconds["scipy gammaincinv + brentq"] / seconds["price and rates"]
    table.fact(f"{size:.0e}: times faster than SciPy", f"{ratio:.0f}", "150 or more")
    table.fact(f"{size:.0e}: rates apart by, over the largest", f"{error:.1e}", "1e-9")


def first_call(table: Table, size: int) -> None:
    command = [sys.executable, "-c", FIRST_CALL.format(size=size)]
    subprocess.run(command, check=True, capture_output=True)
    begin = time.perf_counter()
    inside, cpu = map(float, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    whole = time.perf_counter() - begin
    table.fact(
        f"{size:.0e}: first call in a fresh process, seconds",
        f"{inside:.2f} ({cpu:.2f} of the processor; {whole:.2f} with the process and the fleet)",
        "0.3",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="1e8 sources instead of 1e7")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    table = Table("price", "Finding the price of a poll, Poisson freshness")
    against_sorting(table, 100_000_000 if options.full else 10_000_000, options.rounds)
    against_scipy(table, 1_000_000, options.rounds)
    first_call(table, 300_000)
    first_call(table, 1_000_000)
    table.write()


if __name__ == "__main__":
    main()
