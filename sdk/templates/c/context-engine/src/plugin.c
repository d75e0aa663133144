// A context engine that keeps the last turns in full and folds older messages into one line each.
//
// The host owns the conversation. The engine receives the header of each message and answers `propose` with a plan: a new view over
// message ids. The host checks the plan, so a bug here costs a refused plan and never a message.

#include <stdlib.h>
#include <string.h>

#include "hermes.h"
#include "rules.h"

typedef exports_hermes_context_engine_context_engine_error_t error_t;
typedef exports_hermes_context_engine_context_engine_request_t request_t;
typedef exports_hermes_context_engine_context_engine_segment_t segment_t;
typedef exports_hermes_context_engine_context_engine_list_segment_t segments_t;
typedef hermes_types_types_message_range_t range_t;

// Forms of a digest, until one fits: the characters of a line, and the lines. Older messages are only counted.
static const struct {
    size_t line, lines;
} FORMS[] = { { 80, 200 }, { 80, 50 }, { 40, 15 }, { 0, 0 } };
#define FORM_COUNT (sizeof FORMS / sizeof *FORMS)
// If not even the newest turn fits: the characters that stay of each of its messages, except for the user's.
static const size_t EXCERPTS[] = { SIZE_MAX, 4000, 1000, 250, 40 };
#define EXCERPT_COUNT (sizeof EXCERPTS / sizeof *EXCERPTS)

// The configuration. Defaults must match plugin.yaml.
static uint32_t keep_turns = 4;
static double full_at = 0.75;

// What the instance knows. The host can create a new instance at any time, and sends it all headers again.
static known_t *known;
static size_t count, capacity;
// The last proposal, and the one that the host refused last: its messages and its forms.
typedef struct {
    range_t covers;
    size_t form, excerpt;
} proposal_t;
static proposal_t proposed, refused;
// Tokens by which the host's count exceeded the engine's.
static uint64_t missed;

static bool configured(project_string_t config, error_t *err) {
    double keep = 4, full = 0.75;
    if (!hermes_json_is_object(config)) return hermes_invalid(err, "the configuration must be a JSON object");
    if (!hermes_read_number(config, "keep_turns", 1, UINT32_MAX, &keep, err)) return false;
    if (!hermes_read_number(config, "full_at", 0, 1, &full, err)) return false;
    if (keep != (uint32_t)keep) return hermes_invalid(err, "keep_turns must be a whole number");
    if (full <= 0) return hermes_invalid(err, "full_at must be more than 0");
    keep_turns = (uint32_t)keep;
    full_at = full;
    count = missed = 0;
    proposed = refused = (proposal_t){ 0 };
    return true;
}

