#include "rules.h"

#include <math.h>
#include <stdbool.h>

// Bytes of a part of a word, and what a part counts. Words with a common part are a little similar: `ferry` and `ferries`.
#define PART 4
#define PART_WEIGHT 0.3f

// Letters of ASCII are compared without their case; bytes of other letters are a part of a word as they are.
static uint8_t folded(uint8_t byte) { return byte >= 'A' && byte <= 'Z' ? byte + 32 : byte; }

static bool is_word(uint8_t byte) {
    return byte >= 0x80 || (byte >= '0' && byte <= '9') || (folded(byte) >= 'a' && folded(byte) <= 'z');
}

// FNV-1a: the same number on every machine and in every run.
static uint32_t place(const uint8_t *word, size_t length, uint32_t dimensions) {
    uint32_t found = 0x811c9dc5;
    for (size_t at = 0; at < length; at++) found = (found ^ folded(word[at])) * 0x01000193;
    return found % dimensions;
}

void vector_of(const uint8_t *text, size_t length, float *vector, uint32_t dimensions) {
    for (uint32_t at = 0; at < dimensions; at++) vector[at] = 0;
    for (size_t from = 0; from < length;) {
        size_t to = from;
        while (to < length && is_word(text[to])) to++;
        if (to > from) vector[place(text + from, to - from, dimensions)] += 1;
        if (to - from > PART) vector[place(text + from, PART, dimensions)] += PART_WEIGHT;
        from = to + 1;
    }
    double squares = 0;
    for (uint32_t at = 0; at < dimensions; at++) squares += (double)vector[at] * vector[at];
    if (squares == 0) {
        // A text without words: plugins that divide by the length must not divide by 0.
        vector[0] = 1;
        return;
    }
    for (uint32_t at = 0; at < dimensions; at++) vector[at] = (float)(vector[at] / sqrt(squares));
}
