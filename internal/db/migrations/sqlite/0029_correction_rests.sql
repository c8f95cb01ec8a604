-- Owner: filing. What of a correction stays after it was itself credited: a
-- substitution has still taken its original back.
ALTER TABLE corrections ADD COLUMN rest BIGINT NOT NULL DEFAULT 0;
