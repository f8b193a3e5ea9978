#include "check_case.h"
#include "arrays.h"

#include "../device.h"

#include <smelt/check.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const outcome_names[] = {
    "agrees", "is no valid kernel", "fails on the oracle", "differs", "fails", "crashes", "hangs"};

/* Far more than any kernel needs: a kernel that takes longer does not end. */
#define ORACLE_SECONDS 20

__attribute__((format(printf, 3, 4))) static bool judge(struct verdict *verdict, enum outcome outcome,
                                                        const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    verdict->outcome = outcome;
    vsnprintf(verdict->message, sizeof verdict->message, format, arguments);
    va_end(arguments);
    return false;
}

static void note_line(smelt_log_level level, const char *line, void *context) {
    (void)level;
    struct verdict *verdict = context;
    verdict->notes++;
    snprintf(verdict->note, sizeof verdict->note, "%s", line);
}

/* ---- Comparing */

static double real_at(smelt_dtype dtype, const void *data, int64_t i) {
    return dtype == SMELT_FLOAT32 ? (double)((const float *)data)[i] : (double)((const _Float16 *)data)[i];
}

static bool is_real(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT32 || dtype == SMELT_FLOAT16;
}

static bool equal_elements(smelt_dtype dtype, const char *a, const char *b, int64_t i, double tolerance) {
    size_t bytes = smelt_dtype_bytes(dtype);
    if (memcmp(a + (size_t)i * bytes, b + (size_t)i * bytes, bytes) == 0) return true;
    if (!is_real(dtype)) return false;
    double x = real_at(dtype, a, i), y = real_at(dtype, b, i);
    if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
    return tolerance > 0 && fabs(x - y) <= tolerance * fmax(fabs(x), fabs(y));
}

static void describe_element(smelt_dtype dtype, const char *data, int64_t i, char text[64]) {
    size_t bytes = smelt_dtype_bytes(dtype);
    uint64_t bits = 0;
    memcpy(&bits, data + (size_t)i * bytes, bytes);
    if (is_real(dtype))
        snprintf(text, 64, "%.9g (0x%0*llx)", real_at(dtype, data, i), 2 * (int)bytes,
                 (unsigned long long)bits);
    else
        snprintf(text, 64, "%llu (0x%0*llx)", (unsigned long long)bits, 2 * (int)bytes,
                 (unsigned long long)bits);
}

static bool compare_outputs(smelt_array *const *expected, smelt_array *const *got, const char *device,
                            double tolerance, struct verdict *verdict) {
    for (int o = 0; o < OUTPUT_COUNT; o++) {
        smelt_dtype dtype = smelt_array_dtype(expected[o]);
        int64_t count = smelt_array_size(expected[o]), wrong = 0, first = -1;
        const char *a = smelt_array_data(expected[o]), *b = smelt_array_data(got[o]);
        if (!a || !b) {
            return judge(verdict, FAILS, "%s: output %s is missing", device, output_names[o]);
        }
        if (memcmp(a, b, (size_t)count * smelt_dtype_bytes(dtype)) == 0) continue;
        for (int64_t i = 0; i < count; i++) {
            if (equal_elements(dtype, a, b, i, tolerance)) continue;
            if (first < 0) first = i;
            wrong++;
        }
        if (!wrong) continue;
        char want[64], have[64];
        describe_element(dtype, a, first, want);
        describe_element(dtype, b, first, have);
        return judge(verdict, DIFFERS, "%s: %s[%lld] is %s, expected %s; %lld of %lld elements differ",
                     device, output_names[o], (long long)first, have, want, (long long)wrong,
                     (long long)count);
    }
    return true;
}

/* ---- Running */

static smelt_kernel *make_kernel(const struct kernel_case *kernel, const char *body) {
    smelt_kernel_desc desc = {.name = "fuzzed", .source = body, .header = kernel->header};
    memcpy(desc.inputs, input_names, sizeof input_names);
    memcpy(desc.outputs, output_names, sizeof output_names);
    memcpy(desc.atomic_output, output_atomic, sizeof output_atomic);
    smelt_kernel *made = NULL;
    return smelt_kernel_create(&desc, &made) == SMELT_OK ? made : NULL;
}

static smelt_status run_as(smelt_kernel *made, const struct kernel_case *kernel, int launch,
                           smelt_run_desc desc, smelt_array **outputs) {
    const struct launch *size = &kernel->launches[launch];
    memcpy(desc.grid, size->grid, sizeof size->grid);
    memcpy(desc.threadgroup, size->group, sizeof size->group);
    memcpy(desc.inputs, inputs_of(kernel->data), INPUT_COUNT * sizeof *desc.inputs);
    describe_outputs(size->grid[0] * size->grid[1] * size->grid[2], &desc);
    smelt_status status = smelt_kernel_run(made, &desc, outputs);
    for (int o = 0; status == SMELT_OK && o < OUTPUT_COUNT; o++) status = test_to_host(&outputs[o]);
    return status;
}

