"""Values, names and text of the papers as the report writes them in HTML: Greek letters, powers, indices."""

from __future__ import annotations

import math
import re
from html import escape
from typing import Any

_LETTERS = {
    "lambda": "λ",
    "Lambda": "Λ",
    "mu": "μ",
    "nu": "ν",
    "Delta": "Δ",
    "delta": "δ",
    "delta2": "δ²",
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "tau": "τ",
    "omega": "ω",
    "eps": "ε",
    "rho": "ρ",
    "inf": "∞",
}


def given(value: Any) -> str:
    """A value that goes into a formula."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"({shown_value(value)})" if isinstance(value, list) else shown_value(value)


def shown_value(value: Any) -> str:
    """A value that comes out of one."""
    if isinstance(value, bool):
        return "holds" if value else "does not hold"
    if isinstance(value, str):
        return greek(value)
    if isinstance(value, list | tuple):
        return ", ".join(f"({shown_value(v)})" if isinstance(v, list | tuple) else shown_value(v) for v in value)
    if isinstance(value, float) and math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.7g}"
    mantissa, _, power = text.partition("e")
    return f"{mantissa}·10^{{{int(power)}}}" if power else text


def shown_name(label: str) -> str:
    """A part's name: what follows one letter and a low line is its index."""
    base, low, index = label.partition("_")
    if low and len(greek(base)) == 1:
        return f"{greek(base)}<sub>{escape(index.replace('_', ' '))}</sub>"
    return marked(greek(label).replace("_", " "))


def greek(text: str) -> str:
    """Greek names as letters; the papers use the same letters for different things, so they stay the paper's."""
    pattern = "|".join(sorted(_LETTERS, key=len, reverse=True))
    return re.sub(rf"(?<![A-Za-z])({pattern})(?![A-Za-z])", lambda m: _LETTERS[m[1]], text)


def marked(text: str) -> str:
    """Plain text with ^{…} and ^(…) raised, _{…} lowered, *…* stressed."""
    safe = escape(text, quote=False)
    safe = re.sub(r"\^\{([^}]*)\}", r"<sup>\1</sup>", safe)
    safe = re.sub(r"\^\(([^()]*)\)", r"<sup>\1</sup>", safe)
    safe = re.sub(r"_\{([^}]*)\}", r"<sub>\1</sub>", safe)
    safe = re.sub(r"(?<![^\W\d_])([^\W\d_])_([A-Za-z0-9]+)\b", r"\1<sub>\2</sub>", safe)
    return re.sub(r"\*([A-Za-z ]+)\*", r"<em>\1</em>", safe)


def anchor(name: str) -> str:
    """An anchor: letters and digits kept, everything else by its code, so that no two names meet."""
    return "i" + re.sub(r"[^A-Za-z0-9]", lambda m: f"-{ord(m[0]):x}", name)
