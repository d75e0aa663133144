#include "rules.h"

#include <string.h>

const char *path_of(const file_t *file) {
    const char *slash = strchr(file->path, '/');
    return slash ? slash + 1 : file->path;
}

bool is_of(const file_t *file, project_string_t skill) {
    size_t length = (size_t)(path_of(file) - file->path);
    return length == skill.len + 1 && memcmp(file->path, skill.ptr, skill.len) == 0;
}

project_string_t text_of(const file_t *file) {
    hermes_text_t text = { 0 };
    hermes_add(&text, file->bytes, file->length);
    return hermes_take(text);
}

project_string_t field_of(const file_t *file, const char *field) {
    const char *text = (const char *)file->bytes, *end = text + file->length;
    size_t named = strlen(field);
    for (bool first = true; text < end; first = false) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        size_t length = (size_t)((line_end ? line_end : end) - text);
        if (!first && length == 3 && memcmp(text, "---", 3) == 0) break;
        if (length > named + 1 && memcmp(text, field, named) == 0 && text[named] == ':') {
            const char *from = text + named + 1, *to = text + length;
            while (from < to && (*from == ' ' || *from == '"')) from++;
            while (to > from && (to[-1] == ' ' || to[-1] == '"')) to--;
            hermes_text_t value = { 0 };
            hermes_add(&value, from, (size_t)(to - from));
            return hermes_take(value);
        }
        text += length + 1;
    }
    return hermes_string("");
}
