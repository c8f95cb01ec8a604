package operator

// One text serves both engines.

// Operators.
const (
	operatorsSQL = `SELECT name, role, password IS NOT NULL, issuer, created_at, signed_in_at, disabled_at,
		(SELECT count(*) FROM operator_totp t WHERE t.name = operators.name), (SELECT count(*) FROM operator_passkeys p WHERE p.name = operators.name) FROM operators`
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
	auditColumns = "seq, at, actor, actor_ip, action, subject, client_id, before, after, outcome, prev_hash, hash, mac"
	auditSQL     = "SELECT " + auditColumns + " FROM operator_audit"
	headSQL      = "SELECT seq, hash FROM operator_audit_head WHERE one = 1"
	entryHashSQL = "SELECT hash FROM operator_audit WHERE seq = $1"
)

// Second factors.
const (
	factorsSQL = `SELECT (SELECT count(*) FROM operator_totp WHERE name = $1), (SELECT count(*) FROM operator_passkeys WHERE name = $1),
		(SELECT count(*) FROM operator_recovery WHERE name = $1 AND used_at IS NULL)`
	totpSQL         = "SELECT sealed, last_step FROM operator_totp WHERE name = $1"
	addTOTPSQL      = "INSERT INTO operator_totp (name, sealed, last_step, created_at) VALUES ($1, $2, $3, $4)"
	allTOTPSQL      = "SELECT name, sealed FROM operator_totp ORDER BY name"
	resealTOTPSQL   = "UPDATE operator_totp SET sealed = $1 WHERE name = $2"
	takeStepSQL     = "UPDATE operator_totp SET last_step = $1 WHERE name = $2 AND last_step < $1"
	dropTOTPSQL     = "DELETE FROM operator_totp WHERE name = $1"
	passkeysSQL     = "SELECT credential_id, label, public_key, sign_count, created_at, used_at FROM operator_passkeys WHERE name = $1 ORDER BY created_at, credential_id"
	passkeyOwnerSQL = "SELECT count(*) FROM operator_passkeys WHERE credential_id = $1"
	addPasskeySQL   = "INSERT INTO operator_passkeys (credential_id, name, label, public_key, sign_count, created_at) VALUES ($1, $2, $3, $4, $5, $6)"
	usePasskeySQL   = "UPDATE operator_passkeys SET sign_count = $1, used_at = $2 WHERE credential_id = $3 AND name = $4 AND sign_count = $5"
	dropPasskeySQL  = "DELETE FROM operator_passkeys WHERE name = $1 AND credential_id = $2"
	dropPasskeysSQL = "DELETE FROM operator_passkeys WHERE name = $1"
	addRecoverySQL  = "INSERT INTO operator_recovery (name, digest) VALUES ($1, $2)"
	useRecoverySQL  = "UPDATE operator_recovery SET used_at = $1 WHERE name = $2 AND digest = $3 AND used_at IS NULL"
	dropRecoverySQL = "DELETE FROM operator_recovery WHERE name = $1"
	newHalfwaySQL   = "INSERT INTO operator_halfway (digest, name, challenge, ends_at) VALUES ($1, $2, $3, $4)"
	halfwaySQL      = "SELECT h.name, h.challenge FROM operator_halfway h JOIN operators o ON o.name = h.name WHERE o.disabled_at IS NULL AND h.digest = $1 AND h.ends_at > $2 AND h.tries < $3"
	triedSQL        = "UPDATE operator_halfway SET tries = tries + 1 WHERE digest = $1"
	endHalfwaySQL   = "DELETE FROM operator_halfway WHERE digest = $1"
	endHalfwaysSQL  = "DELETE FROM operator_halfway WHERE name = $1"
	oldHalfwaysSQL  = "DELETE FROM operator_halfway WHERE ends_at <= $1"
)
