// A memory provider that stores lines of the user beginning with `remember`, and recalls those that share a word with a later question.
//
// The notes are stored in the plugin's own document `notes.md`, which needs no permission. An instance can be dropped at any time, so it
// keeps no notes in memory.

#include <stdlib.h>

#include "hermes.h"
#include "rules.h"

#define NOTES "notes.md"

// The configuration. The default must match plugin.yaml.
static hermes_text_t keyword;

bool exports_hermes_lifecycle_lifecycle_configure(project_string_t *config, hermes_error_t *err) {
    hermes_text_t given = { 0 };
    hermes_say(&given, "remember");
    bool valid = hermes_json_is_object(*config) || hermes_invalid(err, "the configuration must be a JSON object");
    valid = valid && hermes_read_text(*config, "keyword", &given, err);
    valid = valid && (has_word(hermes_seen(given)) || hermes_invalid(err, "keyword is empty: give a word such as `remember`"));
    project_string_free(config);
    if (valid) {
        free(keyword.bytes);
        keyword = given;
    } else {
        free(given.bytes);
    }
    return valid;
}

bool exports_hermes_memory_memory_provider_system_prompt(project_string_t *ret, hermes_error_t *err) {
    (void)err;
    *ret = hermes_string("");
    return true;
}

static bool recalled(const exports_hermes_memory_memory_provider_query_t *query,
                     exports_hermes_memory_memory_provider_list_recollection_t *ret, hermes_error_t *err) {
    project_string_t notes;
    if (!hermes_document(NOTES, &notes, err)) return false;
    found_t *found;
    size_t count = notes_about(notes, query->text, &found);
    uint32_t left = query->budget;
    for (size_t at = 0; at < count; at++) {
        // The host's own estimate; needs no permission.
        uint32_t tokens = hermes_llm_llm_count_tokens(&found[at].note);
        if (tokens > left) continue;
        left -= tokens;
        HERMES_PUSH(*ret, (exports_hermes_memory_memory_provider_recollection_t){
                              .key = hermes_copy(found[at].note),
                              .text = hermes_copy(found[at].note),
                          });
    }
    free(found);
    project_string_free(&notes);
    return true;
}

bool exports_hermes_memory_memory_provider_recall(exports_hermes_memory_memory_provider_query_t *query,
                                                  exports_hermes_memory_memory_provider_list_recollection_t *ret,
                                                  hermes_error_t *err) {
    *ret = (exports_hermes_memory_memory_provider_list_recollection_t){ 0 };
    bool answered = recalled(query, ret, err);
    exports_hermes_memory_memory_provider_query_free(query);
    return answered;
}

static bool with_new(project_string_t old, hermes_text_t *new, void *state) {
    return notes_added(old, hermes_seen(*(hermes_text_t *)state), new);
}

bool exports_hermes_memory_memory_provider_sync_turn(exports_hermes_memory_memory_provider_turn_t *turn, hermes_error_t *err) {
    hermes_text_t new = { 0 };
    notes_in(turn->user, hermes_seen(keyword), &new);
    exports_hermes_memory_memory_provider_turn_free(turn);
    // A turn can arrive twice, but each note is stored once. An error keeps the turn in the host's queue, if it can help to try again.
    bool stored = new.length == 0 || hermes_update_document(NOTES, with_new, &new, err);
    free(new.bytes);
    return stored;
}
