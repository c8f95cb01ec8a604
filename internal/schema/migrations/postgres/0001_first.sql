-- The first schema. Every table has one owner, which alone writes it. Columns of leases: see lease.Queue.

-- Owner: db.

-- Small facts about the database itself, such as which cluster and timeline of
-- PostgreSQL served it last. SQLite has the table from its first opening.
CREATE TABLE IF NOT EXISTS db_meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- What is done again and again by one node among all, see lease.Task.
CREATE TABLE periodic_tasks (
    name        TEXT   NOT NULL PRIMARY KEY,
    ran_at      BIGINT,                     -- the last run began
    took        BIGINT,                     -- microseconds
    failures    BIGINT NOT NULL DEFAULT 0,  -- in a row
    error       TEXT   NOT NULL DEFAULT '', -- of the last run
    due_at      BIGINT,
    lease_until BIGINT,
    lease_token BIGINT NOT NULL DEFAULT 0,
    lease_node  TEXT
);
CREATE INDEX periodic_tasks_due ON periodic_tasks (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX periodic_tasks_name ON periodic_tasks (name, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX periodic_tasks_node ON periodic_tasks (lease_node) WHERE lease_node IS NOT NULL;

-- Roles that `tributary migrate --serve-role` was told of: a later migration gives them what it adds.
-- Several serve side by side while one takes over from another.
CREATE TABLE schema_roles (
    serve TEXT NOT NULL PRIMARY KEY, -- with which nodes connect
    read  TEXT NOT NULL              -- with which clients read, bound by policies
);

-- Tables that stand in a partition for each day (UTC), by ids that begin with their time (UUID version 7). What is
-- older than the first of those days stands in NAME_before, what has no partition of its day in NAME_rest.
CREATE TABLE partitioned (
    name      TEXT   NOT NULL PRIMARY KEY,
    id        TEXT   NOT NULL,          -- the column
    first_day BIGINT NOT NULL,          -- since 1970
    digits    BIGINT NOT NULL DEFAULT 0 -- of ids; 0: they are UUIDs
);

-- The least id of a day: as long as an id, with its dashes in the same places, so that all orders of text agree on it.
CREATE FUNCTION day_id(day BIGINT, digits BIGINT) RETURNS TEXT LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE digits WHEN 0 THEN substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-0000-0000-000000000000' ELSE rpad(h, digits::INT, '0') END
        FROM (SELECT lpad(to_hex(day * 86400000), 12, '0') AS h) AS x
$$;

-- Partitions are made and dropped by their owner, on behalf of a role that changes no schema. What was made is attached: that
-- takes the rest alone for a moment, and not the whole table. The rest is looked through meanwhile, so it must be small. It
-- keeps how partitions are vacuumed: a partitioned table has no storage parameters of its own. False: there is a partition of
-- that day, or the rest has rows of it already, which stay there.
CREATE FUNCTION make_partition(parent TEXT, day BIGINT, rest_most BIGINT) RETURNS BOOLEAN LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    key   TEXT;
    first TEXT;
    next  TEXT;
    part  TEXT := parent || '_' || to_char(DATE '1970-01-01' + day::INT, 'YYYYMMDD');
    rest  TEXT := parent || '_rest';
    kept  TEXT;
    taken BOOLEAN;
BEGIN
    SELECT p.id, day_id(day, p.digits), day_id(day + 1, p.digits) INTO key, first, next FROM partitioned p WHERE p.name = parent AND p.first_day <= day;
    IF key IS NULL THEN
        RAISE EXCEPTION '% has no partition of day %', parent, day;
    END IF;
    PERFORM pg_advisory_xact_lock(7420432);
    IF to_regclass(quote_ident(part)) IS NOT NULL THEN
        RETURN FALSE;
    END IF;
    EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I WHERE %I >= %L AND %I < %L)', rest, key, first, key, next) INTO taken;
    IF taken THEN
        RETURN FALSE;
    END IF;
    IF pg_relation_size(quote_ident(rest)::regclass) > rest_most THEN
        RAISE EXCEPTION '% has grown to % bytes: a partition made beside it would keep writers waiting', rest, pg_relation_size(quote_ident(rest)::regclass);
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING STORAGE INCLUDING CONSTRAINTS)', part, parent);
    SELECT string_agg(o, ', ') INTO kept FROM pg_class c CROSS JOIN LATERAL unnest(c.reloptions) AS o WHERE c.oid = quote_ident(rest)::regclass;
    IF kept IS NOT NULL THEN
        EXECUTE format('ALTER TABLE %I SET (%s)', part, kept);
    END IF;
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, part, first, next);
    RETURN TRUE;
END $$;

-- Today, in days since 1970, by the clock of the server: functions that destroy on behalf of the serving role believe no other.
CREATE FUNCTION service_day() RETURNS BIGINT LANGUAGE sql STABLE AS $$
    SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::BIGINT
$$;

-- A partition goes as a whole, if it ends with that day or before, ninety days ago, and never the rest. What was opened again since somebody
-- looked keeps its day: nobody can open anything while the table is held.
CREATE FUNCTION drop_partition(part TEXT, day BIGINT) RETURNS VOID LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    parent TEXT;
    due    BOOLEAN := FALSE;
BEGIN
    SELECT p.name INTO parent FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN partitioned p ON i.inhparent = to_regclass(quote_ident(p.name))
        WHERE c.oid = to_regclass(quote_ident(part)) AND substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \(''([^'']+)''\)') <= day_id(day + 1, p.digits);
    IF parent IS NULL THEN
        RAISE EXCEPTION '% is no partition that ends with day %', part, day;
    END IF;
    IF day > service_day() - 90 THEN
        RAISE EXCEPTION '% is not ninety days old', part;
    END IF;
    EXECUTE format('LOCK TABLE ONLY %I IN ACCESS EXCLUSIVE MODE', parent);
    IF EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass(quote_ident(part)) AND attname = 'due_at' AND NOT attisdropped) THEN
        EXECUTE format('SELECT min(due_at) IS NOT NULL FROM %I', part) INTO due;
    END IF;
    IF due THEN
        RAISE EXCEPTION '% has a row that is due', part USING ERRCODE = 'object_in_use';
    END IF;
    EXECUTE format('DROP TABLE %I', part);
END $$;

-- Whoever waits for a lock has everybody else waiting behind him: half a second at most. Tables are made in the first schema of
-- the path; pg_catalog is looked through before it, and temporary tables after it.
DO $$ DECLARE f TEXT; BEGIN
    FOREACH f IN ARRAY ARRAY['make_partition(TEXT, BIGINT, BIGINT)', 'drop_partition(TEXT, BIGINT)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', f, current_schema());
        EXECUTE format('ALTER FUNCTION %s SET lock_timeout = %L', f, '500ms');
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
    END LOOP;
END $$;

-- Owner: alert.

-- One row per alert that nobody has acknowledged, and those that were.
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

-- Owner: account.

-- The provider's clients, their API keys and data keys, and the log of every change.
CREATE TABLE clients (
    client_id  TEXT    PRIMARY KEY,
    live       BOOLEAN NOT NULL,           -- fixed: transaction_ids are one space per client, so test and live must not share it
    config     TEXT    NOT NULL,           -- JSON; hashed as it stands here
    created_at BIGINT  NOT NULL,
    updated_at BIGINT  NOT NULL,
    version    BIGINT  NOT NULL,           -- of account_version at the last change; tells caches what to read again
    audit_seq  BIGINT  NOT NULL DEFAULT 0, -- head of the client's audit log, so that a cut-off tail shows
    audit_hash BYTEA,
    logo       BYTEA                       -- last, so that reading the others does not read it
);
CREATE INDEX clients_by_version ON clients (version);

CREATE TABLE api_keys (
    kid         TEXT   PRIMARY KEY,
    client_id   TEXT   NOT NULL REFERENCES clients (client_id),
    state       TEXT   NOT NULL CHECK (state IN ('next', 'active', 'retiring', 'revoked')),
    digest      BYTEA  NOT NULL, -- SHA-256 of the secret part: authentication without decryption
    sealed      BYTEA  NOT NULL, -- the whole key text, which signs webhooks
    created_at  BIGINT NOT NULL,
    promoted_at BIGINT,
    revoked_at  BIGINT
);
CREATE INDEX api_keys_by_client ON api_keys (client_id);
-- The one key that signs, and the one that may follow it.
CREATE UNIQUE INDEX api_keys_active ON api_keys (client_id) WHERE state = 'active';
CREATE UNIQUE INDEX api_keys_next ON api_keys (client_id) WHERE state = 'next';

CREATE TABLE client_data_keys (
    client_id  TEXT   NOT NULL REFERENCES clients (client_id),
    purpose    TEXT   NOT NULL,
    wrapped    BYTEA  NOT NULL, -- by the master key, which is never in the database
    created_at BIGINT NOT NULL,
    PRIMARY KEY (client_id, purpose)
);

-- One row that every change counts up: other nodes poll it.
CREATE TABLE account_version (
    one     BIGINT PRIMARY KEY CHECK (one = 1),
    version BIGINT NOT NULL
);
INSERT INTO account_version (one, version) VALUES (1, 0);

