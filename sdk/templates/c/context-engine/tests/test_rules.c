#include <assert.h>
#include <stdio.h>

#include "rules.h"

int main(void) {
    const known_t known[] = { { 1, 1 }, { 2, 1 }, { 5, 2 }, { 6, 3 }, { 7, 3 } };
    assert(folded(known, 5, 1) == 3);
    assert(folded(known, 5, 2) == 2);
    assert(folded(known, 5, 3) == 0);
    assert(folded(known, 0, 1) == 0);
    assert(cut((const uint8_t *)"\xc3\xbc\xc3\xbc", 4, 1) == 2);
    assert(cut((const uint8_t *)"ab", 2, 5) == 2);
    puts("all tests passed");
    return 0;
}
