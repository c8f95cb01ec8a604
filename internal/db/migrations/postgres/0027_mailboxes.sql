-- Owner: inbox. A company whose messages wait at its authority until somebody
-- asks. The cursor is stored in the commit that stores what came before it.
-- due_at is when it is asked next; NULL: nothing can wait for it any more.
CREATE TABLE inbox_mailboxes (
    mailbox       TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- client_id|CC.live or CC.test|company_id
    endpoint      TEXT    NOT NULL,             -- CC.live or CC.test
    country       TEXT    NOT NULL,
    live          BOOLEAN NOT NULL,
    client_id     TEXT    NOT NULL,
    company_id    TEXT    NOT NULL,
    cursor        TEXT    NOT NULL DEFAULT '',  -- the pack's own words
    brought       BIGINT  NOT NULL DEFAULT 0,   -- messages that were new
    failures      BIGINT  NOT NULL DEFAULT 0,   -- looks in a row
    failing_since BIGINT,
    problem       TEXT,                         -- of the last look that failed
    looked_at     BIGINT,
    due_at        BIGINT,
    lease_until   BIGINT,
    lease_token   BIGINT  NOT NULL DEFAULT 0,
    lease_node    TEXT
);
CREATE INDEX inbox_mailboxes_due ON inbox_mailboxes (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX inbox_mailboxes_key ON inbox_mailboxes (mailbox, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX inbox_mailboxes_node ON inbox_mailboxes (lease_node) WHERE lease_node IS NOT NULL;
CREATE INDEX inbox_mailboxes_endpoint ON inbox_mailboxes (endpoint, failures);

-- Whose mailbox a message lay in; NULL: the authority called.
ALTER TABLE inbox_messages ADD COLUMN client_id TEXT;
ALTER TABLE inbox_messages ADD COLUMN company_id TEXT;
