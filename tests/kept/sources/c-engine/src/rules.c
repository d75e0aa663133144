#include "rules.h"

size_t folded(const known_t *known, size_t count, uint32_t keep_turns) {
    size_t at = 0;
    if (count == 0) return 0;
    uint32_t newest = known[count - 1].turn;
    while (at < count && newest >= keep_turns && known[at].turn <= newest - keep_turns) at++;
    return at;
}

size_t cut(const uint8_t *text, size_t length, size_t characters) {
    size_t at = 0, seen = 0;
    for (; at < length; at++) {
        // A byte that continues a character of UTF-8 begins with the bits 10.
        if ((text[at] & 0xc0) != 0x80 && ++seen > characters) break;
    }
    return at;
}
