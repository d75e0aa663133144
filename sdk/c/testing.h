// The host for unit tests: `make test` compiles the plugin natively, and its imports arrive here.
//
// A test that needs another import defines the function itself, such as `hermes_llm_llm_complete`; the declaration is in `project.h`. The
// linker names a function that nobody defines.

#ifndef HERMES_TESTING_H
#define HERMES_TESTING_H

// A failed assertion ends the test in every build.
#undef NDEBUG
#include <assert.h>

#include "hermes.h"

// Appends a message to the conversation that `history` reads. Its tokens are a quarter of its bytes, and 5.
void testing_message(uint64_t id, uint32_t turn, uint8_t role, const char *content);
// The headers of all these messages, as `observe` receives them.
void testing_headers(hermes_history_history_list_header_t *headers);
// An answer to a request over HTTP. Several are given in this order, each to one request; without one, requests fail with `unavailable`.
void testing_answer(uint16_t status, const char *body);
// A request, the first with 0: `POST URL`, then its parameters, headers and fields of a form as `name: value`, a secret as its prefix and `<name>`, an empty
// line, and the body. Empty if there were fewer.
const char *testing_request(size_t at);
// The last line that the plugin has logged, and the URL of the last request.
const char *testing_logged(void);
const char *testing_requested(void);
// The text of a document, or NULL.
const char *testing_document(const char *name);
// Forgets all that was set and stored.
void testing_reset(void);

#endif
