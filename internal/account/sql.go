package account

// One text serves both engines.

const (
	keyColumns        = "kid, state, digest, created_at, promoted_at, revoked_at"
	auditColumns      = "client_id, seq, at, actor, actor_kid, actor_ip, action, subject, before_hash, after_hash, prev_hash, hash, mac"
	newClientColumns  = "client_id, live, config, created_at, updated_at, version, logo"
	newKeyColumns     = "kid, client_id, state, digest, sealed, created_at, promoted_at"
	newDataKeyColumns = "client_id, purpose, wrapped, created_at"
	secretColumns     = "id, digest, created_at, revoked_at"
	newSecretColumns  = "id, client_id, digest, sealed, created_at"
)

// ofClient narrows the texts below that end in %s.
const ofClient = "WHERE client_id = $1"

// Clients.
const (
	clientsSQL    = "SELECT client_id, live, config, created_at, updated_at FROM clients %s ORDER BY created_at, client_id"
	clientIDsSQL  = "SELECT client_id FROM clients ORDER BY client_id"
	clientHeadSQL = "SELECT live, config, audit_seq, audit_hash FROM clients WHERE client_id = $1"
	configureSQL  = "UPDATE clients SET config = $1 WHERE client_id = $2"
	logoSQL       = "SELECT logo FROM clients WHERE client_id = $1"
	setLogoSQL    = "UPDATE clients SET logo = $1 WHERE client_id = $2"
	countedSQL    = "UPDATE clients SET version = $1, updated_at = $2 WHERE client_id = $3 AND audit_seq = $4"
)

// Heads of audit logs.
const (
	headsSQL     = "SELECT client_id, audit_seq, audit_hash FROM clients WHERE audit_seq > 0 ORDER BY client_id"
	entryHashSQL = "SELECT hash FROM account_audit WHERE client_id = $1 AND seq = $2"
)

// Keys.
const (
	keysSQL       = "SELECT client_id, " + keyColumns + " FROM api_keys %s ORDER BY created_at, kid"
	clientKeysSQL = "SELECT " + keyColumns + " FROM api_keys WHERE client_id = $1 ORDER BY created_at, kid"
	ownerSQL      = "SELECT client_id FROM api_keys WHERE kid = $1 UNION ALL SELECT client_id FROM limited_keys WHERE kid = $1"
	sealedSQL     = "SELECT sealed FROM api_keys WHERE kid = $1 AND client_id = $2"
	moveKeySQL    = "UPDATE api_keys SET state = $1, promoted_at = $2, revoked_at = $3 WHERE kid = $4 AND client_id = $5 AND state = $6"
	replaceKeySQL = "UPDATE api_keys SET digest = $1, sealed = $2 WHERE kid = $3"
)

// Secrets of webhooks.
const (
	secretsSQL       = "SELECT client_id, " + secretColumns + " FROM webhook_secrets %s ORDER BY created_at, id"
	clientSecretsSQL = "SELECT " + secretColumns + " FROM webhook_secrets WHERE client_id = $1 ORDER BY created_at, id"
	sealedSecretSQL  = "SELECT sealed FROM webhook_secrets WHERE id = $1 AND client_id = $2"
	revokeSecretSQL  = "UPDATE webhook_secrets SET revoked_at = $1 WHERE id = $2 AND client_id = $3 AND revoked_at IS NULL"
)

// Data keys.
const (
	dataKeysSQL      = "SELECT client_id, purpose, wrapped FROM client_data_keys %s ORDER BY client_id, purpose"
	wrappedSQL       = "SELECT wrapped FROM client_data_keys WHERE client_id = $1 AND purpose = $2"
	countDataKeysSQL = "SELECT count(*) FROM client_data_keys WHERE client_id = $1 AND purpose = $2"
	rewrapSQL        = "UPDATE client_data_keys SET wrapped = $1 WHERE client_id = $2 AND purpose = $3 AND wrapped = $4"
)

// What has changed since a version.
const (
	versionSQL        = "SELECT version FROM account_version WHERE one = 1"
	nextVersionSQL    = "UPDATE account_version SET version = version + 1 WHERE one = 1 RETURNING version"
	changedClientsSQL = "SELECT client_id, live, config FROM clients WHERE version > $1"
	changedKeysSQL    = `SELECT k.client_id, k.kid, k.state, k.digest FROM api_keys k JOIN clients c ON c.client_id = k.client_id
		WHERE c.version > $1 AND k.state <> 'revoked'`
	changedSecretsSQL = `SELECT s.client_id, s.id, s.digest FROM webhook_secrets s JOIN clients c ON c.client_id = s.client_id
		WHERE c.version > $1 AND s.revoked_at IS NULL ORDER BY s.created_at, s.id`
)

// The audit log.
const (
	auditSQL     = "SELECT " + auditColumns + " FROM account_audit WHERE client_id = $1 ORDER BY seq"
	auditPageSQL = "SELECT " + auditColumns + " FROM account_audit WHERE client_id = $1 AND seq > $2 ORDER BY seq LIMIT $3"
)
