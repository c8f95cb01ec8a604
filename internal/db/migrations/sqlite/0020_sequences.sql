-- Owner: filing. Numbers that filings of an endpoint carry and that were never used there before.
CREATE TABLE sequences (
    country TEXT    NOT NULL,
    live    BOOLEAN NOT NULL,
    next    BIGINT  NOT NULL, -- to be drawn
    room    BIGINT  NOT NULL, -- how many may be drawn at once, as of
    at      BIGINT  NOT NULL, -- this instant of the wall clock
    PRIMARY KEY (country, live)
) WITHOUT ROWID;
