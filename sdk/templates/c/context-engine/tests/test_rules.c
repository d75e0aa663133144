#include <stdio.h>
#include <string.h>

#include "rules.h"
#include "testing.h"

typedef exports_hermes_context_engine_context_engine_request_t request_t;
typedef exports_hermes_context_engine_context_engine_option_plan_t plan_t;
typedef exports_hermes_context_engine_context_engine_segment_t segment_t;

#define SUMMARY EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_SEGMENT_SUMMARY
#define EXCERPT EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_SEGMENT_EXCERPT

static void the_rules(void) {
    const known_t known[] = { { 1, 1, 10 }, { 2, 1, 10 }, { 5, 2, 10 }, { 6, 3, 10 }, { 7, 3, 10 } };
    assert(folded(known, 5, 1) == 3);
    assert(folded(known, 5, 2) == 2);
    assert(folded(known, 5, 3) == 0);
    assert(folded(known, 0, 1) == 0);
    assert(tokens_from(known, 5, 3) == 20);
    assert(folded_to_fit(known, 5, 3, 100) == 0 && folded_to_fit(known, 5, 3, 30) == 2 && folded_to_fit(known, 5, 3, 1) == 3);
    assert(cut((const uint8_t *)"\xc3\xbc\xc3\xbc", 4, 1) == 2);
    assert(cut((const uint8_t *)"ab", 2, 5) == 2);
}

// A new instance that has seen turns of a question and a long answer.
static void observed(uint32_t turns, const char *answer) {
    hermes_error_t error;
    project_string_t config = hermes_string("{}");
    assert(exports_hermes_lifecycle_lifecycle_configure(&config, &error));
    testing_reset();
    for (uint32_t turn = 1; turn <= turns; turn++) {
        testing_message(2 * turn, turn, HERMES_TYPES_TYPES_ROLE_USER, "What about the ferry?");
        testing_message(2 * turn + 1, turn, HERMES_TYPES_TYPES_ROLE_ASSISTANT, answer);
    }
    exports_hermes_context_engine_context_engine_list_header_t headers;
    testing_headers((hermes_history_history_list_header_t *)&headers);
    assert(exports_hermes_context_engine_context_engine_observe(&headers, &error));
}

static plan_t proposed(const char *room) {
    request_t request = { .pressure = { .prompt_tokens = 1, .context_length = 100000 } };
    HERMES_PUSH(request.pressure.extra, (project_tuple2_string_string_t){ hermes_string("room"), hermes_string(room) });
    plan_t plan;
    hermes_error_t error;
    assert(exports_hermes_context_engine_context_engine_propose(&request, &plan, &error));
    return plan;
}

// Tokens of a view as the host counts them: kept messages, excerpts, and the summary with its frame.
static uint64_t tokens_of(const plan_t *plan, const char *answer) {
    uint64_t tokens = 0;
    for (size_t at = 0; at < plan->val.segments.len; at++) {
        segment_t *segment = &plan->val.segments.ptr[at];
        if (segment->tag == SUMMARY) tokens += segment->val.summary.content.len / 4 + HERMES_FRAME;
        else if (segment->tag == EXCERPT) tokens += segment->val.excerpt.content.val.len / 4 + 5;
        else
            for (uint64_t id = segment->val.restore.first; id <= segment->val.restore.last; id++)
                tokens += id % 2 ? strlen(answer) / 4 + 5 : 10;
    }
    return tokens;
}

int main(void) {
    the_rules();
    char answer[4001] = { 0 };
    memset(answer, 'a', 4000);

    observed(10, answer);
    plan_t plan = proposed("50000");
    assert(plan.is_some && plan.val.segments.ptr[0].val.summary.covers.ptr[0].last == 13);
    assert(hermes_contains(plan.val.segments.ptr[0].val.summary.content, hermes_view("#12 user: What about the ferry?")));
    exports_hermes_context_engine_context_engine_option_plan_free(&plan);

    // In a window that is too small for four turns, fewer stay, and then only the beginning of the newest.
    static const char *const rooms[] = { "4000", "3000", "2000", "1600", "800", "400", "250" };
    for (size_t at = 0; at < sizeof rooms / sizeof *rooms; at++) {
        uint64_t room;
        project_tuple2_string_string_t extra = { hermes_view("room"), hermes_view(rooms[at]) };
        assert(hermes_extra_number((hermes_types_types_extra_t){ &extra, 1 }, "room", &room));
        observed(10, answer);
        plan = proposed(rooms[at]);
        assert(plan.is_some && tokens_of(&plan, answer) <= room);
        assert((room < 1500) == (plan.val.segments.ptr[plan.val.segments.len - 1].tag == EXCERPT));
        exports_hermes_context_engine_context_engine_option_plan_free(&plan);
    }
    observed(10, answer);
    plan = proposed("20");
    assert(!plan.is_some);

    // A refused plan is not proposed again.
    plan = proposed("50000");
    assert(plan.is_some);
    exports_hermes_context_engine_context_engine_option_plan_free(&plan);
    exports_hermes_context_engine_context_engine_outcome_t outcome = { .tag = EXPORTS_HERMES_CONTEXT_ENGINE_CONTEXT_ENGINE_OUTCOME_REFUSED };
    hermes_error_t error;
    assert(!hermes_invalid(&outcome.val.refused, "no") && exports_hermes_context_engine_context_engine_settled(&outcome, &error));
    plan = proposed("50000");
    assert(!plan.is_some);
    testing_reset();
    puts("all tests passed");
    return 0;
}
