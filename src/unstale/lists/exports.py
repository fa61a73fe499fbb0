"""What other monitors export: changedetection.io (url-watches.json) and Uptime Kuma (its backup), both as JSON.

Rules of this file:
1. What we have a word for is taken over; of the rest the names are told, so that nobody believes it was.
2. How often they looked is not taken over: here the price decides, within the budget.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from unstale.errors import InputError, sentence
from unstale.lists.rows import ListReader

#: what a change of theirs can depend on, and has no word here
_WATCHES = (
    "body",
    "browser_steps",
    "check_unique_lines",
    "conditions",
    "ignore_status_codes",
    "notification_urls",
    "price_change_threshold_percent",
    "proxy",
    "remove_duplicate_lines",
    "sort_text_alphabetically",
    "text_should_not_be_present",
    "time_between_check",
    "webdriver_delay",
    "webdriver_js_execute_code",
)
#: filters of theirs that are no CSS
_NO_CSS = ("/", "xpath:", "xpath1:", "json:", "jq:", "jqraw:")
_MONITORS = (
    "basic_auth_user",
    "body",
    "ignore_tls",
    "interval",
    "json_path",
    "keyword",
    "maxretries",
    "proxy_id",
    "upside_down",
)


def exported_by(text: str) -> str | None:
    """Whose export a JSON document is, None if it is none.

    >>> exported_by('{"watching": {}}'), exported_by('{"monitorList": []}'), exported_by('{"address": "https://a/"}')
    ('changedetection', 'uptime-kuma', None)
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    return "changedetection" if "watching" in found else "uptime-kuma" if "monitorList" in found else None


def read_changedetection(text: str, rows: ListReader) -> tuple[str, ...]:
    """Its watches, paused ones too; the names of what is said of them and was not taken over."""
    found = _whole(text)
    known = _tables(found.get("settings"), "application", "tags")
    left: set[str] = set()
    for number, watch in enumerate(_tables(found, "watching").values(), 1):
        if not isinstance(watch, dict) or watch.get("method") not in ("GET", None):
            left.add(f"watch {_named(watch, 'url', number)}, which is not asked with GET")
            continue
        left |= {name for name in _WATCHES if _said(watch.get(name))}
        left |= {"time_schedule_limit"} if _tables(watch, "time_schedule_limit").get("enabled") else set()
        left |= {"processor restock_diff"} if watch.get("processor") == "restock_diff" else set()
        # Older versions write tags as one text.
        old = watch.get("tag")
        named = [_tables(known, one).get("title") for one in _texts(watch.get("tags"))]
        tags = [*(one for one in named if one), *(old.split(",") if isinstance(old, str) else [])]
        filters = _texts(watch.get("include_filters"))
        css = [one for one in filters if not one.startswith(_NO_CSS)]
        paths = [one.partition(":")[2] for one in filters if one.startswith(("xpath:", "xpath1:"))]
        paths += [one for one in filters if one.startswith("/") and not one.endswith("/")]
        left |= {"include_filters that are neither CSS nor XPath"} if len(css) + len(paths) < len(filters) else set()
        words = {name: _texts(watch.get(name)) for name in ("trigger_text", "ignore_text", "extract_text")}
        # Between slashes they are expressions, with flags of theirs.
        left |= {f"{name} that is an expression" for name, all_ in words.items() if any(map(_expression, all_))}
        plain = {name: [one for one in all_ if not _expression(one)] for name, all_ in words.items()}
        normalise = {
            "keep": css,
            "xpath": paths,
            "selectors": _texts(watch.get("subtractive_selectors")),
            "patterns": [
                *(re.escape(one) for one in plain["extract_text"]),
                *(f"(?i:^.*{re.escape(one)}.*$)" for one in _texts(watch.get("extract_lines_containing"))),
            ],
            "drop_patterns": [f"^.*{re.escape(one)}.*$" for one in plain["ignore_text"]],
        }
        triggers: dict[str, Any] = {"appear": plain["trigger_text"]} if plain["trigger_text"] else {}
        kinds = [watch.get(f"filter_text_{how}", True) for how in ("added", "removed", "replaced")]
        if kinds == [True, False, False] and not triggers:
            triggers = {"added": True}
        elif not all(kinds):
            left.add("filter_text_added, removed or replaced")
        said = {**watch, "triggers": triggers}
        said["kind"] = "browser" if watch.get("fetch_backend") == "html_webdriver" else None
        _take(
            rows,
            number,
            watch.get("url"),
            watch.get("title") or watch.get("page_title"),
            tags,
            normalise,
            watch.get("headers"),
            said,
        )
    return tuple(sorted(left))


def read_uptime_kuma(text: str, rows: ListReader) -> tuple[str, ...]:
    """Its monitors of web addresses; the names of those that are none, and of what was not taken over."""
    left: set[str] = set()
    monitors = _whole(text).get("monitorList")
    for number, one in enumerate(monitors if isinstance(monitors, list) else [], 1):
        if not isinstance(one, dict) or one.get("type") not in ("http", "keyword", "json-query"):
            left.add(f"monitor {_named(one, 'name', number)}, which is of no web address")
            continue
        if one.get("method") not in ("GET", "HEAD", None):
            left.add(f"monitor {_named(one, 'name', number)}, which is not asked with GET")
            continue
        left |= {name for name in _MONITORS if _said(one.get(name))}
        given = one.get("tags")
        tags = [tag.get("name") for tag in given if isinstance(tag, dict)] if isinstance(given, list) else []
        try:
            headers = json.loads(one.get("headers") or "{}")
        except (ValueError, TypeError):
            headers = {}
        active = {"paused": not one.get("active", True)}
        _take(rows, number, one.get("url"), one.get("name"), tags, {}, headers, active)
    return tuple(sorted(left))


def _take(
    rows: ListReader,
    number: int,
    address: Any,
    title: Any,
    tags: list[Any],
    normalise: Mapping[str, list[str]],
    headers: Any,
    said: Mapping[str, Any],
) -> None:
    options = {
        "title": str(title or ""),
        "tags": [tag.strip() for tag in map(str, tags) if tag.strip()],
        "normalise": {name: value for name, value in normalise.items() if value},
        "triggers": said.get("triggers"),
        "headers": {str(name): str(value) for name, value in headers.items()} if isinstance(headers, dict) else {},
    }
    fields: dict[str, Any] = {"address": str(address or "")}
    if any(options.values()):
        fields["options"] = {name: value for name, value in options.items() if value}
    if said.get("kind"):
        fields["kind"] = said["kind"]
    if said.get("paused"):
        fields["paused"] = True
    rows.take(number, fields, merge=True)


def _expression(text: str) -> bool:
    return len(text) > 1 and text.startswith("/") and text.rstrip("imsxu").endswith("/")


def _named(one: Any, by: str, number: int) -> str:
    return repr(str(one.get(by))[:80]) if isinstance(one, dict) else str(number)


def _whole(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(sentence("list", "given", "is no export in JSON", "export it again"))
    return found


def _tables(found: Any, *names: str) -> dict[str, Any]:
    """The table that names lead to, an empty one if they lead nowhere."""
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _texts(found: Any) -> list[str]:
    """The texts of a list, none if it is no list."""
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _said(value: Any) -> bool:
    """Whether something is said: a table of nothings says nothing."""
    return any(_leaves(value))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _leaves(inner)
    else:
        yield value
