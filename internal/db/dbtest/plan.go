package dbtest

import "tributary/internal/db"

// Plan is how an engine would answer a question, line by line.
func Plan(r db.Reader, d *db.DB, text string, args ...any) ([]string, error) {
	if d.Engine() == "postgres" {
		return db.Collect(r, func(scan func(...any) error) (line string, err error) {
			return line, scan(&line)
		}, "EXPLAIN "+text, args...)
	}
	return db.Collect(r, func(scan func(...any) error) (line string, err error) {
		var id, parent, unused int64
		return line, scan(&id, &parent, &unused, &line)
	}, "EXPLAIN QUERY PLAN "+text, args...)
}
