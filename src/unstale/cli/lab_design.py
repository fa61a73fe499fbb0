"""The combined design for a question of `unstale topology`, as an experiment of `unstale lab`.

Freshness depends on how rates compare and not on how fast everything is: so all are scaled alike, until this machine
can follow.
"""

from __future__ import annotations

from unstale.cli.topology import question_of
from unstale.errors import InfeasibleError
from unstale.lab.setups import Setup
from unstale.planning.combined import combined, layers_of
from unstale.units import DAY, parse_rate

#: polls and contacts per second of all replicas together unless told otherwise, and changes of a source at most
LOAD, FASTEST = 100.0, 0.75


def setup_of(file: str, change_rate: str | None, sources: int, changes: int, seed: int) -> Setup:
    """The experiment: as many replicas as the design has machines, its rates in proportion to the changes."""
    question = question_of(file, {})
    design = combined(question)
    if not design.feasible:
        raise InfeasibleError(design.problem)
    layers = layers_of(design)
    sends = sum(layer.machines * (layer.sync_rate + layer.peer_rate) for layer in layers)
    real = question.process.rate
    rate = (
        parse_rate(change_rate, "change_rate") / DAY if change_rate else min(FASTEST, LOAD * real / (sends * sources))
    )
    scaled = tuple(
        layer._replace(sync_rate=layer.sync_rate * rate / real, peer_rate=layer.peer_rate * rate / real)
        for layer in layers
    )
    return Setup(
        "design",
        design.machines,
        design.asked,
        sources,
        changes,
        rate,
        max(layer.sync_rate for layer in scaled),
        seed=seed,
        layers=scaled,
    )
