// A context engine that keeps the last turns in full and folds older messages into one line each.
//
// The host owns the conversation. The engine receives the header of each message and answers `propose` with a plan: a new view over
// message ids. The host checks the plan, so a bug here costs a refused plan and never a message.

#include <stdlib.h>
#include <string.h>

#include "hermes.h"
#include "rules.h"

// Characters kept of each folded message, and most lines of a digest. Older messages are only counted.
#define LINE 80
#define LINES 200

typedef exports_hermes_context_engine_context_engine_error_t error_t;
typedef hermes_types_types_message_range_t range_t;

// The configuration. Defaults must match plugin.yaml.
static uint32_t keep_turns = 4;
static double full_at = 0.75;

// What the instance knows. The host can create a new instance at any time, and sends it all headers again.
static known_t *known;
static size_t count, capacity;
// The messages of the last proposal, and of the one that the host refused last.
static range_t proposed, refused;

static bool configured(project_string_t config, error_t *err) {
    if (!hermes_json_is_object(config)) return hermes_invalid(err, "the configuration must be a JSON object");
    hermes_json_t keep = hermes_json_get(config, "keep_turns"), full = hermes_json_get(config, "full_at");
    free(keep.text.bytes);
    free(full.text.bytes);
    if (keep.kind == HERMES_ABSENT) keep = (hermes_json_t){ .kind = HERMES_NUMBER, .number = 4 };
    if (full.kind == HERMES_ABSENT) full = (hermes_json_t){ .kind = HERMES_NUMBER, .number = 0.75 };
    if (keep.kind != HERMES_NUMBER || !(keep.number >= 1 && keep.number <= UINT32_MAX) || keep.number != (uint32_t)keep.number)
        return hermes_invalid(err, "keep_turns must be a whole number from 1");
    if (full.kind != HERMES_NUMBER || !(full.number > 0 && full.number <= 1))
        return hermes_invalid(err, "full_at must lie between 0 and 1");
    keep_turns = (uint32_t)keep.number;
    full_at = full.number;
    count = 0;
    proposed = refused = (range_t){ 0 };
    return true;
}

bool exports_hermes_lifecycle_lifecycle_configure(project_string_t *config, error_t *err) {
    bool valid = configured(*config, err);
    project_string_free(config);
    return valid;
}

bool exports_hermes_lifecycle_lifecycle_session_start(exports_hermes_lifecycle_lifecycle_session_t *session,
                                                      exports_hermes_lifecycle_lifecycle_start_t *how, error_t *err) {
    (void)err;
    exports_hermes_lifecycle_lifecycle_session_free(session);
    exports_hermes_lifecycle_lifecycle_start_free(how);
    return true;
}

bool exports_hermes_lifecycle_lifecycle_session_end(exports_hermes_lifecycle_lifecycle_ending_t *how, error_t *err) {
    (void)err;
    exports_hermes_lifecycle_lifecycle_ending_free(how);
    return true;
}

bool exports_hermes_context_engine_context_engine_model_changed(
    exports_hermes_context_engine_context_engine_model_t *model, error_t *err) {
    (void)err;
    // Nothing to store: every call brings the window's size.
    exports_hermes_context_engine_context_engine_model_free(model);
    return true;
}

