// Hooks that ask for approval before a tool call with words that delete, and log failed calls.
//
// Hooks observe the agent loop and can stop a tool call, but never change the prompt. The host waits only for `before-tool`.

#include <stdlib.h>

#include "hermes.h"
#include "rules.h"

// The configuration, a JSON list. The default must match plugin.yaml.
static const char *const DEFAULT = "[\"rm -rf\", \"DROP TABLE\", \"git push --force\"]";
static hermes_text_t ask_for;
static uint64_t failed;

static bool configured(project_string_t config, hermes_error_t *err) {
    if (!hermes_json_is_object(config)) return hermes_invalid(err, "the configuration must be a JSON object");
    hermes_json_t given = hermes_json_get(config, "ask_for");
    free(given.text.bytes);
    project_string_t words = given.kind == HERMES_ABSENT ? hermes_view(DEFAULT) : given.raw;
    if (given.kind != HERMES_ABSENT && given.kind != HERMES_LIST) return hermes_invalid(err, "ask_for must be a list of texts");
    project_string_t rest = words;
    for (hermes_json_t item; hermes_json_next(&rest, &item);) {
        bool usable = item.kind == HERMES_STRING && item.text.length > 0;
        free(item.text.bytes);
        if (!usable) return hermes_invalid(err, "ask_for must be a list of texts; an empty text would match every call");
    }
    ask_for.length = 0;
    hermes_say_string(&ask_for, words);
    return true;
}

bool exports_hermes_lifecycle_lifecycle_configure(project_string_t *config, hermes_error_t *err) {
    bool valid = configured(*config, err);
    project_string_free(config);
    return valid;
}

void exports_hermes_hooks_hooks_interests(project_list_string_t *ret) {
    *ret = hermes_strings("before-tool", "after-tool", NULL);
}

static void before(const exports_hermes_hooks_hooks_tool_event_t *call, exports_hermes_hooks_hooks_verdict_t *ret) {
    hermes_text_t found = first_of(hermes_seen(ask_for), call->arguments);
    if (found.length > 0) {
        hermes_text_t why = { 0 };
        hermes_say(&why, "`");
        hermes_say_string(&why, call->name);
        hermes_say(&why, "` is called with `");
        hermes_say_string(&why, hermes_seen(found));
        hermes_say(&why, "`");
        hermes_ask(ret, why);
    }
    free(found.bytes);
}

void exports_hermes_hooks_hooks_on_event(exports_hermes_hooks_hooks_event_t *event, exports_hermes_hooks_hooks_verdict_t *ret) {
    hermes_proceed(ret);
    if (event->tag == EXPORTS_HERMES_HOOKS_HOOKS_EVENT_BEFORE_TOOL) before(&event->val.before_tool, ret);
    if (event->tag == EXPORTS_HERMES_HOOKS_HOOKS_EVENT_AFTER_TOOL && event->val.after_tool.failed) {
        hermes_text_t line = { 0 };
        hermes_say(&line, "{\"event\":\"a tool failed\",\"tool\":");
        hermes_say_json(&line, event->val.after_tool.event.name);
        hermes_say(&line, ",\"failed_so_far\":");
        hermes_say_number(&line, ++failed);
        hermes_add(&line, "}", 2);
        hermes_log(HERMES_HOST_LOG_LEVEL_INFO, (const char *)line.bytes);
        free(line.bytes);
    }
    exports_hermes_hooks_hooks_event_free(event);
}
