package db

// partitionSwap puts a partitioned table in the place of the old one, which
// becomes its first partition. Keys and indexes are the same and keep their
// names, so that the old ones are taken as they are. What hangs on a table by
// itself and not by its name goes along: rights, checks, how it is vacuumed,
// the number that grows with every row, and policies, those of other tables
// that look into this one, too; they would go on looking at its first partition.
//
// A number that grows is a plain default afterwards: partitions have no identity.
const partitionSwap = `SET LOCAL lock_timeout = '500ms';
DO $$
DECLARE
    made    RECORD;
    again   TEXT[] := '{}';
    bound   TEXT[] := '{}';
    options TEXT;
    line    TEXT;
BEGIN
    LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE;
    FOR made IN SELECT c.relname AS name, pg_get_indexdef(c.oid) AS index, pg_get_constraintdef(k.oid) AS key
            FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid LEFT JOIN pg_constraint k ON k.conindid = c.oid AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u')
            WHERE i.indrelid = to_regclass('{table}') LOOP
        again := again || coalesce(format('ALTER TABLE {table} ADD CONSTRAINT %I ', made.name) || made.key, made.index);
        EXECUTE format('ALTER INDEX %I RENAME TO %I', made.name, '{table}_before' || substr(made.name, length('{table}') + 1));
    END LOOP;
    FOR made IN SELECT p.polname AS name, p.polrelid::regclass::text AS at, p.polrelid = to_regclass('{table}') AS own, obj_description(p.oid, 'pg_policy') AS mark,
            CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END AS kind, CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE' ELSE 'ALL' END AS what,
            (SELECT string_agg(CASE r WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(r)) END, ', ') FROM unnest(p.polroles) AS r) AS who,
            coalesce(' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')', '') || coalesce(' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', '') AS rule
            FROM pg_policy p WHERE p.polrelid = to_regclass('{table}') OR EXISTS (SELECT 1 FROM pg_depend d
                WHERE d.classid = 'pg_policy'::regclass AND d.objid = p.oid AND d.refclassid = 'pg_class'::regclass AND d.refobjid = to_regclass('{table}')) LOOP
        IF made.own THEN
            bound := bound || format('CREATE POLICY %I ON {table} AS %s FOR %s TO %s%s', made.name, made.kind, made.what, made.who, made.rule) ||
                format('COMMENT ON POLICY %I ON {table} IS %L', made.name, made.mark);
            EXECUTE format('DROP POLICY %I ON {table}', made.name);
        ELSE
            bound := bound || format('ALTER POLICY %I ON %s%s', made.name, made.at, made.rule);
        END IF;
    END LOOP;
    FOR made IN SELECT a.attname AS name, nextval(pg_get_serial_sequence('{table}', a.attname)) AS next
            FROM pg_attribute a WHERE a.attrelid = to_regclass('{table}') AND a.attidentity <> '' LOOP
        EXECUTE format('ALTER TABLE {table} ALTER COLUMN %I DROP IDENTITY', made.name);
        EXECUTE format('CREATE SEQUENCE %I START %s', '{table}_' || made.name || '_seq', made.next);
        EXECUTE format('ALTER TABLE {table} ALTER COLUMN %I SET DEFAULT nextval(%L)', made.name, '{table}_' || made.name || '_seq');
        bound := bound || format('ALTER SEQUENCE %I OWNED BY {table}.%I', '{table}_' || made.name || '_seq', made.name);
        FOR line IN SELECT CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(x.grantee)) END
                FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) AS x WHERE c.oid = to_regclass('{table}') AND x.privilege_type = 'INSERT' AND x.grantee <> c.relowner LOOP
            EXECUTE format('GRANT USAGE ON SEQUENCE %I TO %s', '{table}_' || made.name || '_seq', line);
        END LOOP;
    END LOOP;
    ALTER TABLE {table} RENAME TO {table}_before;
    CREATE TABLE {table} (LIKE {table}_before INCLUDING DEFAULTS INCLUDING STORAGE INCLUDING CONSTRAINTS) PARTITION BY RANGE ({id});
    ALTER TABLE {table} DROP CONSTRAINT {table}_before;
    FOREACH line IN ARRAY again || bound LOOP
        EXECUTE line;
    END LOOP;
    IF (SELECT relrowsecurity FROM pg_class WHERE oid = to_regclass('{table}_before')) THEN
        ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
        ALTER TABLE {table}_before DISABLE ROW LEVEL SECURITY;
    END IF;
    CREATE TABLE {table}_rest PARTITION OF {table} DEFAULT;
    SELECT string_agg(o, ', ') INTO options FROM pg_class c CROSS JOIN LATERAL unnest(c.reloptions) AS o WHERE c.oid = to_regclass('{table}_before');
    IF options IS NOT NULL THEN
        EXECUTE format('ALTER TABLE {table}_rest SET (%s)', options);
    END IF;
    EXECUTE format('ALTER TABLE {table} ATTACH PARTITION {table}_before FOR VALUES FROM (MINVALUE) TO (%L)', (SELECT {first} FROM partitioned WHERE name = '{table}'));
    ALTER TABLE {table}_before DROP CONSTRAINT {table}_before;
    FOR made IN SELECT a.privilege_type AS what, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
            FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) AS a WHERE c.oid = to_regclass('{table}_before') AND a.grantee <> c.relowner LOOP
        EXECUTE format('GRANT %s ON {table} TO %s', made.what, made.who);
        EXECUTE format('REVOKE %s ON {table}_before FROM %s', made.what, made.who);
    END LOOP;
END $$`
