// Helpers for Hermes plugins in C, over the bindings in `project.h`.
//
// A function of the contract must free its arguments, and the generated code frees its results: a result consists of memory from malloc,
// such as `hermes_string` gives. Arguments of imports stay the caller's, so `hermes_view` is enough for them. Memory that runs out ends
// the instance.
//
// `session-start`, `session-end` and `configure` have answers here, which a plugin replaces by functions of its own.

#ifndef HERMES_H
#define HERMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "project.h"

typedef hermes_types_types_error_t hermes_error_t;

#ifdef __wasm__
#include <stdio.h>

// What a plugin does not have, so that the compiler says what it has instead.
#define HERMES_WITHOUT(what) __attribute__((unavailable("a plugin has no " what)))
#define HERMES_EMPTY(what) __attribute__((deprecated("in a plugin " what)))
HERMES_WITHOUT("sockets: use hermes_request and hermes_send, with the permission `http`") int socket(int, int, int);
HERMES_WITHOUT("processes: use hermes_process_process_run, with the permission `process`") int fork(void);
HERMES_WITHOUT("programs: use hermes_process_process_run, with the permission `process`") int system(const char *);
HERMES_WITHOUT("programs: use hermes_process_process_run, with the permission `process`") int execv(const char *, char *const *);
HERMES_WITHOUT("programs: use hermes_process_process_run, with the permission `process`") int execvp(const char *, char *const *);
HERMES_WITHOUT("programs: use hermes_process_process_run, with the permission `process`") FILE *popen(const char *, const char *);
HERMES_EMPTY("no file can be opened: use hermes_document, or hermes_files_files_read with the permission `files`")
FILE *fopen(const char *__restrict, const char *__restrict);
HERMES_EMPTY("there are no variables: use a setting of plugin.yaml, or hermes_secret") char *getenv(const char *);
#endif

// Memory that is never NULL.
void *hermes_resized(void *memory, size_t size);

// Appends an item to a list of the contract: `HERMES_PUSH(*ret, (T){ .name = hermes_string("tea") });`.
#define HERMES_PUSH(list, ...)                                                            \
    ((list).ptr = hermes_resized((list).ptr, ((list).len + 1) * sizeof *(list).ptr),      \
     (list).ptr[(list).len++] = __VA_ARGS__)

// A growing text. `(hermes_text_t){0}` is empty.
typedef struct {
    uint8_t *bytes;
    size_t length, capacity;
} hermes_text_t;

void hermes_add(hermes_text_t *text, const void *bytes, size_t length);
void hermes_say(hermes_text_t *text, const char *words);
void hermes_say_string(hermes_text_t *text, project_string_t string);
void hermes_say_number(hermes_text_t *text, uint64_t number);
// Appends a text as JSON, in quotes.
void hermes_say_json(hermes_text_t *text, project_string_t string);
// The text as a string of the contract, which then owns its memory. The host takes only UTF-8, so each byte that is not part of a character
// becomes U+FFFD, here and in what `hermes_string` and `hermes_copy` return.
project_string_t hermes_take(hermes_text_t text);
// The text as a string that is only looked at: an argument of an import, never a result. It has to be UTF-8, like that of `hermes_view`.
project_string_t hermes_seen(hermes_text_t text);
// A copy of a C string as a string of the contract.
project_string_t hermes_string(const char *words);
// A copy of a string of the contract.
project_string_t hermes_copy(project_string_t string);
// A C string as a string that is only looked at: an argument of an import, never a result.
project_string_t hermes_view(const char *words);
// Copies of C strings; the last argument is NULL.
project_list_string_t hermes_strings(const char *first, ...);
bool hermes_is(project_string_t string, const char *words);
bool hermes_contains(project_string_t string, project_string_t part);

// Answers an error of a kind such as HERMES_TYPES_TYPES_ERROR_KIND_UNAVAILABLE: `return hermes_error(err, kind, "…");`.
bool hermes_error(hermes_error_t *err, uint8_t kind, const char *message);
bool hermes_error_text(hermes_error_t *err, uint8_t kind, const char *code, hermes_text_t message);
// Answers that the caller made a mistake. Of a tool, the model reads the message.
bool hermes_invalid(hermes_error_t *err, const char *message);
bool hermes_invalid_text(hermes_error_t *err, hermes_text_t message);

// The value of a key, which is only looked at; false without one. The second reads a whole number.
bool hermes_extra(hermes_types_types_extra_t extra, const char *key, project_string_t *value);
bool hermes_extra_number(hermes_types_types_extra_t extra, const char *key, uint64_t *value);

typedef enum { HERMES_ABSENT, HERMES_NULL, HERMES_BOOL, HERMES_NUMBER, HERMES_STRING, HERMES_LIST, HERMES_OBJECT } hermes_kind_t;

