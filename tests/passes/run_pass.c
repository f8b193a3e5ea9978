/* Runs passes of the compiler alone on a program of LLVM text, and prints what they leave of it.
 *
 * Usage: run_pass LIBRARY ENGINE PASS[,PASS…] FILE [NAME=NUMBER]…
 *
 * LIBRARY is libsmelt_compiler.so, ENGINE scalar, simd or ptx. The passes run in the pipeline's order; the
 * last of them is named last. Names are those of struct code_shape (threads: size[0], lines: size[1]);
 * constant: a function constant of index 0, an int32; value: a known value (abi/values.h). */
#include "abi/compiler.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define FIELD(name) {#name, offsetof(struct code_shape, name)}
static const struct {
    const char *name;
    size_t offset;
} fields[] = {FIELD(polled),   FIELD(masked),       FIELD(joined), FIELD(small),  FIELD(rows),
              FIELD(multiple), FIELD(most_threads), FIELD(folded), FIELD(coarse), FIELD(distinct)};

static const char *const engines[] = {
    [ENGINE_SCALAR] = "scalar", [ENGINE_SIMD] = "simd", [ENGINE_PTX] = "ptx", [ENGINE_CHECK] = "check"};

static bool set(struct compile_request *request, smelt_constant *constant, const char *word) {
    const char *equals = strchr(word, '=');
    if (!equals) return false;
    size_t length = (size_t)(equals - word);
    long number = strtol(equals + 1, NULL, 0);
    struct code_shape *shape = &request->shape;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strlen(fields[i].name) != length || strncmp(word, fields[i].name, length) != 0) continue;
        *(uint32_t *)((char *)shape + fields[i].offset) = (uint32_t)number;
        return true;
    }
    if (strncmp(word, "threads=", 8) == 0) {
        shape->size[0] = (uint32_t)number;
        shape->size[1] = shape->size[2] = 1;
    } else if (strncmp(word, "lines=", 6) == 0) {
        shape->size[1] = (uint32_t)number;
    } else if (strncmp(word, "inlined=", 8) == 0) { /* buffer 0, 8 << n bytes */
        shape->inlined[0] = (uint8_t)number;
    } else if (strncmp(word, "also=", 5) == 0) {
        shape->also = (uint8_t)number;
    } else if (strncmp(word, "aligned=", 8) == 0) {
        shape->aligned = (uint8_t)number;
    } else if (strncmp(word, "by_rows=", 8) == 0) {
        shape->by_rows = (uint8_t)number;
    } else if (strncmp(word, "tested=", 7) == 0) {
        shape->tested = (uint8_t)number;
    } else if (strncmp(word, "cpu=", 4) == 0) {
        request->cpu = equals + 1;
    } else if (strncmp(word, "value=", 6) == 0) { /* of 4 bytes, after those before it in buffer 1 */
        struct known_values *values = &request->values;
        uint32_t i = values->count++;
        values->values[i] = (struct known_value){{1, 4 * i, 4, 0}, (uint32_t)number};
    } else if (strncmp(word, "constant=", 9) == 0) {
        *constant = (smelt_constant){.dtype = SMELT_INT32, .value.integer = number};
    } else {
        return false;
    }
    return true;
}

static bool read_all(const char *path, struct compile_request *request) {
    FILE *file = fopen(path, "r");
    static char text[1 << 20];
    if (!file) return false;
    request->bitcode = text;
    request->bitcode_size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    return true;
}

static const struct compiler *open_library(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    smelt_compiler_function *function = NULL;
    if (library) *(void **)&function = dlsym(library, "smelt_compiler");
    return function ? function() : NULL;
}

/* Results of passes in addition to the code. */
static void print_image(const struct compile_result *result) {
    const struct image *image = &result->image;
    for (int i = 0; i < image->binding_count; i++)
        printf("binding %d: kind %d, index %d, inlined %d\n", i, image->bindings[i].kind,
               image->bindings[i].index, image->bindings[i].inlined);
    for (int i = 0; i < image->tensor_count; i++)
        printf("tensor %d: index %d, expands %d\n", i, image->tensors[i].index, image->tensors[i].expands);
    if (image->expanded_tile) printf("expanded tile: %u\n", image->expanded_tile);
    for (int i = 0; i < result->constant_count; i++)
        printf("constant %s: index %d, required %u\n", result->constants[i].name, result->constants[i].index,
               result->constants[i].required);
    printf("threads: at most %u, required %u %u %u\n", image->max_threads, image->required_threads[0],
           image->required_threads[1], image->required_threads[2]);
    if (image->by_rows) printf("gangs: in rows\n");
    for (uint32_t i = 0; i < image->value_count; i++)
        printf("value: buffer %u, offset %u, bytes %u\n", image->values[i].buffer, image->values[i].offset,
               image->values[i].bytes);
}

int main(int count, char **arguments) {
    if (count < 5) return 2;
    const struct compiler *compiler = open_library(arguments[1]);
    int engine = 0;
    while (engine < ENGINE_COUNT && strcmp(arguments[2], engines[engine]) != 0) engine++;
    const char *comma = strrchr(arguments[3], ',');
    smelt_constant constants[2] = {{.dtype = SMELT_NO_DTYPE}, {.dtype = SMELT_NO_DTYPE}};
    struct compile_request request = {.only = arguments[3],
                                      .after = comma ? comma + 1 : arguments[3],
                                      .cpu = engine == ENGINE_PTX ? "sm_90a" : "x86-64-v4",
                                      .features = engine == ENGINE_PTX ? "+ptx80" : NULL,
                                      .constants = constants,
                                      .private_limit = 65536,
                                      .output = COMPILE_AFTER};
    request.shape.engine = (uint32_t)engine;
    if (!compiler || engine == ENGINE_COUNT || !read_all(arguments[4], &request)) return 2;
    for (int i = 5; i < count; i++) {
        if (set(&request, constants, arguments[i])) continue;
        fprintf(stderr, "'%s' is not a field of a shape\n", arguments[i]);
        return 2;
    }
    struct compile_result result;
    if (compiler->compile(&request, &result) != SMELT_OK) {
        fprintf(stderr, "%s\n", result.message);
        return 1;
    }
    fputs(result.text, stdout);
    print_image(&result);
    free(result.text);
    return 0;
}