CREATE TABLE account_audit (
    client_id   TEXT   NOT NULL REFERENCES clients (client_id),
    seq         BIGINT NOT NULL,
    at          BIGINT NOT NULL,
    actor       TEXT   NOT NULL,
    actor_kid   TEXT   NOT NULL,
    actor_ip    TEXT   NOT NULL,
    action      TEXT   NOT NULL,
    subject     TEXT   NOT NULL,
    before_hash BYTEA  NOT NULL,
    after_hash  BYTEA  NOT NULL,
    prev_hash   BYTEA  NOT NULL,
    hash        BYTEA  NOT NULL,
    mac         BYTEA, -- proves that who holds the audit key wrote it
    PRIMARY KEY (client_id, seq)
);
CREATE FUNCTION account_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the audit log is append-only'; END
$$;
CREATE TRIGGER account_audit_no_update BEFORE UPDATE ON account_audit
FOR EACH ROW EXECUTE FUNCTION account_audit_refuse();
CREATE TRIGGER account_audit_no_delete BEFORE DELETE ON account_audit
FOR EACH ROW EXECUTE FUNCTION account_audit_refuse();
CREATE TRIGGER account_audit_no_truncate BEFORE TRUNCATE ON account_audit
FOR EACH STATEMENT EXECUTE FUNCTION account_audit_refuse();
-- An entry moves the head of its log, and nothing else does: the role that serves cannot.
DO $$ BEGIN
    EXECUTE format('CREATE FUNCTION account_audit_moves_head() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, %I, pg_temp AS %L',
        current_schema(), $f$
BEGIN
    UPDATE clients SET audit_seq = NEW.seq, audit_hash = NEW.hash WHERE client_id = NEW.client_id AND audit_seq = NEW.seq - 1
        AND coalesce(audit_hash, decode(repeat('00', 32), 'hex')) = NEW.prev_hash;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'an audit log is continued at its end';
    END IF;
    RETURN NULL;
END $f$);
END $$;
CREATE TRIGGER account_audit_head AFTER INSERT ON account_audit
FOR EACH ROW EXECUTE FUNCTION account_audit_moves_head();

-- Secrets with which a client's notifications are signed as Standard Webhooks,
-- beside the signature of its API key. One that is revoked stays for the audit log.
CREATE TABLE webhook_secrets (
    id         TEXT   PRIMARY KEY,
    client_id  TEXT   NOT NULL REFERENCES clients (client_id),
    digest     BYTEA  NOT NULL, -- SHA-256 of the text
    sealed     BYTEA  NOT NULL, -- the text, whsec_…
    created_at BIGINT NOT NULL,
    revoked_at BIGINT
);
CREATE INDEX webhook_secrets_by_client ON webhook_secrets (client_id);

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

-- Owner: operator.

-- Who may use the console, their sessions, and the log of what they did.
CREATE TABLE operators (
    name         TEXT   NOT NULL PRIMARY KEY, -- lower case; never changes: the log speaks of it
    role         TEXT   NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    password     TEXT,                        -- argon2id with its parameters; NULL: signs in elsewhere
    issuer       TEXT,                        -- of the identity that is bound to the name; NULL: none yet
    subject      TEXT,
    created_at   BIGINT NOT NULL,
    signed_in_at BIGINT,
    disabled_at  BIGINT
);
-- One identity is one operator.
CREATE UNIQUE INDEX operators_by_identity ON operators (issuer, subject) WHERE subject IS NOT NULL;

CREATE TABLE operator_sessions (
    digest     BYTEA  NOT NULL PRIMARY KEY, -- SHA-256 of the token: what is stored signs nobody in
    session_id TEXT   NOT NULL,
    name       TEXT   NOT NULL REFERENCES operators (name),
    ip         TEXT   NOT NULL,
    agent      TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    seen_at    BIGINT NOT NULL,
    ends_at    BIGINT NOT NULL
);
CREATE UNIQUE INDEX operator_sessions_by_id ON operator_sessions (session_id);
CREATE INDEX operator_sessions_by_name ON operator_sessions (name);
CREATE INDEX operator_sessions_by_end ON operator_sessions (ends_at);

CREATE TABLE operator_views ( -- lists of transactions that operators have named
    operator TEXT NOT NULL REFERENCES operators (name),
    name     TEXT NOT NULL,
    query    TEXT NOT NULL,
    PRIMARY KEY (operator, name)
);

CREATE TABLE operator_audit (
    seq       BIGINT NOT NULL PRIMARY KEY,
    at        BIGINT NOT NULL,
    actor     TEXT   NOT NULL,
    actor_ip  TEXT   NOT NULL,
    action    TEXT   NOT NULL,
    subject   TEXT   NOT NULL,
    client_id TEXT   NOT NULL, -- '' where no client is meant
    before    TEXT   NOT NULL, -- JSON, or ''
    after     TEXT   NOT NULL,
    outcome   TEXT   NOT NULL, -- '' done, else why not
    prev_hash BYTEA  NOT NULL,
    hash      BYTEA  NOT NULL,
    mac       BYTEA            -- proves that who holds the audit key wrote it
);
CREATE INDEX operator_audit_by_actor ON operator_audit (actor, seq);
CREATE INDEX operator_audit_by_subject ON operator_audit (subject, seq);
CREATE INDEX operator_audit_by_client ON operator_audit (client_id, seq) WHERE client_id <> '';
CREATE FUNCTION operator_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the audit log is append-only'; END
$$;
CREATE TRIGGER operator_audit_no_update BEFORE UPDATE ON operator_audit
FOR EACH ROW EXECUTE FUNCTION operator_audit_refuse();
CREATE TRIGGER operator_audit_no_delete BEFORE DELETE ON operator_audit
FOR EACH ROW EXECUTE FUNCTION operator_audit_refuse();
CREATE TRIGGER operator_audit_no_truncate BEFORE TRUNCATE ON operator_audit
FOR EACH STATEMENT EXECUTE FUNCTION operator_audit_refuse();

-- The head of the log, so that a cut-off tail shows.
CREATE TABLE operator_audit_head (
    one  BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    seq  BIGINT NOT NULL,
    hash BYTEA  NOT NULL
);
INSERT INTO operator_audit_head (one, seq, hash) VALUES (1, 0, '\x0000000000000000000000000000000000000000000000000000000000000000');
DO $$ BEGIN
    EXECUTE format('CREATE FUNCTION operator_audit_moves_head() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, %I, pg_temp AS %L',
        current_schema(), $f$
BEGIN
    UPDATE operator_audit_head SET seq = NEW.seq, hash = NEW.hash WHERE one = 1 AND seq = NEW.seq - 1 AND hash = NEW.prev_hash;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'an audit log is continued at its end';
    END IF;
    RETURN NULL;
END $f$);
END $$;
CREATE TRIGGER operator_audit_head AFTER INSERT ON operator_audit
FOR EACH ROW EXECUTE FUNCTION operator_audit_moves_head();

-- What operators prove besides their password, and sign-ins that wait for it.
CREATE TABLE operator_totp (
    name       TEXT   NOT NULL PRIMARY KEY REFERENCES operators (name),
    sealed     BYTEA  NOT NULL, -- the shared key, sealed under the master key
    last_step  BIGINT NOT NULL, -- of the last code that was taken: none is taken twice
    created_at BIGINT NOT NULL
);

CREATE TABLE operator_passkeys (
    credential_id BYTEA  NOT NULL PRIMARY KEY,
    name          TEXT   NOT NULL REFERENCES operators (name),
    label         TEXT   NOT NULL,
    public_key    BYTEA  NOT NULL, -- SubjectPublicKeyInfo
    sign_count    BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    used_at       BIGINT
);
CREATE INDEX operator_passkeys_by_name ON operator_passkeys (name);

CREATE TABLE operator_recovery (
    name    TEXT  NOT NULL REFERENCES operators (name),
    digest  BYTEA NOT NULL, -- SHA-256 of 80 random bits
    used_at BIGINT,         -- NULL: it still opens
    PRIMARY KEY (name, digest)
);

-- A password was right and the second factor is missing. Its token opens nothing else.
CREATE TABLE operator_halfway (
    digest    BYTEA  NOT NULL PRIMARY KEY,
    name      TEXT   NOT NULL REFERENCES operators (name),
    challenge BYTEA  NOT NULL,
    tries     BIGINT NOT NULL DEFAULT 0,
    ends_at   BIGINT NOT NULL
);
CREATE INDEX operator_halfway_by_end ON operator_halfway (ends_at);
CREATE INDEX operator_halfway_by_name ON operator_halfway (name);

-- Owner: server.

-- Secrets of the service itself, sealed under the master key.
CREATE TABLE service_keys (
    name       TEXT   NOT NULL PRIMARY KEY,
    wrapped    BYTEA  NOT NULL,
    sealed     BYTEA  NOT NULL,
    created_at BIGINT NOT NULL
);

-- Owner: endpoint.

