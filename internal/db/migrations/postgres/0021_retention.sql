-- Owner: filing. Records whose years are over.

-- What of an operation was destroyed is gone for good; that it was is known.
CREATE TABLE retired_operations (
    operation_id TEXT   NOT NULL PRIMARY KEY,
    retired_at   BIGINT NOT NULL
);

-- SUCCESS never changes, whatever a program believes: only its result may go,
-- once the operation is among the retired.
CREATE OR REPLACE FUNCTION refuse_success_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'operations' AND TG_OP = 'UPDATE' THEN
        IF NEW.result IS NULL AND to_jsonb(NEW) - 'result' = to_jsonb(OLD) - 'result'
            AND EXISTS (SELECT 1 FROM retired_operations x WHERE x.operation_id = OLD.operation_id) THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'a successful operation never changes';
END $$;

-- Owner: onboarding. A company whose records are not forgotten for now.
ALTER TABLE companies ADD COLUMN legal_hold BOOLEAN NOT NULL DEFAULT FALSE;

-- Owner: retention.

-- How far the records of a client are retired: nothing is left up to position,
-- and done_for says which years and holds the last complete walk went by.
CREATE TABLE retention_cursors (
    client_id TEXT NOT NULL PRIMARY KEY,
    position  TEXT NOT NULL,
    done_for  TEXT NOT NULL
);

-- What each round did.
CREATE TABLE retention_rounds (
    started_at BIGINT NOT NULL PRIMARY KEY,
    ended_at   BIGINT NOT NULL,
    report     TEXT   NOT NULL -- JSON
);
