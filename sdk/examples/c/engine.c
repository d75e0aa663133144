// A context engine that keeps the last turns in full and folds older messages into one line each.
//
// It uses only the files of `wit/`: `bindgen` generates context_engine_plugin.h from them. A function must free its
// arguments; the generated code frees its results. The host checks each plan, so a bug here costs a refused plan and never a
// message.

#include <stdlib.h>
#include <string.h>

#include "context_engine_plugin.h"

// Number of turns that stay in full, bytes kept of each folded message, and most lines of a digest.
#define KEEP_TURNS 4
#define LINE 80
#define LINES 200

typedef context_engine_plugin_string_t string_t;
typedef exports_hermes_context_engine_context_engine_error_t error_t;
typedef hermes_types_types_message_range_t range_t;

// What the engine needs to know about a message.
typedef struct {
    uint64_t id;
    uint32_t turn;
} known_t;

// State of the only instance. The host can create a new instance at any time and sends it all headers again.
static known_t *known;
static size_t count, capacity;
// Last message ids of the proposed and of the refused summary.
static range_t proposed, refused;

// A growing text.
typedef struct {
    uint8_t *bytes;
    size_t length, capacity;
} text_t;

static void *resized(void *memory, size_t size) {
    void *new = realloc(memory, size ? size : 1);
    if (!new) __builtin_trap();
    return new;
}

