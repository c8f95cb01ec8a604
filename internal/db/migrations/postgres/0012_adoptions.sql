-- Owner: transaction. What a restored backup does not know.

-- The one restoration, the latest. While ended_at is NULL the intake is closed, on every node and after every restart.
CREATE TABLE restorations (
    one        BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    started_at BIGINT NOT NULL,
    known_to   BIGINT NOT NULL, -- everything accepted until then is in the backup
    ended_at   BIGINT
);

-- One row per supplier of a country with an authority. Nothing of a supplier is
-- filed unless its state is 'asked' (or it has no row: no backup was restored).
CREATE TABLE restored_suppliers (
    supplier_id TEXT    NOT NULL PRIMARY KEY,
    client_id   TEXT    NOT NULL,
    country     TEXT    NOT NULL,
    live        BOOLEAN NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('asking', 'unasked', 'unlisted', 'chain', 'asked')),
    first_day   TEXT    NOT NULL,           -- document date, YYYY-MM-DD
    next_day    TEXT    NOT NULL,           -- days before it were asked for
    ahead       BIGINT  NOT NULL,           -- days after today to ask for: some date their documents ahead
    found       BIGINT  NOT NULL DEFAULT 0, -- gaps
    failures    BIGINT  NOT NULL DEFAULT 0, -- in a row
    trouble     TEXT    NOT NULL DEFAULT '',
    due_at      BIGINT,
    lease_until BIGINT,
    lease_token BIGINT  NOT NULL DEFAULT 0,
    lease_node  TEXT
);
CREATE INDEX restored_suppliers_due ON restored_suppliers (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX restored_suppliers_by_client ON restored_suppliers (client_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX restored_suppliers_node ON restored_suppliers (lease_node) WHERE lease_node IS NOT NULL;

-- One row per document that an authority holds and the backup does not: a gap.
-- The operation that comes for it adopts it instead of being filed.
CREATE TABLE adoptions (
    client_id      TEXT   NOT NULL,
    supplier_id    TEXT   NOT NULL,
    number         TEXT   NOT NULL, -- at the authority; '' for a cancellation that is seen only at its original
    reference      TEXT   NOT NULL, -- number of the document that it corrects
    authority_id_1 TEXT   NOT NULL,
    authority_id_2 TEXT   NOT NULL,
    kind           TEXT   NOT NULL, -- '' where the authority does not say
    day            TEXT   NOT NULL, -- document date, YYYY-MM-DD
    gross          BIGINT,          -- NULL where the authority does not say
    sha256         TEXT   NOT NULL,
    qr_code        TEXT   NOT NULL,
    registered_at  BIGINT,
    found_at       BIGINT NOT NULL,
    operation_id   TEXT,            -- who adopted it
    PRIMARY KEY (client_id, supplier_id, number, reference, authority_id_1, authority_id_2)
);
CREATE INDEX adoptions_open ON adoptions (client_id, supplier_id) WHERE operation_id IS NULL;
