-- Owner: db.

-- Small facts about the database itself, such as which cluster and timeline of
-- PostgreSQL served it last. SQLite has the table from its first opening.
CREATE TABLE IF NOT EXISTS db_meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);
