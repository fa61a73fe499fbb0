"""The tables of a store in PostgreSQL, as they were made and as they grew.

Rules of this file:
1. Steps are only ever appended: a store of any version goes through those that it has not seen.
2. What changes at every poll has no index that changes with it: it is updated in its place.
"""

from __future__ import annotations

_V1 = """
CREATE SEQUENCE ids;
CREATE SEQUENCE tokens;
-- a host is the group that shares a cap, and whom we owe manners; `free_at` is when its next poll may begin
CREATE TABLE hosts(
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE,
    free_at float8 NOT NULL DEFAULT '-Infinity', pile float8 NOT NULL DEFAULT '-Infinity',
    asked float8 NOT NULL DEFAULT 0, blocked float8 NOT NULL DEFAULT '-Infinity', refusals integer NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
-- `place` is the hash of the address, which may be longer than an index takes
CREATE TABLE sources(
    id bigint PRIMARY KEY, place bytea NOT NULL UNIQUE, address text NOT NULL, kind text NOT NULL,
    weight float8 NOT NULL, cost float8 NOT NULL, host integer NOT NULL, shortest float8 NOT NULL,
    longest float8 NOT NULL, options text, paused boolean NOT NULL, added_at float8 NOT NULL
);
-- who waits has no token, who is claimed has one; `site` is the host we owe manners
CREATE TABLE beliefs(
    source bigint PRIMARY KEY, site integer NOT NULL, awake boolean NOT NULL, due float8 NOT NULL,
    last float8 NOT NULL, found float8 NOT NULL, failures integer NOT NULL, latest bigint NOT NULL,
    version integer NOT NULL, belief bytea,
    token bigint, claimed_at float8, claimed_until float8, owner text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.2);
CREATE INDEX waiting ON beliefs(due, source) WHERE awake AND token IS NULL;
CREATE INDEX held ON beliefs(claimed_until, claimed_at, source) WHERE token IS NOT NULL;
CREATE INDEX busy ON beliefs(site) WHERE token IS NOT NULL;
-- the belief as it was after observation `latest`: what is older may be dropped
CREATE TABLE checkpoints(
    source bigint PRIMARY KEY, latest bigint NOT NULL, last float8 NOT NULL, found float8 NOT NULL, belief bytea
);
-- appended only; `previous` chains those of one source, so that its history needs no index
CREATE TABLE observations(
    token bigint PRIMARY KEY, source bigint NOT NULL, polled_at float8 NOT NULL, answer smallint NOT NULL,
    elapsed float8, modified float8, bytes bigint NOT NULL, reason text, previous bigint NOT NULL,
    epoch integer NOT NULL
) PARTITION BY RANGE (token);
CREATE TABLE parts(first bigint PRIMARY KEY, beyond bigint NOT NULL, made_at float8 NOT NULL);
CREATE TABLE epochs(id integer PRIMARY KEY, at float8, value bytea NOT NULL);
CREATE TABLE copies(
    source bigint NOT NULL, version integer NOT NULL, taken_at float8 NOT NULL, digest bytea NOT NULL,
    size bigint NOT NULL, body bytea NOT NULL, media_type text NOT NULL, etag text, last_modified text,
    fingerprint bytea, address text NOT NULL, via text NOT NULL, PRIMARY KEY(source, version)
);
ALTER TABLE copies ALTER body SET STORAGE EXTERNAL;
CREATE TABLE prices(
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at float8 NOT NULL, price float8 NOT NULL,
    budget float8 NOT NULL, fresh float8 NOT NULL, even float8 NOT NULL, polls bigint NOT NULL,
    changed bigint NOT NULL, failed bigint NOT NULL, spent float8 NOT NULL
);
-- each connection counts in a shard of its own, so that nobody waits for another's commit
CREATE TABLE counters(
    name text NOT NULL, shard integer NOT NULL, value bigint NOT NULL, PRIMARY KEY(name, shard)
) WITH (fillfactor = 50);
CREATE TABLE settings(name text PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE listeners(name text PRIMARY KEY, told bigint NOT NULL);
CREATE TABLE events(
    number bigint PRIMARY KEY, source bigint NOT NULL, address text NOT NULL, version integer NOT NULL,
    at float8 NOT NULL, digest bytea NOT NULL
);
-- who is alive; `share` of the budget is what the planner grants, `held` what the worker says it goes by
CREATE TABLE workers(
    owner text PRIMARY KEY, at float8 NOT NULL, share float8 NOT NULL, held float8 NOT NULL, level float8 NOT NULL,
    burst float8 NOT NULL, facts text NOT NULL
) WITH (fillfactor = 50);
-- what workers' polls taught of the fleet as a whole, until the planner takes it up
CREATE TABLE lessons(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, value bytea NOT NULL);
"""

