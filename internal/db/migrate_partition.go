package db

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
)

// newPartitions is a table that a step parts by days.
type newPartitions struct{ table, id string }

var partitionLine = regexp.MustCompile(`(?m)^-- Partition: ([a-z_]+) \(([a-z_]+)\)$`)

// partitions are the tables that a step parts, behind its transaction and its indexes.
func (m migration) partitions() (list []newPartitions) {
	for _, found := range partitionLine.FindAllStringSubmatch(m.script, -1) {
		list = append(list, newPartitions{found[1], found[2]})
	}
	return list
}

// partition parts a table that is in use. What it holds becomes its first
// partition, as it is: no row is copied, no index is built anew. Nodes of the
// version before read and write the table by its name as ever.
//
// Each part is a transaction of its own and is found done when the step is taken up
// again. Only the first and the last need the table for themselves, for a moment.
//
// Failure policy: between the first part and the last the table takes no rows
// from the day on with which the partitions begin. That day is a month away, so a
// migration that broke off can be taken up again for a month before anybody
// notices; it is the only thing that cannot wait for ever.
func (s *pgSchema) partition(ctx context.Context, m migration, p newPartitions) error {
	var parted bool
	if err := s.conn.QueryRow(ctx, "SELECT relkind = 'p' FROM pg_class WHERE oid = to_regclass($1)", p.table).Scan(&parted); err != nil || parted {
		return err
	}
	names := strings.NewReplacer("{table}", p.table, "{id}", p.id)
	if err := s.exec(ctx, names.Replace(partitionFirstDay)); err != nil {
		return err
	}
	var checked bool
	err := s.conn.QueryRow(ctx, "SELECT convalidated FROM pg_constraint WHERE conrelid = to_regclass($1) AND conname = $1 || '_before'", p.table).Scan(&checked)
	if errors.Is(err, pgx.ErrNoRows) {
		err = s.exec(ctx, names.Replace(partitionBound))
	}
	if err != nil {
		return fmt.Errorf("say where the first partition ends: %w", err)
	}
	if !checked {
		s.e.d.log.Log(ctx, m.level(), "looking through a table while others write", "table", p.table)
		// Nobody waits behind one who waits for this: here the time limit for locks would only break it off.
		err := errors.Join(s.run(ctx, "SET lock_timeout = 0; ALTER TABLE "+p.table+" VALIDATE CONSTRAINT "+p.table+"_before"), s.run(ctx, schemaSettings))
		if err != nil {
			return fmt.Errorf("look whether everything stands before the second partition: %w", err)
		}
	}
	if err := s.exec(ctx, names.Replace(partitionSwap)); err != nil {
		return fmt.Errorf("make %s the first partition: %w", p.table, err)
	}
	return nil
}

const (
	// partitionFirstDay remembers with which day the partitions begin: in a month,
	// and behind every row that a clock wrote which was ahead.
	partitionFirstDay = `DO $$
DECLARE
    newest TEXT := (SELECT max({id}) FROM {table});
    ahead  BIGINT := 0;
BEGIN
    IF newest ~ '^[0-9a-f]{8}-[0-9a-f]{4}-7' THEN
        ahead := ('x' || substr(newest, 1, 8) || substr(newest, 10, 4))::bit(48)::bigint / 86400000 + 1;
    ELSIF newest IS NOT NULL THEN
        RAISE EXCEPTION '{table} has a row whose {id} does not begin with its time: %', newest USING HINT = 'It was not written by this program; remove it and migrate again.';
    END IF;
    INSERT INTO partitioned (name, id, first_day) VALUES ('{table}', '{id}', greatest(ahead, extract(epoch FROM now())::bigint / 86400 + 30)) ON CONFLICT (name) DO NOTHING;
END $$`

	// partitionBound says so of the table itself. With that, looked through beside
	// writers, it can be attached without another look.
	partitionBound = `SET LOCAL lock_timeout = '500ms';
DO $$ BEGIN
    EXECUTE format('ALTER TABLE {table} ADD CONSTRAINT {table}_before CHECK ({id} < %L) NOT VALID', (SELECT day_id(first_day) FROM partitioned WHERE name = '{table}'));
END $$`

	// partitionSwap puts a partitioned table in the place of the old one, which
	// becomes its first partition. Keys and indexes are the same and keep their
	// names, so that the old ones are taken as they are; rights go along.
	partitionSwap = `SET LOCAL lock_timeout = '500ms';
DO $$
DECLARE
    made  RECORD;
    again TEXT[] := '{}';
    line  TEXT;
BEGIN
    LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE;
    FOR made IN SELECT c.relname AS name, pg_get_indexdef(c.oid) AS index, pg_get_constraintdef(k.oid) AS key
            FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid LEFT JOIN pg_constraint k ON k.conindid = c.oid AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u')
            WHERE i.indrelid = to_regclass('{table}') LOOP
        again := again || coalesce(format('ALTER TABLE {table} ADD CONSTRAINT %I ', made.name) || made.key, made.index);
        EXECUTE format('ALTER INDEX %I RENAME TO %I', made.name, '{table}_before' || substr(made.name, length('{table}') + 1));
    END LOOP;
    ALTER TABLE {table} RENAME TO {table}_before;
    CREATE TABLE {table} (LIKE {table}_before INCLUDING DEFAULTS INCLUDING STORAGE) PARTITION BY RANGE ({id});
    FOREACH line IN ARRAY again LOOP
        EXECUTE line;
    END LOOP;
    CREATE TABLE {table}_rest PARTITION OF {table} DEFAULT;
    EXECUTE format('ALTER TABLE {table} ATTACH PARTITION {table}_before FOR VALUES FROM (MINVALUE) TO (%L)', (SELECT day_id(first_day) FROM partitioned WHERE name = '{table}'));
    ALTER TABLE {table}_before DROP CONSTRAINT {table}_before;
    FOR made IN SELECT a.privilege_type AS what, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
            FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) AS a WHERE c.oid = to_regclass('{table}_before') AND a.grantee <> c.relowner LOOP
        EXECUTE format('GRANT %s ON {table} TO %s', made.what, made.who);
        EXECUTE format('REVOKE %s ON {table}_before FROM %s', made.what, made.who);
    END LOOP;
END $$`
)
