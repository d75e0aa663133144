#include "rules.h"

#include <stdlib.h>

hermes_text_t first_of(project_string_t list, project_string_t text) {
    for (hermes_json_t item; hermes_json_next(&list, &item);) {
        if (item.kind == HERMES_STRING && hermes_contains(text, hermes_seen(item.text))) return item.text;
        free(item.text.bytes);
    }
    return (hermes_text_t){ 0 };
}
