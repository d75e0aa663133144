#include <stdio.h>
#include <string.h>

#include "rules.h"
#include "testing.h"

#define COUNT(rule, text) rule((const uint8_t *)(text), strlen(text))

// What the tool says to a call with these arguments, or its error.
static bool says(const char *arguments, const char *expected) {
    exports_hermes_tools_tools_invocation_t call = {
        .name = hermes_string("count"),
        .arguments = hermes_string(arguments),
    };
    exports_hermes_tools_tools_output_t output;
    hermes_error_t error;
    bool as_expected;
    if (exports_hermes_tools_tools_call(&call, &output, &error)) {
        as_expected = hermes_is(output.content.ptr[0].val.text, expected);
        exports_hermes_tools_tools_output_free(&output);
    } else {
        as_expected = hermes_contains(error.message, hermes_view(expected));
        hermes_types_types_error_free(&error);
    }
    return as_expected;
}

int main(void) {
    assert(COUNT(words_in, "two lamps\nünlit") == 3);
    assert(COUNT(lines_in, "two lamps\nünlit") == 2);
    assert(COUNT(lines_in, "one\n") == 1);
    assert(COUNT(characters_in, "ünlit") == 5);
    assert(COUNT(words_in, "") == 0);

    exports_hermes_tools_tools_list_tool_t catalog;
    hermes_error_t error;
    assert(exports_hermes_tools_tools_catalog(&catalog, &error));
    assert(catalog.len == 1 && hermes_json_is_object(catalog.ptr[0].schema.parameters));
    exports_hermes_tools_tools_list_tool_free(&catalog);

    assert(says("{\"text\": \"two lamps\"}", "2 words"));
    assert(says("{\"text\": \"two\\nlamps\", \"unit\": \"lines\"}", "2 lines"));
    assert(says("{\"text\": \"two\", \"unit\": \"miles\"}", "lines, words, characters"));
    assert(says("{\"text\": 5}", "text is missing"));
    assert(says("[", "a JSON object"));
    puts("all tests passed");
    return 0;
}
