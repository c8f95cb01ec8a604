-- Owner: inbox. What authorities told us, each message once by their own name of
-- it. due_at is when it is handed on next; NULL once it was, or once only a
-- person can know whose it is. Rows stay: their names keep a repetition from
-- being taken for news.
CREATE TABLE inbox_messages (
    message_id   TEXT    NOT NULL PRIMARY KEY, -- begins with the time of arrival
    endpoint     TEXT    NOT NULL,             -- CC.live or CC.test
    country      TEXT    NOT NULL,
    live         BOOLEAN NOT NULL,
    name         TEXT    NOT NULL,             -- the authority's own
    handle       TEXT    NOT NULL,             -- of the filing it speaks of
    receipt      TEXT    NOT NULL,             -- JSON: what it says
    raw          BLOB    NOT NULL,             -- as it came
    received_at  BIGINT  NOT NULL,
    operation_id TEXT,                         -- that took it
    taken_at     BIGINT,
    tries        BIGINT  NOT NULL DEFAULT 0,   -- looks that found nobody
    due_at       BIGINT,
    lease_until  BIGINT,
    lease_token  BIGINT  NOT NULL DEFAULT 0,
    lease_node   TEXT
) WITHOUT ROWID;
CREATE UNIQUE INDEX inbox_messages_name ON inbox_messages (country, live, name);
CREATE INDEX inbox_messages_unknown ON inbox_messages (message_id) WHERE taken_at IS NULL AND tries > 0;
CREATE INDEX inbox_messages_operation ON inbox_messages (operation_id) WHERE operation_id IS NOT NULL;
CREATE INDEX inbox_messages_due ON inbox_messages (due_at, endpoint) WHERE due_at IS NOT NULL;
CREATE INDEX inbox_messages_endpoint ON inbox_messages (endpoint, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX inbox_messages_node ON inbox_messages (lease_node) WHERE lease_node IS NOT NULL;
