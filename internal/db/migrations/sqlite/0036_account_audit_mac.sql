-- Owner: account. What proves that an entry was written by who holds the audit key, which is sealed under the
-- master key and opens in no database; NULL: it is older than the key.
ALTER TABLE account_audit ADD COLUMN mac BLOB;
