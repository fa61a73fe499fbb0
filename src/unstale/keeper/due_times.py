"""When sources of a fleet are due, to be compared with later."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats


class DueTimes(NamedTuple):
    """When the sources of a fleet are due, in columns, and after which poll: it shows later who was asked for."""

    ids: NDArray[np.int64]
    due: Floats
    answered: Floats
    failures: NDArray[np.integer[Any]]
    asked: NDArray[np.bool_]
