-- Owner: filing. What was said of a document goes with its record, and never before. (PostgreSQL has roles here as well.)
CREATE TRIGGER lifecycle_goes_with_its_record BEFORE DELETE ON lifecycle
WHEN NOT EXISTS (SELECT 1 FROM retired_operations x WHERE x.operation_id = OLD.operation_id)
BEGIN SELECT RAISE(ABORT, 'the life cycle is append-only'); END;
