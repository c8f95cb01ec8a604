-- Owner: filing. Sales that are gathered by period and told to the authority in one document.

-- A period of one supplier, with what was enlisted before it was closed. What comes later
-- is the next one's in the series.
CREATE TABLE periods (
    period_id   TEXT    NOT NULL PRIMARY KEY,
    place       TEXT COLLATE "C" NOT NULL, -- client|supplier: suppliers take turns
    client_id   TEXT    NOT NULL,
    supplier_id TEXT    NOT NULL,
    country     TEXT    NOT NULL,
    live        BOOLEAN NOT NULL,
    currency    TEXT    NOT NULL,
    cadence     TEXT    NOT NULL,
    first_day   TEXT    NOT NULL, -- both in the supplier's time zone
    last_day    TEXT    NOT NULL,
    series      BIGINT  NOT NULL,
    zone        TEXT    NOT NULL,
    ends_at     BIGINT  NOT NULL, -- by the time of day
    deadline_at BIGINT  NOT NULL, -- when the law wants its documents
    closed_at   BIGINT,
    sales       BIGINT  NOT NULL DEFAULT 0, -- that are in it, those that left taken off
    gross       BIGINT  NOT NULL DEFAULT 0,
    failures    BIGINT  NOT NULL DEFAULT 0, -- of its documents, in a row
    due_at      BIGINT,
    lease_until BIGINT,
    lease_token BIGINT  NOT NULL DEFAULT 0,
    lease_node  TEXT,
    UNIQUE (client_id, supplier_id, currency, cadence, first_day, series)
);
CREATE INDEX periods_due ON periods (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX periods_place ON periods (place, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX periods_node ON periods (lease_node) WHERE lease_node IS NOT NULL;

-- A sale in its period. Its data change while no document has it.
CREATE TABLE period_entries (
    operation_id   TEXT   NOT NULL PRIMARY KEY, -- the sale's
    period_id      TEXT   NOT NULL,
    transaction_id TEXT   NOT NULL,
    number         TEXT   NOT NULL,
    data           BYTEA  NOT NULL,
    lines          BIGINT NOT NULL,
    gross          BIGINT NOT NULL,
    net            BIGINT NOT NULL,
    tax            BIGINT NOT NULL,
    changes        BIGINT NOT NULL DEFAULT 0,
    document_id    TEXT,   -- the operation of the document that has it
    left_at        BIGINT, -- taken out again, with the transaction by which
    left_by        TEXT,
    authority_id_1 TEXT,   -- of the first document that was accepted; filled in once
    authority_id_2 TEXT
);
CREATE INDEX period_entries_waiting ON period_entries (period_id, operation_id) WHERE document_id IS NULL AND left_at IS NULL;
CREATE INDEX period_entries_period ON period_entries (period_id, operation_id);
CREATE INDEX period_entries_document ON period_entries (document_id) WHERE document_id IS NOT NULL;

-- Corrections that changed an entry: each does so once.
CREATE TABLE period_changes (
    operation_id TEXT NOT NULL PRIMARY KEY,
    sale_id      TEXT NOT NULL
);

-- The service's own operations for periods: documents, and cancellations of documents that a sale has left.
CREATE TABLE period_documents (
    operation_id   TEXT   NOT NULL PRIMARY KEY,
    period_id      TEXT   NOT NULL,
    transaction_id TEXT   NOT NULL,
    withdraws      TEXT,            -- the operation of the document that is taken back
    number         TEXT   NOT NULL,
    state          TEXT   NOT NULL, -- open, accepted, failed; of a document also withdrawn
    sales          BIGINT NOT NULL,
    gross          BIGINT NOT NULL,
    authority_id_1 TEXT,
    authority_id_2 TEXT,
    made_at        BIGINT NOT NULL,
    ended_at       BIGINT
);
CREATE INDEX period_documents_period ON period_documents (period_id, operation_id);
CREATE INDEX period_documents_withdraws ON period_documents (withdraws) WHERE withdraws IS NOT NULL;

CREATE FUNCTION refuse_period_ids() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'an id of a gathered sale is filled in once'; END $$;
CREATE TRIGGER period_ids_stay BEFORE UPDATE ON period_entries FOR EACH ROW
WHEN (OLD.authority_id_1 IS NOT NULL AND (NEW.authority_id_1 IS DISTINCT FROM OLD.authority_id_1 OR NEW.authority_id_2 IS DISTINCT FROM OLD.authority_id_2))
EXECUTE FUNCTION refuse_period_ids();
