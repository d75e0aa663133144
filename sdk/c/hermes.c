#include "hermes.h"

#include <stdlib.h>
#include <string.h>

// The bindings name this function to make sure that the component's type is linked in; `hermes plugins component` adds the type.
void __component_type_object_force_link_project(void);
void __component_type_object_force_link_project(void) {}

void *hermes_resized(void *memory, size_t size) {
    void *new = realloc(memory, size ? size : 1);
    if (!new) __builtin_trap();
    return new;
}

void hermes_add(hermes_text_t *text, const void *bytes, size_t length) {
    if (length == 0) return;
    if (text->capacity - text->length < length) {
        text->capacity = (text->capacity + length) * 2;
        text->bytes = hermes_resized(text->bytes, text->capacity);
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

void hermes_say(hermes_text_t *text, const char *words) { hermes_add(text, words, strlen(words)); }

void hermes_say_number(hermes_text_t *text, uint64_t number) {
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    hermes_add(text, digits + at, sizeof digits - at);
}

project_string_t hermes_take(hermes_text_t text) {
    return (project_string_t){ .ptr = hermes_resized(text.bytes, text.length), .len = text.length };
}

project_string_t hermes_string(const char *words) {
    hermes_text_t text = { 0 };
    hermes_say(&text, words);
    return hermes_take(text);
}

bool hermes_is(project_string_t string, const char *words) {
    return string.len == strlen(words) && memcmp(string.ptr, words, string.len) == 0;
}

bool hermes_error(hermes_types_types_error_t *err, uint8_t kind, const char *message) {
    *err = (hermes_types_types_error_t){ .kind.tag = kind, .message = hermes_string(message) };
    return false;
}

bool hermes_invalid(hermes_types_types_error_t *err, const char *message) {
    return hermes_error(err, HERMES_TYPES_TYPES_ERROR_KIND_INVALID_INPUT, message);
}

bool hermes_invalid_text(hermes_types_types_error_t *err, hermes_text_t message) {
    *err = (hermes_types_types_error_t){
        .kind.tag = HERMES_TYPES_TYPES_ERROR_KIND_INVALID_INPUT,
        .message = hermes_take(message),
    };
    return false;
}

// A reader of JSON. Every function returns false for a text that is not JSON.
typedef struct {
    const uint8_t *bytes;
    size_t length, at;
} reader_t;

// How deep lists and objects may lie in each other.
#define DEPTH 64

static void pass_space(reader_t *in) {
    while (in->at < in->length && strchr(" \t\r\n", in->bytes[in->at]) && in->bytes[in->at]) in->at++;
}

static bool pass(reader_t *in, const char *word) {
    size_t length = strlen(word);
    if (in->length - in->at < length || memcmp(in->bytes + in->at, word, length) != 0) return false;
    in->at += length;
    return true;
}

static bool next_is(const reader_t *in, const char *any) {
    return in->at < in->length && in->bytes[in->at] && strchr(any, in->bytes[in->at]);
}

static bool read_hex(reader_t *in, uint32_t *code) {
    *code = 0;
    for (int digit = 0; digit < 4; digit++) {
        static const char digits[] = "0123456789abcdefABCDEF";
        if (!next_is(in, digits)) return false;
        uint32_t value = (uint32_t)(strchr(digits, in->bytes[in->at++]) - digits);
        *code = *code << 4 | (value > 15 ? value - 6 : value);
    }
    return true;
}

static void add_code(hermes_text_t *out, uint32_t code) {
    uint8_t bytes[4];
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t marks[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (size_t at = length; at-- > 1; code >>= 6) bytes[at] = (uint8_t)(0x80 | (code & 0x3f));
    bytes[0] = (uint8_t)(marks[length] | code);
    hermes_add(out, bytes, length);
}

static bool read_string(reader_t *in, hermes_text_t *out) {
    if (!pass(in, "\"")) return false;
    while (in->at < in->length) {
        uint8_t byte = in->bytes[in->at++];
        if (byte == '"') return true;
        if (byte < 0x20) return false;
        if (byte != '\\') {
            hermes_add(out, &byte, 1);
            continue;
        }
        if (pass(in, "u")) {
            uint32_t code, low;
            if (!read_hex(in, &code)) return false;
            if (code >= 0xd800 && code < 0xdc00 && pass(in, "\\u")) {
                if (!read_hex(in, &low)) return false;
                code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0xfffd;
            }
            add_code(out, code >= 0xd800 && code < 0xe000 ? 0xfffd : code);
            continue;
        }
        static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
        if (!next_is(in, escapes)) return false;
        hermes_add(out, meanings + (strchr(escapes, in->bytes[in->at++]) - escapes), 1);
    }
    return false;
}

static bool read_digits(reader_t *in, double *number, double *scale) {
    size_t from = in->at;
    for (; next_is(in, "0123456789"); in->at++) {
        *number = *number * 10 + (in->bytes[in->at] - '0');
        *scale *= 10;
    }
    return in->at > from;
}

static bool read_number(reader_t *in, double *number) {
    bool negative = pass(in, "-"), zero = next_is(in, "0");
    size_t from = in->at;
    double scale = 1, fraction = 1, exponent = 0;
    if (!read_digits(in, number, &scale) || (zero && in->at - from > 1)) return false;
    if (pass(in, ".") && !read_digits(in, number, &fraction)) return false;
    *number /= fraction;
    if (next_is(in, "eE")) {
        in->at++;
        bool shrinks = pass(in, "-");
        if (!shrinks) pass(in, "+");
        if (!read_digits(in, &exponent, &scale)) return false;
        for (int step = 0; step < exponent && step < 400; step++) *number = shrinks ? *number / 10 : *number * 10;
    }
    if (negative) *number = -*number;
    return true;
}

static bool read_value(reader_t *in, hermes_json_t *out, int depth);

// Reads a list or an object. Of an object, `out` gets the value of `key`, and `count` the number of keys.
static bool read_items(reader_t *in, char end, const char *key, hermes_json_t *out, size_t *count, int depth) {
    in->at++;
    pass_space(in);
    for (bool first = true; !next_is(in, (char[]){ end, 0 }); first = false) {
        if (!first && !pass(in, ",")) return false;
        pass_space(in);
        bool wanted = false;
        if (end == '}') {
            hermes_text_t name = { 0 };
            bool read = read_string(in, &name);
            wanted = read && key && name.length == strlen(key) && memcmp(name.bytes, key, name.length) == 0;
            free(name.bytes);
            pass_space(in);
            if (!read || !pass(in, ":")) return false;
        }
        hermes_json_t value = { 0 };
        bool read = read_value(in, &value, depth + 1);
        if (read && wanted) {
            free(out->text.bytes);
            *out = value;
        } else {
            free(value.text.bytes);
        }
        if (!read) return false;
        if (count) ++*count;
    }
    in->at++;
    return true;
}

static bool read_value(reader_t *in, hermes_json_t *out, int depth) {
    pass_space(in);
    bool read = false;
    if (depth > DEPTH) return false;
    if (next_is(in, "{")) {
        out->kind = HERMES_OBJECT;
        read = read_items(in, '}', NULL, out, NULL, depth);
    } else if (next_is(in, "[")) {
        out->kind = HERMES_LIST;
        read = read_items(in, ']', NULL, out, NULL, depth);
    } else if (next_is(in, "\"")) {
        out->kind = HERMES_STRING;
        read = read_string(in, &out->text);
    } else if (pass(in, "null")) {
        out->kind = HERMES_NULL;
        read = true;
    } else if (pass(in, "true") || pass(in, "false")) {
        out->kind = HERMES_BOOL;
        out->boolean = in->bytes[in->at - 2] == 'u';
        read = true;
    } else {
        out->kind = HERMES_NUMBER;
        read = read_number(in, &out->number);
    }
    pass_space(in);
    return read;
}

static bool read_object(project_string_t json, const char *key, hermes_json_t *out, size_t *count) {
    reader_t in = { json.ptr, json.len, 0 };
    pass_space(&in);
    if (in.at == in.length) return true;
    if (!next_is(&in, "{") || !read_items(&in, '}', key, out, count, 0)) return false;
    pass_space(&in);
    return in.at == in.length;
}

bool hermes_json_is_object(project_string_t json) {
    hermes_json_t ignored = { 0 };
    return read_object(json, NULL, &ignored, NULL);
}

hermes_json_t hermes_json_get(project_string_t json, const char *key) {
    hermes_json_t found = { 0 };
    if (read_object(json, key, &found, NULL)) return found;
    free(found.text.bytes);
    return (hermes_json_t){ 0 };
}

size_t hermes_json_count(project_string_t json) {
    size_t count = 0;
    hermes_json_t ignored = { 0 };
    return read_object(json, NULL, &ignored, &count) ? count : 0;
}
