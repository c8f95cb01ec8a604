package retention

const (
	keepSQL = `INSERT INTO retention_rounds (started_at, ended_at, report) VALUES ($1, $2, $3)
		ON CONFLICT (started_at) DO UPDATE SET ended_at = excluded.ended_at, report = excluded.report`
	dropSQL    = "DELETE FROM retention_rounds WHERE started_at < (SELECT min(started_at) FROM (SELECT started_at FROM retention_rounds ORDER BY started_at DESC LIMIT $1) newest)"
	startedSQL = "SELECT started_at FROM retention_rounds ORDER BY started_at DESC LIMIT $1"
	lastSQL    = "SELECT started_at, ended_at, report FROM retention_rounds ORDER BY started_at DESC LIMIT $1"

	progressSQL = "SELECT position, done_for FROM retention_cursors WHERE client_id = $1"
	advanceSQL  = `INSERT INTO retention_cursors (client_id, position, done_for) VALUES ($1, $2, $3)
		ON CONFLICT (client_id) DO UPDATE SET done_for = excluded.done_for,
			position = CASE WHEN excluded.position > retention_cursors.position THEN excluded.position ELSE retention_cursors.position END`
)
