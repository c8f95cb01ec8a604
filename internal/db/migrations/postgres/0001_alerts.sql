-- Owner: alert. One row per alert that nobody has acknowledged, and those that were.
CREATE TABLE alerts (
    alert_id        TEXT   PRIMARY KEY,
    name            TEXT   NOT NULL,
    subject         TEXT   NOT NULL,
    message         TEXT   NOT NULL,
    first_at        BIGINT NOT NULL,
    last_at         BIGINT NOT NULL,
    times           BIGINT NOT NULL DEFAULT 1,
    acknowledged_at BIGINT,
    acknowledged_by TEXT
);
-- At most one open alert per name and subject: raising it again counts.
CREATE UNIQUE INDEX alerts_open ON alerts (name, subject) WHERE acknowledged_at IS NULL;
CREATE INDEX alerts_by_time ON alerts (last_at);
