-- Owner: account.

-- Secrets with which a client's notifications are signed as Standard Webhooks,
-- beside the signature of its API key. One that is revoked stays for the audit log.
CREATE TABLE webhook_secrets (
    id         TEXT   PRIMARY KEY,
    client_id  TEXT   NOT NULL REFERENCES clients (client_id),
    digest     BLOB   NOT NULL, -- SHA-256 of the text
    sealed     BLOB   NOT NULL, -- the text, whsec_…
    created_at BIGINT NOT NULL,
    revoked_at BIGINT
) WITHOUT ROWID;
CREATE INDEX webhook_secrets_by_client ON webhook_secrets (client_id);
