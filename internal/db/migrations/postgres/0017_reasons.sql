-- Owner: filing. Why something waits is a named value beside the text for
-- people; what a supplier is held for, and whether the intake is closed, are
-- filing's own to keep. Recovery keeps restorations and restored_suppliers; a
-- chain that was stopped without a restoration no longer stands there.

ALTER TABLE lanes ADD COLUMN reason      TEXT   NOT NULL DEFAULT ''; -- a published code; trouble says it for people
ALTER TABLE lanes ADD COLUMN asked_until BIGINT;                     -- the end of the pause that the authority asked for
ALTER TABLE lanes ADD COLUMN credentials BIGINT NOT NULL DEFAULT 0;  -- version of the credentials that a holder has acted on
UPDATE lanes SET reason = CASE
    WHEN trouble LIKE 'stopped%'     THEN 'chain_stopped'
    WHEN trouble LIKE 'restored%'    THEN 'held'
    WHEN trouble LIKE 'credentials%' THEN 'credentials_invalid'
    ELSE 'authority_unreachable' END
WHERE failures > 0 OR trouble <> '';

-- Nothing of a supplier is filed while released_at is NULL. A row that was
-- released stays: it tells a company that was asked about from one that is new
-- after a restored backup.
CREATE TABLE supplier_holds (
    client_id   TEXT    NOT NULL,
    supplier_id TEXT    NOT NULL,
    country     TEXT    NOT NULL,
    live        BOOLEAN NOT NULL,
    reason      TEXT    NOT NULL CHECK (reason IN ('held', 'chain_stopped')),
    why         TEXT    NOT NULL, -- for people
    since       BIGINT  NOT NULL,
    released_at BIGINT,
    PRIMARY KEY (client_id, supplier_id)
);
INSERT INTO supplier_holds (client_id, supplier_id, country, live, reason, why, since, released_at)
SELECT s.client_id, s.supplier_id, s.country, s.live, CASE s.state WHEN 'chain' THEN 'chain_stopped' ELSE 'held' END,
    CASE WHEN s.trouble <> '' THEN s.trouble ELSE 'the authority has not said yet what it holds' END,
    coalesce(r.started_at, 0), CASE s.state WHEN 'asked' THEN coalesce(r.started_at, 0) END
FROM restored_suppliers s LEFT JOIN restorations r ON r.one = 1;

-- How often a supplier's credentials were replaced. Whoever replaces them raises
-- it; whoever holds a lane compares it and acts.
CREATE TABLE credential_versions (
    client_id   TEXT   NOT NULL,
    supplier_id TEXT   NOT NULL,
    version     BIGINT NOT NULL,
    PRIMARY KEY (client_id, supplier_id)
);

-- Whether transactions are accepted: not while closed_at stands there.
CREATE TABLE intake (
    one             BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    closed_at       BIGINT,
    newcomers_from  BIGINT, -- companies onboarded from then on are held at their first filing,
    newcomers_until BIGINT  -- until then
);
INSERT INTO intake (one, closed_at, newcomers_from, newcomers_until)
SELECT 1, CASE WHEN ended_at IS NULL THEN started_at END, started_at, started_at + 7776000000000 FROM restorations;

-- The correction, besides its original, that a correction waits for.
ALTER TABLE operations ADD COLUMN behind TEXT;
-- Size of the body; 0: not known, from a node of the version before.
ALTER TABLE operations ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
-- Of what the body says, however it is written; NULL from a node of the version before.
ALTER TABLE bodies ADD COLUMN digest TEXT;

-- An authority that a node calls only now and then because it does not answer.
CREATE TABLE breakers (
    country  TEXT    NOT NULL,
    live     BOOLEAN NOT NULL,
    node     TEXT    NOT NULL,
    open     BOOLEAN NOT NULL,
    failures BIGINT  NOT NULL, -- calls in a row
    trouble  TEXT    NOT NULL,
    since    BIGINT  NOT NULL,
    probe_at BIGINT  NOT NULL,
    PRIMARY KEY (country, live, node)
);

CREATE INDEX CONCURRENTLY operations_behind ON operations (client_id, behind) WHERE behind IS NOT NULL;
