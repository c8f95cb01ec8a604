package endpoint

import (
	"encoding/json"
	"fmt"
	"time"

	"tributary/internal/country"
	"tributary/internal/db"
)

const (
	versionSQL = "SELECT version FROM authority_endpoints_version"
	raiseSQL   = "UPDATE authority_endpoints_version SET version = version + 1"

	rowsSQL = "SELECT country, live, url, host, ca, secrets, subject, fingerprint, expires_at, wrapped, sealed, version, updated_at FROM authority_endpoints"

	// putSQL changes the row that was read; $13 is its version, 0 where there was none.
	putSQL = `INSERT INTO authority_endpoints (country, live, url, host, ca, secrets, subject, fingerprint, expires_at, wrapped, sealed, version, updated_at)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, (SELECT version FROM authority_endpoints_version), $12
		WHERE $13 = coalesce((SELECT version FROM authority_endpoints WHERE country = $1 AND live = $2), 0)
		ON CONFLICT (country, live) DO UPDATE SET url = excluded.url, host = excluded.host, ca = excluded.ca, secrets = excluded.secrets,
			subject = excluded.subject, expires_at = excluded.expires_at, wrapped = excluded.wrapped, sealed = excluded.sealed,
			alarmed = CASE WHEN authority_endpoints.fingerprint = excluded.fingerprint THEN authority_endpoints.alarmed ELSE 0 END,
			fingerprint = excluded.fingerprint, version = excluded.version, updated_at = excluded.updated_at`

	removeSQL = "DELETE FROM authority_endpoints WHERE country = $1 AND live = $2"

	rewrapSQL = "UPDATE authority_endpoints SET wrapped = $1 WHERE country = $2 AND live = $3 AND wrapped = $4"

	endingSQL = `SELECT country, live, expires_at FROM authority_endpoints
		WHERE expires_at IS NOT NULL AND expires_at < $1 AND (alarmed = 0 OR alarmed > $2) ORDER BY country, live`
	alarmedSQL = "UPDATE authority_endpoints SET alarmed = $1 WHERE country = $2 AND live = $3"
)

// row is what is stored of one environment.
type row struct {
	at          country.Environment
	url, host   string
	ca          string
	secrets     []string
	subject     *string
	fingerprint *string
	expiresAt   time.Time // zero without a certificate
	wrapped     []byte
	sealed      []byte
	version     int64
	updatedAt   time.Time
}

func readRows(r db.Reader) ([]row, error) {
	return db.Collect(r, scanRow, rowsSQL+" ORDER BY country, live")
}

func scanRow(scan func(...any) error) (one row, err error) {
	var names string
	var updated int64
	err = scan(&one.at.Code, (*bool)(&one.at.Live), &one.url, &one.host, &one.ca, &names, &one.subject, &one.fingerprint,
		db.NullInstant(&one.expiresAt), &one.wrapped, &one.sealed, &one.version, &updated)
	if err != nil {
		return one, err
	}
	one.updatedAt = db.FromMicros(updated)
	if err := json.Unmarshal([]byte(names), &one.secrets); err != nil {
		return one, fmt.Errorf("read the names of %s: %w", one.at, err)
	}
	return one, nil
}
