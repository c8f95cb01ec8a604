-- Owner: endpoint. What the operator says of an authority in one environment:
-- its address, and who we are there. Secrets and the PKCS#12 are sealed by a
-- data key of the row's own, wrapped by the master key.
CREATE TABLE authority_endpoints (
    country     TEXT    NOT NULL,
    live        BOOLEAN NOT NULL,
    url         TEXT    NOT NULL,
    host        TEXT    NOT NULL, -- under which authorities call us
    ca          TEXT    NOT NULL, -- PEM: whose client certificates are believed there
    secrets     TEXT    NOT NULL, -- JSON: the names of what is sealed
    subject     TEXT,             -- of the certificate
    fingerprint TEXT,
    expires_at  BIGINT,
    alarmed     BIGINT  NOT NULL DEFAULT 0, -- days of the last alarm about its end
    wrapped     BLOB,
    sealed      BLOB,
    version     BIGINT  NOT NULL,
    updated_at  BIGINT  NOT NULL,
    PRIMARY KEY (country, live)
) WITHOUT ROWID;

-- Raised by every change; running nodes compare it.
CREATE TABLE authority_endpoints_version (
    one     BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    version BIGINT NOT NULL
) WITHOUT ROWID;
INSERT INTO authority_endpoints_version (one, version) VALUES (1, 0);
