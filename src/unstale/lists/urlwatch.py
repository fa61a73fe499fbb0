"""urlwatch's list of jobs (urls.yaml): documents of YAML, one for each page that is watched.

Rules of this file:
1. As with other exports: what we have a word for is taken over, the names of the rest are told.
2. A filter of theirs that would find something else here is not taken over: better a change too many than one too few.
"""

from __future__ import annotations

import re
from typing import Any

from unstale.errors import InputError, MissingExtraError, sentence
from unstale.lists.rows import ListReader

#: how a list of jobs begins, whatever stands before it
_BEGINS = re.compile(r"(?:(?:---|#|%)[^\n]*\n|\s)*(?:name|url|navigate|command|kind|filter)\s*:\s")
_ELEMENTS = {"element-by-id": "#{}", "element-by-class": ".{}", "element-by-tag": "{}"}
_LINES = {"grep": "patterns", "keep_lines_containing": "patterns"}
_NO_LINES = {"grepv": "drop_patterns", "delete_lines_containing": "drop_patterns"}
#: what a job may say without changing what is found
_QUIET = {"url", "navigate", "name", "filter", "headers", "tags", "kind", "user_visible_url", "enabled", "index_number"}


def is_urlwatch(text: str) -> bool:
    """Whether a text is a list of urlwatch's jobs.

    >>> is_urlwatch("# mine\\n---\\nname: a\\nurl: https://a/\\n"), is_urlwatch("https://a.example/ weight=3")
    (True, False)
    """
    return _BEGINS.match(text) is not None


def read_urlwatch(text: str, rows: ListReader) -> tuple[str, ...]:
    """Its jobs that are pages; the names of those that are none, and of what was not taken over."""
    try:
        import yaml
    except ImportError:
        raise MissingExtraError("PyYAML", "notify") from None
    try:
        jobs = list(yaml.safe_load_all(text))
    except (yaml.YAMLError, RecursionError, ValueError):
        raise InputError(
            sentence("list", "given", "is no YAML", "export it with urlwatch --list, or mend it")
        ) from None
    left: set[str] = set()
    for number, job in enumerate((job for job in jobs if job is not None), 1):
        if not isinstance(job, dict) or not isinstance(job.get("url") or job.get("navigate"), str):
            name = job.get("name") if isinstance(job, dict) else None
            left.add(f"job {str(name or number)[:80]!r}, which is no page")
            continue
        left |= {str(name)[:40] for name in job if name not in _QUIET}
        normalise: dict[str, Any] = {}
        filters = job.get("filter")
        for one in _several(filters):
            if not _filter(one, normalise):
                left.add(f"filter {next(iter(one)) if isinstance(one, dict) and one else str(one)[:40]}")
        _take(rows, number, job, normalise)
    return tuple(sorted(left))


def _take(rows: ListReader, number: int, job: dict[Any, Any], normalise: dict[str, Any]) -> None:
    headers = job.get("headers")
    options = {
        "title": str(job.get("name") or ""),
        "tags": [str(tag) for tag in _several(job.get("tags")) if str(tag).strip()],
        "normalise": normalise,
        "headers": {str(name): str(value) for name, value in headers.items()} if isinstance(headers, dict) else {},
    }
    fields: dict[str, Any] = {"address": job.get("url") or job.get("navigate")}
    if any(options.values()):
        fields["options"] = {name: value for name, value in options.items() if value}
    if "navigate" in job:
        fields["kind"] = "browser"
    if job.get("enabled") is False:
        fields["paused"] = True
    rows.take(number, fields, merge=True)


def _filter(one: Any, into: dict[str, Any]) -> bool:
    """Take a filter over; whether it could be."""
    name, value = (
        (one, None)
        if isinstance(one, str)
        else next(iter(one.items()))
        if isinstance(one, dict) and one
        else ("", None)
    )
    if isinstance(name, str) and value is None and ":" in name:
        # As older versions write it: css:main
        name, _, value = name.partition(":")
    if name in ("css", "xpath"):
        chosen = value.get("selector") if isinstance(value, dict) and value.keys() <= {"selector"} else value
        return _add(into, "keep" if name == "css" else "xpath", chosen)
    if name in _ELEMENTS:
        return isinstance(value, str) and _add(into, "keep", _ELEMENTS[name].format(value))
    if name in ("html2text", "strip"):
        into["text" if name == "html2text" else "whitespace"] = True
        return True
    known = _LINES.get(str(name)) or _NO_LINES.get(str(name))
    if known is None:
        return False
    if isinstance(value, dict):
        value = (
            value.get("re")
            if value.keys() == {"re"}
            else re.escape(str(value["text"]))
            if value.keys() == {"text"}
            else None
        )
    return isinstance(value, str) and _add(into, known, f"^.*(?:{value}).*$")


def _add(into: dict[str, Any], name: str, value: Any) -> bool:
    if not isinstance(value, str) or not value:
        return False
    into.setdefault(name, []).append(value)
    return True


def _several(found: Any) -> list[Any]:
    return (
        []
        if found is None
        else found
        if isinstance(found, list)
        else str(found).split(",")
        if isinstance(found, str)
        else [found]
    )
