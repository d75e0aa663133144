// An embedder: computes vectors of texts, so that other plugins can compare and search them.
//
// This one counts words and needs no model. To use a real one, replace `vector_of`.

#include "hermes.h"
#include "rules.h"

// The configuration. The default must match plugin.yaml.
static uint32_t dimensions = 256;

bool exports_hermes_lifecycle_lifecycle_configure(project_string_t *config, hermes_error_t *err) {
    double given = 256;
    bool valid = hermes_json_is_object(*config) || hermes_invalid(err, "the configuration must be a JSON object");
    valid = valid && hermes_read_number(*config, "dimensions", 16, 4096, &given, err);
    valid = valid && (given == (uint32_t)given || hermes_invalid(err, "dimensions must be a whole number"));
    project_string_free(config);
    if (valid) dimensions = (uint32_t)given;
    return valid;
}

bool exports_hermes_embeddings_embedder_describe(exports_hermes_embeddings_embedder_description_t *ret, hermes_error_t *err) {
    (void)err;
    // Plugins store this name beside each vector. Change it whenever the vectors change.
    hermes_text_t model = { 0 };
    hermes_say(&model, "{{name}}-1-");
    hermes_say_number(&model, dimensions);
    *ret = (exports_hermes_embeddings_embedder_description_t){ .model = hermes_take(model), .dimensions = dimensions };
    return true;
}

bool exports_hermes_embeddings_embedder_embed(exports_hermes_embeddings_embedder_request_t *request,
                                              project_list_list_f32_t *ret, hermes_error_t *err) {
    (void)err;
    *ret = (project_list_list_f32_t){ 0 };
    // `request->purpose` says whether the texts search or are searched. Word counts are the same for both.
    for (size_t at = 0; at < request->texts.len; at++) {
        float *vector = hermes_resized(NULL, dimensions * sizeof *vector);
        vector_of(request->texts.ptr[at].ptr, request->texts.ptr[at].len, vector, dimensions);
        HERMES_PUSH(*ret, (project_list_f32_t){ .ptr = vector, .len = dimensions });
    }
    exports_hermes_embeddings_embedder_request_free(request);
    return true;
}
