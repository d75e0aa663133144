// A tool that counts lines, words or characters of a text.

#include <stdlib.h>

#include "hermes.h"
#include "rules.h"

typedef exports_hermes_tools_tools_error_t error_t;

static const char *const PARAMETERS =
    "{\"type\":\"object\",\"properties\":{"
    "\"text\":{\"type\":\"string\",\"description\":\"The text.\"},"
    "\"unit\":{\"type\":\"string\",\"enum\":[\"lines\",\"words\",\"characters\"],\"description\":\"What to count; words by default.\"}"
    "},\"required\":[\"text\"],\"additionalProperties\":false}";

bool exports_hermes_tools_tools_catalog(exports_hermes_tools_tools_list_tool_t *ret, error_t *err) {
    (void)err;
    *ret = (exports_hermes_tools_tools_list_tool_t){ 0 };
    // This tool has no side effects, so it may run in parallel with others.
    HERMES_PUSH(*ret, (exports_hermes_tools_tools_tool_t){
                          .schema.name = hermes_string("count"),
                          .schema.description = hermes_string(
                              "Counts the lines, words or characters of a text. Use it instead of counting yourself."),
                          .schema.parameters = hermes_string(PARAMETERS),
                          .toolset = hermes_string("text"),
                          .parallel = true,
                          .effect = EXPORTS_HERMES_TOOLS_TOOLS_EFFECT_READS,
                          .idempotent = true,
                      });
    return true;
}

// The unit to count, or NULL if there is no such unit.
static const char *unit_of(hermes_json_t unit) {
    static const char *const UNITS[] = { "words", "lines", "characters" };
    if (unit.kind == HERMES_ABSENT) return UNITS[0];
    for (size_t at = 0; at < sizeof UNITS / sizeof *UNITS; at++)
        if (unit.kind == HERMES_STRING && hermes_is(hermes_seen(unit.text), UNITS[at])) return UNITS[at];
    return NULL;
}

static bool count(project_string_t arguments, hermes_text_t *answer, error_t *err) {
    if (!hermes_json_is_object(arguments)) return hermes_invalid(err, "the arguments must be a JSON object");
    hermes_json_t text = hermes_json_get(arguments, "text");
    hermes_json_t given = hermes_json_get(arguments, "unit");
    const char *unit = unit_of(given);
    bool counted = false;
    // The model sees these messages, so they suggest a fix.
    if (text.kind != HERMES_STRING) hermes_invalid(err, "text is missing: give it as a JSON string");
    else if (text.text.length == 0) hermes_invalid(err, "text is empty: give the text itself, not a file's name");
    else if (!unit) hermes_invalid(err, "unit must be one of lines, words, characters");
    else if (hermes_json_count(arguments) > 1u + (given.kind != HERMES_ABSENT))
        hermes_invalid(err, "there are unknown arguments; known are text and unit");
    else counted = true;
    if (counted) {
        size_t (*rule)(const uint8_t *, size_t) = *unit == 'l' ? lines_in : *unit == 'w' ? words_in : characters_in;
        hermes_say_number(answer, rule(text.text.bytes, text.text.length));
        hermes_say(answer, " ");
        hermes_say(answer, unit);
    }
    free(text.text.bytes);
    free(given.text.bytes);
    return counted;
}

bool exports_hermes_tools_tools_call(exports_hermes_tools_tools_invocation_t *invocation,
                                     exports_hermes_tools_tools_output_t *ret, error_t *err) {
    hermes_text_t answer = { 0 };
    bool done = hermes_is(invocation->name, "count") ? count(invocation->arguments, &answer, err)
                                                     : hermes_invalid(err, "there is no such tool; there is count");
    exports_hermes_tools_tools_invocation_free(invocation);
    if (done) return hermes_answer(ret, answer);
    free(answer.bytes);
    return false;
}
