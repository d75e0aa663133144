#include "rules.h"

#include <stdlib.h>
#include <string.h>

// The most bytes of a note, and the fewest of a word that is compared.
#define NOTE 300
#define WORD 3

static uint8_t folded(uint8_t byte) { return byte >= 'A' && byte <= 'Z' ? byte + 32 : byte; }

static bool is_blank(uint8_t byte) { return byte <= ' '; }

static bool is_word(uint8_t byte) {
    return byte >= 0x80 || (byte >= '0' && byte <= '9') || (folded(byte) >= 'a' && folded(byte) <= 'z');
}

static bool is_same(project_string_t one, project_string_t other) {
    if (one.len != other.len) return false;
    for (size_t at = 0; at < one.len; at++)
        if (folded(one.ptr[at]) != folded(other.ptr[at])) return false;
    return true;
}

// Takes the next part of a text whose bytes fulfil a condition; false at the end.
static bool next(project_string_t *rest, bool (*is_part)(uint8_t), project_string_t *part) {
    size_t from = 0;
    while (from < rest->len && !is_part(rest->ptr[from])) from++;
    size_t to = from;
    while (to < rest->len && is_part(rest->ptr[to])) to++;
    *part = (project_string_t){ rest->ptr + from, to - from };
    *rest = (project_string_t){ rest->ptr + to, rest->len - to };
    return part->len > 0;
}

static bool in_line(uint8_t byte) { return byte != '\n' && byte != '\r'; }
static bool not_blank(uint8_t byte) { return !is_blank(byte); }

bool has_word(project_string_t text) {
    project_string_t word;
    return next(&text, not_blank, &word);
}

void notes_in(project_string_t text, project_string_t keyword, hermes_text_t *notes) {
    for (project_string_t line; next(&text, in_line, &line);) {
        project_string_t word;
        if (!next(&line, not_blank, &word)) continue;
        while (word.len > 0 && strchr(":,.!", word.ptr[word.len - 1])) word.len--;
        if (!is_same(word, keyword)) continue;
        size_t from = notes->length;
        while (next(&line, not_blank, &word) && notes->length - from + word.len < NOTE) {
            if (notes->length > from) hermes_say(notes, " ");
            hermes_say_string(notes, word);
        }
        if (notes->length > from) hermes_say(notes, "\n");
    }
}

static bool is_known(project_string_t notes, project_string_t note) {
    for (project_string_t line; next(&notes, in_line, &line);)
        if (line.len == note.len && memcmp(line.ptr, note.ptr, note.len) == 0) return true;
    return false;
}

bool notes_added(project_string_t notes, project_string_t new, hermes_text_t *all) {
    bool added = false;
    hermes_say_string(all, notes);
    for (project_string_t note; next(&new, in_line, &note);) {
        if (is_known(hermes_seen(*all), note)) continue;
        hermes_say_string(all, note);
        hermes_say(all, "\n");
        added = true;
    }
    return added;
}

// How many words of the note are in the question.
static size_t shared(project_string_t note, project_string_t question) {
    size_t count = 0;
    for (project_string_t word; next(&note, is_word, &word);) {
        if (word.len < WORD) continue;
        project_string_t rest = question, other;
        while (next(&rest, is_word, &other)) {
            if (!is_same(word, other)) continue;
            count++;
            break;
        }
    }
    return count;
}

static int by_use(const void *one, const void *other) {
    const found_t *first = one, *second = other;
    if (first->shared != second->shared) return first->shared > second->shared ? -1 : 1;
    return first->at > second->at ? -1 : 1;
}

size_t notes_about(project_string_t notes, project_string_t question, found_t **found) {
    struct {
        found_t *ptr;
        size_t len;
    } list = { 0 };
    size_t at = 0;
    for (project_string_t note; next(&notes, in_line, &note); at++) {
        size_t words = shared(note, question);
        if (words > 0) HERMES_PUSH(list, (found_t){ note, words, at });
    }
    if (list.len > 0) qsort(list.ptr, list.len, sizeof *list.ptr, by_use);
    *found = list.ptr;
    return list.len;
}
