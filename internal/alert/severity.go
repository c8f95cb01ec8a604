package alert

// Severity says how soon a person must act.
type Severity string

// The severities.
const (
	Critical Severity = "critical" // now: something stands still or is at risk
	Warning  Severity = "warning"  // today
	Info     Severity = "info"     // it may end by itself
)
