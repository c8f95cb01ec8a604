-- Owner: filing. Authorities to which nothing gets through, as each node has
-- found out: for people, nothing is decided by it.
CREATE TABLE authority_breakers (
    country     TEXT   NOT NULL,
    environment TEXT   NOT NULL,
    node        TEXT   NOT NULL,
    opened_at   BIGINT NOT NULL,
    probe_at    BIGINT NOT NULL,
    failures    BIGINT NOT NULL,
    trouble     TEXT   NOT NULL,
    PRIMARY KEY (country, environment, node)
);
