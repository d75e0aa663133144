#include <stdio.h>

#include "rules.h"
#include "testing.h"

typedef exports_hermes_skills_skills_document_t document_t;

// Whether this file of a skill can be read, or the words of the error if it cannot.
static bool says(project_string_t skill, const char *path, const char *words) {
    project_string_t name = hermes_copy(skill), given = path ? hermes_string(path) : (project_string_t){ 0 };
    document_t document;
    hermes_error_t error;
    bool found;
    if (exports_hermes_skills_skills_view(&name, path ? &given : NULL, &document, &error)) {
        found = hermes_contains(document.content, hermes_view(words));
        exports_hermes_skills_skills_document_free(&document);
    } else {
        found = hermes_contains(error.message, hermes_view(words));
        hermes_types_types_error_free(&error);
    }
    return found;
}

int main(void) {
    exports_hermes_skills_skills_list_skill_t index;
    hermes_error_t error;
    assert(exports_hermes_skills_skills_index(&index, &error) && index.len > 0);
    for (size_t at = 0; at < index.len; at++) {
        exports_hermes_skills_skills_skill_t *skill = &index.ptr[at];
        assert(skill->description.len > 0 && says(skill->name, NULL, "---"));
        project_string_t name = hermes_copy(skill->name);
        document_t document;
        assert(exports_hermes_skills_skills_view(&name, NULL, &document, &error));
        for (size_t file = 0; file < document.files.len; file++) {
            hermes_text_t path = { 0 };
            hermes_say_string(&path, document.files.ptr[file]);
            hermes_add(&path, "", 1);
            assert(says(skill->name, (const char *)path.bytes, ""));
            project_string_t taken = hermes_take(path);
            project_string_free(&taken);
        }
        exports_hermes_skills_skills_document_free(&document);
    }
    exports_hermes_skills_skills_list_skill_free(&index);

    assert(says(hermes_view("coffee"), NULL, " tea"));
    assert(says(hermes_view("tea"), "../plugin.c", "references/temperatures.md"));
    const char *text = "---\nname: x\n---\ndescription: not this\n";
    file_t file = { "x/SKILL.md", (const uint8_t *)text, 39 };
    project_string_t none = field_of(&file, "description");
    assert(none.len == 0);
    project_string_free(&none);
    puts("all tests passed");
    return 0;
}
