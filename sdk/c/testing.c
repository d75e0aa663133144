#include "testing.h"

#include <stdlib.h>
#include <string.h>

#define MANY 256
// A test may define the function of an import itself.
#define IMPORT __attribute__((weak))

typedef struct {
    uint64_t id;
    uint32_t turn;
    uint8_t role;
    char *content;
} message_t;

typedef struct {
    char *name, *content;
    uint64_t version;
} document_t;

static message_t messages[MANY];
static document_t documents[MANY];
static size_t message_count, document_count;
static uint16_t answers[MANY];
static char *bodies[MANY], *requests[MANY];
static size_t answer_count, answered, request_count;
static char *logged, *requested;

static char *copied(const void *bytes, size_t length) {
    char *text = hermes_resized(NULL, length + 1);
    if (length) memcpy(text, bytes, length);
    text[length] = 0;
    return text;
}

static void keep(char **place, char *text) {
    free(*place);
    *place = text;
}

void testing_reset(void) {
    while (message_count > 0) free(messages[--message_count].content);
    while (document_count > 0) {
        free(documents[--document_count].name);
        free(documents[document_count].content);
    }
    while (answer_count > 0) free(bodies[--answer_count]);
    while (request_count > 0) free(requests[--request_count]);
    answered = 0;
    keep(&logged, NULL);
    keep(&requested, NULL);
}

void testing_message(uint64_t id, uint32_t turn, uint8_t role, const char *content) {
    assert(message_count < MANY);
    messages[message_count++] = (message_t){ id, turn, role, copied(content, strlen(content)) };
}

static uint32_t tokens_of(const char *text) { return (uint32_t)strlen(text) / 4 + 5; }

void testing_headers(hermes_history_history_list_header_t *headers) {
    *headers = (hermes_history_history_list_header_t){ 0 };
    for (size_t at = 0; at < message_count; at++) {
        HERMES_PUSH(*headers, (hermes_types_types_header_t){
                                  .id = messages[at].id,
                                  .turn = messages[at].turn,
                                  .group = messages[at].id,
                                  .role.tag = messages[at].role,
                                  .tokens = tokens_of(messages[at].content),
                                  .bytes = (uint32_t)strlen(messages[at].content),
                              });
    }
}

void testing_answer(uint16_t status, const char *body) {
    assert(answer_count < MANY);
    answers[answer_count] = status;
    bodies[answer_count++] = copied(body, strlen(body));
}

const char *testing_request(size_t at) { return at < request_count ? requests[at] : ""; }

const char *testing_logged(void) { return logged ? logged : ""; }
const char *testing_requested(void) { return requested ? requested : ""; }

static document_t *document_of(project_string_t name) {
    for (size_t at = 0; at < document_count; at++)
        if (hermes_is(name, documents[at].name)) return &documents[at];
    return NULL;
}

const char *testing_document(const char *name) {
    document_t *found = document_of(hermes_view(name));
    return found ? found->content : NULL;
}

IMPORT void hermes_host_log_write(hermes_host_log_level_t level, project_string_t *text) {
    (void)level;
    keep(&logged, copied(text->ptr, text->len));
}

IMPORT void hermes_llm_llm_stream_generation_drop_own(hermes_llm_llm_stream_own_generation_t handle) { (void)handle; }
IMPORT void hermes_llm_llm_stream_generation_drop_borrow(hermes_llm_llm_stream_borrow_generation_t handle) { (void)handle; }
IMPORT hermes_host_clock_timestamp_t hermes_host_clock_now(void) { return 1700000000000; }
IMPORT int32_t hermes_host_clock_utc_offset(void) { return 0; }
IMPORT bool hermes_host_task_cancelled(void) { return false; }
IMPORT uint32_t hermes_host_task_time_left(void) { return 30000; }
IMPORT void hermes_host_task_progress(project_string_t *text) { (void)text; }
IMPORT uint32_t hermes_llm_llm_count_tokens(project_string_t *text) { return (uint32_t)text->len / 4; }

IMPORT bool hermes_history_history_read(hermes_history_history_message_range_t *range, hermes_history_history_page_t *ret,
                                        hermes_history_history_error_t *err) {
    (void)err;
    *ret = (hermes_history_history_page_t){ 0 };
    for (size_t at = 0; at < message_count; at++) {
        if (messages[at].id < range->first || messages[at].id > range->last) continue;
        HERMES_PUSH(ret->messages, (hermes_types_types_message_t){
                                       .id = messages[at].id,
                                       .role.tag = messages[at].role,
                                       .content = hermes_string(messages[at].content),
                                       .tokens = tokens_of(messages[at].content),
                                   });
    }
    return true;
}

