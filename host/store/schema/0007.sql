-- The outbox: finished turns that memory providers have not stored yet.

-- A turn enters in the transaction that appends its last message, and leaves when the provider has stored it.
CREATE TABLE outbox (
    provider TEXT NOT NULL,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    -- The turn's first and last message. The first one identifies the turn.
    first_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    last_id INTEGER NOT NULL,
    -- Unix time in milliseconds.
    ended_at INTEGER NOT NULL,
    -- Failed deliveries so far, and the cause of the last one.
    attempts INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    -- Not delivered again before this moment; null for a turn that the provider rejected.
    due_at INTEGER DEFAULT 0,
    PRIMARY KEY (provider, session_id, first_id)
) STRICT;

-- Deleting a session or a message looks for its turns.
CREATE INDEX outbox_by_session ON outbox (session_id, first_id);
CREATE INDEX outbox_by_message ON outbox (first_id);
