"""Dataclasses that are declared and made quickly: every start declares hundreds, and every poll makes several.

Rules of this file:
1. What is frozen, slotted and has no bases is treated here; every other dataclass is the standard library's.
2. Declaring: the library writes and compiles six methods for each class, which was a quarter of the time to start.
   Here all classes share theirs, and the one that makes records is compiled when the first is made.
3. Making: a frozen dataclass sets each field through `object.__setattr__`, past its own refusal, which takes four times
   as long as setting them. Here a draft of the same shape is filled in, and then becomes the record.
4. Records are compared as tuples of their fields, on every version of Python.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

#: methods that a class may define itself; it is left to the library then
OWN = {"__init__", "__new__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__reduce__"}

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(record=None, /, **told):
        """As `dataclasses.dataclass`, of which it understands all arguments.

        >>> @dataclass(frozen=True, slots=True)
        ... class Point:
        ...     x: float
        ...     y: float = 0.0
        >>> dataclasses.replace(Point(1.0), y=2.0) == Point(1.0, 2.0), Point(y=3.0, x=1.0)
        (True, Point(x=1.0, y=3.0))
        """

        def declared(record):
            bare = record.__bases__ == (object,) and not OWN & vars(record).keys()
            if not (bare and told.keys() <= {"frozen", "slots", "eq"} and told.get("frozen") and told.get("slots")):
                return dataclasses.dataclass(record, **told)
            fields_only = dataclasses.dataclass(record, init=False, repr=False, eq=False, slots=True)
            return _frozen(fields_only, told.get("eq", True))

        return declared if record is None else declared(record)


def _frozen(record: Any, compared: bool) -> Any:
    """A class that has fields and slots, with the other methods of a frozen dataclass."""
    known = fields(record)
    all_of, told_of, shown_of = (
        _getter(known),
        _getter([f for f in known if f.compare]),
        [f.name for f in known if f.repr],
    )

    def made(cls: Any, *given: Any, **named: Any) -> Any:
        record.__new__ = new = _maker(record)
        return new(cls, *given, **named)

    def shown(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in shown_of])})"

    def equal(self: Any, other: Any) -> bool:
        return bool(told_of(self) == told_of(other)) if other.__class__ is self.__class__ else NotImplemented

    record.__new__, record.__repr__, record.__setattr__, record.__delattr__ = made, shown, _refuse, _refuse
    # What is copied or sent to another process is made anew from its fields.
    record.__reduce__ = lambda self: (record, all_of(self))
    if compared:
        record.__eq__, record.__hash__ = equal, lambda self: hash(told_of(self))
    record.__signature__ = _Signature()
    return record


def _getter(known: Sequence[Field[Any]]) -> Callable[[Any], tuple[Any, ...]]:
    """What reads these fields of a record into a tuple."""
    names = [field.name for field in known]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple([getattr(record, name) for name in names])


def _refuse(self: Any, name: str, value: Any = None) -> None:
    raise FrozenInstanceError(f"{type(self).__name__} is frozen: make another by dataclasses.replace(it, {name}=…)")


class _Signature:
    """The arguments of a record, for whoever asks: they are known without making one."""

    def __get__(self, record: Any, kind: Any) -> Any:
        from inspect import signature

        found = signature(_maker(kind))
        return found.replace(parameters=list(found.parameters.values())[1:])


def _maker(record: Any) -> Any:
    """The `__new__` of a record, compiled: `self.x = x` for every field of a draft."""
    known = fields(record)
    draft = type(record.__name__, (), {"__slots__": tuple(field.name for field in known)})
    # No field is called so.
    names: dict[str, Any] = {"_draft_": draft, "_new_": object.__new__, "_MISSING_": MISSING}
    arguments, steps = ["cls"], ["self = _new_(_draft_)"]
    for field in known:
        name, value = field.name, field.name
        if field.default is not MISSING:
            names[f"_usual_{name}"] = field.default
            arguments.append(f"{name}=_usual_{name}")
        elif field.default_factory is not MISSING:
            names[f"_usual_{name}"] = field.default_factory
            arguments.append(f"{name}=_MISSING_")
            value = f"_usual_{name}() if {name} is _MISSING_ else {name}"
        else:
            arguments.append(name)
        steps.append(f"self.{name} = {value}")
    steps.append("self.__class__ = cls")
    if "__post_init__" in vars(record):
        steps.append("self.__post_init__()")
    # As dataclasses do: made of the names of fields alone.
    exec(f"def __new__({', '.join(arguments)}): {'; '.join([*steps, 'return self'])}", names)  # noqa: S102
    return names["__new__"]