static smelt_status run(smelt_kernel *made, const struct kernel_case *kernel, int launch, const char *device,
                        double timeout, smelt_array **outputs) {
    return run_as(made, kernel, launch, (smelt_run_desc){.device = device, .timeout = timeout}, outputs);
}

static void release(smelt_array **outputs) {
    for (int o = 0; o < OUTPUT_COUNT; o++) smelt_array_release(outputs[o]);
}

static bool check_device(smelt_kernel *tested, const struct kernel_case *kernel, int launch,
                         const char *device, smelt_array *const *expected,
                         const struct check_options *options, struct verdict *verdict) {
    smelt_array *got[OUTPUT_COUNT] = {NULL};
    bool good;
    if (run(tested, kernel, launch, device, options->timeout, got) != SMELT_OK)
        good = judge(verdict, FAILS, "%s: %s", device, smelt_error());
    else
        good = compare_outputs(expected, got, device, options->tolerance, verdict);
    release(got);
    return good;
}

/* What random kernels do on purpose, as smelt defines it (docs/checking.md): arithmetic, SM008 to SM011, and
 * shuffles from lanes that do not exist, SM014, and matrix products that lack such lanes, SM015. */
static bool is_meant(const smelt_finding *finding) {
    int number = atoi(finding->code + 2);
    return (number >= 8 && number <= 11) || number == 14 || number == 15;
}

static bool check_accesses(smelt_kernel *tested, const struct kernel_case *kernel, int launch,
                           const char *device, smelt_array *const *expected,
                           const struct check_options *options, struct verdict *verdict) {
    smelt_array *got[OUTPUT_COUNT] = {NULL};
    smelt_finding finding;
    smelt_status status =
        run_as(tested, kernel, launch, (smelt_run_desc){.device = device, .check = true}, got);
    bool good = true;
    if (status == SMELT_OK && *expected)
        good = compare_outputs(expected, got, "checked", options->tolerance, verdict);
    if (status != SMELT_OK && status != SMELT_ERROR_CHECK)
        good = judge(verdict, FAILS, "checked: %s", smelt_error());
    for (int i = 0; good && status == SMELT_ERROR_CHECK && smelt_findings_get(i, &finding); i++)
        if (!is_meant(&finding))
            good = judge(verdict, DIFFERS, "checked: line %d: %s (%s), expected no finding", finding.line,
                         finding.message, finding.code);
    release(got);
    return good;
}

static bool check_launch(smelt_kernel *oracle, smelt_kernel *tested, const struct kernel_case *kernel,
                         int launch, const struct check_options *options, struct verdict *verdict) {
    smelt_array *expected[OUTPUT_COUNT] = {NULL};
    bool good = true;
    verdict->launch = launch;
    smelt_status status =
        oracle ? run(oracle, kernel, launch, options->oracle, ORACLE_SECONDS, expected) : SMELT_OK;
    if (status != SMELT_OK)
        good = judge(verdict, status == SMELT_ERROR_COMPILE ? INVALID : UNSOUND, "%s: %s", options->oracle,
                     smelt_error());
    for (int d = 0; good && options->devices[d]; d++) {
        const char *device = options->devices[d];
        good = options->checked ? check_accesses(tested, kernel, launch, device, expected, options, verdict)
                                : check_device(tested, kernel, launch, device, expected, options, verdict);
    }
    release(expected);
    return good;
}

static char *planted(const char *body, const char *from, const char *to) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) abort();
    for (const char *at; (at = strstr(body, from)); body = at + strlen(from))
        fprintf(out, "%.*s%s", (int)(at - body), body, to);
    fputs(body, out);
    fclose(out);
    return text;
}

void check_case(const struct kernel_case *kernel, const struct check_options *options,
                struct verdict *verdict) {
    *verdict = (struct verdict){.outcome = AGREES};
    smelt_set_log(note_line, verdict);
    char *other = options->plant_from ? planted(kernel->body, options->plant_from, options->plant_to) : NULL;
    bool compares = strcmp(options->oracle, "none") != 0;
    smelt_kernel *oracle = compares ? make_kernel(kernel, kernel->body) : NULL,
                 *tested = make_kernel(kernel, other ? other : kernel->body);
    if ((compares && !oracle) || !tested) judge(verdict, INVALID, "%s", smelt_error());
    for (int l = 0; verdict->outcome == AGREES && l < kernel->launch_count; l++)
        if (!check_launch(oracle, tested, kernel, l, options, verdict)) break;
    smelt_kernel_release(oracle);
    smelt_kernel_release(tested);
    free(other);
    smelt_set_log(NULL, NULL);
}
