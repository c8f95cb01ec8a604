-- Owner: transaction.

-- One row per client and transaction_id: the idempotency key. Its attempts are operations.
CREATE TABLE transactions (
    client_id      TEXT   NOT NULL,
    transaction_id TEXT   NOT NULL,
    attempts       BIGINT NOT NULL,
    open           BIGINT NOT NULL,
    success_id     TEXT,
    PRIMARY KEY (client_id, transaction_id)
);

-- One processing attempt. due_at is when its lane should look at it; NULL while
-- it waits for another attempt or its original, is quarantined or settled.
CREATE TABLE operations (
    operation_id   TEXT    NOT NULL PRIMARY KEY,
    client_id      TEXT    NOT NULL,
    transaction_id TEXT    NOT NULL,
    attempt        BIGINT  NOT NULL,
    kind           TEXT    NOT NULL,
    country        TEXT    NOT NULL,
    live           BOOLEAN NOT NULL,
    use_case       TEXT    NOT NULL,
    supplier_id    TEXT    NOT NULL,
    number         TEXT    NOT NULL,
    dated_at       BIGINT  NOT NULL,
    accepted_at    BIGINT  NOT NULL,
    reference_id   TEXT,
    lane           TEXT    NOT NULL,
    stage          TEXT    NOT NULL,
    status         TEXT    NOT NULL,
    due_at         BIGINT,
    started_at     BIGINT,
    sent_at        BIGINT,
    tries          BIGINT  NOT NULL DEFAULT 0,
    crashes        BIGINT  NOT NULL DEFAULT 0,
    doubts         TEXT    NOT NULL DEFAULT '',
    settled_at     BIGINT,
    settled_by     TEXT,
    pack_version   TEXT    NOT NULL,
    result         TEXT
);
CREATE INDEX operations_by_client ON operations (client_id, operation_id);
CREATE INDEX operations_by_transaction ON operations (client_id, transaction_id, attempt);
CREATE INDEX operations_by_number ON operations (client_id, number);
CREATE INDEX operations_by_reference ON operations (client_id, reference_id) WHERE reference_id IS NOT NULL;
CREATE INDEX operations_due ON operations (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX operations_lane ON operations (lane, due_at) WHERE due_at IS NOT NULL;

-- SUCCESS never changes, whatever a program believes.
CREATE FUNCTION refuse_success_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'a successful operation never changes'; END $$;
CREATE TRIGGER operations_success_stays BEFORE UPDATE OR DELETE ON operations
FOR EACH ROW WHEN (OLD.status = 'SUCCESS') EXECUTE FUNCTION refuse_success_change();
CREATE TRIGGER transactions_success_stays BEFORE UPDATE ON transactions
FOR EACH ROW WHEN (OLD.success_id IS NOT NULL AND OLD.success_id IS DISTINCT FROM NEW.success_id) EXECUTE FUNCTION refuse_success_change();

-- The body as sent.
CREATE TABLE bodies (
    operation_id TEXT NOT NULL PRIMARY KEY,
    body         BYTEA NOT NULL,
    warnings     TEXT
);

-- What goes to the authority, byte for byte, stored before it is sent, and what came back.
CREATE TABLE filings (
    operation_id TEXT NOT NULL PRIMARY KEY,
    report       BYTEA NOT NULL,
    sha256       TEXT NOT NULL,
    filing       TEXT NOT NULL,
    receipt      TEXT,
    document     BYTEA
);

-- The head of each chain.
CREATE TABLE chains (
    lane     TEXT   NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL,
    link     TEXT   NOT NULL
);

-- A lane carries the filings of one supplier. Made on demand, see db.Feed.
CREATE TABLE lanes (
    lane        TEXT   NOT NULL PRIMARY KEY,
    due_at      BIGINT,
    lease_until BIGINT,
    lease_token BIGINT NOT NULL DEFAULT 0,
    lease_node  TEXT,
    failures    BIGINT NOT NULL DEFAULT 0,
    trouble     TEXT   NOT NULL DEFAULT '',
    trouble_at  BIGINT
);
CREATE INDEX lanes_due ON lanes (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX lanes_node ON lanes (lease_node) WHERE lease_node IS NOT NULL;

-- What was corrected by what. A row is there from preparing the correction; it goes when the correction fails.
CREATE TABLE corrections (
    client_id      TEXT   NOT NULL,
    original_id    TEXT   NOT NULL,
    transaction_id TEXT   NOT NULL,
    operation_id   TEXT   NOT NULL,
    kind           TEXT   NOT NULL,
    amount         BIGINT NOT NULL,
    PRIMARY KEY (client_id, original_id, transaction_id)
);

-- Every call to an authority, for the person who asks what happened.
CREATE TABLE exchanges (
    exchange_id TEXT   NOT NULL PRIMARY KEY,
    lane        TEXT   NOT NULL,
    verb        TEXT   NOT NULL,
    at          BIGINT NOT NULL,
    took        BIGINT NOT NULL,
    filings     BIGINT NOT NULL,
    outcome     TEXT   NOT NULL,
    reply       BYTEA
);
CREATE INDEX exchanges_by_lane ON exchanges (lane, at);
CREATE TABLE exchange_operations (
    operation_id TEXT NOT NULL,
    exchange_id  TEXT NOT NULL,
    PRIMARY KEY (operation_id, exchange_id)
);
