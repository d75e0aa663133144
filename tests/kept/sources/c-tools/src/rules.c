#include "rules.h"

#include <stdbool.h>

size_t lines_in(const uint8_t *text, size_t length) {
    size_t lines = length > 0 && text[length - 1] != '\n';
    for (size_t at = 0; at < length; at++) lines += text[at] == '\n';
    return lines;
}

size_t words_in(const uint8_t *text, size_t length) {
    size_t words = 0;
    bool inside = false;
    for (size_t at = 0; at < length; at++) {
        bool blank = text[at] <= ' ';
        words += !blank && !inside;
        inside = !blank;
    }
    return words;
}

size_t characters_in(const uint8_t *text, size_t length) {
    size_t characters = 0;
    // A byte that continues a character of UTF-8 begins with the bits 10.
    for (size_t at = 0; at < length; at++) characters += (text[at] & 0xc0) != 0x80;
    return characters;
}
