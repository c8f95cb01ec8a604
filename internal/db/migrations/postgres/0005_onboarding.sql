-- Owner: onboarding.

-- One row per onboarded company. client_id is a scope: live and test keys of one client have different ones.
CREATE TABLE companies (
    client_id   TEXT    NOT NULL,
    company_id  TEXT    NOT NULL,
    external_id TEXT    NOT NULL,
    country     TEXT    NOT NULL,           -- upper case
    tax_key     TEXT    NOT NULL,           -- the tax number in its normal form
    live        BOOLEAN NOT NULL,
    profile     TEXT    NOT NULL,           -- JSON: the request without the credentials
    created_at  BIGINT  NOT NULL,
    updated_at  BIGINT  NOT NULL,
    PRIMARY KEY (client_id, company_id)
);
CREATE UNIQUE INDEX companies_by_external_id ON companies (client_id, external_id);
-- A supplier that is already onboarded is not onboarded again.
CREATE UNIQUE INDEX companies_by_tax_number ON companies (client_id, country, tax_key);
CREATE INDEX companies_by_time ON companies (client_id, created_at, company_id);

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
    PRIMARY KEY (client_id, company_id)
);
CREATE INDEX company_credentials_by_end ON company_credentials (expires_at) WHERE expires_at IS NOT NULL;

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
    claim         BIGINT  NOT NULL DEFAULT 0, -- raised by every claim; the end carries it
    claimed_by    TEXT,                       -- node; NULL while nobody works on it
    claimed_until BIGINT  NOT NULL,           -- afterwards the job is looked at again
    crashes       BIGINT  NOT NULL DEFAULT 0, -- claims that were never given back
    tries         BIGINT  NOT NULL DEFAULT 0, -- calls of an authority that could not answer
    created_at    BIGINT  NOT NULL,
    updated_at    BIGINT  NOT NULL
);
-- external_id is the idempotency key: at most one job of it has not failed.
CREATE UNIQUE INDEX onboarding_jobs_key ON onboarding_jobs (client_id, external_id) WHERE kind = 'create' AND status <> 'failed';
-- One change of a company at a time.
CREATE UNIQUE INDEX onboarding_jobs_open ON onboarding_jobs (client_id, company_id) WHERE status IN ('pending', 'processing');
CREATE INDEX onboarding_jobs_number ON onboarding_jobs (client_id, country, tax_key) WHERE status = 'processing';
CREATE INDEX onboarding_jobs_claims ON onboarding_jobs (claimed_until) WHERE status IN ('pending', 'processing');