static hermes_storage_documents_document_t shown(const document_t *document) {
    hermes_text_t version = { 0 };
    hermes_say_number(&version, document->version);
    return (hermes_storage_documents_document_t){ hermes_string(document->content), hermes_take(version) };
}

IMPORT bool hermes_storage_documents_read(project_string_t *name, hermes_storage_documents_option_document_t *ret,
                                          hermes_storage_documents_error_t *err) {
    (void)err;
    document_t *found = document_of(*name);
    *ret = (hermes_storage_documents_option_document_t){ .is_some = found != NULL };
    if (found) ret->val = shown(found);
    return true;
}

IMPORT bool hermes_storage_documents_write(project_string_t *name, project_string_t *content, project_string_t *maybe_version,
                                           hermes_storage_documents_write_outcome_t *ret,
                                           hermes_storage_documents_error_t *err) {
    (void)err;
    document_t *found = document_of(*name);
    hermes_storage_documents_document_t current = found ? shown(found) : (hermes_storage_documents_document_t){ 0 };
    bool fits = found ? maybe_version && maybe_version->len == current.version.len &&
                            memcmp(maybe_version->ptr, current.version.ptr, current.version.len) == 0
                      : !maybe_version;
    if (!fits) {
        *ret = (hermes_storage_documents_write_outcome_t){ .tag = HERMES_STORAGE_DOCUMENTS_WRITE_OUTCOME_CONFLICT, .val.conflict = current };
        return true;
    }
    if (found) hermes_storage_documents_document_free(&current);
    assert(found || document_count < MANY);
    if (!found) {
        found = &documents[document_count++];
        *found = (document_t){ .name = copied(name->ptr, name->len) };
    }
    keep(&found->content, copied(content->ptr, content->len));
    found->version++;
    *ret = (hermes_storage_documents_write_outcome_t){ .tag = HERMES_STORAGE_DOCUMENTS_WRITE_OUTCOME_WRITTEN, .val.written = hermes_string("") };
    return true;
}

static void say_fields(hermes_text_t *text, hermes_http_http_list_field_t fields) {
    for (size_t at = 0; at < fields.len; at++) {
        hermes_http_http_field_t *field = &fields.ptr[at];
        hermes_say_string(text, field->name);
        hermes_say(text, ": ");
        if (field->value.tag == HERMES_HTTP_HTTP_VALUE_PLAIN) {
            hermes_say_string(text, field->value.val.plain);
        } else {
            hermes_say_string(text, field->value.val.secret.prefix);
            hermes_say(text, "<");
            hermes_say_string(text, field->value.val.secret.name);
            hermes_say(text, ">");
        }
        hermes_say(text, "\n");
    }
}

static void note_request(const hermes_http_http_request_t *request) {
    assert(request_count < MANY);
    hermes_text_t text = { 0 };
    hermes_say_string(&text, request->method);
    hermes_say(&text, " ");
    hermes_say_string(&text, request->url);
    hermes_say(&text, "\n");
    say_fields(&text, request->query);
    say_fields(&text, request->headers);
    const hermes_http_http_body_t *body = &request->body;
    if (body->tag == HERMES_HTTP_HTTP_BODY_FORM) say_fields(&text, body->val.form);
    hermes_say(&text, "\n");
    if (body->tag == HERMES_HTTP_HTTP_BODY_JSON) hermes_say_string(&text, body->val.json.text);
    if (body->tag == HERMES_HTTP_HTTP_BODY_BYTES) {
        hermes_say_string(&text, (project_string_t){ body->val.bytes.ptr, body->val.bytes.len });
    }
    requests[request_count++] = copied(text.bytes, text.length);
    free(text.bytes);
}

IMPORT bool hermes_http_http_send(hermes_http_http_request_t *request, hermes_http_http_response_t *ret, hermes_http_http_error_t *err) {
    keep(&requested, copied(request->url.ptr, request->url.len));
    note_request(request);
    if (answered == answer_count) return hermes_error(err, HERMES_TYPES_TYPES_ERROR_KIND_UNAVAILABLE, "the network is unreachable");
    project_string_t body = hermes_string(bodies[answered]);
    *ret = (hermes_http_http_response_t){ .status = answers[answered++], .body = { body.ptr, body.len }, .url = hermes_copy(request->url) };
    return true;
}
