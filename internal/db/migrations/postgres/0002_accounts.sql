-- Owner: account. The provider's clients, their API keys and data keys, and the log of every change.
CREATE TABLE clients (
    client_id  TEXT    PRIMARY KEY,
    live       BOOLEAN NOT NULL,           -- fixed: transaction_ids are one space per client, so test and live must not share it
    config     TEXT    NOT NULL,           -- JSON; hashed as it stands here
    created_at BIGINT  NOT NULL,
    updated_at BIGINT  NOT NULL,
    version    BIGINT  NOT NULL,           -- of account_version at the last change; tells caches what to read again
    audit_seq  BIGINT  NOT NULL DEFAULT 0, -- head of the client's audit log, so that a cut-off tail shows
    audit_hash BYTEA,
    logo       BYTEA                       -- last, so that reading the others does not read it
);
CREATE INDEX clients_by_version ON clients (version);

CREATE TABLE api_keys (
    kid         TEXT   PRIMARY KEY,
    client_id   TEXT   NOT NULL REFERENCES clients (client_id),
    state       TEXT   NOT NULL CHECK (state IN ('next', 'active', 'retiring', 'revoked')),
    digest      BYTEA  NOT NULL,           -- SHA-256 of the secret part: authentication without decryption
    sealed      BYTEA  NOT NULL,           -- the whole key text, which signs webhooks
    created_at  BIGINT NOT NULL,
    promoted_at BIGINT,
    revoked_at  BIGINT
);
CREATE INDEX api_keys_by_client ON api_keys (client_id);
-- The one key that signs, and the one that may follow it.
CREATE UNIQUE INDEX api_keys_active ON api_keys (client_id) WHERE state = 'active';
CREATE UNIQUE INDEX api_keys_next ON api_keys (client_id) WHERE state = 'next';

CREATE TABLE client_data_keys (
    client_id  TEXT   NOT NULL REFERENCES clients (client_id),
    purpose    TEXT   NOT NULL,
    wrapped    BYTEA  NOT NULL,            -- by the master key, which is never in the database
    created_at BIGINT NOT NULL,
    PRIMARY KEY (client_id, purpose)
);

-- One row that every change counts up: other nodes poll it.
CREATE TABLE account_version (
    one     BIGINT PRIMARY KEY CHECK (one = 1),
    version BIGINT NOT NULL
);
INSERT INTO account_version (one, version) VALUES (1, 0);

CREATE TABLE account_audit (
    client_id   TEXT   NOT NULL REFERENCES clients (client_id),
    seq         BIGINT NOT NULL,
    at          BIGINT NOT NULL,
    actor       TEXT   NOT NULL,
    actor_kid   TEXT   NOT NULL,
    actor_ip    TEXT   NOT NULL,
    action      TEXT   NOT NULL,
    subject     TEXT   NOT NULL,
    before_hash BYTEA  NOT NULL,
    after_hash  BYTEA  NOT NULL,
    prev_hash   BYTEA  NOT NULL,
    hash        BYTEA  NOT NULL,
    PRIMARY KEY (client_id, seq)
);
CREATE FUNCTION account_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the audit log is append-only'; END
$$;
CREATE TRIGGER account_audit_no_update BEFORE UPDATE ON account_audit
FOR EACH ROW EXECUTE FUNCTION account_audit_refuse();
CREATE TRIGGER account_audit_no_delete BEFORE DELETE ON account_audit
FOR EACH ROW EXECUTE FUNCTION account_audit_refuse();
CREATE TRIGGER account_audit_no_truncate BEFORE TRUNCATE ON account_audit
FOR EACH STATEMENT EXECUTE FUNCTION account_audit_refuse();
