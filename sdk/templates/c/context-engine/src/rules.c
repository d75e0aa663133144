#include "rules.h"

size_t folded(const known_t *known, size_t count, uint32_t keep_turns) {
    size_t at = 0;
    if (count == 0) return 0;
    uint32_t newest = known[count - 1].turn;
    while (at < count && newest >= keep_turns && known[at].turn <= newest - keep_turns) at++;
    return at;
}

uint64_t tokens_from(const known_t *known, size_t count, size_t from) {
    uint64_t tokens = 0;
    for (size_t at = from; at < count; at++) tokens += known[at].tokens;
    return tokens;
}

size_t folded_to_fit(const known_t *known, size_t count, uint32_t keep_turns, uint64_t tokens) {
    uint32_t keep = keep_turns;
    while (keep > 1 && tokens_from(known, count, folded(known, count, keep)) > tokens) keep--;
    return folded(known, count, keep);
}

size_t cut(const uint8_t *text, size_t length, size_t characters) {
    size_t at = 0, seen = 0;
    for (; at < length; at++) {
        // A byte that continues a character of UTF-8 begins with the bits 10.
        if ((text[at] & 0xc0) != 0x80 && ++seen > characters) break;
    }
    return at;
}
