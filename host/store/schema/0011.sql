-- Tasks that a session's agent delegated, each to a session of its own.
CREATE TABLE delegations (
    parent_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    -- Counts the tasks of the parent, from 1.
    number INTEGER NOT NULL,
    -- The session that works on the task; null until it begins.
    child_id TEXT REFERENCES sessions (id) ON DELETE CASCADE,
    -- The tool call: the message with the call, a dot, and the position of the call in it.
    call TEXT NOT NULL,
    goal TEXT NOT NULL,
    -- Whether the parent does not wait for the result.
    background INTEGER NOT NULL CHECK (background IN (0, 1)),
    state TEXT NOT NULL,
    -- What the parent's model gets of a task in the background.
    report TEXT,
    -- The message of the parent that has the report; null while the report waits.
    delivered_in INTEGER,
    -- Unix time in milliseconds.
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    PRIMARY KEY (parent_id, number)
) STRICT;

CREATE INDEX delegations_by_child ON delegations (child_id);
