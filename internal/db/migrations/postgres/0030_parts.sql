-- Owner: ledger.

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
INSERT INTO search_cursors (name, position) VALUES ('parts', ''), ('parts_until', ''), ('companies', '');

CREATE INDEX CONCURRENTLY companies_by_update ON companies (updated_at, company_id);
