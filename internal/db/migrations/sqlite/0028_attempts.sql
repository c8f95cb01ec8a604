-- Owner: filing.

-- What each call to an authority moved, and what it decided about each of its
-- filings. Rows of before have none of it.
ALTER TABLE exchanges ADD COLUMN bytes_out BIGINT;
ALTER TABLE exchanges ADD COLUMN bytes_in BIGINT;
ALTER TABLE exchange_operations ADD COLUMN decision TEXT NOT NULL DEFAULT '';
ALTER TABLE exchange_operations ADD COLUMN said TEXT NOT NULL DEFAULT '';
