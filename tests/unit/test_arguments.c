/* Arguments of functions of whole files: structures that contain addresses, and no compile before it is
 * needed. */
#include "unit.h"

#include "kernel/dispatch.h"
#include "smelt/smelt.h"

#include <stdlib.h>
#include <string.h>

static const char argument_buffer[] =
    "using namespace metal;\n"
    "struct Part { device float *data; uint count; };\n"
    "struct Arguments {\n"
    "  device float *out [[id(0)]];\n"
    "  const device float *in [[id(1)]];\n"
    "  constant uint *offset [[id(2)]];\n"
    "  Part part [[id(3)]];\n"
    "  device float *pair[2] [[id(5)]];\n"
    "  float scale [[id(7)]];\n"
    "  array<device float *, 2> more [[id(8)]];\n"
    "};\n"
    "kernel void gather(constant Arguments &a [[buffer(0)]], device const Arguments *again [[buffer(1)]],\n"
    "                   const device float *constant *rows [[buffer(2)]], uint i "
    "[[thread_position_in_grid]]) {\n"
    "  if (i >= a.part.count) return;\n"
    "  again->out[i] = a.in[i] * a.scale + *a.offset + a.part.data[i] + a.pair[1][i] + again->more[0][i] + "
    "rows[i % 2][0];\n"
    "}\n";

/* The same on the host: an address is a device pointer. */
struct arguments {
    float *out;
    const float *in;
    const uint32_t *offset;
    struct {
        float *data;
        uint32_t count;
    } part;
    float *pair[2];
    float scale;
    float *more[2];
};

static smelt_library *library_of(const char *source) {
    smelt_library *library;
    if (smelt_library_create(&(smelt_library_desc){.source = source}, &library) != SMELT_OK)
        FAIL_TEST("%s", smelt_error());
    return library;
}

static void structures_hold_addresses(void **state) {
    (void)state;
    enum { COUNT = 37 };
    float out[COUNT], in[COUNT], data[COUNT], other[COUNT];
    uint32_t offset = 1000;
    const float *rows[2] = {in, data};
    for (int i = 0; i < COUNT; i++) {
        in[i] = (float)(i + 1);
        data[i] = (float)(100 * i);
        other[i] = 0.5f * (float)i;
    }
    struct arguments a = {out, in, &offset, {data, COUNT - 3}, {data, other}, 2, {other, data}};
    smelt_library *library = library_of(argument_buffer);
    smelt_function *function;
    assert_int_equal(smelt_library_function(library, &(smelt_function_desc){.name = "gather"}, &function),
                     SMELT_OK);
    static const char *const devices[] = {"cpu", "cpu-scalar"};
    for (int d = 0; d < 2; d++) {
        for (int i = 0; i < COUNT; i++) out[i] = -1;
        smelt_dispatch_desc dispatch = {.buffers = {{.bytes = &a, .size = sizeof a},
                                                    {.bytes = &a, .size = sizeof a},
                                                    {.bytes = rows, .size = sizeof rows}},
                                        .grid = {COUNT},
                                        .threadgroup = {16},
                                        .device = devices[d]};
        if (smelt_function_run(function, &dispatch) != SMELT_OK) FAIL_TEST("%s", smelt_error());
        for (int i = 0; i < COUNT; i++) {
            float row = i % 2 ? data[0] : in[0];
            float wanted = i < COUNT - 3 ? in[i] * 2 + 1000 + data[i] + other[i] + other[i] + row : -1;
            if (out[i] != wanted)
                FAIL_TEST("out[%d] is %g on %s, expected %g", i, out[i], devices[d], wanted);
        }
    }
    smelt_function_release(function);
    smelt_library_release(library);
}