bool exports_hermes_context_engine_context_engine_observe(
    exports_hermes_context_engine_context_engine_list_header_t *headers, error_t *err) {
    (void)err;
    if (capacity - count < headers->len) {
        capacity = (count + headers->len) * 2;
        known = hermes_resized(known, capacity * sizeof *known);
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

void exports_hermes_context_engine_context_engine_assess(
    exports_hermes_context_engine_context_engine_pressure_t *pressure,
    exports_hermes_context_engine_context_engine_advice_t *ret) {
    uint32_t room = pressure->context_length > pressure->reserve ? pressure->context_length - pressure->reserve : 1;
    double full = (double)pressure->prompt_tokens / room;
    uint8_t moment = pressure->moment.tag;
    bool asked = moment == EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_MOMENT_MANUAL ||
                 moment == EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_MOMENT_OVERFLOW;
    exports_hermes_context_engine_context_engine_pressure_free(pressure);
    // At a boundary, the host weighs the gain against the cache, and adopts the plan when it pays.
    *ret = (exports_hermes_context_engine_context_engine_advice_t){
        .propose = asked || full >= 0.95 ? EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_TIMING_NOW
                   : full >= full_at     ? EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_TIMING_BOUNDARY
                                         : EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_TIMING_NOT_NOW,
    };
}

bool exports_hermes_context_engine_context_engine_prepare(
    exports_hermes_context_engine_context_engine_request_t *request,
    exports_hermes_context_engine_context_engine_progress_t *ret, error_t *err) {
    (void)err;
    exports_hermes_context_engine_context_engine_request_free(request);
    *ret = HERMES_TYPES_TYPES_PROGRESS_DONE;
    return true;
}

// A message's text on one line, cut at a character boundary.
static void say_words(hermes_text_t *text, project_string_t content) {
    hermes_text_t line = { 0 };
    for (size_t at = 0; at < content.len && line.length < 4 * LINE; at++) {
        uint8_t byte = content.ptr[at];
        bool blank = byte <= ' ';
        if (blank && (line.length == 0 || line.bytes[line.length - 1] == ' ')) continue;
        hermes_add(&line, blank ? (const uint8_t *)" " : &byte, 1);
    }
    hermes_add(text, line.bytes, cut(line.bytes, line.length, LINE));
    free(line.bytes);
}

static void say_line(hermes_text_t *text, hermes_types_types_message_t *message) {
    static const char *const roles[] = { "system", "user", "assistant", "tool" };
    hermes_say(text, "#");
    hermes_say_number(text, message->id);
    hermes_say(text, " ");
    if (message->tool_name.is_some) hermes_add(text, message->tool_name.val.ptr, message->tool_name.val.len);
    else hermes_say(text, message->role.tag < 4 ? roles[message->role.tag] : "other");
    hermes_say(text, ": ");
    say_words(text, message->content);
    for (size_t at = 0; at < message->tool_calls.len; at++) {
        project_string_t name = message->tool_calls.ptr[at].name;
        hermes_say(text, " [calls ");
        hermes_add(text, name.ptr, name.len);
        hermes_say(text, "]");
    }
    hermes_say(text, "\n");
}

// A digest with one line per message. Returns false with the reason if the log cannot be read.
static bool digest(size_t messages, hermes_text_t *text, error_t *err) {
    size_t left_out = messages > LINES ? messages - LINES : 0;
    if (left_out) {
        hermes_say(text, "(");
        hermes_say_number(text, left_out);
        hermes_say(text, " earlier messages)\n");
    }
    range_t range = { known[left_out].id, known[messages - 1].id };
    for (bool more = true; more;) {
        hermes_history_history_page_t page;
        if (!hermes_history_history_read(&range, &page, err)) return false;
        for (size_t at = 0; at < page.messages.len; at++) say_line(text, &page.messages.ptr[at]);
        more = page.next.is_some && page.next.val > range.first;
        range.first = page.next.val;
        hermes_history_history_page_free(&page);
    }
    return true;
}

static hermes_text_t key_of(range_t covers) {
    hermes_text_t key = { 0 };
    hermes_say(&key, "c-engine:");
    hermes_say_number(&key, covers.first);
    hermes_say(&key, "-");
    hermes_say_number(&key, covers.last);
    return key;
}

static bool is_shown(exports_hermes_context_engine_context_engine_list_item_t *view, hermes_text_t key) {
    for (size_t at = 0; at < view->len; at++) {
        if (view->ptr[at].tag != EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_ITEM_SUMMARY) continue;
        project_string_t shown = view->ptr[at].val.summary.key;
        if (shown.len == key.length && memcmp(shown.ptr, key.bytes, key.length) == 0) return true;
    }
    return false;
}

bool exports_hermes_context_engine_context_engine_propose(
    exports_hermes_context_engine_context_engine_request_t *request,
    exports_hermes_context_engine_context_engine_option_plan_t *ret, error_t *err) {
    bool overflows = request->pressure.moment.tag == EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_MOMENT_OVERFLOW;
    size_t messages = folded(known, count, overflows ? 1 : keep_turns);
    range_t covers = messages ? (range_t){ known[0].id, known[messages - 1].id } : (range_t){ 0 };
    // Text and covers under a key must never change. Both depend only on the messages.
    hermes_text_t key = key_of(covers), content = { 0 };
    bool again = covers.first == refused.first && covers.last == refused.last;
    bool nothing = messages == 0 || again || is_shown(&request->view, key);
    exports_hermes_context_engine_context_engine_request_free(request);
    ret->is_some = false;
    if (nothing || !digest(messages, &content, err)) {
        free(key.bytes);
        free(content.bytes);
        return nothing;
    }
    proposed = covers;
    range_t *covered = hermes_resized(NULL, sizeof *covered);
    *covered = covers;
    exports_hermes_context_engine_context_engine_segment_t *segments = hermes_resized(NULL, 2 * sizeof *segments);
    segments[0] = (exports_hermes_context_engine_context_engine_segment_t){
        .tag = EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_SEGMENT_SUMMARY,
        .val.summary = { .key = hermes_take(key), .content = hermes_take(content), .covers = { covered, 1 } },
    };
    segments[1] = (exports_hermes_context_engine_context_engine_segment_t){
        .tag = EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_SEGMENT_RESTORE,
        .val.restore = { known[messages].id, known[count - 1].id },
    };
    ret->is_some = true;
    ret->val = (exports_hermes_context_engine_context_engine_plan_t){
        .segments = { segments, 2 },
        .reason = hermes_string("folded old turns into one line for each message"),
    };
    return true;
}

bool exports_hermes_context_engine_context_engine_settled(
    exports_hermes_context_engine_context_engine_outcome_t *outcome, error_t *err) {
    (void)err;
    // The host would refuse the same plan again.
    if (outcome->tag == EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_OUTCOME_REFUSED) refused = proposed;
    exports_hermes_context_engine_context_engine_outcome_free(outcome);
    return true;
}

void exports_hermes_context_engine_context_engine_status(project_string_t *ret) {
    hermes_text_t status = { 0 };
    hermes_say(&status, "{\"messages\":");
    hermes_say_number(&status, count);
    hermes_say(&status, ",\"keep_turns\":");
    hermes_say_number(&status, keep_turns);
    hermes_say(&status, "}");
    *ret = hermes_take(status);
}
