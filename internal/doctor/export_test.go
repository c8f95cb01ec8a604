package doctor

import "time"

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

func (d *doctor) verdictOf(say func(*doctor)) Verdict {
	if say(d); len(d.findings) == 0 {
		return OK
	}
	return d.findings[0].Verdict
}