_V2 = """
-- when a signal said that a source changed, where a poll taught its belief by it
ALTER TABLE observations ADD COLUMN told float8;
-- what each collection says of its members: when they changed, or what differs when they do; `told` is its last signal
CREATE TABLE members(
    collection bigint NOT NULL REFERENCES sources ON DELETE CASCADE,
    source bigint NOT NULL REFERENCES sources ON DELETE CASCADE,
    address text NOT NULL, time float8, tag text, told float8, PRIMARY KEY(collection, source)
);
CREATE INDEX memberships ON members(source);
"""

_V3 = """
-- who waits until when: narrow, for it is written at every poll and by every plan; `site` is the host we owe manners,
-- and `sent` marks who was sent away from it while it was busy, to come back when it is due
CREATE TABLE schedule(
    source bigint PRIMARY KEY, site integer NOT NULL, awake boolean NOT NULL, due float8 NOT NULL, sent boolean NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.2);
INSERT INTO schedule SELECT source, site, awake, due, token IS NULL AND owner IS NOT NULL FROM beliefs;
CREATE INDEX soonest ON schedule(due, source) WHERE awake;
-- who is being polled: a row from its claim until its outcome, so that nothing else is written when it is claimed
CREATE TABLE claims(
    source bigint PRIMARY KEY, token bigint NOT NULL, site integer NOT NULL, claimed_at float8 NOT NULL,
    claimed_until float8 NOT NULL, owner text NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
INSERT INTO claims SELECT source, token, site, claimed_at, claimed_until, owner FROM beliefs WHERE token IS NOT NULL;
-- what is known of a source, without a column that an index has: it is updated in its place
ALTER TABLE beliefs DROP COLUMN site, DROP COLUMN awake, DROP COLUMN due, DROP COLUMN token, DROP COLUMN claimed_at,
    DROP COLUMN claimed_until, DROP COLUMN owner;
ALTER TABLE beliefs SET (fillfactor = 60);
"""

_V4 = """
-- how long a source waits from its last poll until it is due, 0 where that is not known: who is late is late in it
ALTER TABLE schedule ADD COLUMN span real NOT NULL DEFAULT 0;
-- how sources stood before and after the polls of a batch, until the planner takes it up
CREATE TABLE tallies(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, value bytea NOT NULL);
"""

_V5 = """
-- the entries of feeds by themselves, each once: `name` is what it is known by, `digest` another one once it was edited
CREATE TABLE entries(
    source bigint NOT NULL, number bigint NOT NULL, name bytea NOT NULL, digest bytea NOT NULL, title text NOT NULL,
    link text NOT NULL, time text NOT NULL, first_at float8 NOT NULL, last_at float8 NOT NULL,
    first_version integer NOT NULL, last_version integer NOT NULL, edits integer NOT NULL, edited_at float8,
    PRIMARY KEY(source, number), UNIQUE(source, name)
);
"""

_V6 = """
-- seconds between calls at which what is left of a host's quota lasts until there is a new one, and when that is
ALTER TABLE hosts ADD COLUMN paced float8 NOT NULL DEFAULT 0, ADD COLUMN renewed float8 NOT NULL DEFAULT '-Infinity';
"""

_V7 = """
-- what polls of a source were found to cost, in the unit that the setting "cost_in" names; NULL: what it is listed with
ALTER TABLE sources ADD COLUMN learned float8;
"""

_V8 = """
-- who changed what, the newest of it
CREATE TABLE edits(number bigint PRIMARY KEY, at float8 NOT NULL, who text NOT NULL, what text NOT NULL);
"""

