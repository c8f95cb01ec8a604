-- Owner: transaction.

-- PostgreSQL puts lanes into byte order here; SQLite has them so already.
SELECT 1;
