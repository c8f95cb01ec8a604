-- Owner: operator. Who may use the console, their sessions, and the log of what they did.
CREATE TABLE operators (
    name         TEXT   NOT NULL PRIMARY KEY, -- lower case; never changes: the log speaks of it
    role         TEXT   NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    password     TEXT,                        -- argon2id with its parameters; NULL: signs in elsewhere
    issuer       TEXT,                        -- of the identity that is bound to the name; NULL: none yet
    subject      TEXT,
    created_at   BIGINT NOT NULL,
    signed_in_at BIGINT,
    disabled_at  BIGINT
) WITHOUT ROWID;
-- One identity is one operator.
CREATE UNIQUE INDEX operators_by_identity ON operators (issuer, subject) WHERE subject IS NOT NULL;

CREATE TABLE operator_sessions (
    digest     BLOB   NOT NULL PRIMARY KEY,   -- SHA-256 of the token: what is stored signs nobody in
    session_id TEXT   NOT NULL,
    name       TEXT   NOT NULL REFERENCES operators (name),
    ip         TEXT   NOT NULL,
    agent      TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    seen_at    BIGINT NOT NULL,
    ends_at    BIGINT NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX operator_sessions_by_id ON operator_sessions (session_id);
CREATE INDEX operator_sessions_by_name ON operator_sessions (name);
CREATE INDEX operator_sessions_by_end ON operator_sessions (ends_at);

CREATE TABLE operator_audit (
    seq       INTEGER PRIMARY KEY,
    at        BIGINT NOT NULL,
    actor     TEXT   NOT NULL,
    actor_ip  TEXT   NOT NULL,
    action    TEXT   NOT NULL,
    subject   TEXT   NOT NULL,
    client_id TEXT   NOT NULL,                -- '' where no client is meant
    before    TEXT   NOT NULL,                -- JSON, or ''
    after     TEXT   NOT NULL,
    outcome   TEXT   NOT NULL,                -- '' done, else why not
    prev_hash BLOB   NOT NULL,
    hash      BLOB   NOT NULL
);
CREATE INDEX operator_audit_by_actor ON operator_audit (actor, seq);
CREATE INDEX operator_audit_by_subject ON operator_audit (subject, seq);
CREATE INDEX operator_audit_by_client ON operator_audit (client_id, seq) WHERE client_id <> '';
-- The head of the log, so that a cut-off tail shows.
CREATE TABLE operator_audit_head (
    one  BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    seq  BIGINT NOT NULL,
    hash BLOB   NOT NULL
);
INSERT INTO operator_audit_head (one, seq, hash) VALUES (1, 0, x'0000000000000000000000000000000000000000000000000000000000000000');
CREATE TRIGGER operator_audit_no_update BEFORE UPDATE ON operator_audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER operator_audit_no_delete BEFORE DELETE ON operator_audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
-- INSERT OR REPLACE deletes without asking the trigger above.
CREATE TRIGGER operator_audit_no_replace BEFORE INSERT ON operator_audit
WHEN EXISTS (SELECT 1 FROM operator_audit WHERE seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