_V9 = """
-- hosts belong to shards by their names; who holds a shard polls its sources, and `epoch` counts how often it was taken
ALTER TABLE hosts ADD COLUMN shard integer NOT NULL GENERATED ALWAYS AS
    ((get_byte(decode(md5(name), 'hex'), 0) * 256 + get_byte(decode(md5(name), 'hex'), 1)) % 1024) STORED;
CREATE TABLE shards(shard integer PRIMARY KEY, owner text, epoch bigint NOT NULL) WITH (fillfactor = 50);
INSERT INTO shards SELECT number, NULL, 0 FROM generate_series(0, 1023) number;
-- whose turn it is at a host, and who is latest, is in the memory of who holds its shard
ALTER TABLE hosts DROP COLUMN free_at, DROP COLUMN pile;
ALTER TABLE schedule DROP COLUMN sent, DROP COLUMN span;
"""

_V10 = """
-- who holds a source knows when it is due: without an index by that a due time is moved in its place, at every poll and
-- with every price
DROP INDEX soonest;
ALTER TABLE schedule SET (fillfactor = 60);
"""

_V11 = """
-- what a worker was ever credited with beside its share, and what had come into its bucket when that was last settled
ALTER TABLE workers ADD COLUMN credit float8 NOT NULL DEFAULT 0, ADD COLUMN settled float8 NOT NULL DEFAULT 0;
-- what of the budget has come into nobody's bucket, until then
CREATE TABLE purse(at float8 NOT NULL, kept float8 NOT NULL) WITH (fillfactor = 50);
INSERT INTO purse VALUES (extract(epoch FROM clock_timestamp())::float8, 0);
"""

_V12 = """
-- who is being polled, by batches of those that were claimed at once: bit i of `open` is set while claim i is; strays
-- were claimed by who does not hold their shards
CREATE TABLE batches(
    id bigint PRIMARY KEY, claimed_at float8 NOT NULL, claimed_until float8 NOT NULL, owner text NOT NULL,
    stray boolean NOT NULL, open bigint NOT NULL, sources bigint[] NOT NULL, tokens bigint[] NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
INSERT INTO batches SELECT min(token), claimed_at, claimed_until, owner, true,
    CASE count(*) WHEN 64 THEN -1 ELSE ~(-1::bigint << count(*)::int) END,
    array_agg(source ORDER BY token), array_agg(token ORDER BY token)
FROM (SELECT *, (row_number() OVER (PARTITION BY owner, claimed_at, claimed_until ORDER BY token) - 1) / 64 AS part
    FROM claims) c GROUP BY owner, claimed_at, claimed_until, part;
DROP TABLE claims;
CREATE VIEW claims AS SELECT n.source, n.token, b.claimed_at, b.claimed_until, b.owner, b.stray, b.id AS batch,
    (n.place - 1)::int AS place FROM batches b, unnest(b.sources, b.tokens) WITH ORDINALITY n(source, token, place)
    WHERE (b.open >> (n.place - 1)::int) & 1 = 1;
-- how often what is asked with a poll has changed: who remembers it knows by that whether it is still true
ALTER TABLE schedule ADD COLUMN mark integer NOT NULL DEFAULT 0;
"""

_V13 = """
-- who claims looks at strays and its own batches, however many there were that vacuum has not seen yet
CREATE INDEX owned ON batches(owner);
CREATE INDEX strays ON batches(id) WHERE stray;
"""

_V14 = """
-- what whoever holds a collection has learned of it, and counted of its members; 0: of all together; below: of channels
CREATE TABLE trust(
    collection bigint PRIMARY KEY, state text NOT NULL, counts bytea NOT NULL DEFAULT ''
) WITH (fillfactor = 50);
"""

#: what a poll of a source costs: what is stated, or what was found
COST = "CASE WHEN cost = 1 THEN coalesce(learned, cost) ELSE cost END"
#: shards of a store, and that of a source: its host's, or one by its own number where it has no host
SHARDS = 1024
OF_SOURCE = "CASE WHEN h.name = '' THEN (w.source & 1023)::integer ELSE h.shard END"
#: the step from version i to version i + 1
MIGRATIONS: tuple[str, ...] = (_V1, _V2, _V3, _V4, _V5, _V6, _V7, _V8, _V9, _V10, _V11, _V12, _V13, _V14)
