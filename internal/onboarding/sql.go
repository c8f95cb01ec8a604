package onboarding

// The statements of this slice.

const openCreateSQL = `SELECT job_id, company_id, digest, secret_digest FROM onboarding_jobs
	WHERE client_id = $1 AND external_id = $2 AND kind = 'create' AND status <> 'failed'`

const openChangeSQL = `SELECT job_id, company_id, digest, secret_digest FROM onboarding_jobs
	WHERE client_id = $1 AND company_id = $2 AND status IN ('pending', 'processing')`

const jobSQL = `SELECT company_id, status, errors FROM onboarding_jobs WHERE client_id = $1 AND job_id = $2`

const readSQL = `SELECT client_id, company_id, external_id, kind, status, country, tax_key, live, profile, sealed, crashes, tries
	FROM onboarding_jobs WHERE job_id = $1`

const beginSQL = `UPDATE onboarding_jobs SET status = 'processing', crashes = crashes + 1, updated_at = $1 WHERE job_id = $2`

// giveBackSQL lets a job wait; it is in order, so that it was begun is no crash.
const giveBackSQL = `UPDATE onboarding_jobs SET status = 'pending', crashes = 0, tries = $1, updated_at = $2 WHERE job_id = $3`

// endSQL forgets the credentials: the company has them now, or nobody.
const endSQL = `UPDATE onboarding_jobs SET status = $1, errors = $2, sealed = NULL, updated_at = $3 WHERE job_id = $4`

// rivalSQL finds another job that is about to make the same company.
const rivalSQL = `SELECT job_id FROM onboarding_jobs
	WHERE client_id = $1 AND country = $2 AND tax_key = $3 AND status = 'processing' AND kind = 'create' AND job_id <> $4`

const twinSQL = `SELECT external_id FROM companies WHERE client_id = $1 AND country = $2 AND tax_key = $3 AND company_id <> $4`

// dueSQL lets a job be looked at now, whoever has it.
const dueSQL = `UPDATE onboarding_jobs SET due_at = $1, lease_until = NULL, lease_node = NULL WHERE job_id = $2 AND status IN ('pending', 'processing')`

const changeCompanySQL = `UPDATE companies SET profile = $1, updated_at = $2 WHERE client_id = $3 AND company_id = $4`

const putCredentialsSQL = `INSERT INTO company_credentials (client_id, company_id, sealed, login, subject, fingerprint, expires_at, grant_id)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
	ON CONFLICT (client_id, company_id) DO UPDATE SET sealed = excluded.sealed, login = excluded.login, subject = excluded.subject,
		fingerprint = excluded.fingerprint, expires_at = excluded.expires_at, grant_id = excluded.grant_id, alarmed = 0`

const companySelect = `SELECT c.company_id, c.live, c.profile, c.created_at, c.updated_at,
		k.login, k.subject, k.fingerprint, k.expires_at
	FROM companies c LEFT JOIN company_credentials k ON k.client_id = c.client_id AND k.company_id = c.company_id
	WHERE c.client_id = $1 AND `

const listSQL = companySelect + `(c.created_at < $2 OR (c.created_at = $2 AND c.company_id < $3))
	ORDER BY c.created_at DESC, c.company_id DESC LIMIT $4`

const supplierSQL = `SELECT profile FROM companies WHERE client_id = $1 AND company_id = $2`

const sealedSQL = `SELECT k.sealed, coalesce(k.grant_id, '') FROM companies c
	LEFT JOIN company_credentials k ON k.client_id = c.client_id AND k.company_id = c.company_id
	WHERE c.client_id = $1 AND c.company_id = $2`

// endingSQL lists certificates that end before an instant and have not raised
// the alarm of that distance; $2 is its number of days.
const endingSQL = `SELECT k.client_id, k.company_id, c.external_id, k.expires_at, k.alarmed
	FROM company_credentials k JOIN companies c ON c.client_id = k.client_id AND c.company_id = k.company_id
	WHERE k.expires_at IS NOT NULL AND k.expires_at < $1 AND (k.alarmed = 0 OR k.alarmed > $2)
	ORDER BY k.expires_at LIMIT $3`

const putLogoSQL = `INSERT INTO company_logos (client_id, company_id, sha256, logo) VALUES ($1, $2, $3, $4)
	ON CONFLICT (client_id, company_id, sha256) DO NOTHING`

const logoSQL = `SELECT logo FROM company_logos WHERE client_id = $1 AND company_id = $2 AND sha256 = $3`
