#include <stdio.h>
#include <string.h>

#include "testing.h"

typedef exports_hermes_hooks_hooks_event_t event_t;
typedef exports_hermes_hooks_hooks_verdict_t verdict_t;

static bool configured(const char *config) {
    project_string_t given = hermes_string(config);
    hermes_error_t error;
    bool valid = exports_hermes_lifecycle_lifecycle_configure(&given, &error);
    if (!valid) hermes_types_types_error_free(&error);
    return valid;
}

// Whether a call with these arguments is asked about.
static bool asks(const char *arguments) {
    event_t event = {
        .tag = EXPORTS_HERMES_HOOKS_HOOKS_EVENT_BEFORE_TOOL,
        .val.before_tool = { .name = hermes_string("terminal"), .arguments = hermes_string(arguments) },
    };
    verdict_t verdict;
    exports_hermes_hooks_hooks_on_event(&event, &verdict);
    bool asked = verdict.tag == EXPORTS_HERMES_HOOKS_HOOKS_VERDICT_ASK;
    exports_hermes_hooks_hooks_verdict_free(&verdict);
    return asked;
}

int main(void) {
    assert(configured("{}"));
    assert(asks("{\"command\":\"rm -rf /tmp/x\"}") && !asks("{\"command\":\"ls\"}"));
    assert(configured("{\"ask_for\":[\"mv\"]}"));
    assert(asks("{\"command\":\"mv a b\"}") && !asks("{\"command\":\"rm -rf /tmp/x\"}"));
    assert(!configured("{\"ask_for\":[\"\"]}") && !configured("{\"ask_for\":\"mv\"}") && !configured("["));

    event_t event = {
        .tag = EXPORTS_HERMES_HOOKS_HOOKS_EVENT_AFTER_TOOL,
        .val.after_tool = { .event.name = hermes_string("terminal"), .failed = true },
    };
    verdict_t verdict;
    exports_hermes_hooks_hooks_on_event(&event, &verdict);
    assert(verdict.tag == EXPORTS_HERMES_HOOKS_HOOKS_VERDICT_PROCEED);
    assert(strstr(testing_logged(), "\"tool\":\"terminal\",\"failed_so_far\":1}"));
    testing_reset();
    puts("all tests passed");
    return 0;
}
