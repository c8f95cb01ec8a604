package db

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
)

// columnTypes knows the types of the tables' columns on PostgreSQL, read once
// per table, so that a set-based insert can cast its arrays.
type columnTypes struct {
	mu     sync.RWMutex
	tables map[string]map[string]string
	texts  map[Insert]unnestText
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
	types, ok := c.tables[in.Table]
	if !ok {
		types = map[string]string{}
		rows, err := pool.Query(ctx, `SELECT attname, format_type(atttypid, NULL) FROM pg_attribute
			WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped`, in.Table)
		if err != nil {
			return unnestText{}, fmt.Errorf("read the columns of %s: %w", in.Table, err)
		}
		for rows.Next() {
			var name, typ string
			if err := rows.Scan(&name, &typ); err != nil {
				return unnestText{}, err
			}
			types[name] = typ
		}
		if err := rows.Err(); err != nil {
			return unnestText{}, fmt.Errorf("read the columns of %s: %w", in.Table, err)
		}
		if c.tables == nil {
			c.tables, c.texts = map[string]map[string]string{}, map[Insert]unnestText{}
		}
		c.tables[in.Table] = types
	}
	text := unnestText{}
	var casts []string
	for i, name := range strings.Split(in.Columns, ",") {
		typ, ok := types[strings.TrimSpace(name)]
		if !ok {
			return unnestText{}, fmt.Errorf("table %s has no column %q", in.Table, strings.TrimSpace(name))
		}
		text.types = append(text.types, typ)
		casts = append(casts, fmt.Sprintf("$%d::%s[]", i+1, typ))
	}
	text.sql = "INSERT INTO " + in.Table + " (" + in.Columns + ") SELECT * FROM unnest(" + strings.Join(casts, ",") + ") " + in.Suffix
	c.texts[in] = text
	return text, nil
}

// columnArray turns one column of the rows into a typed array; nil stays NULL.
func columnArray(typ string, at int, rows [][]any) (any, error) {
	switch typ {
	case "text":
		return column(rows, at, asText)
	case "bigint":
		return column(rows, at, asInt)
	case "bytea":
		return column(rows, at, func(v any) ([]byte, bool) { b, ok := v.([]byte); return b, ok })
	case "boolean":
		return column(rows, at, func(v any) (bool, bool) { b, ok := v.(bool); return b, ok })
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
		if row[at] == nil {
			continue
		}
		v, ok := as(row[at])
		if !ok {
			return nil, fmt.Errorf("row %d holds a %T", i, row[at])
		}
		values[i] = v
		out[i] = &values[i]
	}
	return out, nil
}

func asText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case *string:
		if v != nil {
			return *v, true
		}
	}
	return "", false
}

func asInt(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case int:
		return int64(v), true
	case int32:
		return int64(v), true
	}
	return 0, false
}
