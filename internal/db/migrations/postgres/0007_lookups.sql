-- Owner: lookup.

-- One row per request: a batch, or a single validation, which is a batch of one under its validation_id.
CREATE TABLE lookups (
    lookup_id     TEXT   NOT NULL PRIMARY KEY,
    client_id     TEXT   NOT NULL,
    kind          TEXT   NOT NULL CHECK (kind IN ('batch', 'single')),
    name          TEXT,                      -- batch_name
    status        TEXT   NOT NULL CHECK (status IN ('running', 'completed', 'canceled')),
    entries       BIGINT NOT NULL,           -- how many
    requested_at  BIGINT NOT NULL,
    ended_at      BIGINT,
    claim         BIGINT NOT NULL DEFAULT 0, -- raised by every claim; whatever its holder writes carries it
    claimed_by    TEXT,                      -- node; NULL while nobody works on it
    claimed_until BIGINT NOT NULL,           -- afterwards somebody looks at it again
    crashes       BIGINT NOT NULL DEFAULT 0  -- claims since the last progress that were never given back
);
CREATE INDEX lookups_open ON lookups (claimed_until) WHERE status = 'running';
CREATE INDEX lookups_turn ON lookups (client_id, requested_at, lookup_id) WHERE status = 'running' AND kind = 'batch';

-- What was asked, a hundred entries in a row, with what their text alone decides. Never changed.
CREATE TABLE lookup_entries (
    lookup_id TEXT   NOT NULL,
    first     BIGINT NOT NULL,               -- position of the first entry in the request
    entries   TEXT   NOT NULL,               -- JSON
    PRIMARY KEY (lookup_id, first)
);

-- What was learnt about the other entries. Inserted once, never changed.
CREATE TABLE lookup_answers (
    lookup_id        TEXT   NOT NULL,
    position         BIGINT NOT NULL,
    format           TEXT   NOT NULL,
    status           TEXT   NOT NULL,
    is_business      TEXT   NOT NULL,
    business_name    TEXT,
    business_address TEXT,
    error_code       TEXT,
    answered_at      BIGINT,                 -- when the register gave the answer
    request_id       TEXT,                   -- its consultation number
    PRIMARY KEY (lookup_id, position)
);
