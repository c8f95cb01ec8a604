package db

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// columnTypes knows the types of the tables' columns on PostgreSQL, read once
// per table, so that a set-based insert can cast its arrays.
type columnTypes struct {
	mu     sync.RWMutex
	tables map[string]map[string]string
	texts  map[Insert]unnestText
	sets   map[string]updateSet
}

type unnestText struct {
	sql   string
	types []string
}

// unnest builds INSERT … SELECT * FROM unnest(…) with one array per column:
// one statement, one plan, whatever the number of rows.
func (c *columnTypes) unnest(ctx context.Context, pool *pgxpool.Pool, in Insert, rows [][]any) (string, []any, error) {
	c.mu.RLock()
	text, ok := c.texts[in]
	c.mu.RUnlock()
	if !ok {
		var err error
		if text, err = c.learn(ctx, pool, in); err != nil {
			return "", nil, err
		}
	}
	args := make([]any, len(text.types))
	for i, typ := range text.types {
		column, err := columnArray(typ, i, rows)
		if err != nil {
			return "", nil, fmt.Errorf("insert into %s: column %d: %w", in.Table, i+1, err)
		}
		args[i] = column
	}
	return text.sql, args, nil
}

func (c *columnTypes) learn(ctx context.Context, pool *pgxpool.Pool, in Insert) (unnestText, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, err := c.build(in)
	if err == nil {
		return text, nil
	}
	// Not read yet, or a migration has added columns since.
	types, err := readColumns(ctx, pool, in.Table)
	if err != nil {
		return unnestText{}, fmt.Errorf("read the columns of %s: %w", in.Table, err)
	}
	c.know(in.Table, types)
	return c.build(in)
}

func (c *columnTypes) know(table string, types map[string]string) {
	if c.tables == nil {
		c.tables, c.texts, c.sets = map[string]map[string]string{}, map[Insert]unnestText{}, map[string]updateSet{}
	}
	c.tables[table] = types
}

// build makes the statement from the columns that are known.
func (c *columnTypes) build(in Insert) (unnestText, error) {
	text := unnestText{}
	var casts []string
	for i, name := range strings.Split(in.Columns, ",") {
		typ, ok := c.tables[in.Table][strings.TrimSpace(name)]
		if !ok {
			return unnestText{}, fmt.Errorf("table %s has no column %q", in.Table, strings.TrimSpace(name))
		}
		text.types = append(text.types, typ)
		casts = append(casts, fmt.Sprintf("$%d::%s[]", i+1, typ))
	}
	text.sql = "INSERT INTO " + in.Table + " (" + in.Columns + ") SELECT * FROM unnest(" + strings.Join(casts, ",") +
		")" + in.order() + " " + in.Suffix
	c.texts[in] = text
	return text, nil
}

// order puts rows that may be there already into the order of their keys: two
// nodes that write some of the same rows lock them in one order.
func (in Insert) order() string {
	_, target, found := strings.Cut(strings.ToUpper(in.Suffix), "ON CONFLICT")
	if !found {
		return ""
	}
	target = strings.TrimSpace(target)
	if end := strings.IndexByte(target, ')'); strings.HasPrefix(target, "(") && end > 0 {
		target = target[1:end]
	} else {
		target = in.Columns // any key: by everything
	}
	var places []string
	columns := strings.Split(in.Columns, ",")
	for _, key := range strings.Split(target, ",") {
		for i, name := range columns {
			if strings.EqualFold(strings.TrimSpace(key), strings.TrimSpace(name)) {
				places = append(places, fmt.Sprint(i+1))
			}
		}
	}
	if len(places) == 0 {
		return ""
	}
	return " ORDER BY " + strings.Join(places, ", ")
}

func readColumns(ctx context.Context, pool *pgxpool.Pool, table string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, pgQuestionFor)
	defer cancel()
	rows, err := pool.Query(ctx, `SELECT attname, format_type(atttypid, NULL) FROM pg_attribute
		WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped`, table)
	if err != nil {
		return nil, err
	}
	types := map[string]string{}
	var name, typ string
	_, err = pgx.ForEachRow(rows, []any{&name, &typ}, func() error {
		types[name] = typ
		return nil
	})
	return types, err
}

// columnArray turns one column of the rows into a typed array; nil stays NULL.
// It takes what database/sql takes on SQLite: named types, pointers, valuers.
func columnArray(typ string, at int, rows [][]any) (any, error) {
	switch typ {
	case "text":
		return column(rows, at, asText)
	case "bigint", "integer", "smallint":
		return column(rows, at, as[int64])
	case "bytea":
		return column(rows, at, as[[]byte])
	case "boolean":
		return column(rows, at, as[bool])
	}
	return nil, fmt.Errorf("type %s is not supported in a set-based insert", typ)
}

func column[T any](rows [][]any, at int, as func(any) (T, bool)) ([]*T, error) {
	out := make([]*T, len(rows))
	values := make([]T, len(rows))
	for i, row := range rows {
		if at >= len(row) {
			return nil, fmt.Errorf("row %d has only %d values", i, len(row))
		}
		v, ok := as(row[at])
		if !ok {
			plain, err := driver.DefaultParameterConverter.ConvertValue(row[at])
			if b, isBytes := plain.([]byte); err == nil && (plain == nil || isBytes && b == nil) {
				continue
			}
			if v, ok = as(plain); !ok || err != nil {
				return nil, fmt.Errorf("row %d holds a %T", i, row[at])
			}
		}
		values[i] = v
		out[i] = &values[i]
	}
	return out, nil
}

func as[T any](v any) (T, bool) {
	t, ok := v.(T)
	return t, ok
}

func asText(v any) (string, bool) {
	if b, ok := v.([]byte); ok && b != nil {
		return string(b), true
	}
	return as[string](v)
}
