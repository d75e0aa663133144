#ifndef RULES_H
#define RULES_H

#include "hermes.h"

// Plain functions, which `make test` runs natively.

// The first text of a JSON list that occurs in another text; empty if none does. It belongs to the caller.
hermes_text_t first_of(project_string_t list, project_string_t text);

#endif
