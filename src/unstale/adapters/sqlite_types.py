"""How columns of copies are declared in SQLite, so that numbers are numbers there: sorted, compared and summed.

    boolean                         BOOLEAN, 0 or 1
    smallint, integer, bigint       the same
    decimal(p,s), decimal           DECIMAL(p,s), DECIMAL, while no value has over 15 digits (18, if no point):
                                    an integer or a real, which keep so many exactly
    with longer values              TEXT, every digit kept; this is said in the account of the table
    real, double                    the same
    text, uuid, json, arrays        TEXT
    bytes                           BLOB
    date, time, timestamp           the same, as text in ISO 8601
    timestamptz                     TIMESTAMPTZ, as text in UTC
    interval                        INTERVAL: seconds; from PostgreSQL its text
    any                             nothing: values say themselves what they are

NaN, and the infinities of decimals, stay text between numbers: this is said in the account too.
"""

from __future__ import annotations

from unstale.adapters.sql_types import SQLITE_DIGITS, digits_of

#: the digits of a decimal in a column, as SQL: those that say more than where the point is
DIGITS = "trim(replace(ltrim({0}, '-'), '.', ''), '0')"
_DECLARED = {
    "boolean": "BOOLEAN",
    "smallint": "SMALLINT",
    "integer": "INTEGER",
    "bigint": "BIGINT",
    "real": "REAL",
    "double": "DOUBLE",
    "bytes": "BLOB",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMPTZ",
    "interval": "INTERVAL",
    "any": "",
}
_LONG = "kept as text, for it has more digits than SQLite's numbers: compare it as CAST(… AS REAL)"
_ODD = "NaN or an infinity is kept as text among the numbers"


def is_number(type_: str) -> bool:
    """Whether a column's values decide how it is declared, or what is to be said about it."""
    return type_.startswith("decimal") or type_ in ("real", "double")


def declared(type_: str, had: str, widest: int, odd: bool) -> tuple[str, str]:
    """The type in SQLite's words, and what is to be said about it.

    `had` is how the column is declared already, `widest` the most digits of its values, `odd` whether some are no
    finite numbers.

    >>> declared("decimal(12,2)", "", 12, False), declared("decimal", "", 9, False)
    (('DECIMAL(12,2)', ''), ('DECIMAL', ''))
    """
    bound = digits_of(type_)
    if type_ == "decimal" or bound is not None:
        # Text stays text until everything is read again.
        if had == "TEXT" or widest > (18 if bound is not None and bound[1] == 0 else SQLITE_DIGITS):
            return "TEXT", _LONG
        return type_.upper(), _ODD if odd else ""
    return _DECLARED.get(type_, "TEXT"), _ODD if odd and is_number(type_) else ""
