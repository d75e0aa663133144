// Helpers for Hermes plugins in C, over the bindings in `project.h`.
//
// A function of the contract must free its arguments, and the generated code frees its results. Memory that runs out ends the instance.

#ifndef HERMES_H
#define HERMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "project.h"

// Memory that is never NULL.
void *hermes_resized(void *memory, size_t size);

// A growing text. `(hermes_text_t){0}` is empty.
typedef struct {
    uint8_t *bytes;
    size_t length, capacity;
} hermes_text_t;

void hermes_add(hermes_text_t *text, const void *bytes, size_t length);
void hermes_say(hermes_text_t *text, const char *words);
void hermes_say_number(hermes_text_t *text, uint64_t number);
// The text as a string of the contract, which then owns its memory.
project_string_t hermes_take(hermes_text_t text);
// A copy of a C string as a string of the contract.
project_string_t hermes_string(const char *words);
bool hermes_is(project_string_t string, const char *words);

// Answers an error of a kind such as HERMES_TYPES_TYPES_ERROR_KIND_UNAVAILABLE: `return hermes_error(err, kind, "…");`.
bool hermes_error(hermes_types_types_error_t *err, uint8_t kind, const char *message);
// Answers that the caller made a mistake. Of a tool, the model reads the message.
bool hermes_invalid(hermes_types_types_error_t *err, const char *message);
bool hermes_invalid_text(hermes_types_types_error_t *err, hermes_text_t message);

typedef enum { HERMES_ABSENT, HERMES_NULL, HERMES_BOOL, HERMES_NUMBER, HERMES_STRING, HERMES_LIST, HERMES_OBJECT } hermes_kind_t;

// A value in a JSON text. `text` is decoded for a string and belongs to the reader of the value; for others it is NULL.
typedef struct {
    hermes_kind_t kind;
    bool boolean;
    double number;
    hermes_text_t text;
} hermes_json_t;

// Whether a text is one JSON object. An empty text counts as an empty object.
bool hermes_json_is_object(project_string_t json);
// The value of a key of a JSON object, the last one if it occurs more than once. Free `text.bytes` of the result.
hermes_json_t hermes_json_get(project_string_t json, const char *key);
// The number of keys of a JSON object.
size_t hermes_json_count(project_string_t json);

#endif
