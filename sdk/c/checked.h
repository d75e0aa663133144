// Included before every file of a checked build, `make check`: memory comes from `checked.c`, which knows where each call stands.

#ifndef HERMES_CHECKED_H
#define HERMES_CHECKED_H

#include <stdlib.h>
#include <string.h>

#include "hermes.h"

void hermes_at(const char *file, int line, const char *function);

#define HERMES_AT(call) (hermes_at(__FILE__, __LINE__, __func__), call)
#define malloc(size) HERMES_AT(malloc(size))
#define calloc(count, size) HERMES_AT(calloc(count, size))
#define realloc(memory, size) HERMES_AT(realloc(memory, size))
#define free(memory) HERMES_AT(free(memory))
#define strdup(text) HERMES_AT(strdup(text))

// Only in the plugin's own files: the SDK itself defines these.
#ifdef HERMES_OWN
#define hermes_resized(memory, size) HERMES_AT(hermes_resized(memory, size))
#define hermes_string(words) HERMES_AT(hermes_string(words))
#define hermes_copy(string) HERMES_AT(hermes_copy(string))
#define hermes_add(text, bytes, length) HERMES_AT(hermes_add(text, bytes, length))
#define hermes_say(text, words) HERMES_AT(hermes_say(text, words))
#define hermes_say_string(text, string) HERMES_AT(hermes_say_string(text, string))
#define hermes_say_number(text, number) HERMES_AT(hermes_say_number(text, number))
#define hermes_take(text) HERMES_AT(hermes_take(text))
#endif

#endif