-- What the operator says of an authority in one environment:
-- its address, and who we are there. Secrets and the PKCS#12 are sealed by a
-- data key of the row's own, wrapped by the master key.
CREATE TABLE authority_endpoints (
    country     TEXT    NOT NULL,
    live        BOOLEAN NOT NULL,
    url         TEXT    NOT NULL,
    host        TEXT    NOT NULL,           -- under which authorities call us
    ca          TEXT    NOT NULL,           -- PEM: whose client certificates are believed there
    secrets     TEXT    NOT NULL,           -- JSON: the names of what is sealed
    subject     TEXT,                       -- of the certificate
    fingerprint TEXT,
    expires_at  BIGINT,
    alarmed     BIGINT  NOT NULL DEFAULT 0, -- days of the last alarm about its end
    wrapped     BYTEA,
    sealed      BYTEA,
    version     BIGINT  NOT NULL,
    updated_at  BIGINT  NOT NULL,
    PRIMARY KEY (country, live)
);

-- Raised by every change; running nodes compare it.
CREATE TABLE authority_endpoints_version (
    one     BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    version BIGINT NOT NULL
);
INSERT INTO authority_endpoints_version (one, version) VALUES (1, 0);

-- Owner: document.

-- One row per file of a settled operation. shelf is the hour in which the bytes
-- were put into the store (of those in the owner's records: the hour of the row);
-- shelf and sha256 say where they lie. Everything of a shelf expires together.
CREATE TABLE attachments (
    client_id    TEXT   NOT NULL,
    operation_id TEXT   NOT NULL,
    kind         TEXT   NOT NULL CHECK (kind IN ('ORIGINAL', 'VISUAL', 'REPORT', 'RECEIPT', 'CLIENT')),
    type         TEXT   NOT NULL CHECK (type IN ('PDF', 'XML', 'JSON', 'PNG', 'JPEG', 'CSV', 'ZIP')),
    resource_id  TEXT   NOT NULL,
    place        TEXT   NOT NULL CHECK (place IN ('store', 'record')),
    shelf        TEXT   NOT NULL,
    sha256       TEXT   NOT NULL,
    size         BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    archive      TEXT   NOT NULL DEFAULT '', -- small files that were kept together lie in one: the name of that archive,
    archive_at   BIGINT NOT NULL DEFAULT 0,  -- and where in it the bytes begin
    name         TEXT   NOT NULL DEFAULT '', -- the client's own, of its own files; of an ORIGINAL in a signed envelope .p7m
    PRIMARY KEY (client_id, operation_id, kind, type, name)
);
CREATE UNIQUE INDEX attachments_by_resource ON attachments (resource_id);
CREATE INDEX attachments_by_shelf ON attachments (shelf, sha256);

-- The one row of the store. Its id is the folder of this database's files, so
-- that two databases that were given one folder never sweep each other's.
CREATE TABLE document_store (
    one       BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    store_id  TEXT   NOT NULL,
    open_from TEXT   NOT NULL, -- files on earlier shelves can no longer be attached
    swept_to  TEXT   NOT NULL, -- earlier shelves hold nothing that is not attached
    mark      TEXT   NOT NULL DEFAULT '',     -- the last ones by which the store shows that it is ours, see package files
    next_mark TEXT   NOT NULL DEFAULT '',     -- on its way there
    state     TEXT   NOT NULL DEFAULT 'ours' CHECK (state IN ('ours', 'claimed', 'contested')),
    held_from TEXT   NOT NULL DEFAULT '',     -- of these shelves nothing is removed:
    held_to   TEXT   NOT NULL DEFAULT ''      -- a restored backup may not know what is there
);

-- Shelves before swept_to that must be swept again.
CREATE TABLE document_sweeps (
    shelf TEXT NOT NULL PRIMARY KEY
);

-- Owner: webhook.

-- One row per event. It is also the delivery of that event: an event type has
-- one address per client. due_at is when the next try may be made; NULL when
-- there is nothing to send.
CREATE SEQUENCE webhook_events_seq_seq; -- partitions have no identity
CREATE TABLE webhook_events (
    seq           BIGINT  NOT NULL DEFAULT nextval('webhook_events_seq_seq'), -- grows with every event: the order within a series
    webhook_id    TEXT    PRIMARY KEY,            -- begins with the time of creation: lists go by it
    client_id     TEXT    NOT NULL,
    event_type    TEXT    NOT NULL,
    resource_id   TEXT    NOT NULL,
    resource_path TEXT    NOT NULL,
    lane          TEXT    NOT NULL,               -- client and event type: what has one address, whatever it is at the time
    series        TEXT,                           -- NULL once the first try is recorded, and where no order is wanted
    status        TEXT    NOT NULL CHECK (status IN ('pending', 'delivered', 'discarded', 'unsubscribed')),
    tries         BIGINT  NOT NULL DEFAULT 0,     -- all that were made
    rung          BIGINT  NOT NULL DEFAULT 0,     -- failed ones on the present ladder
    again         BOOLEAN NOT NULL DEFAULT FALSE, -- a redelivery was asked for while a try was under way
    last_status   BIGINT,                         -- of the last try; 0 without a reply
    last_at       BIGINT  NOT NULL DEFAULT 0,     -- its delivered_at
    first_try     TEXT,                           -- the record of a first try that succeeded; all others are in webhook_tries
    created_at    BIGINT  NOT NULL,
    closed_at     BIGINT,                         -- delivered, discarded or unsubscribed since
    due_at        BIGINT,
    lease_until   BIGINT,
    lease_token   BIGINT  NOT NULL DEFAULT 0,
    lease_node    TEXT
) PARTITION BY RANGE (webhook_id);
ALTER SEQUENCE webhook_events_seq_seq OWNED BY webhook_events.seq;
CREATE INDEX webhook_events_list ON webhook_events (client_id, webhook_id);
CREATE INDEX webhook_events_open ON webhook_events (client_id, status, webhook_id) WHERE status <> 'delivered';
CREATE INDEX webhook_events_series ON webhook_events (series, seq) WHERE series IS NOT NULL;
CREATE INDEX webhook_events_due ON webhook_events (due_at, lane) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_events_lane ON webhook_events (lane, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_events_node ON webhook_events (lease_node) WHERE lease_node IS NOT NULL;

-- Every try but a first one that succeeded, which most are: that is in its event's row.
CREATE TABLE webhook_tries (
    webhook_id TEXT   NOT NULL,
    try        BIGINT NOT NULL, -- from 1
    record     TEXT   NOT NULL, -- JSON
    PRIMARY KEY (webhook_id, try)
) PARTITION BY RANGE (webhook_id);

-- One row per replay of a stretch of a client's events.
CREATE TABLE webhook_replays (
    replay_id  TEXT   NOT NULL PRIMARY KEY,
    client_id  TEXT   NOT NULL,
    event_type TEXT   NOT NULL, -- '': all
    status     TEXT   NOT NULL, -- of the events; '': all
    from_at    BIGINT NOT NULL,
    to_at      BIGINT NOT NULL,
    asked_by   TEXT   NOT NULL,
    position   TEXT   NOT NULL, -- webhook_id of the last event that was looked at
    sent       BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at   BIGINT,
    due_at      BIGINT,
    lease_until BIGINT,
    lease_token BIGINT NOT NULL DEFAULT 0,
    lease_node  TEXT
);
CREATE INDEX webhook_replays_due ON webhook_replays (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_replays_client ON webhook_replays (client_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_replays_node ON webhook_replays (lease_node) WHERE lease_node IS NOT NULL;
CREATE INDEX webhook_replays_by_time ON webhook_replays (started_at);

-- Owner: onboarding.

-- One row per onboarded company. client_id is a scope: live and test keys of one client have different ones.
CREATE TABLE companies (
    client_id   TEXT    NOT NULL,
    company_id  TEXT    NOT NULL,
    external_id TEXT    NOT NULL,
    country     TEXT    NOT NULL,               -- upper case
    tax_key     TEXT    NOT NULL,               -- the tax number in its normal form
    live        BOOLEAN NOT NULL,
    profile     TEXT    NOT NULL,               -- JSON: the request without the credentials
    created_at  BIGINT  NOT NULL,
    updated_at  BIGINT  NOT NULL,
    legal_hold  BOOLEAN NOT NULL DEFAULT FALSE, -- its records are not forgotten for now
    PRIMARY KEY (client_id, company_id)
);
CREATE UNIQUE INDEX companies_by_external_id ON companies (client_id, external_id);
-- A supplier that is already onboarded is not onboarded again.
CREATE UNIQUE INDEX companies_by_tax_number ON companies (client_id, country, tax_key);
CREATE INDEX companies_by_time ON companies (client_id, created_at, company_id);
-- The operator's list goes over all clients.
CREATE INDEX companies_by_age ON companies (created_at, company_id);
CREATE INDEX companies_by_tax_key ON companies (tax_key);
CREATE INDEX companies_by_any_external_id ON companies (external_id);
CREATE INDEX companies_by_id ON companies (company_id);
CREATE INDEX companies_by_update ON companies (updated_at, company_id);

-- What a company signs and signs in with. Only sealed is secret; the rest may be shown.
CREATE TABLE company_credentials (
    client_id   TEXT    NOT NULL,
    company_id  TEXT    NOT NULL,
    sealed      BYTEA   NOT NULL,
    login       BOOLEAN NOT NULL,           -- a user name, password or token is among them
    subject     TEXT,                       -- of the certificate; NULL without one
    fingerprint TEXT,
    expires_at  BIGINT,
    alarmed     BIGINT  NOT NULL DEFAULT 0, -- the last alarm before the end: 30, 7 or 1 days; 0: none yet
    grant_id    TEXT,                       -- of authority_grants; NULL: none
    PRIMARY KEY (client_id, company_id)
);
CREATE INDEX company_credentials_by_end ON company_credentials (expires_at) WHERE expires_at IS NOT NULL;

-- What a person at an authority has granted, and is renewed while it is used. Companies for which one person acts share a row.
CREATE TABLE authority_grants (
    client_id    TEXT    NOT NULL,
    grant_id     TEXT    NOT NULL,           -- country, environment and who granted it
    sealed       BYTEA,                      -- NULL: it died
    usable_until BIGINT  NOT NULL,           -- then it is renewed
    ends_at      BIGINT,                     -- then a person has to come again; NULL: nobody knows
    renewing_at  BIGINT,                     -- somebody is renewing it since; NULL: nobody is
    version      BIGINT  NOT NULL,
    PRIMARY KEY (client_id, grant_id)
);

-- One row per job. The company's id is chosen with the job, so that an authority that was asked twice hears one name.
CREATE TABLE onboarding_jobs (
    job_id        TEXT    NOT NULL PRIMARY KEY,
    client_id     TEXT    NOT NULL,
    company_id    TEXT    NOT NULL,
    external_id   TEXT    NOT NULL,
    kind          TEXT    NOT NULL CHECK (kind IN ('create', 'patch')),
    status        TEXT    NOT NULL CHECK (status IN ('pending', 'processing', 'success', 'failed')),
    country       TEXT    NOT NULL,
    tax_key       TEXT    NOT NULL,
    live          BOOLEAN NOT NULL,
    profile       TEXT    NOT NULL,           -- JSON: what the company will be
    digest        BYTEA   NOT NULL,           -- of the body without the credentials
    secret_digest BYTEA,                      -- of the credentials, sealed: a plain digest of a weak password could be guessed
    sealed        BYTEA,                      -- the credentials until the job ends
    errors        TEXT,                       -- JSON, of a failed job
    crashes       BIGINT  NOT NULL DEFAULT 0, -- times its work began and did not end
    tries         BIGINT  NOT NULL DEFAULT 0, -- calls of an authority that could not answer
    created_at    BIGINT  NOT NULL,
    updated_at    BIGINT  NOT NULL,
    due_at        BIGINT,
    lease_until   BIGINT,
    lease_token   BIGINT  NOT NULL DEFAULT 0,
    lease_node    TEXT
);
-- external_id is the idempotency key: at most one job of it has not failed.
CREATE UNIQUE INDEX onboarding_jobs_key ON onboarding_jobs (client_id, external_id) WHERE kind = 'create' AND status <> 'failed';
-- One change of a company at a time.
CREATE UNIQUE INDEX onboarding_jobs_open ON onboarding_jobs (client_id, company_id) WHERE status IN ('pending', 'processing');
CREATE INDEX onboarding_jobs_number ON onboarding_jobs (client_id, country, tax_key) WHERE status = 'processing';
CREATE INDEX onboarding_jobs_due ON onboarding_jobs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX onboarding_jobs_client ON onboarding_jobs (client_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX onboarding_jobs_node ON onboarding_jobs (lease_node) WHERE lease_node IS NOT NULL;

-- Logos of companies, kept with the job that brings them: a company's profile
-- names its own by digest. What neither the company nor an open job names goes
-- when a job of the company ends.
CREATE TABLE company_logos (
    client_id  TEXT  NOT NULL,
    company_id TEXT  NOT NULL,
    sha256     TEXT  NOT NULL,
    logo       BYTEA NOT NULL,
    PRIMARY KEY (client_id, company_id, sha256)
);

-- An address that a person must visit before a company can be
-- onboarded. The state in it is kept as its digest: whoever reads the database
-- cannot return in the person's place. A job has one row, the latest.
CREATE TABLE onboarding_visits (
    job_id     TEXT    NOT NULL PRIMARY KEY,
    client_id  TEXT    NOT NULL,
    company_id TEXT    NOT NULL,
    country    TEXT    NOT NULL,
    live       BOOLEAN NOT NULL,
    state      TEXT    NOT NULL, -- SHA-256, hexadecimal
    address    TEXT    NOT NULL,
    created_at BIGINT  NOT NULL,
    expires_at BIGINT  NOT NULL,
    used_at    BIGINT,
    brought    BYTEA             -- sealed: what the browser brought back, until the job ends
);
CREATE UNIQUE INDEX onboarding_visits_state ON onboarding_visits (state);
CREATE INDEX onboarding_visits_company ON onboarding_visits (client_id, company_id);

-- Owner: lookup.

-- One row per request: a batch, or a single validation, which is a batch of one under its validation_id.
CREATE TABLE lookups (
    lookup_id    TEXT   NOT NULL PRIMARY KEY,
    client_id    TEXT   NOT NULL,
    kind         TEXT   NOT NULL CHECK (kind IN ('batch', 'single')),
    lane         TEXT COLLATE "C" NOT NULL,  -- client, slash, kind: clients take turns
    name         TEXT,                      -- batch_name
    status       TEXT   NOT NULL CHECK (status IN ('running', 'completed', 'canceled')),
    entries      BIGINT NOT NULL,           -- how many
    requested_at BIGINT NOT NULL,
    ended_at     BIGINT,
    crashes      BIGINT NOT NULL DEFAULT 0, -- times its work began since the last progress and did not end
    due_at       BIGINT,                    -- NULL: an older batch of the client has its turn, or it has ended
    lease_until  BIGINT,
    lease_token  BIGINT NOT NULL DEFAULT 0,
    lease_node   TEXT
);
CREATE INDEX lookups_due ON lookups (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX lookups_lane ON lookups (lane, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX lookups_node ON lookups (lease_node) WHERE lease_node IS NOT NULL;
CREATE INDEX lookups_turn ON lookups (client_id, requested_at, lookup_id) WHERE status = 'running' AND kind = 'batch';
-- The operator's list goes over all clients.
CREATE INDEX lookups_by_age ON lookups (requested_at, lookup_id);

-- What was asked, a hundred entries in a row, with what their text alone decides. Never changed.
CREATE TABLE lookup_entries (
    lookup_id TEXT   NOT NULL,
    first     BIGINT NOT NULL, -- position of the first entry in the request
    entries   TEXT   NOT NULL, -- JSON
    PRIMARY KEY (lookup_id, first)
);

-- What was learnt about the other entries. Inserted once, never changed.
CREATE TABLE lookup_answers (
    lookup_id        TEXT   NOT NULL,
    position         BIGINT NOT NULL,
    format           TEXT   NOT NULL,
    status           TEXT   NOT NULL,
    is_business      TEXT   NOT NULL,
    business_name    TEXT,
    business_address TEXT,
    error_code       TEXT,
    answered_at      BIGINT, -- when the register gave the answer
    request_id       TEXT,   -- its consultation number
    PRIMARY KEY (lookup_id, position)
);

-- Owner: inbox.

-- What authorities told us, each message once by their own name of
-- it. due_at is when it is handed on next; NULL once it was, or once only a
-- person can know whose it is. What was taken stays: its name keeps a repetition from
-- being taken for news.
CREATE TABLE inbox_messages (
    message_id   TEXT    NOT NULL PRIMARY KEY, -- begins with the time of arrival
    endpoint     TEXT    NOT NULL,             -- CC.live or CC.test
    country      TEXT    NOT NULL,
    live         BOOLEAN NOT NULL,
    name         TEXT    NOT NULL,             -- the authority's own
    handle       TEXT    NOT NULL,             -- of the filing it speaks of
    receipt      TEXT    NOT NULL,             -- JSON: what it says
    raw          BYTEA   NOT NULL,             -- as it came
    received_at  BIGINT  NOT NULL,
    operation_id TEXT,                         -- that took it
    taken_at     BIGINT,
    tries        BIGINT  NOT NULL DEFAULT 0,   -- looks that found nobody
    due_at       BIGINT,
    lease_until  BIGINT,
    lease_token  BIGINT  NOT NULL DEFAULT 0,
    lease_node   TEXT,
    client_id    TEXT,                         -- whose mailbox it lay in; NULL: the authority called
    company_id   TEXT,
    caller       TEXT,                         -- address of who called; NULL: it lay in a mailbox
    bytes        BIGINT  NOT NULL DEFAULT 0    -- of what it says and how it came
);
CREATE UNIQUE INDEX inbox_messages_name ON inbox_messages (country, live, name);
CREATE INDEX inbox_messages_caller ON inbox_messages (caller, bytes) WHERE taken_at IS NULL;
CREATE INDEX inbox_messages_unknown ON inbox_messages (message_id) WHERE taken_at IS NULL AND tries > 0;
CREATE INDEX inbox_messages_operation ON inbox_messages (operation_id) WHERE operation_id IS NOT NULL;
CREATE INDEX inbox_messages_due ON inbox_messages (due_at, endpoint) WHERE due_at IS NOT NULL;
CREATE INDEX inbox_messages_endpoint ON inbox_messages (endpoint, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX inbox_messages_node ON inbox_messages (lease_node) WHERE lease_node IS NOT NULL;

-- A company whose messages, or whose received documents, wait at its authority until
-- somebody asks. The cursor is stored in the commit that stores what came before it.
-- due_at is when it is asked next; NULL: nothing can wait for it any more.
CREATE TABLE inbox_mailboxes (
    mailbox       TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- client_id|CC.live or CC.test|company_id, and |documents of these
    endpoint      TEXT             NOT NULL,             -- CC.live or CC.test
    country       TEXT             NOT NULL,
    live          BOOLEAN          NOT NULL,
    client_id     TEXT             NOT NULL,
    company_id    TEXT             NOT NULL,
    documents     BOOLEAN          NOT NULL DEFAULT FALSE, -- received ones are asked for, not messages
    since         BIGINT,                                -- the day from which on the company wants documents
    cursor        TEXT             NOT NULL DEFAULT '',  -- the pack's own words
    brought       BIGINT           NOT NULL DEFAULT 0,   -- messages or documents that were new
    failures      BIGINT           NOT NULL DEFAULT 0,   -- looks in a row
    failing_since BIGINT,
    problem       TEXT,                                  -- of the last look that failed
    looked_at     BIGINT,
    due_at        BIGINT,
    lease_until   BIGINT,
    lease_token   BIGINT           NOT NULL DEFAULT 0,
    lease_node    TEXT
);
CREATE INDEX inbox_mailboxes_due ON inbox_mailboxes (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX inbox_mailboxes_key ON inbox_mailboxes (mailbox, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX inbox_mailboxes_node ON inbox_mailboxes (lease_node) WHERE lease_node IS NOT NULL;
CREATE INDEX inbox_mailboxes_endpoint ON inbox_mailboxes (endpoint, failures);
CREATE INDEX inbox_mailboxes_company ON inbox_mailboxes (client_id, company_id);

-- Owner: filing.

-- One row per client and transaction_id: the idempotency key. Its attempts are operations.
CREATE TABLE transactions (
    client_id      TEXT   NOT NULL,
    transaction_id TEXT   NOT NULL,
    attempts       BIGINT NOT NULL,
    open           BIGINT NOT NULL,
    success_id     TEXT,
    PRIMARY KEY (client_id, transaction_id)
);

-- One processing attempt. due_at is when its lane should look at it; NULL while
-- it waits for another attempt or its original, is quarantined or settled.
-- Lanes stand in byte order, so that those of one client can be found together
-- (lease.Queue.Group), whatever the locale of the database.
CREATE TABLE operations (
    operation_id   TEXT             NOT NULL PRIMARY KEY,
    client_id      TEXT             NOT NULL,
    transaction_id TEXT             NOT NULL,
    attempt        BIGINT           NOT NULL,
    kind           TEXT             NOT NULL,
    country        TEXT             NOT NULL,
    live           BOOLEAN          NOT NULL,
    use_case       TEXT             NOT NULL,
    supplier_id    TEXT             NOT NULL,
    number         TEXT             NOT NULL,
    dated_at       BIGINT           NOT NULL,
    accepted_at    BIGINT           NOT NULL,
    reference_id   TEXT,
    lane           TEXT COLLATE "C" NOT NULL,
    stage          TEXT             NOT NULL,
    status         TEXT             NOT NULL,
    due_at         BIGINT,
    started_at     BIGINT,
    sent_at        BIGINT,
    tries          BIGINT           NOT NULL DEFAULT 0,
    crashes        BIGINT           NOT NULL DEFAULT 0,
    doubts         TEXT             NOT NULL DEFAULT '',
    said           TEXT,                                -- the fault of an authority that did not take this one document yet
    settled_at     BIGINT,
    settled_by     TEXT,
    pack_version   TEXT             NOT NULL,
    result         TEXT,
    behind         TEXT,                                -- the correction, besides its original, that a correction waits for
    bytes          BIGINT           NOT NULL DEFAULT 0, -- size of the body
    series         TEXT,                                -- from which its number was drawn
    dated_on       BIGINT GENERATED ALWAYS AS (dated_at / 86400000000) STORED -- the day of the document, since 1970
);
CREATE INDEX operations_by_client ON operations (client_id, operation_id);
CREATE INDEX operations_by_transaction ON operations (client_id, transaction_id, attempt);
CREATE INDEX operations_by_number ON operations (client_id, number);
CREATE INDEX operations_by_reference ON operations (client_id, reference_id) WHERE reference_id IS NOT NULL;
CREATE INDEX operations_due ON operations (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX operations_lane ON operations (lane, due_at) WHERE due_at IS NOT NULL;
-- Only failures, and only what waits without a time, cost an entry here.
CREATE INDEX operations_failed ON operations (operation_id) WHERE status = 'FAILURE';
CREATE INDEX operations_failed_by_client ON operations (client_id, operation_id) WHERE status = 'FAILURE';
CREATE INDEX operations_idle ON operations (operation_id) WHERE status = 'PROCESSING' AND due_at IS NULL;
ALTER TABLE operations SET (autovacuum_vacuum_scale_factor = 0.005, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX operations_idle_by_client ON operations (client_id, operation_id) WHERE status = 'PROCESSING' AND due_at IS NULL;
-- Lists of a client, see ledger/list.go: what is settled has its entries once, none before.
CREATE INDEX operations_by_supplier ON operations (client_id, supplier_id, status, operation_id) WHERE status <> 'PROCESSING';
CREATE INDEX operations_by_day ON operations (client_id, dated_on, country, status, operation_id) WHERE status <> 'PROCESSING';
CREATE INDEX operations_behind ON operations (client_id, behind) WHERE behind IS NOT NULL;
-- SUCCESS never changes, whatever a program believes: only its result may go,
-- once the operation is among the retired. What is generated is not there yet.
CREATE FUNCTION refuse_success_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'operations' AND TG_OP = 'UPDATE' THEN
        IF NEW.result IS NULL AND to_jsonb(NEW) - '{result,dated_on}'::TEXT[] = to_jsonb(OLD) - '{result,dated_on}'::TEXT[]
            AND EXISTS (SELECT 1 FROM retired_operations x WHERE x.operation_id = OLD.operation_id) THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'a successful operation never changes';
END $$;
CREATE TRIGGER operations_success_stays BEFORE UPDATE OR DELETE ON operations
FOR EACH ROW WHEN (OLD.status = 'SUCCESS') EXECUTE FUNCTION refuse_success_change();
CREATE TRIGGER transactions_success_stays BEFORE UPDATE ON transactions
FOR EACH ROW WHEN (OLD.success_id IS NOT NULL AND OLD.success_id IS DISTINCT FROM NEW.success_id) EXECUTE FUNCTION refuse_success_change();

-- The body as sent.
CREATE TABLE bodies (
    operation_id TEXT  NOT NULL PRIMARY KEY,
    body         BYTEA NOT NULL,
    warnings     TEXT,
    digest       TEXT, -- of what the body says, however it is written
    customer     TEXT  -- facts of a customer that the body names by a company's id, as they were then; NULL where the body says them itself
);

-- What goes to the authority, byte for byte, stored before it is sent, and what came back.
CREATE TABLE filings (
    operation_id TEXT  NOT NULL PRIMARY KEY,
    report       BYTEA NOT NULL,
    sha256       TEXT  NOT NULL,
    filing       TEXT  NOT NULL,
    receipt      TEXT,
    document     BYTEA
);

-- The record of a settled operation never changes. It goes once the operation is among the retired, by its owner's hand
-- alone: see forget_records.
CREATE FUNCTION refuse_record_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM operations o WHERE o.operation_id = OLD.operation_id AND o.stage = 'settled') THEN
        IF NOT EXISTS (SELECT 1 FROM retired_operations x WHERE x.operation_id = OLD.operation_id)
            OR NOT pg_has_role(current_user, (SELECT c.relowner FROM pg_class c WHERE c.oid = TG_RELID), 'USAGE') THEN
            RAISE EXCEPTION 'the record of a settled operation never changes';
        END IF;
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER bodies_stay BEFORE UPDATE OR DELETE ON bodies FOR EACH ROW EXECUTE FUNCTION refuse_record_change();
CREATE TRIGGER filings_stay BEFORE UPDATE OR DELETE ON filings FOR EACH ROW EXECUTE FUNCTION refuse_record_change();
-- What is left of filings is a JSON object of texts, by operation.
DO $$ BEGIN
    EXECUTE format('CREATE FUNCTION forget_records(ids TEXT, remains TEXT) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, %I, pg_temp AS %L',
        current_schema(), $f$
DECLARE
    gone TEXT[] := ARRAY(SELECT jsonb_array_elements_text(ids::jsonb));
BEGIN
    IF EXISTS (SELECT 1 FROM operations o WHERE o.operation_id = ANY(gone) AND o.accepted_at > (service_day() - 6 * 365) * 86400000000) THEN
        RAISE EXCEPTION 'a record stays for six years';
    END IF;
    DELETE FROM bodies WHERE operation_id = ANY(gone);
    UPDATE filings f SET filing = r.value, report = '', receipt = NULL, document = NULL
        FROM jsonb_each_text(remains::jsonb) r WHERE f.operation_id = r.key AND f.operation_id = ANY(gone);
END $f$);
END $$;
REVOKE ALL ON FUNCTION forget_records(TEXT, TEXT) FROM PUBLIC;

-- The head of each chain.
CREATE TABLE chains (
    lane     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    position BIGINT           NOT NULL,
    link     TEXT             NOT NULL
);

-- A lane carries filings of one supplier; its name is made of its columns. Made on demand, see lease.Feed.
CREATE TABLE lanes (
    lane        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    client_id   TEXT             NOT NULL,
    country     TEXT             NOT NULL,
    environment TEXT             NOT NULL,            -- live or test
    shard       BIGINT           NOT NULL,            -- of those that work side by side
    supplier_id TEXT             NOT NULL,            -- empty: of those who are not known yet
    due_at      BIGINT,
    lease_until BIGINT,
    lease_token BIGINT           NOT NULL DEFAULT 0,
    lease_node  TEXT,
    failures    BIGINT           NOT NULL DEFAULT 0,
    trouble     TEXT             NOT NULL DEFAULT '',
    trouble_at  BIGINT,
    reason      TEXT             NOT NULL DEFAULT '', -- a published code; trouble says it for people
    asked_until BIGINT,                               -- the end of the pause that the authority asked for
    credentials BIGINT           NOT NULL DEFAULT 0   -- version of the credentials that a holder has acted on
);
CREATE INDEX lanes_due ON lanes (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX lanes_node ON lanes (lease_node) WHERE lease_node IS NOT NULL;
CREATE INDEX lanes_failing ON lanes (lane) WHERE failures > 0;
CREATE INDEX lanes_supplier ON lanes (client_id, supplier_id);
CREATE INDEX lanes_endpoint ON lanes (country, environment) WHERE reason <> '';
-- Every claim and every end of a lease leaves a dead row behind, and claims step
-- over dead rows. By its own rule the server would clean a table up when a fifth
-- of it is dead, which for a large one is far too late.
ALTER TABLE lanes SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000);

-- What was corrected by what. A row is there from preparing the correction; it goes when the correction fails.
CREATE TABLE corrections (
    client_id      TEXT   NOT NULL,
    original_id    TEXT   NOT NULL,
    transaction_id TEXT   NOT NULL,
    operation_id   TEXT   NOT NULL,
    kind           TEXT   NOT NULL,
    amount         BIGINT NOT NULL,
    rest           BIGINT NOT NULL DEFAULT 0, -- what stays after it was itself credited: a substitution has still taken its original back
    PRIMARY KEY (client_id, original_id, transaction_id)
);

-- Every call to an authority, for the person who asks what happened.
CREATE TABLE exchanges (
    exchange_id TEXT             NOT NULL PRIMARY KEY,
    lane        TEXT COLLATE "C" NOT NULL,
    verb        TEXT             NOT NULL,
    at          BIGINT           NOT NULL,
    took        BIGINT           NOT NULL,
    filings     BIGINT           NOT NULL,
    outcome     TEXT             NOT NULL,
    reply       BYTEA,
    bytes_out   BIGINT,
    bytes_in    BIGINT
) PARTITION BY RANGE (exchange_id);
CREATE INDEX exchanges_by_lane ON exchanges (lane, at);

CREATE TABLE exchange_operations (
    operation_id TEXT NOT NULL,
    exchange_id  TEXT NOT NULL,
    decision     TEXT NOT NULL DEFAULT '', -- about this filing
    said         TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (operation_id, exchange_id)
) PARTITION BY RANGE (exchange_id);

-- Nothing of a supplier is filed while released_at is NULL. A row that was
-- released stays: it tells a company that was asked about from one that is new
-- after a restored backup.
CREATE TABLE supplier_holds (
    client_id   TEXT    NOT NULL,
    supplier_id TEXT    NOT NULL,
    country     TEXT    NOT NULL,
    live        BOOLEAN NOT NULL,
    reason      TEXT    NOT NULL CHECK (reason IN ('held', 'chain_stopped')),
    why         TEXT    NOT NULL, -- for people
    since       BIGINT  NOT NULL,
    released_at BIGINT,
    PRIMARY KEY (client_id, supplier_id)
);

-- How often a supplier's credentials were replaced. Whoever replaces them raises
-- it; whoever holds a lane compares it and acts.
CREATE TABLE credential_versions (
    client_id   TEXT   NOT NULL,
    supplier_id TEXT   NOT NULL,
    version     BIGINT NOT NULL,
    PRIMARY KEY (client_id, supplier_id)
);

-- Whether transactions are accepted: not while closed_at stands there.
CREATE TABLE intake (
    one             BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    closed_at       BIGINT,
    newcomers_from  BIGINT, -- companies onboarded from then on are held at their first filing,
    newcomers_until BIGINT  -- until then
);
INSERT INTO intake (one) VALUES (1); -- readiness asks for it

-- What was said about a document beside its outcome. Entries are
-- added and never change; only forgetting after the years of the law removes them.
CREATE TABLE lifecycle (
    operation_id TEXT   NOT NULL, -- that filed the document
    source       TEXT   NOT NULL,
    message_key  TEXT   NOT NULL, -- of the source: one entry for each message
    client_id    TEXT   NOT NULL,
    at           BIGINT NOT NULL, -- by the source's clock
    code         TEXT   NOT NULL,
    name         TEXT   NOT NULL,
    severity     TEXT   NOT NULL,
    message      TEXT   NOT NULL,
    learned_at   BIGINT NOT NULL,
    PRIMARY KEY (operation_id, source, message_key)
);
CREATE FUNCTION refuse_lifecycle_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the life cycle is append-only'; END $$;
-- What was said of a document goes with its record, and never before.
CREATE FUNCTION refuse_lifecycle_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM retired_operations x WHERE x.operation_id = OLD.operation_id) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the life cycle is append-only';
END $$;
CREATE TRIGGER lifecycle_stays BEFORE UPDATE ON lifecycle
FOR EACH ROW EXECUTE FUNCTION refuse_lifecycle_change();
CREATE TRIGGER lifecycle_goes_with_its_record BEFORE DELETE ON lifecycle
FOR EACH ROW EXECUTE FUNCTION refuse_lifecycle_delete();
-- The role that serves may not delete from the life cycle: retention asks its owner to, who looks at the years himself. Six
-- are the least that any country has. Temporary tables come last in the path, so that nobody can put one of his own in the
-- place of ours.
DO $$ BEGIN
    EXECUTE format('CREATE FUNCTION forget_lifecycle(ids TEXT) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, %I, pg_temp AS %L',
        current_schema(), $f$
DECLARE
    gone TEXT[] := ARRAY(SELECT jsonb_array_elements_text(ids::jsonb));
BEGIN
    IF EXISTS (SELECT 1 FROM operations o WHERE o.operation_id = ANY(gone) AND o.accepted_at > (service_day() - 6 * 365) * 86400000000) THEN
        RAISE EXCEPTION 'the life cycle of a record stays for six years';
    END IF;
    DELETE FROM lifecycle WHERE operation_id = ANY(gone);
END $f$);
END $$;
REVOKE ALL ON FUNCTION forget_lifecycle(TEXT) FROM PUBLIC;

-- Documents whose authority is asked for news after SUCCESS; a row goes when nobody listens any more.
CREATE TABLE listening (
    operation_id TEXT             NOT NULL PRIMARY KEY,
    lane         TEXT COLLATE "C" NOT NULL,
    until        BIGINT           NOT NULL,
    looks        BIGINT           NOT NULL DEFAULT 0,
    failures     BIGINT           NOT NULL DEFAULT 0, -- in a row
    due_at       BIGINT,
    lease_until  BIGINT,
    lease_token  BIGINT           NOT NULL DEFAULT 0,
    lease_node   TEXT
);
CREATE INDEX listening_due ON listening (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX listening_lane ON listening (lane, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX listening_node ON listening (lease_node) WHERE lease_node IS NOT NULL;

-- By what names authorities that call us speak of a filing.
CREATE TABLE filing_handles (
    country      TEXT    NOT NULL,
    live         BOOLEAN NOT NULL,
    handle       TEXT    NOT NULL,
    operation_id TEXT    NOT NULL,
    PRIMARY KEY (country, live, handle, operation_id)
);

-- Decisions that came by themselves, until the lane's holder has acted on them.
CREATE TABLE told (
    operation_id TEXT   NOT NULL,
    message_key  TEXT   NOT NULL,
    receipt      TEXT   NOT NULL,
    document     BYTEA,
    raw          BYTEA,
    at           BIGINT NOT NULL,
    PRIMARY KEY (operation_id, message_key)
);

-- Series from which transactions without a number get theirs.
CREATE TABLE number_series (
    series_id   TEXT    PRIMARY KEY,
    client_id   TEXT    NOT NULL,
    supplier_id TEXT    NOT NULL,
    country     TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    pattern     TEXT    NOT NULL, -- with {N:width}, {YYYY}, {YY}
    yearly      BOOLEAN NOT NULL, -- counts anew in each year of documents
    created_at  BIGINT  NOT NULL,
    leapt       BIGINT  NOT NULL DEFAULT 0, -- behind so many a counter begins that a restored backup did not know,
    leapt_year  BIGINT  NOT NULL DEFAULT 0  -- if it is of this year or an earlier one
);
CREATE UNIQUE INDEX number_series_for ON number_series (client_id, supplier_id, country, kind);

-- The next number of a series; year is 0 where it does not count by years.
CREATE TABLE series_counters (
    series_id TEXT   NOT NULL REFERENCES number_series (series_id),
    year      BIGINT NOT NULL,
    next      BIGINT NOT NULL,
    room      BIGINT NOT NULL, -- how many may be drawn at once, as of
    at        BIGINT NOT NULL, -- this instant
    PRIMARY KEY (series_id, year)
);

-- Numbers of a series that were left out, and why.
CREATE TABLE series_gaps (
    series_id TEXT   NOT NULL REFERENCES number_series (series_id),
    year      BIGINT NOT NULL,
    first     BIGINT NOT NULL,
    last      BIGINT NOT NULL,
    reason    TEXT   NOT NULL CHECK (reason IN ('restored', 'registered_before', 'number_used')),
    at        BIGINT NOT NULL,
    PRIMARY KEY (series_id, year, first)
);

-- The number of a transaction, for all its attempts. Never deleted: a number is never used again.
CREATE TABLE drawn_numbers (
    client_id      TEXT   NOT NULL,
    transaction_id TEXT   NOT NULL,
    series_id      TEXT   NOT NULL REFERENCES number_series (series_id),
    number         TEXT   NOT NULL,
    drawn_at       BIGINT NOT NULL,
    PRIMARY KEY (client_id, transaction_id)
);

-- Numbers that filings of an endpoint carry and that were never used there before.
CREATE TABLE sequences (
    country TEXT    NOT NULL,
    live    BOOLEAN NOT NULL,
    next    BIGINT  NOT NULL, -- to be drawn
    room    BIGINT  NOT NULL, -- how many may be drawn at once, as of
    at      BIGINT  NOT NULL, -- this instant of the wall clock
    PRIMARY KEY (country, live)
);

-- What of an operation was destroyed is gone for good; that it was is known.
CREATE TABLE retired_operations (
    operation_id TEXT   NOT NULL PRIMARY KEY,
    retired_at   BIGINT NOT NULL
);

-- A period of one supplier, with what was enlisted before it was closed. What comes later
-- is the next one's in the series.
CREATE TABLE periods (
    period_id   TEXT             NOT NULL PRIMARY KEY,
    place       TEXT COLLATE "C" NOT NULL,           -- client|supplier: suppliers take turns
    client_id   TEXT             NOT NULL,
    supplier_id TEXT             NOT NULL,
    country     TEXT             NOT NULL,
    live        BOOLEAN          NOT NULL,
    currency    TEXT             NOT NULL,
    cadence     TEXT             NOT NULL,
    report      TEXT             NOT NULL,           -- which of several about the same days; '' where there is one
    first_day   TEXT             NOT NULL,           -- both in the supplier's time zone
    last_day    TEXT             NOT NULL,
    series      BIGINT           NOT NULL,
    zone        TEXT             NOT NULL,
    ends_at     BIGINT           NOT NULL,           -- by the time of day
    deadline_at BIGINT           NOT NULL,           -- when the law wants its documents
    replaces    BOOLEAN          NOT NULL,           -- each of its documents takes the place of the one before
    revision    BIGINT           NOT NULL DEFAULT 0, -- of what is in it
    closed_at   BIGINT,
    sales       BIGINT           NOT NULL DEFAULT 0, -- that are in it, those that left taken off
    gross       BIGINT           NOT NULL DEFAULT 0,
    failures    BIGINT           NOT NULL DEFAULT 0, -- of its documents, in a row
    due_at      BIGINT,
    lease_until BIGINT,
    lease_token BIGINT           NOT NULL DEFAULT 0,
    lease_node  TEXT,
    retry_at    BIGINT,                              -- until then nothing of it is made anew, after a refusal or for what came late; NULL: nothing waits
    UNIQUE (client_id, supplier_id, currency, cadence, first_day, report, series)
);
CREATE INDEX periods_due ON periods (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX periods_place ON periods (place, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX periods_node ON periods (lease_node) WHERE lease_node IS NOT NULL;

-- A sale in its period. Its data change while no document has it.
CREATE TABLE period_entries (
    operation_id   TEXT   NOT NULL PRIMARY KEY, -- the sale's
    period_id      TEXT   NOT NULL,
    transaction_id TEXT   NOT NULL,
    number         TEXT   NOT NULL,
    data           BYTEA  NOT NULL,
    lines          BIGINT NOT NULL,
    gross          BIGINT NOT NULL,
    net            BIGINT NOT NULL,
    tax            BIGINT NOT NULL,
    changes        BIGINT NOT NULL DEFAULT 0,
    document_id    TEXT,                        -- the operation of the document that has it
    left_at        BIGINT,                      -- taken out again, with the transaction by which
    left_by        TEXT,
    authority_id_1 TEXT,                        -- of the first document that was accepted; filled in once
    authority_id_2 TEXT
);
CREATE INDEX period_entries_waiting ON period_entries (period_id, operation_id) WHERE document_id IS NULL AND left_at IS NULL;
CREATE INDEX period_entries_period ON period_entries (period_id, operation_id);
CREATE INDEX period_entries_document ON period_entries (document_id, operation_id) WHERE document_id IS NOT NULL;
CREATE FUNCTION refuse_period_ids() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'an id of a gathered sale is filled in once'; END $$;
CREATE TRIGGER period_ids_stay BEFORE UPDATE ON period_entries FOR EACH ROW
WHEN (OLD.authority_id_1 IS NOT NULL AND (NEW.authority_id_1 IS DISTINCT FROM OLD.authority_id_1 OR NEW.authority_id_2 IS DISTINCT FROM OLD.authority_id_2))
EXECUTE FUNCTION refuse_period_ids();

-- Corrections that changed an entry: each does so once.
CREATE TABLE period_changes (
    operation_id TEXT NOT NULL PRIMARY KEY,
    sale_id      TEXT NOT NULL
);

-- The service's own operations for periods: documents, and cancellations of documents that a sale has left.
CREATE TABLE period_documents (
    operation_id   TEXT   NOT NULL PRIMARY KEY,
    period_id      TEXT   NOT NULL,
    transaction_id TEXT   NOT NULL,
    withdraws      TEXT,            -- the operation of the document that is taken back
    number         TEXT   NOT NULL,
    state          TEXT   NOT NULL, -- open, accepted, failed; of a document also withdrawn, replaced
    revision       BIGINT NOT NULL DEFAULT 0, -- of the period, when it was made
    sales          BIGINT NOT NULL,
    gross          BIGINT NOT NULL,
    authority_id_1 TEXT,
    authority_id_2 TEXT,
    made_at        BIGINT NOT NULL,
    ended_at       BIGINT
);
CREATE INDEX period_documents_period ON period_documents (period_id, operation_id);
CREATE INDEX period_documents_withdraws ON period_documents (withdraws) WHERE withdraws IS NOT NULL;

-- What the sales of a document have still to be told, in the order in which it was said.
CREATE TABLE period_news (
    document_id TEXT   NOT NULL,
    key         TEXT   NOT NULL,
    news        TEXT   NOT NULL,
    said_at     BIGINT NOT NULL,
    upto        TEXT   NOT NULL, -- the sale that was told last
    PRIMARY KEY (document_id, key)
);

-- Calls that authorities grant, and how many nodes have taken in a window.
CREATE TABLE authority_quotas (
    country     TEXT   NOT NULL,
    environment TEXT   NOT NULL,
    quota       TEXT   NOT NULL,
    subject     TEXT   NOT NULL, -- whose calls: a company, a document; '' where they are the endpoint's
    began_at    BIGINT NOT NULL, -- by the time of day
    ends_at     BIGINT NOT NULL,
    used        BIGINT NOT NULL,
    PRIMARY KEY (country, environment, quota, subject, began_at)
);
CREATE INDEX authority_quotas_ends ON authority_quotas (ends_at);

-- Authorities to which nothing gets through, as each node has
-- found out: for people, nothing is decided by it.
CREATE TABLE authority_breakers (
    country     TEXT   NOT NULL,
    environment TEXT   NOT NULL,
    node        TEXT   NOT NULL,
    opened_at   BIGINT NOT NULL,
    probe_at    BIGINT NOT NULL,
    failures    BIGINT NOT NULL,
    trouble     TEXT   NOT NULL,
    PRIMARY KEY (country, environment, node)
);

-- Owner: recovery. What a restored backup does not know.

-- The one restoration, the latest. While ended_at is NULL the intake is closed, on every node and after every restart.
CREATE TABLE restorations (
    one        BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    started_at BIGINT NOT NULL,
    known_to   BIGINT NOT NULL, -- everything accepted until then is in the backup
    ended_at   BIGINT
);

-- One row per supplier of a country with an authority. Nothing of a supplier is
-- filed unless its state is 'asked' (or it has no row: no backup was restored).
CREATE TABLE restored_suppliers (
    supplier_id TEXT    NOT NULL PRIMARY KEY,
    client_id   TEXT    NOT NULL,
    country     TEXT    NOT NULL,
    live        BOOLEAN NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('asking', 'unasked', 'unlisted', 'chain', 'asked')),
    first_day   TEXT    NOT NULL,           -- document date, YYYY-MM-DD
    next_day    TEXT    NOT NULL,           -- days before it were asked for
    ahead       BIGINT  NOT NULL,           -- days after today to ask for: some date their documents ahead
    found       BIGINT  NOT NULL DEFAULT 0, -- gaps
    failures    BIGINT  NOT NULL DEFAULT 0, -- in a row
    trouble     TEXT    NOT NULL DEFAULT '',
    due_at      BIGINT,
    lease_until BIGINT,
    lease_token BIGINT  NOT NULL DEFAULT 0,
    lease_node  TEXT
);
CREATE INDEX restored_suppliers_due ON restored_suppliers (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX restored_suppliers_by_client ON restored_suppliers (client_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX restored_suppliers_node ON restored_suppliers (lease_node) WHERE lease_node IS NOT NULL;
ALTER TABLE restored_suppliers SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- One row per document that an authority holds and the backup does not: a gap.
-- The operation that comes for it adopts it instead of being filed.
CREATE TABLE adoptions (
    client_id      TEXT   NOT NULL,
    supplier_id    TEXT   NOT NULL,
    number         TEXT   NOT NULL, -- at the authority; '' for a cancellation that is seen only at its original
    reference      TEXT   NOT NULL, -- number of the document that it corrects
    authority_id_1 TEXT   NOT NULL,
    authority_id_2 TEXT   NOT NULL,
    kind           TEXT   NOT NULL, -- '' where the authority does not say
    day            TEXT   NOT NULL, -- document date, YYYY-MM-DD
    gross          BIGINT,          -- NULL where the authority does not say
    net            BIGINT,          -- the same
    tax            BIGINT,          -- the same
    currency       TEXT   NOT NULL, -- of the sums; '' for that of the document
    customer       TEXT   NOT NULL, -- tax number; '' where the authority does not say
    sales          TEXT,            -- numbers in the document of a period, JSON; NULL where the authority does not say
    lines          TEXT,            -- what each line amounts to without tax, JSON; NULL where the authority does not say
    sha256         TEXT   NOT NULL,
    qr_code        TEXT   NOT NULL,
    registered_at  BIGINT,
    found_at       BIGINT NOT NULL,
    operation_id   TEXT,            -- who adopted it
    PRIMARY KEY (client_id, supplier_id, number, reference, authority_id_1, authority_id_2)
);
CREATE INDEX adoptions_open ON adoptions (client_id, supplier_id) WHERE operation_id IS NULL;

-- One row per operation that waits for a person: a document at the authority may be its own.
CREATE TABLE held_operations (
    operation_id TEXT   NOT NULL PRIMARY KEY,
    client_id    TEXT   NOT NULL,
    supplier_id  TEXT   NOT NULL,
    number       TEXT   NOT NULL, -- of the document there; '' where the authority has no list
    why          TEXT   NOT NULL, -- for people
    since        BIGINT NOT NULL,
    decision     TEXT   NOT NULL DEFAULT '' CHECK (decision IN ('', 'adopt', 'file')),
    decided_at   BIGINT
);

-- Suppliers whose authority has no list: what it was told of periods that had ended nobody knows but a person.
CREATE TABLE unlisted_suppliers (
    client_id   TEXT   NOT NULL,
    supplier_id TEXT   NOT NULL,
    began       BIGINT NOT NULL, -- the restoration
    PRIMARY KEY (client_id, supplier_id)
);

-- Owner: ledger.

-- What an operation can be found by, see transaction/index.go. Filled behind
-- the intake: no submit waits for it.
CREATE TABLE operation_terms (
    term         TEXT NOT NULL,
    operation_id TEXT NOT NULL,
    PRIMARY KEY (term, operation_id)
);

-- How far the index has come: ids up to position were looked at.
CREATE TABLE search_cursors (
    name     TEXT NOT NULL PRIMARY KEY,
    position TEXT NOT NULL
);
INSERT INTO search_cursors (name, position) VALUES ('new', ''), ('minute', ''), ('day', ''), ('settled', '');
INSERT INTO search_cursors (name, position) VALUES ('parts', ''), ('parts_until', ''), ('companies', '');

-- What happened in a minute (older ones: in an hour), per node, for plots: to
-- transactions, and in calls to their authority.
CREATE TABLE transaction_counts (
    minute       BIGINT  NOT NULL, -- since 1970
    country      TEXT    NOT NULL,
    live         BOOLEAN NOT NULL,
    node         TEXT    NOT NULL, -- '' once added up
    accepted     BIGINT  NOT NULL,
    succeeded    BIGINT  NOT NULL,
    failed       BIGINT  NOT NULL,
    calls        BIGINT  NOT NULL,
    calls_failed BIGINT  NOT NULL, -- that brought no answer
    calls_took   BIGINT  NOT NULL, -- microseconds, of all of them
    PRIMARY KEY (minute, country, live, node)
);

-- What a client used in a day.
CREATE TABLE transaction_usage (
    day       BIGINT NOT NULL, -- since 1970
    client_id TEXT   NOT NULL,
    accepted  BIGINT NOT NULL,
    succeeded BIGINT NOT NULL,
    failed    BIGINT NOT NULL,
    PRIMARY KEY (day, client_id)
);
CREATE INDEX transaction_usage_by_client ON transaction_usage (client_id, day);

-- Pieces of numbers, ids and names, see ledger/parts.go: a search is a prefix of
-- one. Filled behind the intake, as operation_terms is.
CREATE TABLE operation_parts (
    part         TEXT COLLATE "C" NOT NULL,
    operation_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (part, operation_id)
);

-- The same of companies' names.
CREATE TABLE company_parts (
    part       TEXT COLLATE "C" NOT NULL,
    company_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (part, company_id)
);

-- Owner: retention.

-- How far the records of a client are retired: nothing is left up to position,
-- and done_for says which years and holds the last complete walk went by.
CREATE TABLE retention_cursors (
    client_id TEXT NOT NULL PRIMARY KEY,
    position  TEXT NOT NULL,
    done_for  TEXT NOT NULL
);

-- What each round did.
CREATE TABLE retention_rounds (
    started_at BIGINT NOT NULL PRIMARY KEY,
    ended_at   BIGINT NOT NULL,
    report     TEXT   NOT NULL -- JSON
);

-- Owner: db. Tables with partitions begin with one for everything up to a day in a month, and one for what has no other.
DO $$
DECLARE
    first BIGINT := extract(epoch FROM now())::BIGINT / 86400 + 30;
    t     RECORD;
BEGIN
    FOR t IN SELECT * FROM (VALUES ('exchanges', 'exchange_id', 0), ('exchange_operations', 'exchange_id', 0),
            ('webhook_events', 'webhook_id', 40), ('webhook_tries', 'webhook_id', 40)) AS x (name, id, digits) LOOP
        INSERT INTO partitioned (name, id, first_day, digits) VALUES (t.name, t.id, first, t.digits);
        EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (MINVALUE) TO (%L)', t.name || '_before', t.name, day_id(first, t.digits));
        EXECUTE format('CREATE TABLE %I PARTITION OF %I DEFAULT', t.name || '_rest', t.name);
    END LOOP;
END $$;
ALTER TABLE webhook_events_before SET (autovacuum_vacuum_scale_factor = 0.005, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE webhook_events_rest SET (autovacuum_vacuum_scale_factor = 0.005, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

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
    authority_id_2 TEXT  NOT NULL DEFAULT '', -- another name that the source gave it
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
    media        TEXT    NOT NULL CHECK (media IN ('XML', 'PDF', 'P7M')),
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
CREATE INDEX received_failed ON received (client_id, company_id, operation_id) WHERE status = 'FAILURE';

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

-- Owner: filing.

-- Which operations answer a received document.
CREATE TABLE responses (
    client_id      TEXT NOT NULL,
    document_id    TEXT NOT NULL, -- operation_id of received
    operation_id   TEXT NOT NULL, -- of operations
    transaction_id TEXT NOT NULL,
    PRIMARY KEY (client_id, document_id, operation_id)
);
