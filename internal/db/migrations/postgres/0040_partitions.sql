-- Owner: db. Tables that stand in a partition for each day (UTC), by ids that begin with their time (UUID version 7). What is
-- older than the first of those days stands in NAME_before, what has no partition of its day in NAME_rest.
CREATE TABLE partitioned (
    name      TEXT   NOT NULL PRIMARY KEY,
    id        TEXT   NOT NULL, -- the column
    first_day BIGINT NOT NULL  -- since 1970
);

-- The least id of a day. It is as long as an id and has its dashes in the same places: all orders of text agree on it.
CREATE FUNCTION day_id(day BIGINT) RETURNS TEXT LANGUAGE sql IMMUTABLE AS $$
    SELECT substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-0000-0000-000000000000' FROM (SELECT lpad(to_hex(day * 86400000), 12, '0') AS h) AS x
$$;

-- Partitions are made and dropped by their owner, on behalf of a role that changes no schema. What was made is attached: that
-- takes the rest alone for a moment, and not the whole table. The rest is looked through meanwhile, so it must be small. False:
-- there is a partition of that day, or the rest has rows of it already, which stay there.
CREATE FUNCTION make_partition(parent TEXT, day BIGINT, rest_most BIGINT) RETURNS BOOLEAN LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    key   TEXT := (SELECT p.id FROM partitioned p WHERE p.name = parent AND p.first_day <= day);
    part  TEXT := parent || '_' || to_char(DATE '1970-01-01' + day::INT, 'YYYYMMDD');
    rest  TEXT := parent || '_rest';
    taken BOOLEAN;
BEGIN
    IF key IS NULL THEN
        RAISE EXCEPTION '% has no partition of day %', parent, day;
    END IF;
    PERFORM pg_advisory_xact_lock(7420432);
    IF to_regclass(quote_ident(part)) IS NOT NULL THEN
        RETURN FALSE;
    END IF;
    EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I WHERE %I >= %L AND %I < %L)', rest, key, day_id(day), key, day_id(day + 1)) INTO taken;
    IF taken THEN
        RETURN FALSE;
    END IF;
    IF pg_relation_size(quote_ident(rest)::regclass) > rest_most THEN
        RAISE EXCEPTION '% has grown to % bytes: a partition made beside it would keep writers waiting', rest, pg_relation_size(quote_ident(rest)::regclass);
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING STORAGE)', part, parent);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, part, day_id(day), day_id(day + 1));
    RETURN TRUE;
END $$;

-- A partition goes as a whole, if it ends with that day or before, and never the rest.
CREATE FUNCTION drop_partition(part TEXT, day BIGINT) RETURNS VOID LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM 1 FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN partitioned p ON i.inhparent = to_regclass(quote_ident(p.name))
        WHERE c.oid = to_regclass(quote_ident(part)) AND substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \(''([^'']+)''\)') <= day_id(day + 1);
    IF NOT FOUND THEN
        RAISE EXCEPTION '% is no partition that ends with day %', part, day;
    END IF;
    EXECUTE format('DROP TABLE %I', part);
END $$;

-- Whoever waits for a lock has everybody else waiting behind him: half a second at most. Tables are made in the first schema of
-- the path; pg_catalog is looked through before it, and temporary tables after it.
DO $$ DECLARE f TEXT; BEGIN
    FOREACH f IN ARRAY ARRAY['make_partition(TEXT, BIGINT, BIGINT)', 'drop_partition(TEXT, BIGINT)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', f, current_schema());
        EXECUTE format('ALTER FUNCTION %s SET lock_timeout = %L', f, '500ms');
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
    END LOOP;
END $$;

-- Calls to authorities, and which operations they were about.
-- Partition: exchanges (exchange_id)
-- Partition: exchange_operations (exchange_id)
