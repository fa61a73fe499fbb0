"""Contracts as people write them in one line: `orders: 1h; news: 1d 95%; feeds: 90%`.

Rule of this file: what is written can be read, and is the same contract then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from unstale.engine.contracts import OWN, Contract
from unstale.errors import require
from unstale.units import DAY, named_parts, parse_duration, plain_number, written_seconds

_LIKE = "write it like orders: 1h; news: 1d 95%"
#: how long, and for which share of the time; one of both may be missing
_TERMS = re.compile(r"(?P<within>.*?)(?:(?P<share>[0-9.]+)\s*%)?", re.DOTALL)


def read_contracts(text: str) -> dict[str, Contract]:
    """What is promised, by tag; InputError for what nobody can keep.

    >>> read_contracts("orders: 1h; news: 1d 95%")
    {'orders': Contract(fresh_within=3600.0, target=1.0), 'news': Contract(fresh_within=86400.0, target=0.95)}
    """
    found: dict[str, Contract] = {}
    for part, tag, terms in named_parts(text):
        require(tag and tag != OWN, "contracts", repr(part[:40]), "names no tag", _LIKE)
        require(tag not in found, "contracts", repr(tag[:40]), "is there twice", "say each tag once")
        found[tag] = _contract(f"contracts.{tag[:40]}", terms)
    return found


def written_contracts(contracts: Mapping[str, Contract]) -> str:
    """The same in words.

    >>> written_contracts({"orders": Contract(5400.0), "news": Contract(0.0, 0.999)})
    'orders: 90m; news: 99.9%'
    """
    return "; ".join(f"{tag}: {_terms(one)}" for tag, one in contracts.items())


def _contract(name: str, terms: str) -> Contract:
    told = _TERMS.fullmatch(terms)
    within, share = (told["within"].strip(), told["share"]) if told else (terms, None)
    seconds = round(parse_duration(within, name) * DAY, 6) if within else 0.0
    part = 100.0 if share is None else plain_number(share) or 0.0
    require(0.0 < part <= 100.0, name, repr(terms[:40]), "is no share of the time", "write 95%, or any up to 100%")
    target = round(part / 100.0, 12)
    require(
        seconds > 0.0 or target < 1.0, name, repr(terms[:40]), "promises nothing that polls can keep", "write 1h or 95%"
    )
    return Contract(seconds, target)


def _terms(one: Contract) -> str:
    within = written_seconds(one.fresh_within) if one.fresh_within else ""
    share = "" if one.target == 1.0 else f"{round(100.0 * one.target, 10):.12g}%"
    return f"{within} {share}".strip()
