-- Owner: server. Secrets of the service itself, sealed under the master key.
CREATE TABLE service_keys (
    name       TEXT   NOT NULL PRIMARY KEY,
    wrapped    BLOB   NOT NULL,
    sealed     BLOB   NOT NULL,
    created_at BIGINT NOT NULL
);