bool exports_hermes_lifecycle_lifecycle_configure(project_string_t *config, error_t *err) {
    bool valid = configured(*config, err);
    project_string_free(config);
    return valid;
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
        known[count++] = (known_t){ headers->ptr[at].id, headers->ptr[at].turn, headers->ptr[at].tokens };
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
static void say_words(hermes_text_t *text, project_string_t content, size_t characters) {
    hermes_text_t line = { 0 };
    for (size_t at = 0; at < content.len && line.length < 4 * characters; at++) {
        uint8_t byte = content.ptr[at];
        bool blank = byte <= ' ';
        if (blank && (line.length == 0 || line.bytes[line.length - 1] == ' ')) continue;
        hermes_add(&line, blank ? (const uint8_t *)" " : &byte, 1);
    }
    hermes_add(text, line.bytes, cut(line.bytes, line.length, characters));
    free(line.bytes);
}

static void say_line(hermes_text_t *text, hermes_types_types_message_t *message, size_t characters) {
    static const char *const roles[] = { "system", "user", "assistant", "tool" };
    hermes_say(text, "#");
    hermes_say_number(text, message->id);
    hermes_say(text, " ");
    if (message->tool_name.is_some) hermes_say_string(text, message->tool_name.val);
    else hermes_say(text, message->role.tag < 4 ? roles[message->role.tag] : "other");
    hermes_say(text, ": ");
    say_words(text, message->content, characters);
    for (size_t at = 0; at < message->tool_calls.len; at++) {
        hermes_say(text, " [calls ");
        hermes_say_string(text, message->tool_calls.ptr[at].name);
        hermes_say(text, "]");
    }
    hermes_say(text, "\n");
}

// Calls a function with each message of a range. Returns false with the reason if the log cannot be read.
static bool each(range_t range, void (*use)(hermes_types_types_message_t *, void *), void *state, error_t *err) {
    for (bool more = true; more;) {
        hermes_history_history_page_t page;
        if (!hermes_history_history_read(&range, &page, err)) return false;
        for (size_t at = 0; at < page.messages.len; at++) use(&page.messages.ptr[at], state);
        more = page.next.is_some && page.next.val > range.first;
        range.first = page.next.val;
        hermes_history_history_page_free(&page);
    }
    return true;
}

typedef struct {
    hermes_text_t text;
    size_t line;
} digest_t;

static void add_line(hermes_types_types_message_t *message, void *state) {
    digest_t *digest = state;
    say_line(&digest->text, message, digest->line);
}

// A digest with one line for each of the newest of these messages.
static bool write_digest(size_t messages, size_t form, digest_t *digest, error_t *err) {
    size_t lines = FORMS[form].lines, left_out = messages > lines ? messages - lines : 0;
    *digest = (digest_t){ .line = FORMS[form].line };
    if (left_out) {
        hermes_say(&digest->text, "(");
        hermes_say_number(&digest->text, left_out);
        hermes_say(&digest->text, " earlier messages)\n");
    }
    if (left_out == messages) return true;
    return each((range_t){ known[left_out].id, known[messages - 1].id }, add_line, digest, err);
}

static uint32_t tokens_of(project_string_t text) { return hermes_llm_llm_count_tokens(&text); }

// What stays of the newest turn: segments of whole and of shortened messages, and the tokens that this saves.
typedef struct {
    segments_t segments;
    size_t characters, excerpts;
    uint64_t saved;
} rest_t;

static void add_shown(segments_t *segments, uint64_t id) {
    segment_t *last = segments->len ? &segments->ptr[segments->len - 1] : NULL;
    if (last && last->tag == EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_SEGMENT_RESTORE) last->val.restore.last = id;
    else
        HERMES_PUSH(*segments, (segment_t){
                                   .tag = EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_SEGMENT_RESTORE,
                                   .val.restore = { id, id },
                               });
}

static void add_message(hermes_types_types_message_t *message, void *state) {
    rest_t *rest = state;
    segment_t segment = {
        .tag = EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_SEGMENT_EXCERPT,
        .val.excerpt = { .id = message->id, .keep_images = true },
    };
    exports_hermes_context_engine_context_engine_excerpt_t *excerpt = &segment.val.excerpt;
    uint64_t saved = 0;
    size_t stays = cut(message->content.ptr, message->content.len, rest->characters);
    if (stays < message->content.len) {
        hermes_text_t shorter = { 0 };
        hermes_add(&shorter, message->content.ptr, stays);
        hermes_say(&shorter, " [shortened]");
        uint32_t before = tokens_of(message->content), after = tokens_of(hermes_seen(shorter));
        if (after < before) {
            saved += before - after;
            excerpt->content.is_some = true;
            excerpt->content.val = hermes_take(shorter);
        } else {
            free(shorter.bytes);
        }
    }
    for (size_t at = 0; at < message->tool_calls.len; at++) {
        hermes_types_types_tool_call_t *call = &message->tool_calls.ptr[at];
        if (call->arguments.len <= rest->characters) continue;
        saved += tokens_of(call->arguments) - tokens_of(hermes_view("{}"));
        HERMES_PUSH(excerpt->arguments, (project_tuple2_string_string_t){ hermes_copy(call->id), hermes_string("{}") });
    }
    // The host shows what the user said last as it was said.
    if (message->role.tag == HERMES_TYPES_TYPES_ROLE_USER || saved == 0) {
        exports_hermes_context_engine_context_engine_segment_free(&segment);
        add_shown(&rest->segments, message->id);
        return;
    }
    rest->saved += saved;
    rest->excerpts++;
    HERMES_PUSH(rest->segments, segment);
}

static bool write_rest(size_t messages, size_t excerpt, rest_t *rest, error_t *err) {
    *rest = (rest_t){ .characters = EXCERPTS[excerpt] };
    range_t range = { known[messages].id, known[count - 1].id };
    if (excerpt > 0) return each(range, add_message, rest, err);
    add_shown(&rest->segments, range.first);
    add_shown(&rest->segments, range.last);
    return true;
}

// Text and covers under a key must never change. Both depend only on the messages and the form.
static hermes_text_t key_of(range_t covers, size_t form) {
    hermes_text_t key = { 0 };
    hermes_say(&key, "{{name}}:");
    hermes_say_number(&key, covers.first);
    hermes_say(&key, "-");
    hermes_say_number(&key, covers.last);
    hermes_say(&key, "/");
    hermes_say_number(&key, form);
    return key;
}

// Whether the view has this summary already, and as many shortened messages.
static bool is_shown(const request_t *request, const proposal_t *proposal, size_t excerpts) {
    bool shown = proposal->covers.last == 0;
    hermes_text_t key = key_of(proposal->covers, proposal->form);
    for (size_t at = 0; at < request->view.len; at++) {
        exports_hermes_context_engine_context_engine_item_t *item = &request->view.ptr[at];
        if (item->tag == EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_ITEM_EXCERPT && excerpts > 0) excerpts--;
        if (item->tag == EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_ITEM_SUMMARY)
            shown |= item->val.summary.key.len == key.length && memcmp(item->val.summary.key.ptr, key.bytes, key.length) == 0;
    }
    free(key.bytes);
    return shown && excerpts == 0;
}

static bool is_same(const proposal_t *one, const proposal_t *other) {
    return one->covers.first == other->covers.first && one->covers.last == other->covers.last && one->form == other->form &&
           one->excerpt == other->excerpt;
}

// Writes the plan whose view fits: fewer turns, then a shorter newest turn, then a shorter digest. Without one that fits, there is none.
static bool plan(const request_t *request, exports_hermes_context_engine_context_engine_option_plan_t *ret, error_t *err) {
    bool overflows = request->pressure.moment.tag == EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_MOMENT_OVERFLOW;
    // Less than the room, because a count is an estimate.
    uint64_t room = hermes_room(&request->pressure), margin = room / 32 + HERMES_FRAME + missed;
    uint64_t usable = room > margin ? room - margin : 0, most = usable / 4 * 3;
    if (count == 0) return true;
    size_t messages = folded_to_fit(known, count, overflows ? 1 : keep_turns, most);
    uint64_t kept = tokens_from(known, count, messages);
    proposal_t own = { .covers = messages ? (range_t){ known[0].id, known[messages - 1].id } : (range_t){ 0 } };
    rest_t rest;
    if (!write_rest(messages, 0, &rest, err)) return false;
    while (kept - (rest.saved < kept ? rest.saved : kept) > most && own.excerpt + 1 < EXCERPT_COUNT) {
        exports_hermes_context_engine_context_engine_list_segment_free(&rest.segments);
        if (!write_rest(messages, ++own.excerpt, &rest, err)) return false;
    }
    kept -= rest.saved < kept ? rest.saved : kept;

    digest_t digest = { 0 };
    bool fits = kept <= usable && messages == 0;
    for (bool first = true; messages > 0 && !fits && own.form + !first < FORM_COUNT; first = false) {
        own.form += !first;
        free(digest.text.bytes);
        if (!write_digest(messages, own.form, &digest, err)) {
            free(digest.text.bytes);
            exports_hermes_context_engine_context_engine_list_segment_free(&rest.segments);
            return false;
        }
        fits = kept + tokens_of(hermes_seen(digest.text)) <= usable;
    }
    bool changes = messages > 0 || rest.excerpts > 0;
    if (!fits || !changes || is_same(&own, &refused) || is_shown(request, &own, rest.excerpts)) {
        free(digest.text.bytes);
        exports_hermes_context_engine_context_engine_list_segment_free(&rest.segments);
        return true;
    }
    proposed = own;
    segments_t segments = { 0 };
    if (messages > 0) {
        exports_hermes_context_engine_context_engine_summary_t summary = {
            .key = hermes_take(key_of(own.covers, own.form)),
            .content = hermes_take(digest.text),
        };
        HERMES_PUSH(summary.covers, own.covers);
        HERMES_PUSH(segments, (segment_t){
                                  .tag = EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_SEGMENT_SUMMARY,
                                  .val.summary = summary,
                              });
    }
    for (size_t at = 0; at < rest.segments.len; at++) HERMES_PUSH(segments, rest.segments.ptr[at]);
    free(rest.segments.ptr);
    ret->is_some = true;
    ret->val = (exports_hermes_context_engine_context_engine_plan_t){
        .segments = segments,
        .reason = hermes_string(rest.excerpts ? "folded old turns, and shortened the newest" : "folded old turns into one line for each message"),
    };
    return true;
}

bool exports_hermes_context_engine_context_engine_propose(
    request_t *request, exports_hermes_context_engine_context_engine_option_plan_t *ret, error_t *err) {
    ret->is_some = false;
    bool planned = plan(request, ret, err);
    exports_hermes_context_engine_context_engine_request_free(request);
    return planned;
}

bool exports_hermes_context_engine_context_engine_settled(
    exports_hermes_context_engine_context_engine_outcome_t *outcome, error_t *err) {
    (void)err;
    uint64_t needed, room;
    if (outcome->tag == EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_OUTCOME_REFUSED) {
        // The host would refuse the same plan again.
        refused = proposed;
        if (hermes_refusal(&outcome->val.refused, &needed, &room) && needed > room) missed += needed - room;
    }
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
