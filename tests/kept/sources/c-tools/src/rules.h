#ifndef RULES_H
#define RULES_H

#include <stddef.h>
#include <stdint.h>

// Plain functions, which `make test` runs natively.

size_t lines_in(const uint8_t *text, size_t length);
size_t words_in(const uint8_t *text, size_t length);
size_t characters_in(const uint8_t *text, size_t length);

#endif
