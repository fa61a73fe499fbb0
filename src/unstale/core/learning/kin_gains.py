"""How much better siblings foretold what polls found than beliefs alone, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.learning.column_steps import Bits, gains_in_columns
from unstale.core.learning.compiled import in_columns
from unstale.core.learning.mixture import Scratch, Shared, foretold, gather

Integers = NDArray[np.int64]


@in_columns(gains_in_columns)
def gains(
    which: Integers,
    elapsed: Floats,
    changed: Bits,
    alone: Floats,
    told: Floats,
    pace: Floats,
    beliefs: Floats,
    shared: Shared,
    at: Scratch,
) -> Floats:
    """Of polls, each so long after the answer before it: the changes that its source's belief foretold, and the gain.

    With siblings the changes that were to be expected are `told`, and that share of what beliefs foretell which comes
    `alone`; without them they go by the family's `pace`. The gain is in log likelihood.
    """
    out = np.empty((2, len(which)))
    for k in range(len(which)):
        rate = gather(beliefs[which[k]], shared, at)
        likely = rate * elapsed[k]
        doubt, plain = alone[k] * likely + told[k], pace[k] * likely
        out[0, k] = likely
        out[1, k] = foretold(at, doubt / rate, changed[k]) - foretold(at, plain / rate, changed[k])
    return out
