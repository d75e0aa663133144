-- What was sent and what came of it, what was taken back, and what the store notes for itself.

-- What stood in requests and in no conversation: each text once a session, so that a request can be put together again.
CREATE TABLE ephemeral_layers (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    layers TEXT NOT NULL,
    UNIQUE (session_id, layers)
) STRICT;

-- The ledger of the prompt cache: a row for every request of a session, in order.
CREATE TABLE requests (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    -- Counts from 1 in each session.
    number INTEGER NOT NULL,
    -- When it was sent; Unix time in milliseconds.
    sent_at INTEGER NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    api_mode TEXT NOT NULL,
    -- Its prompt by its number and its view by its row; 0 for the view that is the whole log.
    prompt INTEGER NOT NULL,
    view INTEGER NOT NULL,
    -- The last message in it.
    through INTEGER,
    -- Tools, system prompt and messages as they were sent, without cache marks, and their hash.
    bytes INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    -- How much of it the request before began with.
    prefix_bytes INTEGER NOT NULL,
    -- Why that was less than the whole of the request before, and who is to blame.
    cause TEXT,
    culprit TEXT,
    -- Layers of this call alone.
    ephemeral INTEGER REFERENCES ephemeral_layers (id),
    -- As the provider reported; null where it reported nothing.
    input_tokens INTEGER,
    output_tokens INTEGER,
    cache_read_tokens INTEGER,
    cache_write_tokens INTEGER,
    -- US dollars: what it cost, what the cache spared, what the break cost. Null without a price or a report.
    cost REAL,
    saved REAL,
    lost REAL,
    PRIMARY KEY (session_id, number)
) STRICT;

-- Messages that a session took back. They stay in the log; neither its conversation nor a search shows them.
CREATE TABLE rewound (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    message_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    rewound_at INTEGER NOT NULL,
    UNIQUE (message_id, session_id)
) STRICT;

CREATE INDEX rewound_by_session ON rewound (session_id);

CREATE TABLE state_meta (
    key TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
