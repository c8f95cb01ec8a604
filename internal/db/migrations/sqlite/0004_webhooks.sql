-- Owner: webhook.

-- One row per event. It is also the delivery of that event: an event type has
-- one address per client. due_at is when the next try may be made; NULL when
-- there is nothing to send.
CREATE TABLE webhook_events (
    seq           INTEGER PRIMARY KEY,        -- grows with every event: the order within a series
    webhook_id    TEXT    NOT NULL,           -- begins with the time of creation: lists go by it
    client_id     TEXT    NOT NULL,
    event_type    TEXT    NOT NULL,
    resource_id   TEXT    NOT NULL,
    resource_path TEXT    NOT NULL,
    lane          TEXT    NOT NULL,           -- client and event type: what has one address, whatever it is at the time
    series        TEXT,                       -- NULL once the first try is recorded, and where no order is wanted
    status        TEXT    NOT NULL CHECK (status IN ('pending', 'delivered', 'discarded', 'unsubscribed')),
    tries         BIGINT  NOT NULL DEFAULT 0, -- all that were made
    rung          BIGINT  NOT NULL DEFAULT 0, -- failed ones on the present ladder
    again         BOOLEAN NOT NULL DEFAULT FALSE, -- a redelivery was asked for while a try was under way
    last_status   BIGINT,                     -- of the last try; 0 without a reply
    last_at       BIGINT  NOT NULL DEFAULT 0, -- its delivered_at
    first_try     TEXT,                       -- the record of a first try that succeeded; all others are in webhook_tries
    created_at    BIGINT  NOT NULL,
    closed_at     BIGINT,                     -- delivered, discarded or unsubscribed since
    due_at        BIGINT,
    lease_until   BIGINT,
    lease_token   BIGINT  NOT NULL DEFAULT 0,
    lease_node    TEXT
);
CREATE UNIQUE INDEX webhook_events_id ON webhook_events (webhook_id);
CREATE INDEX webhook_events_list ON webhook_events (client_id, webhook_id);
CREATE INDEX webhook_events_open ON webhook_events (client_id, status, webhook_id) WHERE status <> 'delivered';
CREATE INDEX webhook_events_series ON webhook_events (series, seq) WHERE series IS NOT NULL;
CREATE INDEX webhook_events_due ON webhook_events (due_at, lane) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_events_lane ON webhook_events (lane, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_events_node ON webhook_events (lease_node) WHERE lease_node IS NOT NULL;

-- Every try but a first one that succeeded, which most are: that is in its event's row.
CREATE TABLE webhook_tries (
    webhook_id TEXT   NOT NULL,
    try        BIGINT NOT NULL,               -- from 1
    record     TEXT   NOT NULL,               -- JSON
    PRIMARY KEY (webhook_id, try)
) WITHOUT ROWID;
