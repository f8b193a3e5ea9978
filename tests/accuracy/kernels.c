#include "kernels.h"

#include "../device.h"
#include "../prelude/support.h"

const char *const form_prefix[FORMS] = {"metal::precise::", "metal::fast::", "metal::"};

static const char header[] = "template <class T, int N> vec<int, N> int_of(vec<T, N> v) { vec<int, N> r; "
                             "for (int c = 0; c < N; c++) r[c] = (int)v[c]; return r; }\n";

static void add_call(struct body *body, const char *text, const char *prefix) {
    for (; *text; text++) {
        if (*text == '@')
            body_add(body, "%s", prefix);
        else
            body_add(body, "%c", *text);
    }
}

bool program_has(const struct program *program, int function, enum form form) {
    if (accuracy_functions[function].operation) return form == PLAIN && !program->width;
    if (program->width) return form == PRECISE || (form == FAST && program->width == 4);
    return true;
}

static int64_t points(const struct program *program) {
    return program->width ? VECTOR_POINTS : program->sweep->size;
}

static void add_function(struct body *body, const struct program *program, int index) {
    const struct function *function = &accuracy_functions[program->first + index];
    const char *text = program->width && function->vector ? function->vector : function->text;
    for (int form = 0; form < FORMS; form++) {
        if (!program_has(program, program->first + index, (enum form)form)) continue;
        long long place = (long long)((index * FORMS + form) * points(program));
        body_add(body, program->width ? "{ V r = " : "out[%lldul + i] = ", place);
        add_call(body, text, form_prefix[form]);
        if (program->width)
            body_add(body, "; for (int c = 0; c < %d; c++) out[%lldul + i + c] = r[c]; }\n", program->width,
                     place);
        else
            body_add(body, ";\n");
    }
}

static const char *const names[3] = {"x", "y", "z"};

static void add_arguments(struct body *body, const struct program *program) {
    if (program->width)
        body_add(body,
                 "typedef vec<T, %d> V; uint i = thread_position_in_grid.x * %d; vec<int, %d> exponent;\n",
                 program->width, program->width, program->width);
    else
        body_add(body, "typedef T V; uint i = thread_position_in_grid.x; int exponent;\n");
    body_add(body, "V second;\n");
    for (int input = 0; input < program->sweep->arguments; input++)
        if (program->width)
            body_add(body, "V %s; for (int c = 0; c < %d; c++) %s[c] = %s_values[i + c];\n", names[input],
                     program->width, names[input], names[input]);
        else
            body_add(body, "V %s = %s_values[i];\n", names[input], names[input]);
}

struct program program_new(const struct sweep *sweep, int first, int count, int width, smelt_math_mode math) {
    struct program program = {NULL, sweep, first, count, width};
    struct body body = {0};
    add_arguments(&body, &program);
    for (int f = 0; f < count; f++) add_function(&body, &program, f);
    smelt_kernel_desc desc = {
        .name = "accuracy", .header = header, .source = body.text, .outputs = {"out"}, .math = math};
    static const char *const inputs[3] = {"x_values", "y_values", "z_values"};
    for (int input = 0; input < sweep->arguments; input++) desc.inputs[input] = inputs[input];
    if (smelt_kernel_create(&desc, &program.kernel) != SMELT_OK) failed("create: %s", smelt_error());
    body_free(&body);
    return program;
}
void program_free(struct program *program) {
    smelt_kernel_release(program->kernel);
    program->kernel = NULL;
}

smelt_array *program_run(const struct program *program, const struct arguments *arguments,
                         const char *device) {
    const struct sweep *sweep = program->sweep;
    if (!program->kernel) return NULL;
    int64_t count = points(program), threads = program->width ? count / program->width : count;
    smelt_run_desc desc = {.grid = {threads},
                           .threadgroup = {256},
                           .templates = {{.name = "T", .kind = SMELT_TEMPLATE_DTYPE, .dtype = sweep->dtype}},
                           .output_shapes = {{1, {program->count * FORMS * count}}},
                           .output_dtypes = {sweep->dtype},
                           .device = device};
    int inputs = 0;
    for (; inputs < sweep->arguments; inputs++)
        if (smelt_array_from_values(sweep->dtype, (smelt_shape){1, {count}}, arguments->typed[inputs],
                                    &desc.inputs[inputs]) != SMELT_OK)
            break;
    smelt_array *results = NULL;
    if (inputs < sweep->arguments || smelt_kernel_run(program->kernel, &desc, &results) != SMELT_OK ||
        test_to_host(&results) != SMELT_OK) {
        failed("run on %s: %s", device, smelt_error());
        smelt_array_release(results);
        results = NULL;
    }
    while (inputs) smelt_array_release(desc.inputs[--inputs]);
    return results;
}

const void *program_result(const struct program *program, smelt_array *results, int function,
                           enum form form) {
    int64_t place = ((int64_t)(function - program->first) * FORMS + (int)form) * points(program);
    return (const char *)smelt_array_data(results) + (size_t)place * type_size(program->sweep->dtype);
}
