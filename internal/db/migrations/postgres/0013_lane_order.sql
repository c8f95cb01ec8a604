-- Owner: transaction.

-- Lanes stand in byte order, so that those of one client can be found together
-- (db.Queue.Group), whatever the locale of the database.
ALTER TABLE operations ALTER COLUMN lane TYPE TEXT COLLATE "C";
ALTER TABLE lanes ALTER COLUMN lane TYPE TEXT COLLATE "C";
ALTER TABLE chains ALTER COLUMN lane TYPE TEXT COLLATE "C";
ALTER TABLE exchanges ALTER COLUMN lane TYPE TEXT COLLATE "C";
