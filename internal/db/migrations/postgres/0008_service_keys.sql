-- Owner: server. Secrets of the service itself, sealed under the master key.
CREATE TABLE service_keys (
    name       TEXT   NOT NULL PRIMARY KEY,
    wrapped    BYTEA   NOT NULL,
    sealed     BYTEA   NOT NULL,
    created_at BIGINT NOT NULL
);