// A value in a JSON text. `text` is decoded for a string and belongs to the reader of the value; for others it is NULL. `raw` is the
// value's own JSON, a part of the text that was read: read lists and objects in it with the same functions.
typedef struct {
    hermes_kind_t kind;
    bool boolean;
    double number;
    hermes_text_t text;
    project_string_t raw;
} hermes_json_t;

// Whether a text is one JSON object. An empty text counts as an empty object.
bool hermes_json_is_object(project_string_t json);
// The value of a key of a JSON object, the last one if it occurs more than once. Free `text.bytes` of the result.
hermes_json_t hermes_json_get(project_string_t json, const char *key);
// Takes the next item from a JSON list; false behind the last. Free `text.bytes` of the item.
bool hermes_json_next(project_string_t *list, hermes_json_t *item);
// The number of keys of a JSON object.
size_t hermes_json_count(project_string_t json);

// Read a key of the configuration or of a tool's arguments. Without the key, the value stays as it is. An error names the key.
bool hermes_read_number(project_string_t json, const char *key, double least, double most, double *value, hermes_error_t *err);
bool hermes_read_text(project_string_t json, const char *key, hermes_text_t *value, hermes_error_t *err);

// Writes to the plugin's log; the user sees each warning and error once: HERMES_HOST_LOG_LEVEL_INFO.
void hermes_log(hermes_host_log_level_t level, const char *words);

// The text of a document of the plugin, empty if there is none. Instances share documents, and documents last.
bool hermes_document(const char *name, project_string_t *content, hermes_error_t *err);
// Writes the new text of a document, from the old one. Returns whether there is a change. It can run again, if another writer was faster.
typedef bool hermes_change_t(project_string_t old, hermes_text_t *new, void *state);
bool hermes_update_document(const char *name, hermes_change_t *change, void *state, hermes_error_t *err);

// A request over HTTP to an address that plugin.yaml asks for. The host inserts a secret; the plugin never sees it.
//
//     hermes_http_http_request_t request = hermes_request("GET", "https://api.example.org/v1/items");
//     hermes_header(&request, "Authorization", hermes_secret("api_key", "Bearer "));
//     hermes_http_http_response_t response;
//     if (!hermes_send(&request, &response, err) || !hermes_checked(&response, err)) return false;
hermes_http_http_request_t hermes_request(const char *method, const char *url);
hermes_http_http_value_t hermes_plain(const char *words);
hermes_http_http_value_t hermes_secret(const char *name, const char *prefix);
void hermes_header(hermes_http_http_request_t *request, const char *name, hermes_http_http_value_t value);
void hermes_query(hermes_http_http_request_t *request, const char *name, hermes_http_http_value_t value);
// The body of a request, with the header `Content-Type: application/json`.
void hermes_json_body(hermes_http_http_request_t *request, hermes_text_t json);
// Sends and frees a request. A response of any status is true.
bool hermes_send(hermes_http_http_request_t *request, hermes_http_http_response_t *response, hermes_error_t *err);
// Whether the status is 200 to 299. Else it frees the response and gives an error: `unavailable` for 401 and 403, with the code `auth`,
// and for 408, 425, 429 and 5xx; `failed` for the rest. The user can put a key right, so a memory's turn waits for it.
bool hermes_checked(hermes_http_http_response_t *response, hermes_error_t *err);
// The first header with this name, in lower case; it is only looked at.
bool hermes_header_of(const hermes_http_http_response_t *response, const char *name, project_string_t *value);

#ifdef EXPORTS_HERMES_TOOLS_TOOLS_CONTENT_TEXT
// The result of a tool: `return hermes_answer(ret, text);`.
bool hermes_answer(exports_hermes_tools_tools_output_t *ret, hermes_text_t text);
#endif

#ifdef EXPORTS_HERMES_HOOKS_HOOKS_VERDICT_PROCEED
// Verdicts of a hook.
void hermes_proceed(exports_hermes_hooks_hooks_verdict_t *ret);
void hermes_block(exports_hermes_hooks_hooks_verdict_t *ret, hermes_text_t why);
void hermes_ask(exports_hermes_hooks_hooks_verdict_t *ret, hermes_text_t why);
#endif

#ifdef EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_TIMING_NOW
// The most tokens that the next view may have, as the host counts them: the tokens of the kept messages, and of each summary with its
// frame of about HERMES_FRAME.
#define HERMES_FRAME 110
uint32_t hermes_room(const exports_hermes_context_engine_context_engine_pressure_t *pressure);
// The tokens of a plan that the host refused as too large, and those that fit. False for another refusal, and of an older host.
bool hermes_refusal(const hermes_error_t *refused, uint64_t *needed, uint64_t *room);
#endif

#endif
