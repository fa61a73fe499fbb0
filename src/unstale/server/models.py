"""What the API takes and gives, each under its name: the models of its document."""

from __future__ import annotations

from typing import Any

from unstale.kinds import NAMES
from unstale.server import shapes
from unstale.server.shapes import maybe, model, number, record, several, text, whole

#: ids of sources or addresses in one request
HINTED = 10_000
_LENGTH = number(most=3.2e9)
_SAID = {
    "weight": number(most=1e12),
    "cost": number(1e-9, 1e12),
    "host": text(253),
    "min_interval": _LENGTH,
    "max_interval": maybe(number(1e-3, 3.2e9)),
    "paused": shapes.FLAG,
    "options": shapes.OPTIONS,
}
NEW = model("NewSource", record(["address"], address=shapes.ADDRESS, kind=text(among=list(NAMES)), **_SAID))
#: a page turns out to be a feed, or needs a browser; other kinds are other addresses
_TURNED = text(among=["http", "feed", "browser"])
CHANGES = model("SourceChanges", {**record([], **_SAID, kind=_TURNED), "minProperties": 1})
_SOURCE = record(
    id=whole(1),
    address=text(8192),
    kind=text(),
    host=text(8192),
    weight=number(),
    cost=number(),
    min_interval=shapes.LENGTH,
    max_interval=maybe(shapes.LENGTH),
    paused=shapes.FLAG,
    options=shapes.OPTIONS,
    added_at=maybe(shapes.MOMENT),
    checked_at=maybe(shapes.MOMENT),
    changed_at=maybe(shapes.MOMENT),
    due_at=maybe(shapes.MOMENT),
    failures=whole(0),
    fresh=number(most=1.0),
    age=maybe(shapes.LENGTH),
    change_rate=number(),
    change_rate_low=number(),
    change_rate_high=number(),
    change_interval=maybe(shapes.LENGTH),
    interval=maybe(shapes.LENGTH),
    waits_for=text(40),
    surcharge=number(1.0),
    reason=text(2000),
    title=text(),
)
SOURCE = model("Source", _SOURCE)
VERSION = model(
    "Version",
    record(version=whole(1), taken_at=maybe(shapes.MOMENT), media_type=text(1000), size=whole(0), sha256=text(64)),
)
ONE = model("SourceWithCopy", record(**_SOURCE["properties"], version=whole(0), copy=maybe(VERSION)))
EXPLANATION = model(
    "Explanation",
    record(
        **_SOURCE["properties"],
        sentence=text(2000),
        noise=text(2000),
        looked_at=text(2000),
        costs=text(200),
        copying=text(2000),
        bound=text(2000),
        half_life=maybe(shapes.LENGTH),
        price=maybe(number()),
        twice=record(weight=maybe(number()), budget_per_day=maybe(number())),
    ),
)
OBSERVATION = model(
    "Observation",
    record(
        token=whole(1),
        polled_at=maybe(shapes.MOMENT),
        answer=text(among=["unchanged", "changed", "failed"]),
        elapsed=maybe(shapes.ANY_NUMBER),
        modified_at=maybe(shapes.MOMENT),
        received=whole(0),
        reason=text(1000),
    ),
)
POLLED = model(
    "Polled", record(polled=shapes.FLAG, answered=shapes.FLAG, version=whole(0), checked_at=maybe(shapes.MOMENT))
)
_SHARE, _SPAN = number(most=1.0), maybe(shapes.LENGTH)
PRICE = model(
    "Price",
    record(
        at=maybe(shapes.MOMENT),
        price=number(),
        budget_per_day=number(),
        fresh=_SHARE,
        even=maybe(_SHARE),
        polls=whole(0),
        changed=whole(0),
        failed=whole(0),
        spent=number(),
    ),
)
BUDGET = model(
    "Budget",
    record(
        budget_per_day=number(above=0.0),
        set_here=shapes.FLAG,
        by=text(among=["default", "settings", "option", "command", "api"]),
        since=maybe(shapes.MOMENT),
        why=text(500),
        waiting=text(500),
    ),
)
PREVIEW = model(
    "Preview",
    record(
        budget_per_day=number(above=0.0),
        price=number(),
        freshness=maybe(_SHARE),
        age=maybe(shapes.LENGTH),
        sources=whole(0),
        abandoned=whole(0),
        intervals=record(p5=_SPAN, p25=_SPAN, p50=_SPAN, p75=_SPAN, p95=_SPAN),
    ),
)
HOST = model(
    "Host",
    record(
        host=text(8192),
        sources=whole(0),
        paused=whole(0),
        failing=whole(0),
        spacing=shapes.LENGTH,
        concurrency=whole(0),
        budget_per_day=maybe(number()),
        windows=text(8192),
        surcharge=number(1.0),
    ),
)
ENGINE = model(
    "Engine",
    record(
        running=maybe(shapes.FLAG),
        at=maybe(shapes.MOMENT),
        started_at=maybe(shapes.MOMENT),
        last_poll_at=maybe(shapes.MOMENT),
        last_answer_at=maybe(shapes.MOMENT),
        workers=maybe(whole(0)),
        in_flight=whole(0),
        polls=whole(0),
        first=whole(0),
        changed=whole(0),
        failed=whole(0),
        spent=number(),
    ),
)
TOTALS = model(
    "Totals",
    record(
        polls=whole(0),
        unchanged=whole(0),
        changed=whole(0),
        failed=whole(0),
        first=whole(0),
        requests=whole(0),
        received=whole(0),
        spent=number(),
    ),
)
COUNTS = model(
    "Counts", record(total=whole(0), paused=whole(0), failing=whole(0), never_answered=whole(0), never_polled=whole(0))
)
COLLECTION = model(
    "Collection",
    record(
        # Below 0: a channel by which signals are pushed.
        id=whole(-3),
        address=text(8192),
        listing=text(100),
        members=whole(0),
        state=text(among=["used", "trusted", "new", "unproven", "not believed", "members only"]),
        interval=maybe(shapes.LENGTH),
        heard_at=maybe(shapes.MOMENT),
        precision=maybe(_SHARE),
        silence=maybe(_SHARE),
        late=maybe(shapes.LENGTH),
        saved=maybe(number()),
        sentence=text(10000),
    ),
)
CONTRACT = model(
    "Contract",
    record(
        name=text(200),
        terms=text(200),
        kept=shapes.FLAG,
        sources=whole(0),
        waiting=whole(0),
        broken=whole(0),
        needs_per_day=number(),
        sentence=text(2000),
        worst=several(
            record(
                id=whole(1),
                address=text(8192),
                since=maybe(shapes.LENGTH),
                allowed=maybe(shapes.LENGTH),
                reason=text(10000),
            )
        ),
    ),
)
_ROWS: dict[str, Any] = dict.fromkeys(("rows", "of", "kept", "received"), whole(0))
UNDER_WAY = model(
    "UnderWay", record(id=whole(1), address=text(8192), sentence=text(2000), left=maybe(shapes.LENGTH), **_ROWS)
)
STATUS = model(
    "Status",
    record(
        at=maybe(shapes.MOMENT),
        summed_at=maybe(shapes.MOMENT),
        status=text(among=["pass", "warn", "fail"]),
        reasons=several(text(2000)),
        sources=COUNTS,
        first_round=maybe(model("FirstRound", record(done=whole(0), of=whole(0), left=maybe(shapes.LENGTH)))),
        freshness=maybe(_SHARE),
        freshness_error=maybe(_SHARE),
        freshness_even=maybe(_SHARE),
        freshness_even_error=maybe(_SHARE),
        learned=maybe(_SHARE),
        age=maybe(shapes.LENGTH),
        budget_per_day=number(above=0.0),
        budget=BUDGET,
        spent_hour=number(),
        spent_day=number(),
        objective=text(2000),
        price=maybe(number()),
        price_at=maybe(shapes.MOMENT),
        surcharges={"type": "object", "additionalProperties": number(1.0)},
        hosts=whole(0),
        engine=ENGINE,
        totals=TOTALS,
        collections=several(COLLECTION),
        contracts=several(CONTRACT),
        contracts_need_per_day=number(),
        copying=several(UNDER_WAY),
        worst=several(SOURCE),
    ),
)
SOURCES = model("Sources", record(sources=several(SOURCE), after=maybe(whole(1))))
OBSERVATIONS = model("Observations", record(observations=several(OBSERVATION)))
VERSIONS = model("Versions", record(versions=several(VERSION)))
_WHEN = maybe(shapes.MOMENT)
_FEED_ENTRY = record(
    number=whole(1),
    title=text(300),
    link=text(2000),
    time=text(60),
    first_seen=_WHEN,
    last_seen=_WHEN,
    there=shapes.FLAG,
    version=whole(1),
    edits=whole(0),
    edited_at=_WHEN,
)
ENTRIES = model("Entries", record(entries=several(_FEED_ENTRY), total=whole(0), before=maybe(whole(1))))
ADDED = model("Added", record(ids=several(whole(1))))
_WHICH = {
    "sources": several(whole(1), HINTED),
    "addresses": several(text(8192), HINTED),
    "search": {**text(500), "description": "All that fulfil a search, like `tag:news failing`.", "minLength": 1},
}
WHICH = model("Which", record([], **_WHICH))
TAGS = several(text(200, least=1), 100)
EDITS = model("Edits", record([], **_WHICH, changes=CHANGES, add_tags=TAGS, remove_tags=TAGS))
EDITED = model("Edited", record(edited=whole(0), unknown=whole(0)))
_SEARCH = record(["name", "search"], name=text(100, least=1), search=text(500), sort=text(40), down=shapes.FLAG)
SEARCHES = model("Searches", record(searches=several(_SEARCH, 100)))
HINTED_AT = model("Hinted", record(hinted=whole(0), unknown=whole(0)))
REMOVED = model("Removed", record(removed=whole(0), unknown=whole(0)))
#: less or more could only be a slip: a poll in three years, a poll a microsecond
AMOUNT = number(1e-3, 1e11)
NEW_BUDGET = model("NewBudget", record(budget_per_day=maybe(AMOUNT)))
PRICES = model("Prices", record(prices=several(PRICE)))
HOSTS = model("Hosts", record(hosts=several(HOST)))
