// Skills embedded in the plugin: the files in `src/skills/` are part of the component.
//
// The model sees the index in its prompt. It opens a skill when needed, and files that the skill mentions. To add a skill, add a folder
// with a SKILL.md.

#include <stdlib.h>
#include <string.h>

#include "hermes.h"
#include "rules.h"

#define CATEGORY "household"

// `make` writes this from the files, in order of their paths.
static const file_t FILES[] = {
#include "embedded.h"
};
static const size_t COUNT = sizeof FILES / sizeof *FILES;

bool exports_hermes_skills_skills_index(exports_hermes_skills_skills_list_skill_t *ret, hermes_error_t *err) {
    (void)err;
    *ret = (exports_hermes_skills_skills_list_skill_t){ 0 };
    for (size_t at = 0; at < COUNT; at++) {
        if (strcmp(path_of(&FILES[at]), SKILL) != 0) continue;
        HERMES_PUSH(*ret, (exports_hermes_skills_skills_skill_t){
                              .name = field_of(&FILES[at], "name"),
                              .description = field_of(&FILES[at], "description"),
                              .category = hermes_string(CATEGORY),
                          });
    }
    return true;
}

// The list of what there is, for an error.
static bool unknown(const char *what, project_string_t skill, bool files, hermes_error_t *err) {
    hermes_text_t message = { 0 };
    hermes_say(&message, what);
    for (size_t at = 0; at < COUNT; at++) {
        if (files ? !is_of(&FILES[at], skill) : strcmp(path_of(&FILES[at]), SKILL) != 0) continue;
        hermes_say(&message, " ");
        if (files) hermes_say(&message, path_of(&FILES[at]));
        else hermes_add(&message, FILES[at].path, (size_t)(path_of(&FILES[at]) - FILES[at].path - 1));
    }
    return hermes_invalid_text(err, message);
}

static bool view(project_string_t name, project_string_t path, exports_hermes_skills_skills_document_t *ret, hermes_error_t *err) {
    const file_t *skill = NULL, *wanted = NULL;
    for (size_t at = 0; at < COUNT; at++) {
        if (!is_of(&FILES[at], name)) continue;
        if (strcmp(path_of(&FILES[at]), SKILL) == 0) skill = &FILES[at];
        if (hermes_is(path, path_of(&FILES[at]))) wanted = &FILES[at];
    }
    if (!skill) return unknown("there is no such skill; there are:", name, false, err);
    if (!wanted) return unknown("the skill has no such file; it has:", name, true, err);
    *ret = (exports_hermes_skills_skills_document_t){ .content = text_of(wanted) };
    for (size_t at = 0; at < COUNT; at++)
        if (is_of(&FILES[at], name) && &FILES[at] != skill) HERMES_PUSH(ret->files, hermes_string(path_of(&FILES[at])));
    return true;
}

bool exports_hermes_skills_skills_view(project_string_t *name, project_string_t *maybe_path,
                                       exports_hermes_skills_skills_document_t *ret, hermes_error_t *err) {
    bool found = view(*name, maybe_path ? *maybe_path : hermes_view(SKILL), ret, err);
    project_string_free(name);
    if (maybe_path) project_string_free(maybe_path);
    return found;
}
