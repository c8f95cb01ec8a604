-- Owner: db. Roles that `tributary migrate --serve-role` was told of: a later migration gives them what it adds.
CREATE TABLE schema_roles (
    one   BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    serve TEXT   NOT NULL, -- with which nodes connect
    read  TEXT   NOT NULL  -- with which clients read, bound by policies
);

-- Owner: filing. What was said of a document goes with its record, and never before.
CREATE FUNCTION refuse_lifecycle_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM retired_operations x WHERE x.operation_id = OLD.operation_id) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the life cycle is append-only';
END $$;
CREATE TRIGGER lifecycle_goes_with_its_record BEFORE DELETE ON lifecycle
FOR EACH ROW EXECUTE FUNCTION refuse_lifecycle_delete();

-- The role that serves may not delete from the life cycle: retention asks its owner to. Temporary tables come last in the
-- path, so that nobody can put one of his own in the place of ours.
DO $$ BEGIN
    EXECUTE format('CREATE FUNCTION forget_lifecycle(ids TEXT) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, %I, pg_temp AS %L',
        current_schema(), 'DELETE FROM lifecycle WHERE operation_id = ANY(ARRAY(SELECT jsonb_array_elements_text(ids::jsonb)))');
END $$;
REVOKE ALL ON FUNCTION forget_lifecycle(TEXT) FROM PUBLIC;
