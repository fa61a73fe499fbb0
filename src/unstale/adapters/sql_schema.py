"""What changed in the schema of a source since its copy was made: told, and applied only if nothing is lost by it.

Rules of this file:
1. A new column, and a type that holds all that the old one held, are additive: the copy takes them up by itself.
2. Anything else is held: the copy stays as it was, and its polls fail and say why, until the owner accepts it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from unstale.adapters.sql_types import Column, digits_of
from unstale.frozen import dataclass

#: in place of a type that the owner has chosen
TOLD = "as told"
#: types that hold all values of others, from narrow to wide
_WIDER = (("smallint", "integer", "bigint"), ("real", "double"), ("timestamp",), ("date",))


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a source with their types, in order, and its key."""

    columns: tuple[tuple[str, str], ...] = ()
    key: tuple[str, ...] = ()

    @classmethod
    def of(cls, columns: Sequence[Column], key: Sequence[str], told: Collection[str] = ()) -> Schema:
        """That of columns as they are read; the types of those in `told` are the owner's, and so his to change."""
        types = ((column.name, TOLD if column.name in told else column.type) for column in columns)
        return cls(tuple(types), tuple(key))

    def kept(self) -> str:
        """As text, to be read again."""
        return json.dumps([self.columns, self.key])

    @classmethod
    def read(cls, text: str) -> Schema | None:
        """The schema that was kept so; None for an empty text."""
        if not text:
            return None
        columns, key = json.loads(text)
        return cls(tuple((str(name), str(type_)) for name, type_ in columns), tuple(map(str, key)))


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One thing that changed: added, dropped, renamed, retyped, or key."""

    what: str
    column: str
    before: str = ""
    after: str = ""

    @property
    def additive(self) -> bool:
        """Whether a copy can take it up without losing anything."""
        return self.what == "added" or (self.what == "retyped" and wider(self.before, self.after))

    @property
    def sentence(self) -> str:
        """What happened."""
        if self.what == "key":
            return f"the key was {self.before} and is {self.after}"
        if self.what == "renamed":
            return f"column {self.before} is called {self.after} now, or was dropped and another one added"
        if self.what == "retyped":
            return f"column {self.column} was {self.before} and is {self.after}"
        return f"column {self.column} ({self.after or self.before}) was {self.what}"


@dataclass(frozen=True, slots=True)
class Schemas:
    """What is known of the schema of one source: what its copy has, what is held, and what its owner has accepted."""

    held: Schema | None = None
    pending: Schema | None = None
    accepted: bool = False

    def changes(self) -> tuple[SchemaChange, ...]:
        """What is held."""
        return () if self.held is None or self.pending is None else schema_changes(self.held, self.pending)


def schema_changes(before: Schema, after: Schema) -> tuple[SchemaChange, ...]:
    """What is different, columns in their order. A column that went where another of its type came was renamed.

    >>> was = Schema((("id", "bigint"), ("note", "text")), ("id",))
    >>> now = Schema((("id", "bigint"), ("remark", "text"), ("more", "integer")), ("id",))
    >>> [one.sentence for one in schema_changes(was, now)]  # doctest: +NORMALIZE_WHITESPACE
    ['column note is called remark now, or was dropped and another one added', 'column more (integer) was added']
    """
    old, new = dict(before.columns), dict(after.columns)
    gone = [name for name in old if name not in new]
    come = [name for name in new if name not in old]
    found = []
    for name in list(gone):
        place = [one for one, _ in before.columns].index(name)
        other = after.columns[place][0] if place < len(after.columns) else ""
        if other in come and new[other] == old[name]:
            found.append(SchemaChange("renamed", name, name, other))
            gone.remove(name)
            come.remove(other)
    found += [SchemaChange("dropped", name, old[name]) for name in gone]
    found += [SchemaChange("added", name, after=new[name]) for name in come]
    found += [
        SchemaChange("retyped", name, type_, new[name])
        for name, type_ in before.columns
        if name in new and type_ != new[name]
    ]
    if before.key and after.key and before.key != after.key:
        found.append(SchemaChange("key", "", ", ".join(before.key), ", ".join(after.key)))
    return tuple(found)


def wider(before: str, after: str) -> bool:
    """Whether one type holds all values of another.

    >>> wider("integer", "bigint"), wider("decimal(12,2)", "decimal(14,4)"), wider("decimal(12,2)", "decimal(12,4)")
    (True, True, False)
    """
    if TOLD in (before, after):
        return True
    had, has = digits_of(before), digits_of(after)
    if had and has:
        return has[1] >= had[1] and has[0] - has[1] >= had[0] - had[1]
    if had or before == "decimal":
        return after == "decimal"
    return any(before in row and after in row and row.index(before) <= row.index(after) for row in _WIDER)
