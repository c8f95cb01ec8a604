-- Owner: filing. What was said about a document beside its outcome. Entries are
-- added and never change; only forgetting after the years of the law removes them.
CREATE TABLE lifecycle (
    operation_id TEXT   NOT NULL, -- that filed the document
    source       TEXT   NOT NULL,
    message_key  TEXT   NOT NULL, -- of the source: one entry for each message
    client_id    TEXT   NOT NULL,
    at           BIGINT NOT NULL, -- by the source's clock
    code         TEXT   NOT NULL,
    name         TEXT   NOT NULL,
    severity     TEXT   NOT NULL,
    message      TEXT   NOT NULL,
    learned_at   BIGINT NOT NULL,
    PRIMARY KEY (operation_id, source, message_key)
);
CREATE FUNCTION refuse_lifecycle_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the life cycle is append-only'; END $$;
CREATE TRIGGER lifecycle_stays BEFORE UPDATE ON lifecycle
FOR EACH ROW EXECUTE FUNCTION refuse_lifecycle_change();

-- Documents whose authority is asked for news after SUCCESS; a row goes when nobody listens any more.
CREATE TABLE listening (
    operation_id TEXT   NOT NULL PRIMARY KEY,
    lane         TEXT COLLATE "C" NOT NULL,
    until        BIGINT NOT NULL,
    looks        BIGINT NOT NULL DEFAULT 0,
    failures     BIGINT NOT NULL DEFAULT 0, -- in a row
    due_at       BIGINT,
    lease_until  BIGINT,
    lease_token  BIGINT NOT NULL DEFAULT 0,
    lease_node   TEXT
);
CREATE INDEX listening_due ON listening (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX listening_lane ON listening (lane, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX listening_node ON listening (lease_node) WHERE lease_node IS NOT NULL;

-- By what names authorities that call us speak of a filing.
CREATE TABLE filing_handles (
    country      TEXT    NOT NULL,
    live         BOOLEAN NOT NULL,
    handle       TEXT    NOT NULL,
    operation_id TEXT    NOT NULL,
    PRIMARY KEY (country, live, handle, operation_id)
);

-- Decisions that came by themselves, until the lane's holder has acted on them.
CREATE TABLE told (
    operation_id TEXT   NOT NULL,
    message_key  TEXT   NOT NULL,
    receipt      TEXT   NOT NULL,
    document     BYTEA,
    raw          BYTEA,
    at           BIGINT NOT NULL,
    PRIMARY KEY (operation_id, message_key)
);
