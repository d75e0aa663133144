-- Requests beside the conversation, of plugins and of the host's own tools. They have no prefix that the cache ledger compares.
CREATE TABLE auxiliary_requests (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    plugin TEXT NOT NULL,
    task TEXT NOT NULL,
    -- When it was sent; Unix time in milliseconds.
    sent_at INTEGER NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    -- The model that the reply names, where it is not the one that was asked.
    answered_by TEXT,
    -- As the provider reported; null where it reported nothing, or where the process ended before.
    input_tokens INTEGER,
    output_tokens INTEGER,
    cache_read_tokens INTEGER,
    cache_write_tokens INTEGER,
    -- US dollars. Null without a price or a report.
    cost REAL
) STRICT;

CREATE INDEX auxiliary_requests_by_session ON auxiliary_requests (session_id);

-- Usage is summed up by day.
CREATE INDEX auxiliary_requests_by_time ON auxiliary_requests (sent_at);
CREATE INDEX requests_by_time ON requests (sent_at);
