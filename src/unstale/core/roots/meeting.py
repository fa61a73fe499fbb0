"""Many one-dimensional roots at once: at which price does a decreasing total meet its target?

Totals fall as a price rises, over hundreds of orders of magnitude and sometimes with a jump, so the search is
Newton on logarithms (a power law is solved in one step), kept inside a bracket that shrinks for certain.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.errors import ConvergenceError
from unstale.frozen import dataclass

#: two prices closer than this (relative) are one price: a few units in the last place
ADJACENT = 2.0**-50
TINY, HUGE = 5e-324, 1.7e308
#: each step narrows a bracket, mostly by halves: all the doubles there are need a hundred
_ROUNDS = 2000


@dataclass(frozen=True, slots=True)
class Roots:
    """`at` meets the target, or (`jump`) the total crosses it between `low` and `high` with nothing in between.

    `high` ends at TINY for a total that is below its target at every price, `low` at HUGE for one above.
    """

    at: Floats
    low: Floats
    high: Floats
    jump: NDArray[np.bool_]


def meet(
    total: Callable[[Floats, NDArray[np.intp]], tuple[Floats, Floats]],
    target: Floats,
    start: Floats,
    *,
    low: Floats | None = None,
    edge: Callable[[Floats, Floats, Floats, Floats, NDArray[np.intp]], Floats] | None = None,
    rtol: float = 1e-12,
) -> Roots:
    """The prices at which each of many non-increasing totals meets its target.

    total(price, which) gives the totals numbered `which` at these prices, and their derivatives; it is asked
    only for those still open. `low` are prices known to give too much. `edge(low, high, at, step, which)`
    may propose prices inside the brackets low to high where Newton's step from `at` does not help, because a
    total jumps or bends there, NaN where it knows none: without it a jump is found by halving, fifty times.
    """
    n = len(target)
    # Of each, by its number, what `Roots` tells; and of those still open, one after the other, what a round asks for.
    ends = Roots(at=np.array(start, float), low=np.zeros(n), high=np.full(n, np.inf), jump=np.zeros(n, bool))
    todo = np.arange(n)
    price, goal = ends.at.copy(), np.array(target, float)
    a = np.zeros(n) if low is None else np.array(low, float)
    b, reach, last = np.full(n, np.inf), np.full(n, 4.0), np.full(n, np.inf)
    for _ in range(_ROUNDS):
        if not len(todo):
            break
        have, slope = total(price, todo)
        above = have > goal
        a, b = np.where(above, price, a), np.where(above, b, price)
        met = np.abs(have - goal) <= rtol * goal
        middle = np.sqrt(np.maximum(a, TINY)) * np.sqrt(np.minimum(b, HUGE))
        # Among subnormal prices the spacing is absolute: a bracket without a number inside is closed too.
        closed = (b <= a * (1 + ADJACENT)) | (a >= HUGE) | (b <= TINY) | (middle <= a) | (middle >= b)
        with np.errstate(all="ignore"):
            newton = price * np.exp(-np.log(have / goal) / (slope * price / have))
            size = np.abs(np.log(newton / price))
            one_sided = np.isinf(b) | (a <= 0)
            # While one side is open Newton goes no further than the reach, whose exponent grows each time.
            # In a closed bracket, Newton whose steps do not halve has met a kink: the bracket is halved instead.
            good = (newton > a) & (newton < b) & (size <= np.where(one_sided, np.log(reach), 0.5 * last))
            rough = np.flatnonzero(~(good | one_sided | met | closed))
            if edge is not None and len(rough):
                step_to = ((goal - have) / slope)[rough]
                proposed = edge(a[rough], b[rough], price[rough], step_to, todo[rough])
                middle[rough] = np.where((proposed > a[rough]) & (proposed < b[rough]), proposed, middle[rough])
            if one_sided.any():
                outward = np.where(np.isinf(b), np.minimum(a * reach, HUGE), np.maximum(b / reach, TINY))
                middle = np.where(one_sided & (outward > a) & (outward < b), outward, middle)
                reach = np.where(one_sided, np.minimum(reach * reach, 1e150), reach)
            following = np.where(good, newton, middle)
            last = np.abs(np.log(following / price))
        done = met | closed
        if done.any():
            which, still = todo[done], ~done
            ends.at[which], ends.low[which], ends.high[which] = price[done], a[done], b[done]
            ends.jump[which] = ~met[done]
            todo, following, goal = todo[still], following[still], goal[still]
            a, b, reach, last = a[still], b[still], reach[still], last[still]
        price = following
    else:
        raise ConvergenceError(f"no price was found in {_ROUNDS} steps between {a[0]:g} and {b[0]:g}")
    return ends
