package alert

// raiseSQL is one statement per alert, not a set-based insert: two alerts of
// one name and subject in one group must both count.
const raiseSQL = `INSERT INTO alerts (alert_id, name, subject, message, first_at, last_at) VALUES ($1, $2, $3, $4, $5, $5)
	ON CONFLICT (name, subject) WHERE acknowledged_at IS NULL
	DO UPDATE SET times = alerts.times + 1, last_at = excluded.last_at, message = excluded.message`

const raisedSinceSQL = "SELECT count(*) FROM alerts WHERE name = $1 AND subject = $2 AND last_at >= $3"

const listSQL = `SELECT alert_id, name, subject, message, first_at, last_at, times, acknowledged_at, acknowledged_by FROM alerts
	WHERE (NOT $1 OR acknowledged_at IS NULL) AND ($2 = '' OR name = $2)
	ORDER BY last_at DESC, alert_id LIMIT $3`

const (
	openSQL        = "SELECT name, count(*) FROM alerts WHERE acknowledged_at IS NULL GROUP BY name"
	countOpenSQL   = "SELECT count(*) FROM alerts WHERE alert_id = $1 AND acknowledged_at IS NULL"
	acknowledgeSQL = "UPDATE alerts SET acknowledged_at = $1, acknowledged_by = $2 WHERE alert_id = $3 AND acknowledged_at IS NULL"
)
