"""SciPy's special functions, loaded when one is first called: it takes longer than to list a thousand sources.

>>> from unstale.core import special
>>> float(special.gamma(5.0))
24.0
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    import scipy.special

    function = globals()[name] = getattr(scipy.special, name)
    return function
