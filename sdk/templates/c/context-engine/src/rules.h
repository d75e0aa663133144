#ifndef RULES_H
#define RULES_H

#include <stddef.h>
#include <stdint.h>

// Decides which messages to fold. Plain functions, which `make test` runs natively.

// What the engine needs to know about a message.
typedef struct {
    uint64_t id;
    uint32_t turn, tokens;
} known_t;

// The number of messages to fold, so that the newest turns stay. It folds whole turns, which keeps calls with their results.
size_t folded(const known_t *known, size_t count, uint32_t keep_turns);

// The same for as many of these turns as take at most so many tokens; the newest turn always stays.
size_t folded_to_fit(const known_t *known, size_t count, uint32_t keep_turns, uint64_t tokens);

// Tokens of the messages from a position.
uint64_t tokens_from(const known_t *known, size_t count, size_t from);

// The number of bytes that hold at most this many characters of UTF-8.
size_t cut(const uint8_t *text, size_t length, size_t characters);

#endif
