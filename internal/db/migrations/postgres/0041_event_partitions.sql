-- Owner: db. Events and their tries stand in a partition for each day, too. Their ids begin with their time as well, but are
-- so many hexadecimal digits without dashes.
ALTER TABLE partitioned ADD COLUMN digits BIGINT NOT NULL DEFAULT 0; -- of ids; 0: they are UUIDs

-- The least id of a day, as long as the others: all orders of text agree on it.
CREATE FUNCTION day_id(day BIGINT, digits BIGINT) RETURNS TEXT LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE digits WHEN 0 THEN day_id(day) ELSE rpad(lpad(to_hex(day * 86400000), 12, '0'), digits::INT, '0') END
$$;

-- As before, with what a partition must have besides columns and indexes: the table's checks, and how it is vacuumed. A
-- partitioned table has no storage parameters of its own, so the rest keeps them for those that are to come.
CREATE OR REPLACE FUNCTION make_partition(parent TEXT, day BIGINT, rest_most BIGINT) RETURNS BOOLEAN LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    key   TEXT;
    first TEXT;
    next  TEXT;
    part  TEXT := parent || '_' || to_char(DATE '1970-01-01' + day::INT, 'YYYYMMDD');
    rest  TEXT := parent || '_rest';
    kept  TEXT;
    taken BOOLEAN;
BEGIN
    SELECT p.id, day_id(day, p.digits), day_id(day + 1, p.digits) INTO key, first, next FROM partitioned p WHERE p.name = parent AND p.first_day <= day;
    IF key IS NULL THEN
        RAISE EXCEPTION '% has no partition of day %', parent, day;
    END IF;
    PERFORM pg_advisory_xact_lock(7420432);
    IF to_regclass(quote_ident(part)) IS NOT NULL THEN
        RETURN FALSE;
    END IF;
    EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I WHERE %I >= %L AND %I < %L)', rest, key, first, key, next) INTO taken;
    IF taken THEN
        RETURN FALSE;
    END IF;
    IF pg_relation_size(quote_ident(rest)::regclass) > rest_most THEN
        RAISE EXCEPTION '% has grown to % bytes: a partition made beside it would keep writers waiting', rest, pg_relation_size(quote_ident(rest)::regclass);
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING STORAGE INCLUDING CONSTRAINTS)', part, parent);
    SELECT string_agg(o, ', ') INTO kept FROM pg_class c CROSS JOIN LATERAL unnest(c.reloptions) AS o WHERE c.oid = quote_ident(rest)::regclass;
    IF kept IS NOT NULL THEN
        EXECUTE format('ALTER TABLE %I SET (%s)', part, kept);
    END IF;
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, part, first, next);
    RETURN TRUE;
END $$;

-- A partition goes as a whole, if it ends with that day or before, and never the rest. What was opened again since somebody
-- looked keeps its day: nobody can open anything while the table is held.
CREATE OR REPLACE FUNCTION drop_partition(part TEXT, day BIGINT) RETURNS VOID LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    parent TEXT;
    due    BOOLEAN := FALSE;
BEGIN
    SELECT p.name INTO parent FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN partitioned p ON i.inhparent = to_regclass(quote_ident(p.name))
        WHERE c.oid = to_regclass(quote_ident(part)) AND substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \(''([^'']+)''\)') <= day_id(day + 1, p.digits);
    IF parent IS NULL THEN
        RAISE EXCEPTION '% is no partition that ends with day %', part, day;
    END IF;
    EXECUTE format('LOCK TABLE ONLY %I IN ACCESS EXCLUSIVE MODE', parent);
    IF EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass(quote_ident(part)) AND attname = 'due_at' AND NOT attisdropped) THEN
        EXECUTE format('SELECT min(due_at) IS NOT NULL FROM %I', part) INTO due;
    END IF;
    IF due THEN
        RAISE EXCEPTION '% has a row that is due', part USING ERRCODE = 'object_in_use';
    END IF;
    EXECUTE format('DROP TABLE %I', part);
END $$;

-- Whoever waits for a lock has everybody else waiting behind him: half a second at most.
DO $$ DECLARE f TEXT; BEGIN
    FOREACH f IN ARRAY ARRAY['make_partition(TEXT, BIGINT, BIGINT)', 'drop_partition(TEXT, BIGINT)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', f, current_schema());
        EXECUTE format('ALTER FUNCTION %s SET lock_timeout = %L', f, '500ms');
    END LOOP;
END $$;

-- Partition: webhook_events (webhook_id, 40 digits)
-- Partition: webhook_tries (webhook_id, 40 digits)
