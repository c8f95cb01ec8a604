package db

import "time"

// For rehearsals: tests and simulations change this, a program that serves anybody does not.

// JumpWall sets a database's wall clock by so much without time going by.
func JumpWall(d *DB, by time.Duration) {
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	read := d.clock.read
	d.clock.read = func() reading {
		r := read()
		r.wall = r.wall.Add(by)
		return r
	}
}
