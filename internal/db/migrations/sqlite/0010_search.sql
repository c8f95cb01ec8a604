-- Owner: transaction.

-- What an operation can be found by, see transaction/index.go. Filled behind
-- the intake: no submit waits for it.
CREATE TABLE operation_terms (
    term         TEXT NOT NULL,
    operation_id TEXT NOT NULL,
    PRIMARY KEY (term, operation_id)
) WITHOUT ROWID;

-- How far the index has come: ids up to position were looked at.
CREATE TABLE search_cursors (
    name     TEXT NOT NULL PRIMARY KEY,
    position TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO search_cursors (name, position) VALUES ('new', ''), ('minute', ''), ('day', ''), ('settled', '');

-- Only failures, and only what waits without a time, cost an entry here.
CREATE INDEX operations_failed ON operations (operation_id) WHERE status = 'FAILURE';
CREATE INDEX operations_idle ON operations (operation_id) WHERE status = 'PROCESSING' AND due_at IS NULL;
CREATE INDEX lanes_failing ON lanes (lane) WHERE failures > 0;

-- What happened in a minute (older ones: in an hour), per node, for plots.
CREATE TABLE transaction_counts (
    minute    BIGINT NOT NULL, -- since 1970
    country   TEXT   NOT NULL,
    node      TEXT   NOT NULL, -- '' once added up
    accepted  BIGINT NOT NULL,
    succeeded BIGINT NOT NULL,
    failed    BIGINT NOT NULL,
    PRIMARY KEY (minute, country, node)
) WITHOUT ROWID;

-- What a client used in a day.
CREATE TABLE transaction_usage (
    day       BIGINT NOT NULL, -- since 1970
    client_id TEXT   NOT NULL,
    accepted  BIGINT NOT NULL,
    succeeded BIGINT NOT NULL,
    failed    BIGINT NOT NULL,
    PRIMARY KEY (day, client_id)
) WITHOUT ROWID;
CREATE INDEX transaction_usage_by_client ON transaction_usage (client_id, day);

-- Owner: onboarding. The operator's list goes over all clients.
CREATE INDEX companies_by_age ON companies (created_at, company_id);
CREATE INDEX companies_by_tax_key ON companies (tax_key);
CREATE INDEX companies_by_any_external_id ON companies (external_id);
CREATE INDEX companies_by_id ON companies (company_id);

-- Owner: lookup. So does this one.
CREATE INDEX lookups_by_age ON lookups (requested_at, lookup_id);

-- Owner: webhook. One row per replay of a stretch of a client's events.
CREATE TABLE webhook_replays (
    replay_id  TEXT   NOT NULL PRIMARY KEY,
    client_id  TEXT   NOT NULL,
    event_type TEXT   NOT NULL, -- '': all
    status     TEXT   NOT NULL, -- of the events; '': all
    from_at    BIGINT NOT NULL,
    to_at      BIGINT NOT NULL,
    asked_by   TEXT   NOT NULL,
    position   TEXT   NOT NULL, -- webhook_id of the last event that was looked at
    sent       BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at   BIGINT
) WITHOUT ROWID;
CREATE INDEX webhook_replays_open ON webhook_replays (started_at) WHERE ended_at IS NULL;
CREATE INDEX webhook_replays_by_time ON webhook_replays (started_at);
