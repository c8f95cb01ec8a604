-- Owner: onboarding. An address that a person must visit before a company can be
-- onboarded. The state in it is kept as its digest: whoever reads the database
-- cannot return in the person's place. A job has one row, the latest.
CREATE TABLE onboarding_visits (
    job_id     TEXT    NOT NULL PRIMARY KEY,
    client_id  TEXT    NOT NULL,
    company_id TEXT    NOT NULL,
    country    TEXT    NOT NULL,
    live       BOOLEAN NOT NULL,
    state      TEXT    NOT NULL,  -- SHA-256, hexadecimal
    address    TEXT    NOT NULL,
    created_at BIGINT  NOT NULL,
    expires_at BIGINT  NOT NULL,
    used_at    BIGINT,
    brought    BYTEA              -- sealed: what the browser brought back, until the job ends
);
CREATE UNIQUE INDEX onboarding_visits_state ON onboarding_visits (state);
CREATE INDEX onboarding_visits_company ON onboarding_visits (client_id, company_id);
