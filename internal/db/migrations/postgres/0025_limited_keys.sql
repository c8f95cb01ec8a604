-- Owner: account.

-- Keys with limits. They stand apart from those that sign: a node of the version
-- before does not know them and refuses them, instead of granting everything.
CREATE TABLE limited_keys (
    kid        TEXT   PRIMARY KEY,
    client_id  TEXT   NOT NULL REFERENCES clients (client_id),
    name       TEXT   NOT NULL,
    scopes     TEXT   NOT NULL, -- words
    networks   TEXT   NOT NULL, -- CIDRs; empty: from anywhere
    expires_at BIGINT,
    digest     BYTEA  NOT NULL, -- SHA-256 of the secret part; the text is stored nowhere
    created_at BIGINT NOT NULL,
    revoked_at BIGINT
);
CREATE INDEX limited_keys_by_client ON limited_keys (client_id);
