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
