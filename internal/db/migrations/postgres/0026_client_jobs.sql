-- Owner: db. Work that a client caused and nobody waits for on the line:
-- onboardings, validations. Rows go when the work is done; see db.Queue for
-- the columns of leases.
CREATE TABLE client_jobs (
    job_id      TEXT   NOT NULL PRIMARY KEY,
    lane        TEXT COLLATE "C" NOT NULL, -- client, slash, kind: clients take turns
    subject     TEXT   NOT NULL,           -- id of the owner's row
    created_at  BIGINT NOT NULL,
    failures    BIGINT NOT NULL DEFAULT 0, -- in a row
    due_at      BIGINT,
    lease_until BIGINT,
    lease_token BIGINT NOT NULL DEFAULT 0,
    lease_node  TEXT
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX client_jobs_due ON client_jobs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX client_jobs_lane ON client_jobs (lane, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX client_jobs_node ON client_jobs (lease_node) WHERE lease_node IS NOT NULL;
