-- Owner: filing. The facts of a customer that a body names by the id of a company, as they were
-- when the transaction was accepted; NULL where the body says them itself.
ALTER TABLE bodies ADD COLUMN customer TEXT;
