-- Documents that others sent to companies of ours.

-- Owner: received.

-- One row per document: an operation like a sale's, with an id of the same kind. due_at is when it is read, or read
-- again; NULL once it was. Columns of leases: see lease.Queue.
CREATE TABLE received (
    operation_id TEXT    NOT NULL PRIMARY KEY,
    client_id    TEXT    NOT NULL,
    live         BOOLEAN NOT NULL,
    source       TEXT    NOT NULL,            -- upload, or the endpoint that brought it: CC.live or CC.test
    authority_id TEXT    NOT NULL,            -- the source's own name of it; '' of an upload
    company_id   TEXT    NOT NULL,            -- ours, that it was sent to; '' while nobody knows
    sender_id    TEXT    NOT NULL DEFAULT '', -- the company of the same client that sent it, if one did
    sender_key   TEXT    NOT NULL DEFAULT '', -- who sent it: tax number or name, as they are compared
    country      TEXT    NOT NULL DEFAULT '', -- of our company
    kind         TEXT    NOT NULL DEFAULT '',
    number       TEXT    NOT NULL DEFAULT '',
    dated_at     BIGINT  NOT NULL,            -- until it is read: when it came
    accepted_at  BIGINT  NOT NULL,
    settled_at   BIGINT,
    status       TEXT    NOT NULL,
    media        TEXT    NOT NULL CHECK (media IN ('XML', 'PDF', 'JSON', 'P7M')),
    bytes        BIGINT  NOT NULL,            -- of the document
    sha256       TEXT    NOT NULL,            -- of its bytes
    aside        BOOLEAN NOT NULL DEFAULT FALSE, -- it comes under a name that another document has: a person looks at it
    result       TEXT,                        -- JSON, as clients read it; NULL once the record was destroyed
    crashes      BIGINT  NOT NULL DEFAULT 0,  -- times its reading began and did not end
    due_at       BIGINT,
    lease_until  BIGINT,
    lease_token  BIGINT  NOT NULL DEFAULT 0,
    lease_node   TEXT
);
CREATE INDEX received_due ON received (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX received_client ON received (client_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX received_node ON received (lease_node) WHERE lease_node IS NOT NULL;
CREATE INDEX received_by_client ON received (client_id, operation_id);
CREATE INDEX received_by_number ON received (client_id, number);

-- What keeps a document from being taken twice: the SHA-256 of its bytes, and the source's own name of it for a company.
-- Never forgotten.
CREATE TABLE received_names (
    client_id    TEXT NOT NULL,
    name         TEXT NOT NULL,
    operation_id TEXT NOT NULL,
    PRIMARY KEY (client_id, name)
);

-- Earlier documents that one speaks of, by their numbers: of our company or of the same sender. Whether there is such a
-- document is found when somebody reads.
CREATE TABLE received_references (
    client_id    TEXT NOT NULL,
    operation_id TEXT NOT NULL,
    company_id   TEXT NOT NULL,
    sender_key   TEXT NOT NULL,
    number       TEXT NOT NULL,
    PRIMARY KEY (client_id, operation_id, number)
);
CREATE INDEX received_references_by_number ON received_references (client_id, number);
