package operator

// One text serves both engines.

// Operators.
const (
	operatorsSQL   = "SELECT name, role, password IS NOT NULL, issuer, created_at, signed_in_at, disabled_at FROM operators"
	createSQL      = "INSERT INTO operators (name, role, password, created_at) VALUES ($1, $2, $3, $4)"
	hashSQL        = "SELECT coalesce(password, ''), disabled_at FROM operators WHERE name = $1"
	passwordSQL    = "UPDATE operators SET password = $1 WHERE name = $2"
	rehashSQL      = "UPDATE operators SET password = $1 WHERE name = $2 AND password = $3"
	roleSQL        = "UPDATE operators SET role = $1 WHERE name = $2"
	disableSQL     = "UPDATE operators SET disabled_at = $1 WHERE name = $2"
	signedInSQL    = "UPDATE operators SET signed_in_at = $1 WHERE name = $2 AND disabled_at IS NULL"
	otherAdminsSQL = "SELECT count(*) FROM operators WHERE role = 'admin' AND disabled_at IS NULL AND name <> $1"
	identitySQL    = "SELECT coalesce(issuer, ''), coalesce(subject, ''), disabled_at FROM operators WHERE name = $1"
	boundSQL       = "SELECT name FROM operators WHERE issuer = $1 AND subject = $2"
	bindSQL        = "UPDATE operators SET issuer = $1, subject = $2 WHERE name = $3 AND subject IS NULL"
	unbindSQL      = "UPDATE operators SET issuer = NULL, subject = NULL WHERE name = $1"
)

// Sessions.
const (
	newSessionSQL = "INSERT INTO operator_sessions (digest, session_id, name, ip, agent, created_at, seen_at, ends_at) VALUES ($1, $2, $3, $4, $5, $6, $6, $7)"
	sessionsSQL   = `SELECT s.session_id, s.name, o.role, s.ip, s.agent, s.created_at, s.seen_at, s.ends_at
		FROM operator_sessions s JOIN operators o ON o.name = s.name WHERE o.disabled_at IS NULL`
	seenSQL      = "UPDATE operator_sessions SET seen_at = $1 WHERE digest = $2 AND seen_at < $1"
	endSQL       = "DELETE FROM operator_sessions WHERE session_id = $1"
	endAllSQL    = "DELETE FROM operator_sessions WHERE name = $1"
	endOthersSQL = "DELETE FROM operator_sessions WHERE name = $1 AND session_id <> $2"
	endOldSQL    = "DELETE FROM operator_sessions WHERE ends_at <= $1"
)

// The audit log.
const (
	auditColumns = "seq, at, actor, actor_ip, action, subject, client_id, before, after, outcome, prev_hash, hash"
	auditSQL     = "SELECT " + auditColumns + " FROM operator_audit"
	headSQL      = "SELECT seq, hash FROM operator_audit_head WHERE one = 1"
	moveHeadSQL  = "UPDATE operator_audit_head SET seq = $1, hash = $2 WHERE one = 1 AND seq = $3"
)
