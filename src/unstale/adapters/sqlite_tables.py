"""The tables of a store in SQLite, as they were made and as they grew.

Rules of this file:
1. Steps are only ever appended: a store of any version goes through those that it has not seen.
"""

from __future__ import annotations

_V1 = """
CREATE TABLE hosts(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE sources(
    id INTEGER PRIMARY KEY, address TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
    weight REAL NOT NULL, cost REAL NOT NULL, host INTEGER NOT NULL REFERENCES hosts(id),
    shortest REAL NOT NULL, longest REAL NOT NULL, options TEXT, paused INTEGER NOT NULL, added_at REAL NOT NULL
) STRICT;
-- who waits, and until when: narrow, so that what is due lies on few pages
CREATE TABLE sched(due REAL NOT NULL, source INTEGER NOT NULL, PRIMARY KEY(due, source)) STRICT, WITHOUT ROWID;
CREATE TABLE leases(
    source INTEGER PRIMARY KEY, token INTEGER NOT NULL, claimed_until REAL NOT NULL, owner TEXT NOT NULL
) STRICT;
CREATE TABLE beliefs(
    source INTEGER PRIMARY KEY, due REAL NOT NULL, last REAL NOT NULL, found REAL NOT NULL,
    failures INTEGER NOT NULL, latest INTEGER NOT NULL, version INTEGER NOT NULL, belief BLOB
) STRICT;
-- the belief as it was after observation `latest`: what is older may be dropped
CREATE TABLE checkpoints(
    source INTEGER PRIMARY KEY, latest INTEGER NOT NULL, last REAL NOT NULL, found REAL NOT NULL, belief BLOB
) STRICT;
-- appended only; `previous` chains those of one source, so that its history needs no index
CREATE TABLE observations(
    token INTEGER PRIMARY KEY, source INTEGER NOT NULL, polled_at REAL NOT NULL, answer INTEGER NOT NULL,
    elapsed REAL, modified REAL, bytes INTEGER NOT NULL, reason TEXT, previous INTEGER NOT NULL
) STRICT;
CREATE TABLE contents(
    id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, uses INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE TABLE copies(
    source INTEGER NOT NULL, version INTEGER NOT NULL, content INTEGER NOT NULL, taken_at REAL NOT NULL,
    media_type TEXT NOT NULL, etag TEXT, last_modified TEXT, fingerprint BLOB, address TEXT NOT NULL,
    PRIMARY KEY(source, version)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER copy_added AFTER INSERT ON copies BEGIN
    UPDATE contents SET uses = uses + 1 WHERE id = new.content;
END;
CREATE TRIGGER copy_removed AFTER DELETE ON copies BEGIN
    UPDATE contents SET uses = uses - 1 WHERE id = old.content;
    DELETE FROM contents WHERE id = old.content AND uses = 0;
END;
CREATE TABLE prices(id INTEGER PRIMARY KEY, at REAL NOT NULL, price REAL NOT NULL, budget REAL NOT NULL) STRICT;
CREATE TABLE counters(name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE settings(name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
"""

_V2 = """
ALTER TABLE observations ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
-- the learner's shared states; `uses` counts the observations made under each
CREATE TABLE epochs(id INTEGER PRIMARY KEY, at REAL, uses INTEGER NOT NULL, value BLOB NOT NULL) STRICT;
INSERT INTO epochs(id, at, uses, value) SELECT 1, NULL, 0, value FROM settings WHERE name = 'learner';
-- who wants to be told of new versions, and the last event each has been told
CREATE TABLE listeners(name TEXT PRIMARY KEY, told INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE events(
    number INTEGER PRIMARY KEY, source INTEGER NOT NULL, address TEXT NOT NULL, version INTEGER NOT NULL,
    at REAL NOT NULL, digest BLOB NOT NULL
) STRICT;
-- how the fleet stood when a price was published, and what was done since the one before
ALTER TABLE prices ADD COLUMN fresh REAL NOT NULL DEFAULT 0;
ALTER TABLE prices ADD COLUMN even REAL NOT NULL DEFAULT 0;
ALTER TABLE prices ADD COLUMN polls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE prices ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE prices ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE prices ADD COLUMN spent REAL NOT NULL DEFAULT 0;
"""

_V3 = """
-- the replicas a version came through, nearest to the source first
ALTER TABLE copies ADD COLUMN via TEXT NOT NULL DEFAULT '';
"""

