#ifndef RULES_H
#define RULES_H

#include <stddef.h>
#include <stdint.h>

// Plain functions, which `make test` runs natively.

// Writes a vector of length 1. Each word and each beginning of a word adds to one of its numbers.
void vector_of(const uint8_t *text, size_t length, float *vector, uint32_t dimensions);

#endif
