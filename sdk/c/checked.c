// The allocator of a checked build. It never gives memory away twice soon, and knows where each block was allocated and freed. A mistake ends
// the instance with the place on standard error, which becomes the error that `hermes plugins test` shows.

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// The functions themselves, not the macros.
#undef malloc
#undef calloc
#undef realloc
#undef free

#define PAGE 65536
#define GUARD 16
// Bytes that are in use before freed memory is used again.
#define PATIENT (12 << 20)
// What freed memory and the bytes behind a block contain. No text has this byte, so a text that was read behind its end, or after it was freed,
// is an error of its call.
#define POISON 0xff

typedef struct {
    const char *file;
    int line;
} place_t;

typedef struct block {
    uint64_t mark;
    size_t size, capacity;
    place_t allocated, freed;
    struct block *next;
    // So that the memory behind it is aligned.
    uint64_t end[1];
} block_t;

static const uint64_t LIVE = 0x6c697665626c6f63, FREED = 0x6672656564626c6f;

// The last line of the plugin that has called, and the export whose result the bindings are freeing.
static place_t last;
static const char *result;
// Whether the host lets nobody write now: while it gives arguments and takes results. What is found then is said in the next call.
static bool silent;
static char found[512];
static uintptr_t first_address, next_address, end_address;
static size_t used;
static block_t *oldest, *newest;

static const char *const RESULT = "__wasm_export_exports_";

void hermes_at(const char *file, int line, const char *function) {
    if (strncmp(file, "vendor/", 7) == 0) return;
    if (strncmp(file, "bindings/", 9) == 0) {
        bool is_result = strncmp(function, RESULT, strlen(RESULT)) == 0 && strstr(function, "_post_return");
        result = is_result ? function : NULL;
        silent = is_result || strcmp(function, "cabi_realloc") == 0;
        return;
    }
    last = (place_t){ file, line };
    result = NULL;
    silent = false;
    if (*found) {
        fputs(found, stderr);
        __builtin_trap();
    }
}

// Says what is wrong: with the result of an export, or where the plugin is.
static void die(const char *problem, const char *about, const place_t *place, const char *remedy) {
    char where[200] = "the plugin", earlier[160] = "";
    if (result) {
        const char *begin = result + strlen(RESULT), *end = strstr(begin, "_post_return");
        snprintf(where, sizeof where, "the result of `%.*s`", (int)(end - begin), begin);
    } else if (last.file) {
        snprintf(where, sizeof where, "%s:%d: the plugin", last.file, last.line);
    }
    if (place && place->file) snprintf(earlier, sizeof earlier, " %s %s:%d", about, place->file, place->line);
    if (!*found) snprintf(found, sizeof found, "%s %s%s: %s\n", where, problem, earlier, remedy);
    if (silent) return;
    fputs(found, stderr);
    __builtin_trap();
}

static void check_end(block_t *block) {
    const uint8_t *end = (const uint8_t *)(block + 1) + block->size;
    for (int at = 0; at < GUARD; at++)
        if (end[at] != POISON)
            die("has written behind the end of memory", "from", &block->allocated, "allocate enough, with the byte for the end of a C string");
}

static block_t *grown(size_t capacity) {
    size_t all = (sizeof(block_t) + capacity + 15) & ~(size_t)15;
    if (next_address + all > end_address) {
        size_t pages = (all + PAGE - 1) / PAGE;
        size_t at = __builtin_wasm_memory_grow(0, pages);
        if (at == SIZE_MAX) return NULL;
        uintptr_t address = at * PAGE;
        if (address != end_address) next_address = address;
        if (!first_address) first_address = address;
        end_address = address + pages * PAGE;
    }
    block_t *block = (block_t *)next_address;
    next_address += all;
    used += all;
    return block;
}

// The oldest freed block that fits, without waste.
static block_t *used_again(size_t capacity) {
    for (block_t **link = &oldest, *before = NULL; *link; before = *link, link = &(*link)->next) {
        block_t *block = *link;
        if (block->capacity < capacity || block->capacity > 2 * capacity + 256) continue;
        for (size_t at = 0; at < block->size; at++)
            if (((uint8_t *)(block + 1))[at] != POISON)
                die("has written to memory that was freed", "at", &block->freed, "forget a pointer that you have freed");
        *link = block->next;
        if (newest == block) newest = before;
        return block;
    }
    return NULL;
}

void *malloc(size_t size) {
    if (size > SIZE_MAX / 4) return NULL;
    size_t capacity = (size + GUARD + 15) & ~(size_t)15;
    block_t *block = used > PATIENT ? used_again(capacity) : NULL;
    if (!block) {
        block = grown(capacity);
        if (!block) return NULL;
        block->capacity = capacity;
    }
    *block = (block_t){ .mark = LIVE, .size = size, .capacity = block->capacity, .allocated = last };
    memset(block + 1, POISON, block->capacity);
    return block + 1;
}

// The block of a pointer; NULL if it is none, and that is said later.
static block_t *checked(void *memory) {
    uintptr_t address = (uintptr_t)memory;
    block_t *block = (block_t *)memory - 1;
    if (address < first_address + sizeof(block_t) || address >= end_address) {
        die(result ? "was not allocated" : "frees what was not allocated", "", NULL,
            "it is a literal, or a variable; give a copy, such as `hermes_string`, and free only what was allocated");
        return NULL;
    }
    if (address % 8 == 0 && block->mark == FREED) {
        die(result ? "was freed already" : "frees memory that was freed already", "at", &block->freed,
            "the generated code frees results, and nothing is freed twice");
        return NULL;
    }
    if (address % 8 != 0 || block->mark != LIVE) {
        die(result ? "does not begin where memory was allocated" : "frees memory in the middle of a block", "", NULL,
            "free and return the pointer that malloc gave");
        return NULL;
    }
    check_end(block);
    return block;
}

void free(void *memory) {
    block_t *block = memory ? checked(memory) : NULL;
    if (!block) return;
    block->mark = FREED;
    block->freed = last;
    block->next = NULL;
    memset(memory, POISON, block->size);
    if (newest) newest->next = block;
    else oldest = block;
    newest = block;
}

void *calloc(size_t count, size_t size) {
    if (size && count > SIZE_MAX / size) return NULL;
    void *memory = malloc(count * size);
    if (memory) memset(memory, 0, count * size);
    return memory;
}

void *realloc(void *memory, size_t size) {
    block_t *block = memory ? checked(memory) : NULL;
    size_t before = block ? block->size : 0;
    void *moved = malloc(size);
    if (!moved || !block) return moved;
    memcpy(moved, memory, before < size ? before : size);
    free(memory);
    return moved;
}

void *aligned_alloc(size_t alignment, size_t size) { return alignment <= 16 ? malloc(size) : NULL; }

int posix_memalign(void **memory, size_t alignment, size_t size) {
    *memory = aligned_alloc(alignment, size);
    return *memory ? 0 : 12;
}
