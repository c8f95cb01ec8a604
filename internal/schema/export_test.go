package schema

import (
	"context"

	"tributary/internal/db"
)

// SchemaLock is the advisory lock of migrations.
const SchemaLock = schemaLock

// MigrateSteps applies a test's own steps instead of the program's.
func MigrateSteps(ctx context.Context, d *db.DB, steps ...Step) (int, error) {
	all := make([]migration, len(steps))
	for i, s := range steps {
		all[i] = migration{version: s.Version, name: s.Name, script: s.Script}
	}
	return migrate(ctx, d, all)
}

// Step is one migration as the tests see it.
type Step struct {
	Version      int
	Name, Script string
}

// Steps are the migrations of an engine.
func Steps(engine string) ([]Step, error) {
	all, err := migrations(engine)
	steps := make([]Step, len(all))
	for i, m := range all {
		steps[i] = Step{m.version, m.name, m.script}
	}
	return steps, err
}
