#include "arrays.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAME(name, ...) #name,
const char *const input_names[INPUT_COUNT] = {INPUT_TABLE(NAME)};
const char *const output_names[OUTPUT_COUNT] = {OUTPUT_TABLE(NAME)};
#undef NAME
#define ATOMIC(name, dtype, elements, is_atomic, before) is_atomic,
const bool output_atomic[OUTPUT_COUNT] = {OUTPUT_TABLE(ATOMIC)};
#undef ATOMIC

struct shape {
    smelt_dtype dtype;
    int dimensions;
    int64_t elements;
    double before;
};
#define INPUT(name, dtype, dimensions, elements) {SMELT_##dtype, dimensions, elements, 0},
static const struct shape input_shapes[INPUT_COUNT] = {INPUT_TABLE(INPUT)};
#undef INPUT
#define OUTPUT(name, dtype, elements, is_atomic, before) {SMELT_##dtype, 1, elements, before},
static const struct shape output_shapes[OUTPUT_COUNT] = {OUTPUT_TABLE(OUTPUT)};
#undef OUTPUT

static const uint64_t edge_integers[] = {0,
                                         1,
                                         2,
                                         3,
                                         31,
                                         32,
                                         33,
                                         127,
                                         128,
                                         255,
                                         256,
                                         32767,
                                         32768,
                                         65535,
                                         65536,
                                         0x7fffffff,
                                         0x80000000,
                                         0xffffffff,
                                         0x100000000,
                                         INT64_MAX,
                                         (uint64_t)INT64_MIN,
                                         UINT64_MAX,
                                         (uint64_t)-2,
                                         (uint64_t)-5,
                                         0xaaaaaaaaaaaaaaaa};
static const float edge_reals[] = {0.0f,     -0.0f,     1.0f,     -1.0f,    0.5f,     3.0e38f,
                                   -3.0e38f, 1e-40f,    -1e-40f,  65504.f,  65520.0f, 2147483648,
                                   -2.2e9f,  4.3e9f,    16777217, 1e-20f,   0.1f,     -0.3f,
                                   255.5f,   -32768.5f, 1.5e-45f, 1.2e-38f, 88.8f,    -104.0f};

static uint64_t integer_value(struct random *random, enum data_kind kind) {
    if (kind == DATA_SMALL) return random_below(random, 16);
    if (kind == DATA_EDGES && random_chance(random, 70))
        return edge_integers[random_below(random, sizeof edge_integers / sizeof *edge_integers)];
    return random_word(random);
}

/* Numbers whose sums and products stay finite for a while. */
static float plain_real(struct random *random, enum data_kind kind) {
    if (kind == DATA_SMALL) return (float)random_below(random, 16) - 4;
    return (float)((int)random_below(random, 4096) - 2048) / 64;
}

static float special_real(struct random *random, enum data_kind kind) {
    if (kind == DATA_SMALL || random_chance(random, 40)) return plain_real(random, kind);
    if (random_chance(random, 20))
        return random_chance(random, 50) ? __builtin_nanf("") : -__builtin_nanf("");
    if (random_chance(random, 20)) return random_chance(random, 50) ? __builtin_inff() : -__builtin_inff();
    return edge_reals[random_below(random, sizeof edge_reals / sizeof *edge_reals)];
}

static void fill(int input, char *data, struct random *random, enum data_kind kind) {
    const struct shape *shape = &input_shapes[input];
    size_t bytes = smelt_dtype_bytes(shape->dtype);
    for (int64_t i = 0; i < shape->elements; i++, data += bytes) {
        if (shape->dtype == SMELT_FLOAT32) {
            float value = input == INPUT_in_x ? special_real(random, kind) : plain_real(random, kind);
            memcpy(data, &value, bytes);
        } else if (shape->dtype == SMELT_FLOAT16) {
            _Float16 value =
                (_Float16)(kind == DATA_EDGES ? special_real(random, kind) : plain_real(random, kind));
            memcpy(data, &value, bytes);
        } else {
            uint64_t value = integer_value(random, kind);
            memcpy(data, &value, bytes); /* the low bytes: little endian */
        }
    }
}

/* Inputs end at an inaccessible page; those that fill whole pages also begin after one. */
static char *guarded(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), inside = (bytes + page - 1) / page * page;
    char *memory = mmap(NULL, inside + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + page, inside, PROT_READ | PROT_WRITE) != 0) abort();
    return memory + page + inside - bytes;
}

smelt_array **inputs_of(enum data_kind kind) {
    static smelt_array *inputs[DATA_KINDS][INPUT_COUNT];
    struct random random = {kind};
    for (int i = 0; !inputs[kind][INPUT_COUNT - 1] && i < INPUT_COUNT; i++) {
        const struct shape *shape = &input_shapes[i];
        char *data = guarded((size_t)shape->elements * smelt_dtype_bytes(shape->dtype));
        fill(i, data, &random, kind);
        smelt_shape size = {shape->dimensions, {shape->elements}};
        if (smelt_array_from_memory(shape->dtype, size, NULL, data, NULL, NULL, &inputs[kind][i]) !=
            SMELT_OK) {
            fprintf(stderr, "input %s: %s\n", input_names[i], smelt_error());
            abort();
        }
    }
    return inputs[kind];
}

void describe_outputs(int64_t threads, smelt_run_desc *run) {
    static double before[OUTPUT_COUNT];
    for (int i = 0; i < OUTPUT_COUNT; i++) {
        const struct shape *shape = &output_shapes[i];
        int64_t count = shape->elements == 0   ? threads * ELEMENTS_A_THREAD + SPARE_ELEMENTS
                        : shape->elements == 1 ? threads + SPARE_ELEMENTS
                                               : shape->elements;
        run->output_shapes[i] = (smelt_shape){1, {count}};
        run->output_dtypes[i] = shape->dtype;
        before[i] = shape->before;
    }
    run->init_values = before;
}
