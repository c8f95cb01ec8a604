package db

import "time"

// Test hooks: tests and simulations change these, a program that serves anybody does not.

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

// ShiftClock moves a database's time on, as if by had passed: exactly by, whatever
// the server's clock says.
func ShiftClock(d *DB, by time.Duration) {
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	d.clock.last = d.clock.advance().Add(by)
	d.clock.seen.mono += by
	read := d.clock.read
	d.clock.read = func() reading {
		r := read()
		r.mono += by
		r.wall = r.wall.Add(by)
		return r
	}
}

// StopClock lets a database's time stand still, but for ShiftClock: what a test
// asks about instants does not depend on how fast the machine is.
func StopClock(d *DB) {
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	still := d.clock.read()
	d.clock.read = func() reading { return still }
}
