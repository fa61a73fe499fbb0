"""A scheduler as bytes: a line that names the form, what is small as JSON, then the columns as they are in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from unstale.errors import InputError, sentence
from unstale.frozen import dataclass
from unstale.keeper.collected import Group
from unstale.keeper.living import Given, SourceNames

_FORM = b"unstale scheduler 1\n"


@dataclass(frozen=True, slots=True)
class Saved:
    """What a scheduler knows. `clock` is its allowance and when it plans; `living` what polls made of each source."""

    objective: str
    budget: float | None
    mean_interval: float
    price: float
    host_cap: Mapping[str, float]
    surcharge: tuple[float, ...]
    clock: tuple[float, ...]
    names: SourceNames
    given: Given
    living: Mapping[str, np.ndarray]
    state: bytes
    #: collections, and what was learned of them
    groups: tuple[Group, ...] = ()
    signals: bytes = b""
    counts: bytes = b""
    #: what was learned of siblings
    kin: bytes = b""


def written(saved: Saved) -> bytes:
    """The bytes."""
    columns = {name: np.ascontiguousarray(column) for name, column in saved.living.items()}
    head = {
        "objective": saved.objective,
        "budget": saved.budget,
        "mean_interval": saved.mean_interval,
        "price": saved.price,
        "host_cap": dict(saved.host_cap),
        "surcharge": list(saved.surcharge),
        "clock": list(saved.clock),
        "names": list(saved.names),
        "numbers": saved.names.numbers().tolist(),
        "following": saved.names.following,
        "given": {name: getattr(saved.given, name) for name in Given.__dataclass_fields__},
        "groups": [
            [g.collection, g.members.tolist(), g.entries, None if g.told is None else g.told.tolist()]
            for g in saved.groups
        ],
        "signals": saved.signals.decode(),
        "counts": saved.counts.hex(),
        "kin": saved.kin.hex(),
        "state": len(saved.state),
        "columns": {name: [column.dtype.str, column.shape] for name, column in columns.items()},
    }
    text = json.dumps(head).encode()
    body = b"".join(column.tobytes() for column in columns.values())
    return _FORM + len(text).to_bytes(8, "little") + text + saved.state + body


def read(data: bytes) -> Saved:
    """What the bytes hold."""
    begin = len(_FORM) + 8
    try:
        if not data.startswith(_FORM):
            raise ValueError
        end = begin + int.from_bytes(data[len(_FORM) : begin], "little")
        head = json.loads(data[begin:end])
        state, end = data[end : end + head["state"]], end + head["state"]
        living = {}
        for name, (kind, shape) in head["columns"].items():
            size = int(np.prod(shape)) * np.dtype(kind).itemsize
            living[name] = np.frombuffer(data[end : end + size], dtype=kind).reshape(shape).copy()
            end += size
        living.setdefault("heard", np.zeros(len(head["names"]), np.float32))
        if end != len(data):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise InputError(
            sentence("data", f"of {len(data)} bytes", "is no saved scheduler", "give what Scheduler.save returned")
        ) from None
    return Saved(
        head["objective"],
        head["budget"],
        head["mean_interval"],
        head["price"],
        head["host_cap"],
        tuple(head["surcharge"]),
        tuple(head["clock"]),
        SourceNames.of_saved(head["names"], head["numbers"], head["following"]),
        Given(**head["given"]),
        living,
        state,
        # None of these was written by the first version that saved.
        tuple(
            Group(number, np.array(members, np.int64), entries, None if told is None else np.array(told))
            for number, members, entries, told in head.get("groups", ())
        ),
        head.get("signals", "").encode(),
        bytes.fromhex(head.get("counts", "")),
        bytes.fromhex(head.get("kin", "")),
    )