/* The compiler cannot be run; listing entries does not need it. */
static void listing_compiles_nothing(void **state) {
    (void)state;
    const char *before = getenv("SMELT_CLANG");
    char *kept = before ? strdup(before) : NULL;
    setenv("SMELT_CLANG", "/nonexistent/clang", 1);
    smelt_library *library =
        library_of("#include <metal_stdlib>\n"
                   "template <typename T, int N> kernel void f(device T *a) { this is no C++; }\n"
                   "template [[host_name(\"f_3\")]] kernel void f<float, 3>(device float *);\n"
                   "kernel void g(device float *a) { a[0] = 1; }\n");
    assert_int_equal(smelt_library_function_count(library), 2);
    assert_string_equal(smelt_library_function_name(library, 0), "f_3");
    assert_string_equal(smelt_library_function_name(library, 1), "g");
    smelt_function *function;
    assert_int_equal(smelt_library_function(library, &(smelt_function_desc){.name = "g"}, &function),
                     SMELT_OK);
    float value = 0;
    smelt_array *array;
    assert_int_equal(
        smelt_array_from_memory(SMELT_FLOAT32, (smelt_shape){1, {1}}, NULL, &value, NULL, NULL, &array),
        SMELT_OK);
    smelt_dispatch_desc dispatch = {.buffers = {{.array = array}}, .grid = {1}, .threadgroup = {1}};
    assert_int_equal(smelt_function_run(function, &dispatch), SMELT_ERROR_NO_COMPILER);
    if (kept)
        setenv("SMELT_CLANG", kept, 1);
    else
        unsetenv("SMELT_CLANG");
    free(kept);
    smelt_array_release(array);
    smelt_function_release(function);
    smelt_library_release(library);
}

/* An entry is compiled alone: errors in another template do not matter. */
static void entries_compile_one_at_a_time(void **state) {
    (void)state;
    smelt_library *library =
        library_of("template <typename T> kernel void f(device T *a) { a[0] = T::nothing; }\n"
                   "template [[host_name(\"f_3\")]] kernel void f<float>(device float *);\n"
                   "kernel void g(device float *a) { a[0] = 4; }\n");
    float value = 0;
    smelt_array *array;
    assert_int_equal(
        smelt_array_from_memory(SMELT_FLOAT32, (smelt_shape){1, {1}}, NULL, &value, NULL, NULL, &array),
        SMELT_OK);
    smelt_dispatch_desc dispatch = {.buffers = {{.array = array}}, .grid = {1}, .threadgroup = {1}};
    static const struct {
        const char *name;
        smelt_status status;
    } cases[] = {{"g", SMELT_OK}, {"f_3", SMELT_ERROR_COMPILE}};
    for (int c = 0; c < 2; c++) {
        smelt_function *function;
        assert_int_equal(
            smelt_library_function(library, &(smelt_function_desc){.name = cases[c].name}, &function),
            SMELT_OK);
        assert_int_equal(smelt_function_run(function, &dispatch), cases[c].status);
        smelt_function_release(function);
    }
    assert_true(value == 4);
    smelt_array_release(array);
    smelt_library_release(library);
}