_V4 = """
-- when a signal said that a source changed, where a poll taught its belief by it
ALTER TABLE observations ADD COLUMN told REAL;
-- what each collection says of its members: when they changed, or what differs when they do; `told` is its last signal
CREATE TABLE members(
    collection INTEGER NOT NULL, source INTEGER NOT NULL, address TEXT NOT NULL, time REAL, tag TEXT, told REAL,
    PRIMARY KEY(collection, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX memberships ON members(source);
CREATE TRIGGER source_removed AFTER DELETE ON sources BEGIN
    DELETE FROM members WHERE collection = old.id;
    DELETE FROM members WHERE source = old.id;
END;
"""

_V5 = """
-- the entries of feeds by themselves, each once: `name` is what it is known by, `digest` another one once it was edited
CREATE TABLE entries(
    source INTEGER NOT NULL, number INTEGER NOT NULL, name BLOB NOT NULL, digest BLOB NOT NULL, title TEXT NOT NULL,
    link TEXT NOT NULL, time TEXT NOT NULL, first_at REAL NOT NULL, last_at REAL NOT NULL,
    first_version INTEGER NOT NULL, last_version INTEGER NOT NULL, edits INTEGER NOT NULL, edited_at REAL,
    PRIMARY KEY(source, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX entry_names ON entries(source, name);
"""

_V6 = """
-- Who waits follows from the rest: whoever is listed, not paused and not claimed, until the time its belief says. A
-- table of them in the order of those times was written at two random places in every poll.
DROP TABLE sched;
CREATE VIEW sched(due, source) AS SELECT b.due, b.source FROM beliefs b CROSS JOIN sources s ON s.id = b.source
WHERE NOT s.paused AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.source = b.source);
"""

_V7 = """
-- what polls of a source were found to cost, in the unit that the setting "cost_in" names; NULL: what it is listed with
ALTER TABLE sources ADD COLUMN learned REAL;
"""

_V8 = """
-- who changed what, the newest of it
CREATE TABLE edits(number INTEGER PRIMARY KEY, at REAL NOT NULL, who TEXT NOT NULL, what TEXT NOT NULL) STRICT;
"""

_V9 = """
-- How sources stand, appended; `place(source)`, which our connections know, is the newest of each: see `sqlite_states`.
-- A row for each source, changed where it lay, was a page of its own to write in nearly every poll of a large fleet.
CREATE TABLE states(
    id INTEGER PRIMARY KEY, source INTEGER NOT NULL, due REAL NOT NULL, last REAL NOT NULL, found REAL NOT NULL,
    failures INTEGER NOT NULL, latest INTEGER NOT NULL, version INTEGER NOT NULL, belief BLOB
) STRICT;
INSERT INTO states(source, due, last, found, failures, latest, version, belief)
SELECT source, due, last, found, failures, latest, version, belief FROM beliefs ORDER BY source;
DROP VIEW sched;
DROP TABLE beliefs;
-- the newest states of each so many sources, all states up to one looked at
CREATE TABLE places(chunk INTEGER PRIMARY KEY, upto INTEGER NOT NULL, states BLOB NOT NULL) STRICT;
CREATE VIEW beliefs(source, due, last, found, failures, latest, version, belief) AS
SELECT s.id, b.due, b.last, b.found, b.failures, b.latest, b.version, b.belief
FROM sources s CROSS JOIN states b ON b.id = place(s.id);
CREATE TRIGGER belief_added INSTEAD OF INSERT ON beliefs BEGIN
    INSERT INTO states(source, due, last, found, failures, latest, version, belief) VALUES
    (new.source, new.due, new.last, new.found, new.failures, new.latest, new.version, new.belief);
    SELECT placed(new.source, last_insert_rowid());
END;
CREATE TRIGGER belief_moved INSTEAD OF UPDATE ON beliefs BEGIN
    INSERT INTO states(source, due, last, found, failures, latest, version, belief) VALUES
    (old.source, new.due, new.last, new.found, new.failures, new.latest, new.version, new.belief);
    SELECT placed(old.source, last_insert_rowid());
END;
CREATE VIEW sched(due, source) AS SELECT b.due, b.source FROM beliefs b CROSS JOIN sources s ON s.id = b.source
WHERE NOT s.paused AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.source = b.source);
"""

#: what a poll of a source costs: what is stated, or what was found
COST = "CASE WHEN cost = 1 THEN coalesce(learned, cost) ELSE cost END"
#: the step from version i to version i + 1
MIGRATIONS: tuple[str, ...] = (_V1, _V2, _V3, _V4, _V5, _V6, _V7, _V8, _V9)
