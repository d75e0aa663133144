#ifndef RULES_H
#define RULES_H

#include <stddef.h>
#include <stdint.h>

// Decides which messages to fold. Plain functions, which `make test` runs natively.

// What the engine needs to know about a message.
typedef struct {
    uint64_t id;
    uint32_t turn;
} known_t;

// The number of messages to fold, so that the newest turns stay. It folds whole turns, which keeps calls with their results.
size_t folded(const known_t *known, size_t count, uint32_t keep_turns);

// The number of bytes that hold at most this many characters of UTF-8.
size_t cut(const uint8_t *text, size_t length, size_t characters);

#endif
