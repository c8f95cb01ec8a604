-- Owner: document.

-- One row per file of a settled operation. shelf is the hour in which the bytes
-- were put into the store (of those in the owner's records: the hour of the row);
-- shelf and sha256 say where they lie. Everything of a shelf expires together.
CREATE TABLE attachments (
    client_id    TEXT   NOT NULL,
    operation_id TEXT   NOT NULL,
    kind         TEXT   NOT NULL CHECK (kind IN ('VISUAL', 'REPORT', 'RECEIPT')),
    type         TEXT   NOT NULL CHECK (type IN ('PDF', 'XML', 'JSON')),
    resource_id  TEXT   NOT NULL,
    place        TEXT   NOT NULL CHECK (place IN ('store', 'record')),
    shelf        TEXT   NOT NULL,
    sha256       TEXT   NOT NULL,
    size         BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    PRIMARY KEY (client_id, operation_id, kind, type)
);
CREATE UNIQUE INDEX attachments_by_resource ON attachments (resource_id);
CREATE INDEX attachments_by_shelf ON attachments (shelf, sha256);

-- The one row of the store. Its id is the folder of this database's files, so
-- that two databases that were given one folder never sweep each other's.
CREATE TABLE document_store (
    one       BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    store_id  TEXT   NOT NULL,
    open_from TEXT   NOT NULL, -- files on earlier shelves can no longer be attached
    swept_to  TEXT   NOT NULL  -- earlier shelves hold nothing that is not attached
);

-- Shelves before swept_to that must be swept again.
CREATE TABLE document_sweeps (
    shelf TEXT NOT NULL PRIMARY KEY
);