static void add(text_t *text, const void *bytes, size_t length) {
    if (text->capacity - text->length < length) {
        text->capacity = (text->capacity + length) * 2;
        text->bytes = resized(text->bytes, text->capacity);
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

static void say(text_t *text, const char *words) { add(text, words, strlen(words)); }

static void say_number(text_t *text, uint64_t number) {
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    add(text, digits + at, sizeof digits - at);
}

static string_t taken(text_t text) { return (string_t){ .ptr = resized(text.bytes, text.length), .len = text.length }; }

static text_t key_of(range_t covers) {
    text_t key = { 0 };
    say(&key, "c:");
    say_number(&key, covers.first);
    say(&key, "-");
    say_number(&key, covers.last);
    return key;
}

// A message's text on one line, cut at a character boundary.
static void say_words(text_t *text, string_t content) {
    size_t said = 0;
    bool blank = false;
    for (size_t at = 0; at < content.len; at++) {
        uint8_t byte = content.ptr[at];
        if (byte <= ' ') {
            blank = said > 0;
            continue;
        }
        bool begins = (byte & 0xc0) != 0x80;
        if (begins && said >= LINE) break;
        if (blank) add(text, " ", 1), said++;
        blank = false;
        add(text, &byte, 1);
        said++;
    }
}

static void say_line(text_t *text, hermes_types_types_message_t *message) {
    static const char *const roles[] = { "system", "user", "assistant", "tool" };
    say(text, "#");
    say_number(text, message->id);
    say(text, " ");
    if (message->tool_name.is_some) add(text, message->tool_name.val.ptr, message->tool_name.val.len);
    else say(text, roles[message->role.tag & 3]);
    say(text, ": ");
    say_words(text, message->content);
    for (size_t at = 0; at < message->tool_calls.len; at++) {
        string_t name = message->tool_calls.ptr[at].name;
        say(text, " [calls ");
        add(text, name.ptr, name.len);
        say(text, "]");
    }
    say(text, "\n");
}

// A digest with a line for each covered message; of all but the newest only the number. Returns false with the reason if the
// log cannot be read.
static bool digest(size_t folded, text_t *text, error_t *err) {
    size_t left_out = folded > LINES ? folded - LINES : 0;
    if (left_out) {
        say(text, "(");
        say_number(text, left_out);
        say(text, " earlier messages)\n");
    }
    range_t range = { known[left_out].id, known[folded - 1].id };
    for (;;) {
        hermes_history_history_page_t page;
        if (!hermes_history_history_read(&range, &page, err)) return false;
        for (size_t at = 0; at < page.messages.len; at++) say_line(text, &page.messages.ptr[at]);
        bool more = page.next.is_some && page.next.val > range.first;
        range.first = page.next.val;
        hermes_history_history_page_free(&page);
        if (!more) return true;
    }
}

// Folds whole turns, which keeps calls with their results.
static size_t foldable(uint32_t keep_turns) {
    size_t folded = 0;
    if (count == 0) return 0;
    uint32_t newest = known[count - 1].turn;
    while (folded < count && newest >= keep_turns && known[folded].turn <= newest - keep_turns) folded++;
    return folded;
}

bool exports_hermes_lifecycle_lifecycle_configure(string_t *config, error_t *err) {
    (void)err;
    context_engine_plugin_string_free(config);
    count = 0;
    proposed = refused = (range_t){ 0 };
    return true;
}

bool exports_hermes_lifecycle_lifecycle_session_start(exports_hermes_lifecycle_lifecycle_session_t *session,
                                                   exports_hermes_lifecycle_lifecycle_start_t *how, error_t *err) {
    (void)err;
    exports_hermes_lifecycle_lifecycle_session_free(session);
    exports_hermes_lifecycle_lifecycle_start_free(how);
    return true;
}

bool exports_hermes_lifecycle_lifecycle_session_end(exports_hermes_lifecycle_lifecycle_ending_t *how, error_t *err) {
    exports_hermes_lifecycle_lifecycle_ending_free(how);
    (void)how, (void)err;
    return true;
}

bool exports_hermes_context_engine_context_engine_model_changed(exports_hermes_context_engine_context_engine_model_t *model,
                                                        error_t *err) {
    (void)err;
    exports_hermes_context_engine_context_engine_model_free(model);
    return true;
}

bool exports_hermes_context_engine_context_engine_observe(exports_hermes_context_engine_context_engine_list_header_t *headers,
                                                  error_t *err) {
    (void)err;
    if (capacity - count < headers->len) {
        capacity = (count + headers->len) * 2;
        known = resized(known, capacity * sizeof *known);
    }
    for (size_t at = 0; at < headers->len; at++)
        known[count++] = (known_t){ headers->ptr[at].id, headers->ptr[at].turn };
    exports_hermes_context_engine_context_engine_list_header_free(headers);
    return true;
}

bool exports_hermes_context_engine_context_engine_rewound(uint64_t first, error_t *err) {
    (void)err;
    while (count > 0 && known[count - 1].id >= first) count--;
    return true;
}

void exports_hermes_context_engine_context_engine_assess(exports_hermes_context_engine_context_engine_pressure_t *pressure,
                                                 exports_hermes_context_engine_context_engine_advice_t *ret) {
    uint64_t room = pressure->context_length > pressure->reserve ? pressure->context_length - pressure->reserve : 1;
    uint64_t tokens = (uint64_t)pressure->prompt_tokens * 100;
    bool asked = pressure->moment.tag == EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_MOMENT_MANUAL ||
                 pressure->moment.tag == EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_MOMENT_OVERFLOW;
    ret->extra.ptr = NULL;
    ret->extra.len = 0;
    ret->prepare = false;
    ret->propose = asked || tokens >= room * 95 ? EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_TIMING_NOW
                   : tokens >= room * 75        ? EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_TIMING_BOUNDARY
                                                : EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_TIMING_NOT_NOW;
    exports_hermes_context_engine_context_engine_pressure_free(pressure);
}

bool exports_hermes_context_engine_context_engine_prepare(exports_hermes_context_engine_context_engine_request_t *request,
                                                  exports_hermes_context_engine_context_engine_progress_t *ret, error_t *err) {
    (void)err;
    exports_hermes_context_engine_context_engine_request_free(request);
    *ret = HERMES_TYPES_TYPES_PROGRESS_DONE;
    return true;
}

static bool is_shown(exports_hermes_context_engine_context_engine_list_item_t *view, text_t key) {
    for (size_t at = 0; at < view->len; at++) {
        if (view->ptr[at].tag != EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_ITEM_SUMMARY) continue;
        string_t shown = view->ptr[at].val.summary.key;
        if (shown.len == key.length && memcmp(shown.ptr, key.bytes, key.length) == 0) return true;
    }
    return false;
}

bool exports_hermes_context_engine_context_engine_propose(exports_hermes_context_engine_context_engine_request_t *request,
                                                  exports_hermes_context_engine_context_engine_option_plan_t *ret,
                                                  error_t *err) {
    bool overflows = request->pressure.moment.tag == EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_MOMENT_OVERFLOW;
    size_t folded = foldable(overflows ? 1 : KEEP_TURNS);
    range_t covers = folded ? (range_t){ known[0].id, known[folded - 1].id } : (range_t){ 0 };
    text_t key = key_of(covers);
    bool again = covers.first == refused.first && covers.last == refused.last;
    bool nothing = folded == 0 || again || is_shown(&request->view, key);
    exports_hermes_context_engine_context_engine_request_free(request);
    ret->is_some = !nothing;
    if (nothing) {
        free(key.bytes);
        return true;
    }

    text_t content = { 0 };
    if (!digest(folded, &content, err)) {
        free(key.bytes);
        free(content.bytes);
        return false;
    }
    proposed = covers;
    exports_hermes_context_engine_context_engine_segment_t *segments = resized(NULL, 2 * sizeof *segments);
    range_t *covered = resized(NULL, sizeof *covered);
    *covered = covers;
    segments[0].tag = EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_SEGMENT_SUMMARY;
    segments[0].val.summary.key = taken(key);
    segments[0].val.summary.content = taken(content);
    segments[0].val.summary.covers.ptr = covered;
    segments[0].val.summary.covers.len = 1;
    segments[1].tag = EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_SEGMENT_RESTORE;
    segments[1].val.restore = (range_t){ known[folded].id, known[count - 1].id };
    ret->val.segments.ptr = segments;
    ret->val.segments.len = 2;
    context_engine_plugin_string_dup(&ret->val.reason, "folded old turns into a line a message");
    ret->val.extra.ptr = NULL;
    ret->val.extra.len = 0;
    return true;
}

bool exports_hermes_context_engine_context_engine_settled(exports_hermes_context_engine_context_engine_outcome_t *outcome,
                                                  error_t *err) {
    (void)err;
    // The host would refuse the same plan again.
    if (outcome->tag == EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_OUTCOME_REFUSED) refused = proposed;
    exports_hermes_context_engine_context_engine_outcome_free(outcome);
    return true;
}

void exports_hermes_context_engine_context_engine_status(string_t *ret) {
    text_t status = { 0 };
    say(&status, "{\"messages\":");
    say_number(&status, count);
    say(&status, "}");
    *ret = taken(status);
}
