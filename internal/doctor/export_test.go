package doctor

import (
	"context"
	"time"

	"tributary/internal/db"
)

// The limits of the checks.
const (
	FreeDoubtful = freeDoubtful
	FreeBroken   = freeBroken
	SkewDoubtful = skewDoubtful
	SkewBroken   = skewBroken
	EndDoubtful  = endDoubtful
	EndBroken    = endBroken
	CommitSlow   = commitSlow
	CommitBroken = commitTooSlow
)

// OfCommits, OfDisk, OfClock and OfEnd are the verdicts on figures.
func OfCommits(took ...time.Duration) Verdict {
	return (&doctor{}).verdictOf(func(d *doctor) { d.sayCommits("x", took) })
}

func OfDisk(free uint64) Verdict {
	return (&doctor{}).verdictOf(func(d *doctor) { d.sayDisk("/", free) })
}

func OfClock(ahead time.Duration) Verdict {
	return (&doctor{}).verdictOf(func(d *doctor) { d.sayClock("x", ahead) })
}

func OfEnd(now func() time.Time, end time.Time) Verdict {
	return (&doctor{now: now}).verdictOf(func(d *doctor) { d.sayEnd("c", "s", end, "f") })
}

// Secrets and Partitions are checks alone: a whole examination reads all fonts.
func Secrets(arguments []string, files map[string]string) []Finding {
	d := &doctor{arguments: arguments, secretFiles: files}
	d.checkArguments()
	d.checkFiles()
	return d.findings
}

func Partitions(ctx context.Context, on *db.DB, at time.Time) []Finding {
	d := &doctor{db: on, now: func() time.Time { return at }}
	d.checkPartitions(ctx)
	return d.findings
}

func (d *doctor) verdictOf(say func(*doctor)) Verdict {
	if say(d); len(d.findings) == 0 {
		return OK
	}
	return d.findings[0].Verdict
}
