package db

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// setFrom is the number of rows from which one statement for all is cheaper
// than one for each.
const setFrom = 4

// updateSet is an UPDATE for one row, read so that it can be written for many.
type updateSet struct {
	sql   string   // with arrays for arguments
	types []string // of the arguments
	keys  []int    // the arguments by which rows are found, from 0
}

var (
	errNotASet  = errors.New("not an UPDATE of which every argument has a type")
	setArgument = regexp.MustCompile(`\$(\d+)`)
	setColumn   = regexp.MustCompile(`(\w+) = \$(\d+)`)
	setCast     = regexp.MustCompile(`CAST\(\$(\d+) AS (\w+)\)`)
)

// updateSetOf writes "UPDATE t SET a = $2 WHERE id = $1" as "UPDATE t SET a =
// v.c2 FROM unnest($1::text[], $2::text[]) AS v(c1, c2) WHERE id = v.c1". The
// types of the arguments are those of the columns that they stand beside, or
// those that they are cast to.
func updateSetOf(sql string, columns map[string]string) (updateSet, error) {
	head, where, found := strings.Cut(sql, " WHERE ")
	if !found || !strings.HasPrefix(head, "UPDATE ") || strings.Contains(head, "SELECT") {
		return updateSet{}, errNotASet // a subquery has a WHERE of its own
	}
	types := map[int]string{}
	for _, m := range setCast.FindAllStringSubmatch(sql, -1) {
		n, _ := strconv.Atoi(m[1]) // digits
		types[n] = strings.ToLower(m[2])
	}
	for _, m := range setColumn.FindAllStringSubmatch(sql, -1) {
		n, _ := strconv.Atoi(m[2]) // digits
		typ, known := columns[m[1]]
		if !known {
			return updateSet{}, fmt.Errorf("there is no column %q", m[1])
		}
		types[n] = typ
	}
	set := updateSet{}
	var arrays, names []string
	for n := 1; n <= len(types); n++ {
		if types[n] == "" {
			return updateSet{}, errNotASet
		}
		set.types = append(set.types, types[n])
		arrays, names = append(arrays, fmt.Sprintf("$%d::%s[]", n, types[n])), append(names, fmt.Sprintf("c%d", n))
	}
	for _, m := range setArgument.FindAllStringSubmatch(sql, -1) {
		if n, _ := strconv.Atoi(m[1]); types[n] == "" {
			return updateSet{}, errNotASet
		}
	}
	for _, m := range setArgument.FindAllStringSubmatch(where, -1) {
		n, _ := strconv.Atoi(m[1])
		set.keys = append(set.keys, n-1)
	}
	set.sql = setArgument.ReplaceAllString(head, "v.c$1") + " FROM unnest(" + strings.Join(arrays, ",") + ") AS v(" +
		strings.Join(names, ",") + ") WHERE " +
		setArgument.ReplaceAllString(where, "v.c$1")
	return set, nil
}

// distinct is false where two argument lists look for the same row: one
// statement would change it once.
func (s updateSet) distinct(rows [][]any) bool {
	seen := make(map[string]bool, len(rows))
	var key []byte
	for _, row := range rows {
		key = key[:0]
		for _, k := range s.keys {
			key = fmt.Appendf(key, "%v\x00", row[k])
		}
		if seen[string(key)] {
			return false
		}
		seen[string(key)] = true
	}
	return true
}

// updateSet is the statement for all rows, and its arguments.
func (c *columnTypes) updateSet(ctx context.Context, pool *pgxpool.Pool, sql string,
	rows [][]any) (text string, args []any, err error) {
	c.mu.RLock()
	set, known := c.sets[sql]
	c.mu.RUnlock()
	if !known {
		if set, err = c.learnSet(ctx, pool, sql); err != nil {
			return "", nil, err
		}
	}
	if !set.distinct(rows) {
		return "", nil, errNotASet
	}
	args = make([]any, len(set.types))
	for i, typ := range set.types {
		if args[i], err = columnArray(typ, i, rows); err != nil {
			return "", nil, fmt.Errorf("argument %d of %q: %w", i+1, sql, err)
		}
	}
	return set.sql, args, nil
}

func (c *columnTypes) learnSet(ctx context.Context, pool *pgxpool.Pool, sql string) (updateSet, error) {
	table, _, _ := strings.Cut(strings.TrimPrefix(sql, "UPDATE "), " ")
	c.mu.Lock()
	defer c.mu.Unlock()
	set, err := updateSetOf(sql, c.tables[table])
	if err != nil && !errors.Is(err, errNotASet) {
		// Not read yet, or a migration has added columns since.
		columns, err := readColumns(ctx, pool, table)
		if err != nil {
			return updateSet{}, fmt.Errorf("read the columns of %s: %w", table, err)
		}
		c.know(table, columns)
		if set, err = updateSetOf(sql, columns); err != nil {
			return updateSet{}, err
		}
	} else if err != nil {
		return updateSet{}, err
	}
	c.sets[sql] = set
	return set, nil
}
