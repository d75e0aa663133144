#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"
#include "testing.h"

static bool configured(const char *config) {
    project_string_t given = hermes_string(config);
    hermes_error_t error;
    bool valid = exports_hermes_lifecycle_lifecycle_configure(&given, &error);
    if (!valid) hermes_types_types_error_free(&error);
    return valid;
}

static void store(const char *text) {
    exports_hermes_memory_memory_provider_turn_t turn = { .user = hermes_string(text) };
    hermes_error_t error;
    assert(exports_hermes_memory_memory_provider_sync_turn(&turn, &error));
}

// The number of memories for a question, and whether the first one is this.
static size_t recall(const char *question, uint32_t budget, const char *first) {
    exports_hermes_memory_memory_provider_query_t query = { .text = hermes_string(question), .budget = budget };
    exports_hermes_memory_memory_provider_list_recollection_t found;
    hermes_error_t error;
    assert(exports_hermes_memory_memory_provider_recall(&query, &found, &error));
    assert(!first || hermes_is(found.ptr[0].text, first));
    size_t count = found.len;
    exports_hermes_memory_memory_provider_list_recollection_free(&found);
    return count;
}

int main(void) {
    hermes_text_t notes = { 0 };
    notes_in(hermes_view("Hello.\nRemember: the ferry  leaves at 07:45\nI remember nothing\nremember\n"), hermes_view("remember"), &notes);
    assert(hermes_is(hermes_seen(notes), "the ferry leaves at 07:45\n"));
    free(notes.bytes);

    assert(configured("{}"));
    store("Remember: tea at four\nremember the ferry is red");
    store("Remember: the ferry leaves at noon");
    // The host delivers a turn again after a failure.
    store("Remember: the ferry leaves at noon");
    assert(strcmp(testing_document("notes.md"), "tea at four\nthe ferry is red\nthe ferry leaves at noon\n") == 0);
    assert(recall("When does the Ferry leave? It leaves soon.", 1000, "the ferry leaves at noon") == 2);
    assert(recall("When does the Ferry leave? It leaves soon.", 6, "the ferry leaves at noon") == 1);
    assert(recall("", 1000, NULL) == 0);

    assert(!configured("{\"keyword\":\" \"}") && !configured("{\"keyword\":5}"));
    assert(configured("{\"keyword\":\"note\"}"));
    store("note: buy bread\nremember: not this");
    assert(recall("bread", 1000, "buy bread") == 1 && recall("this", 1000, NULL) == 0);
    testing_reset();
    puts("all tests passed");
    return 0;
}
