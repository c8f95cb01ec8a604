package db

import "fmt"

// PlanByValue has the statements of this snapshot planned for the values they
// carry. PostgreSQL otherwise plans a statement that it has seen five times once
// and for all, for values of average frequency; a search for a value that a
// million rows have would then read and sort them all instead of walking its
// index from the end. SQLite plans every statement without looking at values.
func (d *DB) PlanByValue(r Reader) error {
	if d.Engine() != "postgres" {
		return nil
	}
	var mode string
	if err := r.Row("SELECT set_config('plan_cache_mode', 'force_custom_plan', true)").Scan(&mode); err != nil {
		return fmt.Errorf("plan by value: %w", err)
	}
	return nil
}
