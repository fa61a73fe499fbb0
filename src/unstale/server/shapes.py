"""What the API takes and gives, as JSON Schema; and the check that makes it true of everything that comes in.

The same objects are printed in the OpenAPI document, so nothing can be accepted that it does not say.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from unstale.errors import InputError, sentence
from unstale.service.documents import iso

Shape = dict[str, Any]

#: JSON may be nested so deeply, and a number be so large
DEEPEST, LARGEST = 20, 1e15
_SURROGATE = re.compile("[\ud800-\udfff]")
_TYPES: dict[str, Any] = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def text(most: int = 200, *, least: int = 0, among: list[str] | None = None) -> Shape:
    """A text of at most so many characters, or one of a few."""
    return {"type": "string", "enum": among} if among else {"type": "string", "minLength": least, "maxLength": most}


def whole(least: int, most: int = 10**15) -> Shape:
    """A whole number."""
    return {"type": "integer", "minimum": least, "maximum": most}


def number(least: float = 0.0, most: float | None = None, *, above: float | None = None) -> Shape:
    """A finite number."""
    low = {"minimum": least} if above is None else {"exclusiveMinimum": above}
    return {"type": "number", **low, **({} if most is None else {"maximum": most})}


def maybe(shape: Shape) -> Shape:
    """The same, or null."""
    if "title" in shape:
        return {"anyOf": [shape, {"type": "null"}]}
    return {**shape, "type": [shape["type"], "null"]}


def model(name: str, shape: Shape) -> Shape:
    """The same under a name of its own: clients that are made from the document have a class for it."""
    return {**shape, "title": name}


def record(required: list[str] | None = None, **properties: Shape) -> Shape:
    """An object with these members and no others; all are required unless said otherwise."""
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "required": list(properties) if required is None else required,
    }


def several(shape: Shape, most: int | None = None, least: int = 0) -> Shape:
    """A list of these."""
    return {"type": "array", "items": shape, "minItems": least, **({} if most is None else {"maxItems": most})}


def like(pattern: str, most: int, example: str) -> Shape:
    """A text of this form."""
    return {"type": "string", "pattern": f"^({pattern})$", "minLength": 1, "maxLength": most, "examples": [example]}


#: a length of time as people write it: 90s, 15min, 2h, 1d; and a time, or a length of time until now
_SPAN = r"[0-9]{1,9}(\.[0-9]{1,6})?(s|min|h|d)"
_DAY = r"(19[7-9][0-9]|20[0-9]{2})-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"
SINCE = like(rf"{_SPAN}|{_DAY}(T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{{1,6}})?)?Z)?", 40, "1d")
FLAG: Shape = {"type": "boolean"}
ANY_NUMBER: Shape = {"type": "number"}
ADDRESS = {**text(8192, least=1), "examples": ["https://example.org/news"]}
_PLAIN: Shape = {
    "anyOf": [text(8192), {"type": "number", "minimum": -LARGEST, "maximum": LARGEST}, FLAG, {"type": "null"}]
}
#: options of a kind of source; which there are and what they take is on the page on kinds
OPTIONS: Shape = {
    "type": "object",
    "additionalProperties": {
        "anyOf": [
            *_PLAIN["anyOf"],
            several(_PLAIN, 100),
            {"type": "object", "additionalProperties": {"anyOf": [*_PLAIN["anyOf"], several(_PLAIN, 100)]}},
        ]
    },
}
LENGTH = {**number(), "description": "A length of time, in seconds."}
MOMENT: Shape = {"type": "string", "format": "date-time", "description": "A time in UTC."}


def check(name: str, value: Any, shape: Shape) -> None:
    """Refuse what is not of a shape, naming the part that is not.

    >>> check("body", {"weight": 2}, record(weight=number()))
    """
    if "anyOf" in shape and not any(_fits(value, one) for one in shape["anyOf"]):
        _refuse(name, value, "must be something else")
    types = shape.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_is(value, kind) for kind in types):
        _refuse(name, value, f"must be {' or '.join(types)}")
    if "enum" in shape and value not in shape["enum"]:
        _refuse(name, value, f"must be one of {', '.join(map(str, shape['enum']))}")
    if isinstance(value, dict):
        _check_members(name, value, shape)
    elif isinstance(value, list):
        if not shape.get("minItems", 0) <= len(value) <= shape.get("maxItems", math.inf):
            _refuse(
                name, f"of {len(value)}", f"must have {shape.get('minItems', 0)} to {shape.get('maxItems')} members"
            )
        for i, one in enumerate(value):
            check(f"{name}[{i}]", one, shape.get("items", {}))
    elif isinstance(value, str):
        if "pattern" in shape and not re.search(shape["pattern"], value):
            _refuse(name, value, f"must be written like {shape['examples'][0]}")
        if not shape.get("minLength", 0) <= len(value) <= shape.get("maxLength", math.inf):
            _refuse(
                name, f"of {len(value)} characters", f"must have {shape.get('minLength', 0)} to {shape['maxLength']}"
            )
    elif isinstance(value, int | float) and not isinstance(value, bool):
        low, above, high = shape.get("minimum"), shape.get("exclusiveMinimum"), shape.get("maximum", LARGEST)
        if (low is not None and value < low) or (above is not None and value <= above) or value > high:
            rule = f"above {above:g}" if above is not None else f"{low if low is not None else -LARGEST:g} or more"
            _refuse(name, value, f"must be {rule}, and {high:g} at most")


def _check_members(name: str, value: dict[str, Any], shape: Shape) -> None:
    members = shape.get("properties", {})
    if len(value) < shape.get("minProperties", 0):
        _refuse(name, "given", f"must have one of {', '.join(members)}")
    for missing in (one for one in shape.get("required", ()) if one not in value):
        _refuse(name, "given", f"must have {missing!r}")
    for key, inner in value.items():
        if key not in members and shape.get("additionalProperties") is False:
            _refuse(f"{name}.{key[:40]}", "given", f"is unknown, there are {', '.join(members)}")
        others = shape.get("additionalProperties", {})
        check(f"{name}.{key[:40]}", inner, members.get(key, others if isinstance(others, dict) else {}))


def _fits(value: Any, shape: Shape) -> bool:
    try:
        check("", value, shape)
    except InputError:
        return False
    return True


def read_json(data: bytes) -> Any:
    """A body of JSON: finite, not too deep, whole characters."""
    try:
        found = json.loads(data, parse_constant=_no_constant, object_pairs_hook=_once_each)
        _look_through(found, 0)
    except (ValueError, RecursionError) as error:
        why = str(error) if type(error) is ValueError and str(error).isascii() else "it cannot be read"
        raise InputError(
            sentence(
                "body",
                f"of {len(data)} bytes",
                f"is not plain JSON ({why[:80]})",
                "send JSON with finite numbers, not too deeply nested",
            )
        ) from None
    return found


def read_text(name: str, given: str, shape: Shape) -> Any:
    """A parameter of a query as its shape says: a number, a flag or a text."""
    value: Any = given
    kind = shape["type"]
    if kind == "boolean":
        value = {"true": True, "false": False}.get(given, given)
    elif kind in ("integer", "number"):
        try:
            plain = given.isascii() and len(given) < 40 and given.strip() == given and "_" not in given
            value = (int(given) if kind == "integer" else float(given)) if plain else given
        except ValueError:
            value = given
    check(name, value, shape)
    return value


#: a time in UTC as JSON has it, None for none
stamp = iso


def finite(value: float) -> float | None:
    """A number that JSON can hold, None for others."""
    return float(value) if math.isfinite(value) else None


def _is(value: Any, kind: str) -> bool:
    if kind in ("number", "integer"):
        plain = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        return plain and (kind == "number" or value == int(value))
    return isinstance(value, _TYPES[kind])


def _refuse(name: str, value: Any, rule: str) -> None:
    shown = ascii(value)[:60] if not isinstance(value, str) or not value.startswith(("of ", "given")) else value
    raise InputError(sentence(name.encode("ascii", "replace").decode(), shown, rule, "see /api/v1/openapi.json"))


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


def _look_through(value: Any, depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError(f"more than {DEEPEST} levels")
    if isinstance(value, str):
        if not value.isascii() and _SURROGATE.search(value):
            raise ValueError("half a character")
    elif isinstance(value, dict):
        for key, inner in value.items():
            _look_through(key, depth + 1)
            _look_through(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _look_through(inner, depth + 1)
    elif isinstance(value, int | float) and not isinstance(value, bool) and not -LARGEST <= value <= LARGEST:
        raise ValueError("a number is too large")
