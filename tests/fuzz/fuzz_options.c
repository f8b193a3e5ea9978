/* Any lines as the arguments of `smelt run` and `smelt show`: a complaint, or options that satisfy their
 * contract. */
#include "commands.h"
#include "options.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Devices need the whole library; for options they are names. */
const char *smelt_device_description(const char *name) {
    return strcmp(name, "cpu") == 0 ? "a device" : NULL;
}

/* So does what -b binds. */
bool buffer_value_make(const char *what, const struct array_value *value, bool contents, smelt_buffer *buffer,
                       int *status) {
    bool array = value->kind != ARRAY_TENSOR && value->kind != ARRAY_SAFETENSORS;
    return !array || array_value_make(what, value, contents, &buffer->array, status);
}
bool tensor_value_make(const char *what, const struct tensor_value *value, bool contents,
                       smelt_tensor **tensor, int *status) {
    (void)what, (void)value, (void)contents, (void)tensor, (void)status;
    return true;
}
void smelt_tensor_release(smelt_tensor *tensor) {
    (void)tensor;
}

const char *smelt_tune_operation_name(int index, const char **sizes) {
    if (sizes) *sizes = "a, b, c";
    return index ? NULL : "operation";
}

int report(smelt_status status) {
    return status == SMELT_ERROR_NO_DEVICE ? EXIT_ENVIRONMENT : EXIT_KERNEL;
}

static void require(bool condition) {
    if (!condition) abort();
}

/* Arrays are created: their sizes, and with them the numbers of each line, must be small. */
static bool is_small(const char *text) {
    double product = 1;
    for (const char *c = text; *c;) {
        char *end = (char *)c + 1;
        if (*c == '\n') product = 1;
        if (*c >= '0' && *c <= '9') product *= fmax(1, strtod(c, &end));
        if (product > 1e6) return false;
        c = end;
    }
    return true;
}

static void check(const struct options *o, int status, bool showing) {
    require(status == EXIT_OK || status == EXIT_USAGE || status == EXIT_ENVIRONMENT);
    if (status != EXIT_OK || o->help) return;
    require(o->source && o->source_path && o->name && *o->name);
    require(showing || (o->grid[0] > 0) != (o->groups[0] > 0));
    require(o->timeout >= 0 && o->repeat >= 1);
    for (int i = 0; i < o->input_count; i++) require(o->input_names[i] && o->inputs[i]);
    for (int i = 0; i < o->output_count; i++)
        require(smelt_dtype_bytes(o->outputs[i].dtype) && (o->body || o->buffers[o->outputs[i].index].array));
    for (int i = 0; i < o->template_count; i++) require(o->templates[i].name && o->templates[i].kind);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool started;
    /* `-` reads standard input. */
    if (!started) started = freopen("/dev/null", "r", stdin) != NULL;
    char *text = malloc(size + 1), *arguments[64] = {"/dev/null"};
    int count = 1;
    require(text != NULL);
    if (size) memcpy(text, data, size);
    text[size] = 0;
    /* Without paths: reading some files has side effects. */
    if (is_small(text) && !strchr(text, '/')) {
        for (char *line = strtok(text, "\n"); line && count < 64; line = strtok(NULL, "\n"))
            arguments[count++] = line;
        for (int showing = 0; showing < 2; showing++) {
            struct options options;
            int status = options_parse(showing ? &show_command : &run_command, count, arguments, &options);
            check(&options, status, showing);
            options_free(&options);
        }
    }
    free(text);
    return 0;
}
