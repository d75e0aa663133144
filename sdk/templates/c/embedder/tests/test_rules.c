#include <stdio.h>
#include <string.h>

#include "rules.h"
#include "testing.h"

static double nearness(const char *one, const char *other) {
    float first[256], second[256];
    vector_of((const uint8_t *)one, strlen(one), first, 256);
    vector_of((const uint8_t *)other, strlen(other), second, 256);
    double sum = 0;
    for (int at = 0; at < 256; at++) sum += (double)first[at] * second[at];
    return sum;
}

static bool configured(const char *config) {
    project_string_t given = hermes_string(config);
    hermes_error_t error;
    bool valid = exports_hermes_lifecycle_lifecycle_configure(&given, &error);
    if (!valid) hermes_types_types_error_free(&error);
    return valid;
}

int main(void) {
    const char *question = "When does the ferry leave?";
    assert(nearness(question, question) > 0.999);
    assert(nearness(question, "The ferry leaves at noon.") > nearness(question, "Tea is at four."));
    assert(nearness("ferry", "ferries") > 0 && nearness("?!", "") > 0.999);

    assert(configured("{\"dimensions\":64}") && !configured("{\"dimensions\":0}") && !configured("{\"dimensions\":16.5}"));
    exports_hermes_embeddings_embedder_description_t description;
    hermes_error_t error;
    assert(exports_hermes_embeddings_embedder_describe(&description, &error));
    assert(description.dimensions == 64 && hermes_is(description.model, "{{name}}-1-64"));
    exports_hermes_embeddings_embedder_description_free(&description);

    exports_hermes_embeddings_embedder_request_t request = { .texts = hermes_strings(question, "", NULL) };
    project_list_list_f32_t vectors;
    assert(exports_hermes_embeddings_embedder_embed(&request, &vectors, &error));
    assert(vectors.len == 2 && vectors.ptr[0].len == 64 && vectors.ptr[1].len == 64);
    project_list_list_f32_free(&vectors);
    puts("all tests passed");
    return 0;
}
