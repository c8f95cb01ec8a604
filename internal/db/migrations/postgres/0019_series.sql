-- Owner: filing.

-- Series from which transactions without a number get theirs.
CREATE TABLE number_series (
    series_id   TEXT    PRIMARY KEY,
    client_id   TEXT    NOT NULL,
    supplier_id TEXT    NOT NULL,
    country     TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    pattern     TEXT    NOT NULL, -- with {N:width}, {YYYY}, {YY}
    yearly      BOOLEAN NOT NULL, -- counts anew in each year of documents
    created_at  BIGINT  NOT NULL
);
CREATE UNIQUE INDEX number_series_for ON number_series (client_id, supplier_id, country, kind);

-- The next number of a series; year is 0 where it does not count by years.
CREATE TABLE series_counters (
    series_id TEXT   NOT NULL REFERENCES number_series (series_id),
    year      BIGINT NOT NULL,
    next      BIGINT NOT NULL,
    PRIMARY KEY (series_id, year)
);

-- The number of a transaction, for all its attempts. Never deleted: a number is never used again.
CREATE TABLE drawn_numbers (
    client_id      TEXT   NOT NULL,
    transaction_id TEXT   NOT NULL,
    series_id      TEXT   NOT NULL REFERENCES number_series (series_id),
    number         TEXT   NOT NULL,
    drawn_at       BIGINT NOT NULL,
    PRIMARY KEY (client_id, transaction_id)
);
ALTER TABLE operations ADD COLUMN series TEXT;
