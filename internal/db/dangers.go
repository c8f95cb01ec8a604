package db

import (
	"context"
	"fmt"
)

// Danger is a setting of the database server under which acknowledged data can be lost.
type Danger struct {
	Setting, Value string
	Harm, Fix      string
	Ours           bool // this program puts it right for its own sessions
}

// Dangers looks at the server's settings. What a session of ours can put right
// (synchronous_commit) is reported all the same: other programs write there too,
// and an operator who switched it off may have switched off more.
func (d *DB) Dangers(ctx context.Context) (list []Danger, err error) {
	if d.Engine() != "postgres" {
		return nil, nil // the file's settings are ours
	}
	known := map[string]Danger{
		"fsync": {Harm: "a power failure or a crash of the machine can destroy the whole cluster",
			Fix: "set fsync = on and restart the server"},
		"full_page_writes": {Harm: "a crash in the middle of a write can leave broken pages",
			Fix: "set full_page_writes = on and reload the server"},
		"synchronous_commit": {
			Harm: "a commit is acknowledged before it is on disk; this program switches it on for its own sessions",
			Fix:  "set synchronous_commit = on for the server, the database and the role", Ours: true},
	}
	err = d.Read(ctx, func(r Reader) error {
		list, err = Collect(r, func(scan func(...any) error) (Danger, error) {
			var name, value string
			err := scan(&name, &value)
			found := known[name]
			found.Setting, found.Value = name, value
			return found, err
		}, "SELECT name, reset_val FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND reset_val IN ('off', 'local') ORDER BY name")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the server's settings: %w", err)
	}
	return list, nil
}
