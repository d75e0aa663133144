#include "hermes.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

// The bindings name this function to make sure that the component's type is linked in; `hermes plugins component` adds the type.
void __component_type_object_force_link_project(void);
void __component_type_object_force_link_project(void) {}

// What a plugin without functions of its own answers.
__attribute__((weak)) bool exports_hermes_lifecycle_lifecycle_configure(project_string_t *config, hermes_error_t *err) {
    bool valid = hermes_json_is_object(*config);
    project_string_free(config);
    return valid || hermes_invalid(err, "the configuration must be a JSON object");
}

__attribute__((weak)) bool exports_hermes_lifecycle_lifecycle_session_start(
    exports_hermes_lifecycle_lifecycle_session_t *session, exports_hermes_lifecycle_lifecycle_start_t *how,
    hermes_error_t *err) {
    (void)err;
    exports_hermes_lifecycle_lifecycle_session_free(session);
    exports_hermes_lifecycle_lifecycle_start_free(how);
    return true;
}

__attribute__((weak)) bool exports_hermes_lifecycle_lifecycle_session_end(
    exports_hermes_lifecycle_lifecycle_ending_t *how, hermes_error_t *err) {
    (void)err;
    exports_hermes_lifecycle_lifecycle_ending_free(how);
    return true;
}

void *hermes_resized(void *memory, size_t size) {
    void *new = realloc(memory, size ? size : 1);
    if (!new) __builtin_trap();
    return new;
}

