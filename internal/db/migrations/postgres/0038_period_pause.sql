-- Owner: filing. Until when nothing of the period is made anew after a refusal; NULL: nothing was refused since.
ALTER TABLE periods ADD COLUMN retry_at BIGINT;
