"""What a diagnosis amounts to: facts as plain numbers for a table or JSON, and advice as sentences.

Rates are per day and lengths of time in days, as everywhere people read. What cannot be known is None.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np

from unstale.core.checks import Floats
from unstale.core.processes.lattice import common_span
from unstale.core.trace import Trace
from unstale.study.fitting.diagnosis import FRESHNESS, Diagnosis, together
from unstale.study.fitting.overspend import overspend, polls_for
from unstale.study.fitting.profile import DAY, Profile
from unstale.units import format_duration, format_rate

#: p-values below these count: of a law or a trend, and of a daily cycle, which is asked of every source
LEVEL, CYCLE_LEVEL = 0.05, 0.01
TARGETS = (0.5, 0.8, 0.9, 0.95)
#: gaps vary less than this (over their mean) in clockwork, and less than this in what is steadier than Poisson
CLOCKWORK, STEADY = 0.05, 0.7
#: a share of sources that is worth a sentence, and gaps below which everything is rough
OFTEN, FEW = 0.2, 30
#: times that come in steps of this share of the median gap, or larger ones, were found by polling
COARSE = 0.1
#: changes a source needs for its Fano factors to count in a summary
_COUNTED = 100


def day(time: float) -> str:
    """The date of a time, UTC."""
    return datetime.fromtimestamp(time, UTC).date().isoformat()


def fleet_facts(trace: Trace, seen: Diagnosis, when: Profile) -> dict[str, Any]:
    """The whole trace, then quantiles and shares over the sources that were judged."""
    weibull, pareto = (seen.fits[name].parameters for name in ("weibull", "pareto"))
    many = seen.trace.counts() >= _COUNTED
    polls = polls_for(seen.gaps, FRESHNESS)
    drifting, cycling = seen.drift_fair_p < LEVEL, seen.rhythm_fair_p < CYCLE_LEVEL
    spread = {
        "variation": seen.variation,
        "mean_over_median": seen.skew,
        "weibull_shape": weibull["shape"],
        "pareto_alpha": pareto["alpha"],
        "memory": seen.memory,
        "hurst": seen.hurst,
        **{f"clumping_{days}_days": np.where(many, fano, np.nan) for days, fano in seen.clumping.items()},
        "growth": seen.growth,
        "overspend": seen.overspend,
    }
    return {
        "sources": len(trace),
        "changes": len(trace.times),
        "first": day(trace.times.min()),
        "last": day(trace.times.max()),
        "judged": len(seen.trace),
        "quantiles": {name: _quantiles(column) for name, column in spread.items()},
        "shares": {
            "not_exponential": _share(seen.exponential_p < LEVEL),
            "steadier_than_poisson": _share(seen.variation < STEADY),
            "remembering": _share((seen.memory > 0) & (seen.memory_p < LEVEL)),
            "drifting": _share(drifting),
            "drifting_if_bursts_are_ignored": _share(seen.drift_p < LEVEL),
            "with_daily_cycle": _share(cycling),
            "with_daily_cycle_if_bursts_are_ignored": _share(seen.rhythm_p < CYCLE_LEVEL),
        },
        "families": {name: _share(seen.family == name) for name in seen.fits},
        "rhythm": _rhythm(when),
        "changes_at_the_same_time": together(trace),
        "overspend_in_total": float(np.sum(seen.overspend * polls) / np.sum(polls)),
    }


def source_facts(seen: Diagnosis, when: Profile) -> dict[str, Any]:
    """Everything about one source."""
    times, gaps = seen.trace.times, seen.gaps.lengths / DAY
    span = common_span(np.unique(seen.gaps.lengths))
    return {
        "source": seen.trace.names[0],
        "changes": len(times),
        "first": day(times[0]),
        "last": day(times[-1]),
        "days": float(times[-1] - times[0]) / DAY,
        "change_rate": float(DAY / seen.gaps.means()[0]),
        "gaps": {
            "shortest": float(gaps.min()),
            "median": float(np.median(gaps)),
            "mean": float(gaps.mean()),
            "longest": float(gaps.max()),
            "variation": float(seen.variation[0]),
            # times in whole seconds always have a lattice of a second
            "all_multiples_of": span / DAY if span is not None and span > 1 else None,
        },
        "exponential_p": float(seen.exponential_p[0]),
        "family": str(seen.family[0]),
        "fits": {
            name: {
                **{key: float(column[0]) for key, column in _in_days(fit.parameters).items()},
                "aic": float(fit.aic[0] + 2 * len(gaps) * -math.log(DAY)),
                "bic": float(fit.bic[0] + 2 * len(gaps) * -math.log(DAY)),
            }
            for name, fit in seen.fits.items()
        },
        "memory": _known(seen.memory[0]),
        "memory_p": _known(seen.memory_p[0]),
        "hurst": _known(seen.hurst[0]),
        "hurst_error": _known(seen.hurst_error[0]),
        "growth": float(seen.growth[0]),
        "drift_p": float(seen.drift_fair_p[0]),
        "clumping": {str(days): _known(fano[0]) for days, fano in seen.clumping.items()},
        "rhythm": _rhythm(when) | {"p": float(seen.rhythm_fair_p[0])},
        "polls": [
            {
                "freshness": target,
                "sync_rate": float(polls_for(seen.gaps, target)[0]) * DAY,
                "if_poisson": float((polls_for(seen.gaps, target) * overspend(seen.gaps, target))[0]) * DAY,
            }
            for target in TARGETS
        ],
    }


def source_advice(facts: dict[str, Any]) -> list[str]:
    """What the facts about one source mean for polling it."""
    said = []
    gaps, rate, count = facts["gaps"], facts["change_rate"], facts["changes"] - 1
    steps, mean = gaps["all_multiples_of"], format_duration(gaps["mean"])
    clockwork = gaps["variation"] < CLOCKWORK
    if clockwork:
        said.append(
            f"It changes like clockwork, every {mean}: poll just after each change, for at any other moment the same "
            "interval is late every time. Give a plan the process, constant."
        )
    elif facts["exponential_p"] >= LEVEL:
        enough = "" if facts["drift_p"] < LEVEL else ": the change rate is all a plan needs"
        said.append(f"Nothing in {count:,} gaps speaks against Poisson changes{enough}.")
    else:
        kind, name = "steadier" if gaps["variation"] < 1 else "burstier", process_name(facts)
        said.append(f"It is {kind} than Poisson: give a plan the process as well as the rate, {name}.")
    need = next(row for row in facts["polls"] if row["freshness"] == FRESHNESS)
    every, wanted = format_duration(1 / need["sync_rate"]), f"{100 * FRESHNESS:g} %"
    compared = _compared(need["if_poisson"] / need["sync_rate"])
    said.append(f"One poll every {every} would have kept its copy fresh for {wanted} of this history; {compared}.")
    if facts["drift_p"] < LEVEL:
        late = format_rate(rate * 2 * facts["growth"] / (1 + facts["growth"]))
        said.append(
            f"Its rate drifts: plan with that of the second half, {late}, or with a belief that forgets. Drift also "
            "makes a history look burstier than it is at any one time."
        )
    if remembers(facts) and not clockwork:
        said.append(
            "Short gaps follow short ones: after a change poll sooner, after a long silence later; a policy that "
            "reacts beats every even interval here."
        )
    if facts["rhythm"]["p"] < CYCLE_LEVEL and facts["rhythm"]["busiest_over_quietest"] is not None:
        said.append(_when_to_poll(facts["rhythm"]))
    if steps and steps > COARSE * gaps["median"] and not clockwork:
        said.append(
            f"All gaps are multiples of {format_duration(steps)}: this history was probably written by polling. Then "
            "changes between two polls are missing, and what is said of the law means little."
        )
    if count < FEW:
        said.append(f"But {count} gaps are few: take all of this as a rough picture.")
    return said


def fleet_advice(facts: dict[str, Any]) -> list[str]:
    """What the facts about a fleet mean for polling it."""
    shares = {name: _percent(share) for name, share in facts["shares"].items()}
    often = {name for name, share in facts["shares"].items() if share > OFTEN}
    polls, together = facts["overspend_in_total"], facts["changes_at_the_same_time"]
    known = "plans that know only rates misjudge them" if "not_exponential" in often else "rates describe nearly all"
    said = [
        f"{shares['not_exponential']} of the judged sources are not Poisson: {known}. For {100 * FRESHNESS:g} % "
        f"freshness of each, {_compared(polls)}."
    ]
    if "drifting" in often:
        said.append(f"The rate of {shares['drifting']} drifts: let old evidence fade, means of histories mislead.")
    if "remembering" in often:
        said.append(
            f"In {shares['remembering']} short gaps follow short ones: policies that react to what polls find beat "
            "even intervals."
        )
    if "with_daily_cycle" in often and facts["rhythm"]["busiest_over_quietest"] is not None:
        said.append(_when_to_poll(facts["rhythm"]))
    if together > OFTEN:
        said.append(
            f"{_percent(together)} of the changes come together with another source's: one that changed is a hint to "
            "poll the others."
        )
    return said


def remembers(facts: dict[str, Any]) -> bool:
    """Whether short gaps follow short ones beyond chance."""
    return facts["memory"] is not None and facts["memory"] > 0 and facts["memory_p"] < LEVEL


def _compared(times: float) -> str:
    if abs(times - 1) < 0.05:
        return "a Poisson plan would spend as many polls"
    if times > 1:
        return f"a Poisson plan would spend {times:.2f} times the polls"
    return f"a Poisson plan would spend {times:.2f} times the polls, and not be as fresh as it promises"


def process_name(facts: dict[str, Any]) -> str:
    """The best family as a fleet file spells it; of those with a finite mean gap, which Pareto may lack."""
    fits = {name: fit for name, fit in facts["fits"].items() if fit.get("alpha", math.inf) > 1}
    kind = min(fits, key=lambda name: float(fits[name]["aic"]))
    shape = {"weibull": "shape", "gamma": "shape", "pareto": "alpha", "lognormal": "sigma"}
    return "poisson" if kind == "exponential" else f"{kind}:{fits[kind][shape[kind]]:.3g}"


def _when_to_poll(rhythm: dict[str, Any]) -> str:
    at, ratio = rhythm["busiest_hour"], rhythm["busiest_over_quietest"]
    other = f"at {rhythm['quietest_hour']}:00"
    more = f"nothing {other}" if math.isinf(ratio) else f"{ratio:.2g} times as much as {other}"
    return (
        f"Changes follow the clock, most at {at}:00 ({more}): a poll is worth most as the busy hours end, when what it "
        "copies stays fresh longest."
    )


def _rhythm(when: Profile) -> dict[str, Any]:
    hours = when.hours
    known = bool(np.isfinite(hours).all())
    low, high = (float(np.min(hours)), float(np.max(hours))) if known else (math.nan, math.nan)
    return {
        "strength": when.strength,
        "busiest_hour": int(np.argmax(hours)) if known else None,
        "quietest_hour": int(np.argmin(hours)) if known else None,
        "busiest_over_quietest": (high / low if low > 0 else math.inf) if known else None,
        "weekend_over_weekday": _known(when.weekend),
    }


def _in_days(parameters: dict[str, Floats]) -> dict[str, Floats]:
    """Times in days, rates per day, shapes as they are."""
    factor = {"rate": DAY, "scale": 1 / DAY, "median": 1 / DAY}
    return {name: column * factor.get(name, 1.0) for name, column in parameters.items()}


def _quantiles(column: Floats) -> dict[str, float] | None:
    known = column[np.isfinite(column)]
    if not len(known):
        return None
    # values of real sources: between an alpha of 1 and one at its bound lies nothing
    low, middle, high = np.quantile(known, [0.1, 0.5, 0.9], method="nearest")
    return {"p10": float(low), "p50": float(middle), "p90": float(high), "sources": len(known)}


def _share(which: np.ndarray) -> float:
    return float(np.mean(which))


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _known(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None
