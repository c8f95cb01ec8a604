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
type newPartitions struct {
	table, id string
	digits    string // of ids; "": they are UUIDs
}

var partitionLine = regexp.MustCompile(`(?m)^-- Partition: ([a-z_]+) \(([a-z_]+)(?:, (\d+) digits)?\)$`)

// partitions are the tables that a step parts, behind its transaction and its indexes.
func (m migration) partitions() (list []newPartitions) {
	for _, found := range partitionLine.FindAllStringSubmatch(m.script, -1) {
		list = append(list, newPartitions{found[1], found[2], found[3]})
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
	names := p.names()
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

// names puts a table and the form of its ids into a script. The step that made the
// first partitions knows of UUIDs alone.
func (p newPartitions) names() *strings.Replacer {
	form, digits, first, columns, values := "^[0-9a-f]{8}-[0-9a-f]{4}-7", "substr(newest, 1, 8) || substr(newest, 10, 4)", "day_id(first_day)", "", ""
	if p.digits != "" {
		form, digits, first, columns, values = "^[0-9a-f]{"+p.digits+"}$", "substr(newest, 1, 12)", "day_id(first_day, digits)", ", digits", ", "+p.digits
	}
	return strings.NewReplacer("{table}", p.table, "{id}", p.id, "{form}", form, "{time}", digits, "{first}", first, "{columns}", columns, "{values}", values)
}

const (
	// partitionFirstDay remembers with which day the partitions begin: in a month,
	// and behind every row that a clock wrote which was ahead.
	partitionFirstDay = `DO $$
DECLARE
    newest TEXT := (SELECT max({id}) FROM {table});
    ahead  BIGINT := 0;
BEGIN
    IF newest ~ '{form}' THEN
        ahead := ('x' || {time})::bit(48)::bigint / 86400000 + 1;
    ELSIF newest IS NOT NULL THEN
        RAISE EXCEPTION '{table} has a row whose {id} does not begin with its time: %', newest USING HINT = 'It was not written by this program; remove it and migrate again.';
    END IF;
    INSERT INTO partitioned (name, id, first_day{columns}) VALUES ('{table}', '{id}', greatest(ahead, extract(epoch FROM now())::bigint / 86400 + 30){values}) ON CONFLICT (name) DO NOTHING;
END $$`

	// partitionBound says so of the table itself. With that, looked through beside
	// writers, it can be attached without another look.
	partitionBound = `SET LOCAL lock_timeout = '500ms';
DO $$ BEGIN
    EXECUTE format('ALTER TABLE {table} ADD CONSTRAINT {table}_before CHECK ({id} < %L) NOT VALID', (SELECT {first} FROM partitioned WHERE name = '{table}'));
END $$`
)
