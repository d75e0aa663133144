#ifndef RULES_H
#define RULES_H

#include "hermes.h"

// Plain functions, which `make test` runs natively.

// The file of a skill that describes it.
#define SKILL "SKILL.md"

// A file below `src/skills`: its path there, such as `tea/SKILL.md`.
typedef struct {
    const char *path;
    const uint8_t *bytes;
    size_t length;
} file_t;

// The path in the folder of the skill.
const char *path_of(const file_t *file);
// Whether it is a file of the skill with this name.
bool is_of(const file_t *file, project_string_t skill);
project_string_t text_of(const file_t *file);
// The value of a line `field: value` between the lines `---` at the beginning, without quotes; empty without one.
project_string_t field_of(const file_t *file, const char *field);

#endif
