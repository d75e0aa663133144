-- How long the provider keeps what the request wrote to its cache: `5m` or `1h`. Null where the request had no cache marks, and
-- in rows of earlier versions.
ALTER TABLE requests ADD COLUMN cache_ttl TEXT;
