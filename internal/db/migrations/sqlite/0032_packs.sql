-- Owner: document. Small files that were kept together lie in one: the name of
-- that pack, and where in it the bytes of the attachment begin.
ALTER TABLE attachments ADD COLUMN pack TEXT NOT NULL DEFAULT '';
ALTER TABLE attachments ADD COLUMN pack_at BIGINT NOT NULL DEFAULT 0;
