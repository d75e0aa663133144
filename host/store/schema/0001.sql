-- Sessions, the append-only log of their messages, and the views that models were shown of it.
-- A released migration is never edited: what comes later is a file of its own.

CREATE TABLE sessions (
    id TEXT PRIMARY KEY NOT NULL,
    source TEXT NOT NULL,
    title TEXT,
    workspace TEXT NOT NULL,
    engine TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    context_length INTEGER NOT NULL,
    -- Unix time in milliseconds.
    started_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- Messages of its own: those of a parent count there.
    message_count INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens INTEGER NOT NULL DEFAULT 0,
    request_count INTEGER NOT NULL DEFAULT 0,
    -- US dollars, of the requests whose price is known.
    cost REAL NOT NULL DEFAULT 0,
    -- No action on delete: a session that others go on from stays.
    parent_id TEXT REFERENCES sessions (id),
    parent_kind TEXT CHECK (parent_kind IN ('branch', 'continuation', 'delegate')),
    -- The last message of the parent's conversation that belongs to this one; null for none of it.
    parent_through INTEGER,
    -- The newest view there was when this session began: later ones of the parent are not its own.
    parent_view INTEGER,
    CHECK ((parent_id IS NULL) = (parent_kind IS NULL)),
    CHECK ((parent_id IS NULL) = (parent_view IS NULL)),
    CHECK (parent_through IS NULL OR parent_kind IN ('branch', 'continuation'))
) STRICT;

CREATE INDEX sessions_by_workspace ON sessions (workspace, updated_at);
CREATE INDEX sessions_by_parent ON sessions (parent_id);

-- What all requests of a session begin with, byte for byte. The newest is in force; a rebuilt one is a row of its own.
CREATE TABLE prompts (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    -- Counts from 1 in each session.
    number INTEGER NOT NULL,
    system_prompt TEXT NOT NULL,
    -- JSON: which layer takes how many bytes.
    layers TEXT NOT NULL,
    tools TEXT NOT NULL,
    reason TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (session_id, number)
) STRICT;

CREATE TRIGGER prompts_never_change
BEFORE UPDATE ON prompts
BEGIN
    SELECT RAISE(ABORT, 'prompts are append-only: no update');
END;

CREATE TRIGGER prompts_stay_with_their_session
BEFORE DELETE ON prompts
WHEN EXISTS (SELECT 1 FROM sessions WHERE id = OLD.session_id)
BEGIN
    SELECT RAISE(ABORT, 'prompts are append-only: no delete while their session lives');
END;

CREATE TABLE messages (
    -- Never used again, even after a session was deleted: ids grow in conversation order.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
    content TEXT NOT NULL,
    sent TEXT,
    reasoning TEXT,
    -- JSON array; null where there are none.
    tool_calls TEXT,
    tool_call_id TEXT,
    tool_name TEXT,
    origin TEXT NOT NULL CHECK (origin IN ('said', 'host')),
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX messages_by_session ON messages (session_id, id);

CREATE TRIGGER messages_never_change
BEFORE UPDATE ON messages
BEGIN
    SELECT RAISE(ABORT, 'messages are append-only: no update');
END;

-- A session leaves as a whole: its row goes first, then what hangs on it, and this lets them go.
CREATE TRIGGER messages_stay_with_their_session
BEFORE DELETE ON messages
WHEN EXISTS (SELECT 1 FROM sessions WHERE id = OLD.session_id)
BEGIN
    SELECT RAISE(ABORT, 'messages are append-only: no delete while their session lives');
END;

-- `INSERT OR REPLACE` deletes without asking the trigger above.
CREATE TRIGGER messages_are_never_replaced
BEFORE INSERT ON messages
WHEN EXISTS (SELECT 1 FROM messages WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'messages are append-only: no replace');
END;

CREATE TABLE views (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    -- Counts from 1 in each session.
    number INTEGER NOT NULL,
    -- The newest message that the items account for; later ones follow as they are.
    through INTEGER,
    engine TEXT NOT NULL,
    reason TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (session_id, number)
) STRICT;

CREATE TABLE summaries (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    content TEXT NOT NULL,
    -- JSON array of ranges.
    covers TEXT NOT NULL,
    -- The view that brought it.
    view_id INTEGER NOT NULL REFERENCES views (id) ON DELETE CASCADE,
    -- Not unique in the session: a key is free again when the views that used it look at messages that were taken back.
    -- That it is in what a conversation has is checked where summaries are written.
    UNIQUE (view_id, key)
) STRICT;

CREATE INDEX summaries_by_key ON summaries (session_id, key);

CREATE TABLE view_items (
    view_id INTEGER NOT NULL REFERENCES views (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('messages', 'excerpt', 'summary')),
    first_id INTEGER,
    last_id INTEGER,
    -- JSON object.
    excerpt TEXT,
    summary_id INTEGER REFERENCES summaries (id),
    PRIMARY KEY (view_id, position),
    CHECK ((kind = 'messages') = (first_id IS NOT NULL AND last_id IS NOT NULL)),
    CHECK ((kind = 'excerpt') = (excerpt IS NOT NULL)),
    CHECK ((kind = 'summary') = (summary_id IS NOT NULL))
) STRICT;

CREATE INDEX view_items_by_summary ON view_items (summary_id);

CREATE TRIGGER views_never_change
BEFORE UPDATE ON views
BEGIN
    SELECT RAISE(ABORT, 'views are append-only: no update');
END;

CREATE TRIGGER view_items_never_change
BEFORE UPDATE ON view_items
BEGIN
    SELECT RAISE(ABORT, 'views are append-only: no update');
END;

CREATE TRIGGER summaries_never_change
BEFORE UPDATE ON summaries
BEGIN
    SELECT RAISE(ABORT, 'summaries are append-only: no update');
END;
