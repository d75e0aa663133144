-- How context engines fare: what fails in one process is not asked again by the next one.

CREATE TABLE engine_faults (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    -- Name and version: another version begins anew.
    engine TEXT NOT NULL,
    in_a_row INTEGER NOT NULL,
    -- The last cause, for people.
    cause TEXT NOT NULL,
    -- Unix time in milliseconds.
    happened_at INTEGER NOT NULL,
    PRIMARY KEY (session_id, engine)
) STRICT;
