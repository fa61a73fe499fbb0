"""Of several servers a standby is read; each is judged by the gate."""

from __future__ import annotations

import pytest
import sqlalchemy
from psycopg.conninfo import make_conninfo

from unstale.adapters.addresses import Gate
from unstale.adapters.sql_places import dialled, parsed
from unstale.errors import InputError

NEAR = Gate(("127.0.0.0/8",))


def told(address: str, standby: bool = True, gate: Gate = NEAR) -> dict[str, str]:
    _, place = parsed(sqlalchemy, address)
    where, said = dialled(place, gate, (), 30.0, standby)
    arguments = where.translate_connect_args(username="user", database="dbname") | said
    # libpq itself reads it, and refuses as many ports or numbers as do not fit.
    make_conninfo(**arguments)
    return {name: str(value) for name, value in arguments.items()}


def test_of_several_a_standby_is_preferred_on_one_port() -> None:
    both = told("postgresql://reader@127.0.0.1,127.0.0.2:5499/shop")
    assert both["host"] == both["hostaddr"] == "127.0.0.1,127.0.0.2"
    assert (both["port"], both["target_session_attrs"]) == ("5499,5499", "prefer-standby")
    # What a standby counts is nothing: the catalogue is asked of any.
    assert "target_session_attrs" not in told("postgresql://reader@127.0.0.1,127.0.0.2:5499/shop", standby=False)


def test_one_alone_is_connected_to_once() -> None:
    one = told("postgresql://reader@127.0.0.1:5499/shop")
    assert (one["hostaddr"], one["port"]) == ("127.0.0.1", "5499")
    assert "target_session_attrs" not in one


def test_each_is_judged() -> None:
    with pytest.raises(InputError, match=r"10\.0\.0\.9 is not public"):
        told("postgresql://reader@127.0.0.1,10.0.0.9/shop")
