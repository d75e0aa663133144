-- Messages of parts. The older columns stay what they are for messages that they can express; `content` is always the text
-- that the search knows. No row is rewritten. SQLite reads a strict table once for each column that is added: a few seconds
-- for a million messages.

-- JSON array of parts, without bytes; null where the columns beside it say all.
ALTER TABLE messages ADD COLUMN parts TEXT;
-- JSON object: which person, where several talk.
ALTER TABLE messages ADD COLUMN author TEXT;

-- Payloads of providers that a request sent back unchanged, and those that it left out.
ALTER TABLE requests ADD COLUMN payloads_replayed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE requests ADD COLUMN payloads_dropped INTEGER NOT NULL DEFAULT 0;

-- Bytes of pictures and files, each once. The bytes come last, so that sizes are read without them.
CREATE TABLE blobs (
    -- BLAKE3 of the bytes, in hexadecimal digits.
    hash TEXT PRIMARY KEY NOT NULL,
    media_type TEXT NOT NULL,
    size INTEGER NOT NULL,
    bytes BLOB NOT NULL
) STRICT;

CREATE TRIGGER blobs_never_change
BEFORE UPDATE ON blobs
BEGIN
    SELECT RAISE(ABORT, 'blobs are append-only: no update');
END;

-- The messages that name a blob.
CREATE TABLE message_blobs (
    message_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    hash TEXT NOT NULL REFERENCES blobs (hash),
    PRIMARY KEY (message_id, hash)
) STRICT;

CREATE INDEX message_blobs_by_hash ON message_blobs (hash);

-- A blob goes with the last message that names it.
CREATE TRIGGER blobs_leave_with_their_last_message
AFTER DELETE ON message_blobs
WHEN NOT EXISTS (SELECT 1 FROM message_blobs WHERE hash = OLD.hash)
BEGIN
    DELETE FROM blobs WHERE hash = OLD.hash;
END;
