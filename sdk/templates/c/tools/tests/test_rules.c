#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "rules.h"

#define COUNT(rule, text) rule((const uint8_t *)(text), strlen(text))

int main(void) {
    assert(COUNT(words_in, "two lamps\nünlit") == 3);
    assert(COUNT(lines_in, "two lamps\nünlit") == 2);
    assert(COUNT(lines_in, "one\n") == 1);
    assert(COUNT(characters_in, "ünlit") == 5);
    assert(COUNT(words_in, "") == 0);
    puts("all tests passed");
    return 0;
}
