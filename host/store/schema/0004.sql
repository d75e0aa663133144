-- What a search looks into: two indexes that keep no text of their own. What they hold of a message is made from its
-- row by functions of this program (see `search::text`): a connection without them cannot add messages. It can delete them
-- where its SQLite is 3.43 or newer; older ones do not know such indexes and can do neither.

-- Words by their stems. Scripts that put no blanks between words are held as pairs of characters.
CREATE VIRTUAL TABLE messages_fts USING fts5 (
    words,
    content = '',
    contentless_delete = 1,
    tokenize = 'porter unicode61 remove_diacritics 2'
);

-- Parts of words. Without positions it takes a third of the room: what it finds is compared with the text itself.
-- What upper and lower case are is decided by this program alone, for both sides.
CREATE VIRTUAL TABLE messages_fts_trigram USING fts5 (
    text,
    content = '',
    contentless_delete = 1,
    detail = none,
    tokenize = 'trigram case_sensitive 1'
);

-- What is shorter than three characters is the beginning of one of these.
CREATE VIRTUAL TABLE messages_fts_trigram_terms USING fts5vocab (messages_fts_trigram, instance);

-- What the host wrote to close a turn is no find.
CREATE TRIGGER messages_enter_the_search
AFTER INSERT ON messages
WHEN NEW.origin = 'said'
BEGIN
    INSERT INTO messages_fts (rowid, words)
    VALUES (NEW.id, search_words(search_text(NEW.content, NEW.tool_name, NEW.tool_calls)));
    INSERT INTO messages_fts_trigram (rowid, text)
    VALUES (NEW.id, search_grams(search_text(NEW.content, NEW.tool_name, NEW.tool_calls)));
END;

CREATE TRIGGER messages_leave_the_search
AFTER DELETE ON messages
BEGIN
    DELETE FROM messages_fts WHERE rowid = OLD.id;
    DELETE FROM messages_fts_trigram WHERE rowid = OLD.id;
END;

-- Messages that are there already follow in small steps, the newest first, so that no writer waits for all of them.
INSERT INTO state_meta (key, value)
SELECT 'search_pending', max(id) FROM messages HAVING max(id) IS NOT NULL;
