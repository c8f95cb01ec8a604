-- Owner: filing. Records whose years are over.

-- What of an operation was destroyed is gone for good; that it was is known.
CREATE TABLE retired_operations (
    operation_id TEXT   NOT NULL PRIMARY KEY,
    retired_at   BIGINT NOT NULL
) WITHOUT ROWID;

-- SUCCESS never changes, whatever a program believes: only its result may go,
-- once the operation is among the retired.
DROP TRIGGER operations_success_stays;
CREATE TRIGGER operations_success_stays BEFORE UPDATE ON operations WHEN OLD.status = 'SUCCESS' AND NOT (
    NEW.result IS NULL AND EXISTS (SELECT 1 FROM retired_operations x WHERE x.operation_id = OLD.operation_id)
    AND NEW.operation_id IS OLD.operation_id AND NEW.client_id IS OLD.client_id AND NEW.transaction_id IS OLD.transaction_id AND NEW.attempt IS OLD.attempt
    AND NEW.kind IS OLD.kind AND NEW.country IS OLD.country AND NEW.live IS OLD.live AND NEW.use_case IS OLD.use_case AND NEW.supplier_id IS OLD.supplier_id
    AND NEW.number IS OLD.number AND NEW.dated_at IS OLD.dated_at AND NEW.accepted_at IS OLD.accepted_at AND NEW.reference_id IS OLD.reference_id AND NEW.lane IS OLD.lane
    AND NEW.stage IS OLD.stage AND NEW.status IS OLD.status AND NEW.due_at IS OLD.due_at AND NEW.started_at IS OLD.started_at AND NEW.sent_at IS OLD.sent_at
    AND NEW.tries IS OLD.tries AND NEW.crashes IS OLD.crashes AND NEW.doubts IS OLD.doubts AND NEW.settled_at IS OLD.settled_at AND NEW.settled_by IS OLD.settled_by
    AND NEW.pack_version IS OLD.pack_version AND NEW.behind IS OLD.behind AND NEW.bytes IS OLD.bytes
    AND NEW.series IS OLD.series)
BEGIN SELECT RAISE(ABORT, 'a successful operation never changes'); END;

-- Owner: onboarding. A company whose records are not forgotten for now.
ALTER TABLE companies ADD COLUMN legal_hold BOOLEAN NOT NULL DEFAULT FALSE;

-- Owner: retention.

-- How far the records of a client are retired: nothing is left up to position,
-- and done_for says which years and holds the last complete walk went by.
CREATE TABLE retention_cursors (
    client_id TEXT NOT NULL PRIMARY KEY,
    position  TEXT NOT NULL,
    done_for  TEXT NOT NULL
) WITHOUT ROWID;

-- What each round did.
CREATE TABLE retention_rounds (
    started_at BIGINT NOT NULL PRIMARY KEY,
    ended_at   BIGINT NOT NULL,
    report     TEXT   NOT NULL -- JSON
) WITHOUT ROWID;