void hermes_add(hermes_text_t *text, const void *bytes, size_t length) {
    if (length == 0) return;
    if (text->capacity - text->length < length) {
        text->capacity = text->capacity ? (text->capacity + length) * 2 : length;
        text->bytes = hermes_resized(text->bytes, text->capacity);
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

void hermes_say(hermes_text_t *text, const char *words) { hermes_add(text, words, strlen(words)); }

void hermes_say_string(hermes_text_t *text, project_string_t string) { hermes_add(text, string.ptr, string.len); }

void hermes_say_number(hermes_text_t *text, uint64_t number) {
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    hermes_add(text, digits + at, sizeof digits - at);
}

void hermes_say_json(hermes_text_t *text, project_string_t string) {
    static const char digits[] = "0123456789abcdef";
    hermes_say(text, "\"");
    for (size_t at = 0; at < string.len; at++) {
        uint8_t byte = string.ptr[at];
        if (byte < ' ') {
            hermes_add(text, (char[]){ '\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15] }, 6);
        } else {
            if (byte == '"' || byte == '\\') hermes_say(text, "\\");
            hermes_add(text, &byte, 1);
        }
    }
    hermes_say(text, "\"");
}

// The bytes of the character at the beginning of a text that is not empty. 0 if there is none in UTF-8.
static size_t character(const uint8_t *text, size_t length) {
    if (text[0] < 0x80) return 1;
    size_t size = text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    if (text[0] < 0xc2 || text[0] > 0xf4 || length < size) return 0;
    // Longer forms than necessary, halves of UTF-16 and numbers above U+10FFFF are no characters.
    if (text[0] == 0xe0 && text[1] < 0xa0) return 0;
    if (text[0] == 0xed && text[1] > 0x9f) return 0;
    if (text[0] == 0xf0 && text[1] < 0x90) return 0;
    if (text[0] == 0xf4 && text[1] > 0x8f) return 0;
    for (size_t at = 1; at < size; at++)
        if ((text[at] & 0xc0) != 0x80) return 0;
    return size;
}

static hermes_text_t well_formed(hermes_text_t text) {
    size_t at = 0, size;
    while (at < text.length && (size = character(text.bytes + at, text.length - at))) at += size;
    if (at == text.length) return text;
    hermes_text_t result = { 0 };
    for (at = 0; at < text.length; at += size ? size : 1) {
        size = character(text.bytes + at, text.length - at);
        if (size) hermes_add(&result, text.bytes + at, size);
        else hermes_say(&result, "\xef\xbf\xbd");
    }
    free(text.bytes);
    return result;
}

project_string_t hermes_take(hermes_text_t text) {
    text = well_formed(text);
    // The generated code does not free empty strings.
    if (text.length == 0) return free(text.bytes), (project_string_t){ 0 };
    return (project_string_t){ .ptr = hermes_resized(text.bytes, text.length), .len = text.length };
}

project_string_t hermes_seen(hermes_text_t text) {
    return (project_string_t){ .ptr = text.bytes, .len = text.length };
}

project_string_t hermes_copy(project_string_t string) {
    hermes_text_t text = { 0 };
    hermes_say_string(&text, string);
    return hermes_take(text);
}

project_string_t hermes_view(const char *words) {
    return (project_string_t){ .ptr = (uint8_t *)words, .len = strlen(words) };
}

project_string_t hermes_string(const char *words) { return hermes_copy(hermes_view(words)); }

project_list_string_t hermes_strings(const char *first, ...) {
    project_list_string_t all = { 0 };
    va_list rest;
    va_start(rest, first);
    for (const char *words = first; words; words = va_arg(rest, const char *)) HERMES_PUSH(all, hermes_string(words));
    va_end(rest);
    return all;
}

bool hermes_is(project_string_t string, const char *words) {
    return string.len == strlen(words) && (string.len == 0 || memcmp(string.ptr, words, string.len) == 0);
}

bool hermes_contains(project_string_t string, project_string_t part) {
    if (part.len == 0) return true;
    for (size_t at = 0; at + part.len <= string.len; at++)
        if (memcmp(string.ptr + at, part.ptr, part.len) == 0) return true;
    return false;
}

bool hermes_error_text(hermes_error_t *err, uint8_t kind, const char *code, hermes_text_t message) {
    *err = (hermes_error_t){ .kind.tag = kind, .code = hermes_string(code), .message = hermes_take(message) };
    return false;
}

bool hermes_error(hermes_error_t *err, uint8_t kind, const char *message) {
    hermes_text_t text = { 0 };
    hermes_say(&text, message);
    return hermes_error_text(err, kind, "", text);
}

bool hermes_invalid(hermes_error_t *err, const char *message) {
    return hermes_error(err, HERMES_TYPES_TYPES_ERROR_KIND_INVALID_INPUT, message);
}

bool hermes_invalid_text(hermes_error_t *err, hermes_text_t message) {
    return hermes_error_text(err, HERMES_TYPES_TYPES_ERROR_KIND_INVALID_INPUT, "", message);
}

bool hermes_extra(hermes_types_types_extra_t extra, const char *key, project_string_t *value) {
    for (size_t at = 0; at < extra.len; at++) {
        if (!hermes_is(extra.ptr[at].f0, key)) continue;
        *value = extra.ptr[at].f1;
        return true;
    }
    return false;
}

// A whole number of at most 18 digits.
static bool read_whole(project_string_t digits, uint64_t *number) {
    if (digits.len == 0 || digits.len > 18) return false;
    uint64_t read = 0;
    for (size_t at = 0; at < digits.len; at++) {
        if (digits.ptr[at] < '0' || digits.ptr[at] > '9') return false;
        read = read * 10 + (digits.ptr[at] - '0');
    }
    *number = read;
    return true;
}

bool hermes_extra_number(hermes_types_types_extra_t extra, const char *key, uint64_t *value) {
    project_string_t digits;
    return hermes_extra(extra, key, &digits) && read_whole(digits, value);
}

void hermes_log(hermes_host_log_level_t level, const char *words) {
    project_string_t text = hermes_string(words);
    hermes_host_log_write(level, &text);
    project_string_free(&text);
}

bool hermes_document(const char *name, project_string_t *content, hermes_error_t *err) {
    project_string_t given = hermes_view(name);
    hermes_storage_documents_option_document_t found;
    if (!hermes_storage_documents_read(&given, &found, err)) return false;
    *content = found.is_some ? hermes_copy(found.val.content) : hermes_string("");
    hermes_storage_documents_option_document_free(&found);
    return true;
}

bool hermes_update_document(const char *name, hermes_change_t *change, void *state, hermes_error_t *err) {
    // Another writer that is faster each time is not another writer.
    for (int attempt = 0; attempt < 16; attempt++) {
        project_string_t given = hermes_view(name);
        hermes_storage_documents_option_document_t old = { 0 };
        if (!hermes_storage_documents_read(&given, &old, err)) return false;
        hermes_text_t new = { 0 };
        project_string_t none = hermes_view("");
        if (!change(old.is_some ? old.val.content : none, &new, state)) {
            free(new.bytes);
            hermes_storage_documents_option_document_free(&old);
            return true;
        }
        project_string_t content = hermes_take(new);
        hermes_storage_documents_write_outcome_t outcome;
        bool answered = hermes_storage_documents_write(&given, &content, old.is_some ? &old.val.version : NULL, &outcome, err);
        hermes_storage_documents_option_document_free(&old);
        project_string_free(&content);
        if (!answered) return false;
        bool written = outcome.tag == HERMES_STORAGE_DOCUMENTS_WRITE_OUTCOME_WRITTEN;
        hermes_storage_documents_write_outcome_free(&outcome);
        if (written) return true;
    }
    return hermes_error(err, HERMES_TYPES_TYPES_ERROR_KIND_CONFLICT, "the document changes too often");
}

hermes_http_http_request_t hermes_request(const char *method, const char *url) {
    return (hermes_http_http_request_t){ .method = hermes_string(method), .url = hermes_string(url) };
}

hermes_http_http_value_t hermes_plain(const char *words) {
    return (hermes_http_http_value_t){ .tag = HERMES_HTTP_HTTP_VALUE_PLAIN, .val.plain = hermes_string(words) };
}

hermes_http_http_value_t hermes_secret(const char *name, const char *prefix) {
    return (hermes_http_http_value_t){
        .tag = HERMES_HTTP_HTTP_VALUE_SECRET,
        .val.secret = { .name = hermes_string(name), .prefix = hermes_string(prefix) },
    };
}

void hermes_header(hermes_http_http_request_t *request, const char *name, hermes_http_http_value_t value) {
    HERMES_PUSH(request->headers, (hermes_http_http_field_t){ .name = hermes_string(name), .value = value });
}

void hermes_query(hermes_http_http_request_t *request, const char *name, hermes_http_http_value_t value) {
    HERMES_PUSH(request->query, (hermes_http_http_field_t){ .name = hermes_string(name), .value = value });
}

void hermes_json_body(hermes_http_http_request_t *request, hermes_text_t json) {
    hermes_header(request, "Content-Type", hermes_plain("application/json"));
    request->body = (hermes_http_http_body_t){
        .tag = HERMES_HTTP_HTTP_BODY_BYTES,
        .val.bytes = { .ptr = hermes_resized(json.bytes, json.length), .len = json.length },
    };
}

bool hermes_send(hermes_http_http_request_t *request, hermes_http_http_response_t *response, hermes_error_t *err) {
    bool answered = hermes_http_http_send(request, response, err);
    hermes_http_http_request_free(request);
    return answered;
}

bool hermes_header_of(const hermes_http_http_response_t *response, const char *name, project_string_t *value) {
    hermes_types_types_extra_t headers = { response->headers.ptr, response->headers.len };
    return hermes_extra(headers, name, value);
}

bool hermes_checked(hermes_http_http_response_t *response, hermes_error_t *err) {
    uint16_t status = response->status;
    if (status >= 200 && status < 300) return true;
    bool refused = status == 401 || status == 403;
    bool later = refused || status == 408 || status == 425 || status == 429 || status >= 500;
    hermes_text_t message = { 0 }, code = { 0 };
    // What was asked may be private, and an error is shown and stored.
    project_string_t address = response->url;
    for (size_t at = 0; at < address.len; at++) {
        if (address.ptr[at] == '?' || address.ptr[at] == '#') address.len = at;
    }
    hermes_say_string(&message, address);
    hermes_say(&message, " answered ");
    hermes_say_number(&message, status);
    if (refused) hermes_say(&message, ": it does not accept the key");
    hermes_say(&code, refused ? "auth" : "status-");
    if (!refused) hermes_say_number(&code, status);
    project_string_t seconds;
    uint64_t wait = 0;
    bool waits = hermes_header_of(response, "retry-after", &seconds) && read_whole(seconds, &wait);
    hermes_http_http_response_free(response);
    *err = (hermes_error_t){
        .kind.tag = later ? HERMES_TYPES_TYPES_ERROR_KIND_UNAVAILABLE : HERMES_TYPES_TYPES_ERROR_KIND_FAILED,
        .code = hermes_take(code),
        .message = hermes_take(message),
        .retry_after_ms = { .is_some = waits, .val = (uint32_t)(wait > 3600 ? 3600 : wait) * 1000 },
    };
    return false;
}

#ifdef EXPORTS_HERMES_TOOLS_TOOLS_CONTENT_TEXT
bool hermes_answer(exports_hermes_tools_tools_output_t *ret, hermes_text_t text) {
    *ret = (exports_hermes_tools_tools_output_t){ 0 };
    HERMES_PUSH(ret->content, (exports_hermes_tools_tools_content_t){
                                  .tag = EXPORTS_HERMES_TOOLS_TOOLS_CONTENT_TEXT,
                                  .val.text = hermes_take(text),
                              });
    return true;
}
#endif

#ifdef EXPORTS_HERMES_HOOKS_HOOKS_VERDICT_PROCEED
void hermes_proceed(exports_hermes_hooks_hooks_verdict_t *ret) {
    *ret = (exports_hermes_hooks_hooks_verdict_t){ .tag = EXPORTS_HERMES_HOOKS_HOOKS_VERDICT_PROCEED };
}

void hermes_block(exports_hermes_hooks_hooks_verdict_t *ret, hermes_text_t why) {
    *ret = (exports_hermes_hooks_hooks_verdict_t){
        .tag = EXPORTS_HERMES_HOOKS_HOOKS_VERDICT_BLOCK,
        .val.block = hermes_take(why),
    };
}

void hermes_ask(exports_hermes_hooks_hooks_verdict_t *ret, hermes_text_t why) {
    *ret = (exports_hermes_hooks_hooks_verdict_t){
        .tag = EXPORTS_HERMES_HOOKS_HOOKS_VERDICT_ASK,
        .val.ask = hermes_take(why),
    };
}
#endif

#ifdef EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_TIMING_NOW
uint32_t hermes_room(const exports_hermes_context_engine_context_engine_pressure_t *pressure) {
    uint64_t room;
    if (hermes_extra_number(pressure->extra, "room", &room)) return room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
    uint64_t taken = (uint64_t)pressure->reserve + pressure->fixed_tokens;
    return pressure->context_length > taken ? (uint32_t)(pressure->context_length - taken) : 0;
}

bool hermes_refusal(const hermes_error_t *refused, uint64_t *needed, uint64_t *room) {
    return hermes_extra_number(refused->extra, "needed", needed) && hermes_extra_number(refused->extra, "room", room);
}
#endif

// A reader of JSON. Every function returns false for a text that is not JSON.
typedef struct {
    const uint8_t *bytes;
    size_t length, at;
} reader_t;

// How deep lists and objects may lie in each other.
#define DEPTH 64

static void pass_space(reader_t *in) {
    while (in->at < in->length && strchr(" \t\r\n", in->bytes[in->at]) && in->bytes[in->at]) in->at++;
}

static bool pass(reader_t *in, const char *word) {
    size_t length = strlen(word);
    if (in->length - in->at < length || memcmp(in->bytes + in->at, word, length) != 0) return false;
    in->at += length;
    return true;
}

static bool next_is(const reader_t *in, const char *any) {
    return in->at < in->length && in->bytes[in->at] && strchr(any, in->bytes[in->at]);
}

static bool read_hex(reader_t *in, uint32_t *code) {
    *code = 0;
    for (int digit = 0; digit < 4; digit++) {
        static const char digits[] = "0123456789abcdefABCDEF";
        if (!next_is(in, digits)) return false;
        uint32_t value = (uint32_t)(strchr(digits, in->bytes[in->at++]) - digits);
        *code = *code << 4 | (value > 15 ? value - 6 : value);
    }
    return true;
}

static void add_code(hermes_text_t *out, uint32_t code) {
    uint8_t bytes[4];
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t marks[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (size_t at = length; at-- > 1; code >>= 6) bytes[at] = (uint8_t)(0x80 | (code & 0x3f));
    bytes[0] = (uint8_t)(marks[length] | code);
    hermes_add(out, bytes, length);
}

static bool read_string(reader_t *in, hermes_text_t *out) {
    if (!pass(in, "\"")) return false;
    while (in->at < in->length) {
        // All up to the next escape at once: some allocators keep every size that a text had while it grew.
        size_t from = in->at;
        while (in->at < in->length && in->bytes[in->at] >= 0x20 && !strchr("\"\\", in->bytes[in->at])) in->at++;
        hermes_add(out, in->bytes + from, in->at - from);
        if (in->at == in->length) return false;
        uint8_t byte = in->bytes[in->at++];
        if (byte == '"') return true;
        if (byte < 0x20) return false;
        if (pass(in, "u")) {
            uint32_t code, low;
            if (!read_hex(in, &code)) return false;
            if (code >= 0xd800 && code < 0xdc00 && pass(in, "\\u")) {
                if (!read_hex(in, &low)) return false;
                code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0xfffd;
            }
            add_code(out, code >= 0xd800 && code < 0xe000 ? 0xfffd : code);
            continue;
        }
        static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
        if (!next_is(in, escapes)) return false;
        hermes_add(out, meanings + (strchr(escapes, in->bytes[in->at++]) - escapes), 1);
    }
    return false;
}

static bool read_digits(reader_t *in, double *number, double *scale) {
    size_t from = in->at;
    for (; next_is(in, "0123456789"); in->at++) {
        *number = *number * 10 + (in->bytes[in->at] - '0');
        *scale *= 10;
    }
    return in->at > from;
}

static bool read_number(reader_t *in, double *number) {
    bool negative = pass(in, "-"), zero = next_is(in, "0");
    size_t from = in->at;
    double scale = 1, fraction = 1, exponent = 0;
    if (!read_digits(in, number, &scale) || (zero && in->at - from > 1)) return false;
    if (pass(in, ".") && !read_digits(in, number, &fraction)) return false;
    *number /= fraction;
    if (next_is(in, "eE")) {
        in->at++;
        bool shrinks = pass(in, "-");
        if (!shrinks) pass(in, "+");
        if (!read_digits(in, &exponent, &scale)) return false;
        for (int step = 0; step < exponent && step < 400; step++) *number = shrinks ? *number / 10 : *number * 10;
    }
    if (negative) *number = -*number;
    return true;
}

static bool read_value(reader_t *in, hermes_json_t *out, int depth);

// Reads a list or an object. Of an object, `out` gets the value of `key`, and `count` the number of keys.
static bool read_items(reader_t *in, char end, const char *key, hermes_json_t *out, size_t *count, int depth) {
    in->at++;
    pass_space(in);
    for (bool first = true; !next_is(in, (char[]){ end, 0 }); first = false) {
        if (!first && !pass(in, ",")) return false;
        pass_space(in);
        bool wanted = false;
        if (end == '}') {
            hermes_text_t name = { 0 };
            bool read = read_string(in, &name);
            wanted = read && key && name.length == strlen(key) && memcmp(name.bytes, key, name.length) == 0;
            free(name.bytes);
            pass_space(in);
            if (!read || !pass(in, ":")) return false;
        }
        hermes_json_t value = { 0 };
        bool read = read_value(in, &value, depth + 1);
        if (read && wanted) {
            free(out->text.bytes);
            *out = value;
        } else {
            free(value.text.bytes);
        }
        if (!read) return false;
        if (count) ++*count;
    }
    in->at++;
    return true;
}

static bool read_value(reader_t *in, hermes_json_t *out, int depth) {
    pass_space(in);
    size_t from = in->at;
    bool read = false;
    if (depth > DEPTH) return false;
    if (next_is(in, "{")) {
        out->kind = HERMES_OBJECT;
        read = read_items(in, '}', NULL, out, NULL, depth);
    } else if (next_is(in, "[")) {
        out->kind = HERMES_LIST;
        read = read_items(in, ']', NULL, out, NULL, depth);
    } else if (next_is(in, "\"")) {
        out->kind = HERMES_STRING;
        read = read_string(in, &out->text);
    } else if (pass(in, "null")) {
        out->kind = HERMES_NULL;
        read = true;
    } else if (pass(in, "true") || pass(in, "false")) {
        out->kind = HERMES_BOOL;
        out->boolean = in->bytes[in->at - 2] == 'u';
        read = true;
    } else {
        out->kind = HERMES_NUMBER;
        read = read_number(in, &out->number);
    }
    out->raw = (project_string_t){ .ptr = (uint8_t *)in->bytes + from, .len = in->at - from };
    pass_space(in);
    return read;
}

static bool read_object(project_string_t json, const char *key, hermes_json_t *out, size_t *count) {
    reader_t in = { json.ptr, json.len, 0 };
    pass_space(&in);
    if (in.at == in.length) return true;
    if (!next_is(&in, "{") || !read_items(&in, '}', key, out, count, 0)) return false;
    pass_space(&in);
    return in.at == in.length;
}

bool hermes_json_is_object(project_string_t json) {
    hermes_json_t ignored = { 0 };
    return read_object(json, NULL, &ignored, NULL);
}

hermes_json_t hermes_json_get(project_string_t json, const char *key) {
    hermes_json_t found = { 0 };
    if (read_object(json, key, &found, NULL)) return found;
    free(found.text.bytes);
    return (hermes_json_t){ 0 };
}

bool hermes_json_next(project_string_t *list, hermes_json_t *item) {
    reader_t in = { list->ptr, list->len, 0 };
    *item = (hermes_json_t){ 0 };
    pass_space(&in);
    if (!pass(&in, "[") && !pass(&in, ",")) return false;
    pass_space(&in);
    if (next_is(&in, "]") || !read_value(&in, item, 0)) {
        free(item->text.bytes);
        *item = (hermes_json_t){ 0 };
        return false;
    }
    *list = (project_string_t){ .ptr = list->ptr + in.at, .len = list->len - in.at };
    return true;
}

size_t hermes_json_count(project_string_t json) {
    size_t count = 0;
    hermes_json_t ignored = { 0 };
    return read_object(json, NULL, &ignored, &count) ? count : 0;
}

static bool unfit(const char *key, const char *wanted, hermes_error_t *err) {
    hermes_text_t message = { 0 };
    hermes_say(&message, key);
    hermes_say(&message, " must be ");
    hermes_say(&message, wanted);
    return hermes_invalid_text(err, message);
}

bool hermes_read_number(project_string_t json, const char *key, double least, double most, double *value, hermes_error_t *err) {
    hermes_json_t given = hermes_json_get(json, key);
    free(given.text.bytes);
    if (given.kind == HERMES_ABSENT) return true;
    if (given.kind != HERMES_NUMBER) return unfit(key, "a number", err);
    if (!(given.number >= least && given.number <= most)) return unfit(key, "a number within its limits", err);
    *value = given.number;
    return true;
}

bool hermes_read_text(project_string_t json, const char *key, hermes_text_t *value, hermes_error_t *err) {
    hermes_json_t given = hermes_json_get(json, key);
    if (given.kind == HERMES_ABSENT) return true;
    if (given.kind != HERMES_STRING) return free(given.text.bytes), unfit(key, "a text", err);
    free(value->bytes);
    *value = given.text;
    return true;
}
