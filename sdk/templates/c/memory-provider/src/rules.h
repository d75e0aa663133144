#ifndef RULES_H
#define RULES_H

#include "hermes.h"

// Notes in a text, one per line. Plain functions, which `make test` runs natively.

// A note, which is a part of the text that was searched, and how many of its words are in the question.
typedef struct {
    project_string_t note;
    size_t shared, at;
} found_t;

// Whether a text is more than blanks.
bool has_word(project_string_t text);
// Appends the notes in a text: the rest of each line that begins with the keyword.
void notes_in(project_string_t text, project_string_t keyword, hermes_text_t *notes);
// Writes the notes with new ones behind them. False if all are known already.
bool notes_added(project_string_t notes, project_string_t new, hermes_text_t *all);
// The notes that share a word with the question: most shared words first, then newest first. Free the list.
size_t notes_about(project_string_t notes, project_string_t question, found_t **found);

#endif
