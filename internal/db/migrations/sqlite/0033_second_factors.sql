-- Owner: operator. What operators prove besides their password, and sign-ins that wait for it.
CREATE TABLE operator_totp (
    name       TEXT   NOT NULL PRIMARY KEY REFERENCES operators (name),
    sealed     BLOB  NOT NULL, -- the shared key, sealed under the master key
    last_step  BIGINT NOT NULL, -- of the last code that was taken: none is taken twice
    created_at BIGINT NOT NULL
);
CREATE TABLE operator_passkeys (
    credential_id BLOB  NOT NULL PRIMARY KEY,
    name          TEXT   NOT NULL REFERENCES operators (name),
    label         TEXT   NOT NULL,
    public_key    BLOB  NOT NULL, -- SubjectPublicKeyInfo
    sign_count    BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    used_at       BIGINT
);
CREATE INDEX operator_passkeys_by_name ON operator_passkeys (name);
CREATE TABLE operator_recovery (
    name    TEXT   NOT NULL REFERENCES operators (name),
    digest  BLOB  NOT NULL,    -- SHA-256 of 80 random bits
    used_at BIGINT,             -- NULL: it still opens
    PRIMARY KEY (name, digest)
);
-- A password was right and the second factor is missing. Its token opens nothing else.
CREATE TABLE operator_halfway (
    digest     BLOB  NOT NULL PRIMARY KEY,
    name       TEXT   NOT NULL REFERENCES operators (name),
    challenge  BLOB  NOT NULL,
    tries      BIGINT NOT NULL DEFAULT 0,
    ends_at    BIGINT NOT NULL
);
CREATE INDEX operator_halfway_by_end ON operator_halfway (ends_at);
CREATE INDEX operator_halfway_by_name ON operator_halfway (name);
