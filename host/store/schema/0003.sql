-- Titles that are unique, rewinds that can be undone one by one, and branches that no later rewind reaches.

-- The newest session keeps a title that several have; no session goes for it.
UPDATE sessions SET title = NULL
WHERE title IS NOT NULL AND rowid NOT IN (SELECT max(rowid) FROM sessions WHERE title IS NOT NULL GROUP BY title);

CREATE UNIQUE INDEX sessions_by_title ON sessions (title) WHERE title IS NOT NULL;

-- The newest row of `rewound` there was when this session began: what the parent takes back later stays here.
ALTER TABLE sessions ADD COLUMN parent_rewound INTEGER NOT NULL DEFAULT 0;

-- Counts from 1 in each session; the rows of one rewind share it.
ALTER TABLE rewound ADD COLUMN number INTEGER NOT NULL DEFAULT 1;

-- Deleting a session looks for requests that name its layers.
CREATE INDEX requests_by_ephemeral ON requests (ephemeral) WHERE ephemeral IS NOT NULL;

-- A key is free again when the views that used it look at messages that were taken back, so it is unique only in
-- what a conversation has: that is checked where summaries are written.
PRAGMA defer_foreign_keys = ON;

CREATE TEMP TABLE kept_summaries AS SELECT id, session_id, key, content, covers, view_id FROM summaries;

DROP TABLE summaries;

CREATE TABLE summaries (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    content TEXT NOT NULL,
    -- JSON array of ranges.
    covers TEXT NOT NULL,
    -- The view that brought it.
    view_id INTEGER NOT NULL REFERENCES views (id) ON DELETE CASCADE,
    UNIQUE (view_id, key)
) STRICT;

INSERT INTO summaries (id, session_id, key, content, covers, view_id)
SELECT id, session_id, key, content, covers, view_id FROM kept_summaries ORDER BY id;

DROP TABLE kept_summaries;

CREATE INDEX summaries_by_key ON summaries (session_id, key);

CREATE TRIGGER summaries_never_change
BEFORE UPDATE ON summaries
BEGIN
    SELECT RAISE(ABORT, 'summaries are append-only: no update');
END;
