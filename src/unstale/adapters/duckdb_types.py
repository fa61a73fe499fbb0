"""How columns of copies are declared in DuckDB, and how their text becomes values there.

    boolean, smallint, integer, bigint    the same
    decimal(p,s), p at most 38            DECIMAL(p,s), exact
    decimal without a bound               DECIMAL(38,s), s as many digits behind the point as any value has
    decimals of more than 38 digits       VARCHAR, every digit kept; this is said in the account of the table
    real, double                          FLOAT, DOUBLE; NaN and the infinities are values
    text, and any                         VARCHAR
    bytes                                 BLOB
    date, time, timetz                    DATE, TIME, TIME WITH TIME ZONE
    timestamp, timestamptz                TIMESTAMP, TIMESTAMP WITH TIME ZONE, with their infinities
    interval                              INTERVAL: months, days and microseconds
    uuid, json                            the same
    arrays                                lists

What a type cannot hold (NaN in a DECIMAL, an array of two dimensions, a year beyond DuckDB's) is refused.
"""

from __future__ import annotations

from unstale.adapters.sql_types import digits_of, item_of

#: digits of DuckDB's longest decimal
DIGITS = 38
_DECLARED = {
    "boolean": "BOOLEAN",
    "smallint": "SMALLINT",
    "integer": "INTEGER",
    "bigint": "BIGINT",
    "real": "FLOAT",
    "double": "DOUBLE",
    "bytes": "BLOB",
    "date": "DATE",
    "time": "TIME",
    "timetz": "TIME WITH TIME ZONE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "interval": "INTERVAL",
    "uuid": "UUID",
    "json": "JSON",
}
_LONG = f"kept as text, for it has more digits than DuckDB's decimals, which have {DIGITS}"
# Two lengths of time may be equal and not the same: a month and 30 days.
_LOOSE = ("INTERVAL", "TIME WITH TIME ZONE")


def declared(type_: str, had: str, whole: int, behind: int) -> tuple[str, str]:
    """The type in DuckDB's words, and what is to be said about it.

    `had` is how the column is declared already; a decimal without a bound has values of at most `whole` digits before
    the point and `behind` digits after it.

    >>> declared("decimal(12,2)", "", 0, 0), declared("decimal", "", 9, 4), declared("array(bigint)", "", 0, 0)
    (('DECIMAL(12,2)', ''), ('DECIMAL(38,4)', ''), ('BIGINT[]', ''))
    """
    if type_ == "decimal":
        bound = digits_of(had.lower())
        if bound is not None and behind <= bound[1] and whole <= bound[0] - bound[1]:
            return had, ""
        return ("VARCHAR", _LONG) if whole + behind > DIGITS else (f"DECIMAL({DIGITS},{behind})", "")
    if (bound := digits_of(type_)) is not None:
        return ("VARCHAR", _LONG) if bound[0] > DIGITS else (f"DECIMAL({bound[0]},{bound[1]})", "")
    if (item := item_of(type_)) is not None:
        # What arrays hold is not looked at: without a bound of its own a decimal stays text there.
        found, note = ("VARCHAR", _LONG) if item == "decimal" else declared(item, "", 0, 0)
        return f"{found}[]", note
    return _DECLARED.get(type_, "VARCHAR"), ""


def value(text: str, declared_: str) -> str:
    """The SQL that makes a value of a column of text.

    >>> value("c1", "BLOB"), value("c1", "DECIMAL(12,2)[]")
    ('unhex(c1)', 'CAST(CAST(CAST(c1 AS JSON) AS VARCHAR[]) AS DECIMAL(12,2)[])')
    """
    if declared_ == "VARCHAR":
        return text
    if declared_ == "BLOB":
        return f"unhex({text})"
    if declared_.startswith(("DATE", "TIMESTAMP")):
        # A bare cast would be left to the reader of the file, which takes the years before Christ for years after him.
        early = f"{text}[:10] || ' (BC)' || {text}[11:-4]"
        return f"CAST(CASE WHEN ends_with({text}, ' BC') THEN {early} ELSE {text} END AS {declared_})"
    if declared_.endswith("[]"):
        return f"CAST(CAST(CAST({text} AS JSON) AS VARCHAR[]) AS {declared_})"
    return f"CAST({text} AS {declared_})"


def bent(text: str, declared_: str) -> str:
    """The SQL that tells whether a column of text holds a number that its type would round.

    >>> bent("c1", "BIGINT")
    'TRY_CAST(c1 AS DOUBLE) IS DISTINCT FROM CAST(CAST(c1 AS BIGINT) AS DOUBLE)'
    """
    number = declared_.startswith("DECIMAL") and not declared_.endswith("[]")
    if number or declared_ in ("SMALLINT", "INTEGER", "BIGINT"):
        return f"TRY_CAST({text} AS DOUBLE) IS DISTINCT FROM CAST(CAST({text} AS {declared_}) AS DOUBLE)"
    return "false"


def compared(name: str, declared_: str) -> str:
    """The SQL of a column in which two values are equal only if they are the same."""
    return f"CAST({name} AS VARCHAR)" if declared_ in _LOOSE else name