/* Values of function constants by name and by index, as vectors and scalars. */
static void constants_by_name(void **state) {
    (void)state;
    smelt_library *library = library_of("using namespace metal;\n"
                                        "namespace n { constant int3 shape [[function_constant(4)]]; }\n"
                                        "constant float scale [[function_constant(5)]];\n"
                                        "kernel void g(device float *a) { a[0] = n::shape.z * scale; }\n");
    float value = 0;
    smelt_array *array;
    smelt_function *function;
    assert_int_equal(
        smelt_array_from_memory(SMELT_FLOAT32, (smelt_shape){1, {1}}, NULL, &value, NULL, NULL, &array),
        SMELT_OK);
    {
        /* The name need not outlive the call. */
        char name[] = "n::shape";
        smelt_function_desc desc = {
            .constants = {{.name = name, .dtype = SMELT_INT32, .count = 3, .value.integers = {1, 2, 7}},
                          {.index = 5, .dtype = SMELT_FLOAT32, .value.real = 1.5}}};
        assert_int_equal(smelt_library_function(library, &desc, &function), SMELT_OK);
        name[3] = 'x';
    }
    smelt_dispatch_desc dispatch = {.buffers = {{.array = array}}, .grid = {1}, .threadgroup = {1}};
    if (smelt_function_run(function, &dispatch) != SMELT_OK) FAIL_TEST("%s", smelt_error());
    assert_true(value == 10.5f);
    smelt_function_desc wrong = {.constants = {{.name = "shapes", .dtype = SMELT_INT32}}};
    smelt_function *none;
    assert_int_equal(smelt_library_function(library, &wrong, &none), SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(smelt_error(),
                        "library.metal has no function constant 'shapes'; expected one of: shape, scale");
    smelt_array_release(array);
    smelt_function_release(function);
    smelt_library_release(library);
}

/* Properties of parameters that bindings need, also for types behind templates, constants and enumerations.
 */
static void parameters_are_listed(void **state) {
    (void)state;
    smelt_library *library = library_of(
        "#include <metal_stdlib>\nusing namespace metal;\n"
        "enum Kind : ushort { A, B };\n"
        "struct Pair { float a; int b; };\n"
        "constant bool wanted [[function_constant(0)]];\n"
        "template <typename T> kernel void f(device T *out [[buffer(0)]], const device vec<T, 3> *in, "
        "constant T &scale [[buffer(5)]], constant Kind &kind, device const Pair *pairs, "
        "device atomic_uint *counts [[buffer(9)]], constant packed_half4 &packed [[buffer(10)]],\n"
        "constant int &unused [[buffer(11)]], constant int &absent [[buffer(12), "
        "function_constant(wanted)]], "
        "threadgroup bfloat *shared [[threadgroup(1)]], uint i [[thread_position_in_grid]]) {\n"
        "  shared[i] = bfloat(packed.x); out[i] = in[i].x * scale + T(kind) + T(pairs[i].b) + T(shared[i]);\n"
        "  atomic_fetch_add_explicit(counts, 1u, memory_order_relaxed); }\n"
        "template [[host_name(\"f_half\")]] kernel void f<half>(device half *, const device half3 *, "
        "constant half &, "
        "constant Kind &, device const Pair *, device atomic_uint *, constant packed_half4 &, constant int "
        "&, "
        "constant int &, threadgroup bfloat *, uint);\n");
    static const smelt_parameter wanted[] = {
        {"out", 0, false, true, true, true, 2, SMELT_FLOAT16, 1, 0, 0, 0, {0}},
        {"in", 1, false, true, false, true, 8, SMELT_FLOAT16, 3, 0, 0, 0, {0}},
        {"scale", 5, false, false, false, true, 2, SMELT_FLOAT16, 1, 0, 0, 0, {0}},
        {"kind", 6, false, false, false, true, 2, SMELT_UINT16, 1, 0, 0, 0, {0}},
        {"pairs", 7, false, true, false, true, 8, SMELT_NO_DTYPE, 1, 0, 0, 0, {0}},
        {"counts", 9, false, true, true, true, 4, SMELT_UINT32, 1, 0, 0, 0, {0}},
        {"packed", 10, false, false, false, true, 8, SMELT_FLOAT16, 4, 0, 0, 0, {0}},
        {"unused", 11, false, false, false, false, 4, SMELT_INT32, 1, 0, 0, 0, {0}},
        {"absent", 12, false, false, false, false, 4, SMELT_INT32, 1, 0, 0, 0, {0}},
        {"shared", 1, true, true, true, true, 2, SMELT_BFLOAT16, 1, 0, 0, 0, {0}},
    };
    smelt_function_desc desc = {.name = "f_half", .constants = {{.index = 0, .dtype = SMELT_BOOL}}};
    smelt_function *function;
    if (smelt_library_function(library, &desc, &function) != SMELT_OK) FAIL_TEST("%s", smelt_error());
    smelt_parameter list[10];
    int count;
    smelt_dispatch_desc sizes = {.grid = {40}, .threadgroup = {8}};
    if (smelt_function_parameters(function, &sizes, list, 10, &count) != SMELT_OK)
        FAIL_TEST("%s", smelt_error());
    assert_int_equal(count, 10);
    for (int i = 0; i < count; i++) {
        const smelt_parameter *is = &list[i], *should = &wanted[i];
        assert_string_equal(is->name, should->name);
        if (is->index != should->index || is->threadgroup != should->threadgroup ||
            is->pointer != should->pointer || is->writable != should->writable || is->used != should->used ||
            is->bytes != should->bytes || is->dtype != should->dtype || is->components != should->components)
            FAIL_TEST("%s: index %d, threadgroup %d, pointer %d, writable %d, used %d, %zu bytes, %s x %d",
                      is->name, is->index, is->threadgroup, is->pointer, is->writable, is->used, is->bytes,
                      smelt_dtype_name(is->dtype), is->components);
    }
    /* If the list is too short, the first parameters are returned. */
    list[2].name = "";
    assert_int_equal(smelt_function_parameters(function, &sizes, list, 2, &count), SMELT_OK);
    assert_int_equal(count, 10);
    assert_string_equal(list[2].name, "");
    assert_int_equal(smelt_function_parameters(function, &(smelt_dispatch_desc){0}, list, 2, &count),
                     SMELT_ERROR_INVALID_ARGUMENT);
    smelt_function_release(function);
    smelt_library_release(library);
}

static void buffers_know_where_they_begin_and_end(void **state) {
    (void)state;
    static const char *const devices[] = {"cpu", "cpu-scalar"};
    float values[10], out[5];
    for (int i = 0; i < 10; i++) values[i] = (float)i;
    smelt_array *base, *view, *results;
    smelt_shape five = {1, {5}};
    assert_int_equal(
        smelt_array_from_memory(SMELT_FLOAT32, (smelt_shape){1, {10}}, NULL, values, NULL, NULL, &base),
        SMELT_OK);
    assert_int_equal(smelt_array_from_memory(SMELT_FLOAT32, five, NULL, out, NULL, NULL, &results), SMELT_OK);
    assert_int_equal(smelt_array_view(base, five, NULL, 3, &view), SMELT_OK);
    struct launch_buffer buffer = launch_buffer_of(view);
    assert_ptr_equal(buffer.memory, base->memory);
    assert_int_equal(buffer.offset, 3 * sizeof(float));
    assert_int_equal(buffer.bytes, 5 * sizeof(float));
    assert_ptr_equal(launch_address(&buffer), &values[3]);
    buffer = launch_buffer_of_bytes(values, 7);
    assert_true(!buffer.memory && buffer.bytes == 7 && launch_address(&buffer) == (char *)values);
    smelt_library *library = library_of("kernel void copy(device float *to [[buffer(0)]], const device float "
                                        "*from [[buffer(1)]], uint i [[thread_position_in_grid]]) {\n"
                                        "  to[i] = from[i];\n}\n");
    smelt_function *function;
    assert_int_equal(smelt_library_function(library, &(smelt_function_desc){0}, &function), SMELT_OK);
    for (int d = 0; d < 2; d++) {
        smelt_dispatch_desc dispatch = {.buffers = {{.array = results}, {.array = view}},
                                        .grid = {5},
                                        .threadgroup = {32},
                                        .device = devices[d]};
        memset(out, 0, sizeof out);
        if (smelt_function_run(function, &dispatch) != SMELT_OK) FAIL_TEST("%s", smelt_error());
        assert_memory_equal(out, values + 3, sizeof out);
    }
    smelt_function_release(function);
    smelt_library_release(library);
    smelt_array_release(view);
    smelt_array_release(results);
    smelt_array_release(base);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structures_hold_addresses),
        cmocka_unit_test(listing_compiles_nothing),
        cmocka_unit_test(entries_compile_one_at_a_time),
        cmocka_unit_test(constants_by_name),
        cmocka_unit_test(parameters_are_listed),
        cmocka_unit_test(buffers_know_where_they_begin_and_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
