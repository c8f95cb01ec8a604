package received

import "time"

// GrownUpAfter has it read what was in work when a process ended that long after now.
func (d *Documents) GrownUpAfter(pause time.Duration) { d.grownUp = d.db.Now().Add(pause) }
