-- Owner: onboarding.

-- Logos of companies, kept with the job that brings them: a company's profile
-- names its own by digest. What neither the company nor an open job names goes
-- when a job of the company ends.
CREATE TABLE company_logos (
    client_id  TEXT NOT NULL,
    company_id TEXT NOT NULL,
    sha256     TEXT NOT NULL,
    logo       BYTEA NOT NULL,
    PRIMARY KEY (client_id, company_id, sha256)
);
