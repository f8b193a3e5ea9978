/* smelt bench matmul: what is asked for, and a ladder for each device, size and dtype. */
#include "bench/matmul/ladder.h"
#include "bench/cpu/cpu.h"
#include "kernels/matmul/matmul.h"

#include "smelt/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPU "cuda:0"
#define MOST_SIZES 16
#define MOST_RUNGS 16
#define MOST_CASES (MOST_RUNGS + 3)

struct size {
    int64_t products, m, n, k;
};

/* ---- What is asked for. */

static const char *const dtype_names[] = {"float32", "float16", "bfloat16"};

/* "1024", "1000x517x300" for M, N and K, or "64x256x256x256" for that many products; false: none of these. */
static bool parse_size(const char *text, size_t length, struct size *size) {
    char word[64], *end;
    long long part[4];
    if (length >= sizeof word) return false;
    memcpy(word, text, length);
    word[length] = 0;
    int count = 0;
    for (char *at = word; count < 4; at = end + 1) {
        part[count] = strtoll(at, &end, 10);
        if (end == at || part[count] < 1 || part[count] > 1 << 20) return false;
        count++;
        if (*end != 'x') break;
    }
    if (*end || count == 2) return false;
    *size = count == 1   ? (struct size){1, part[0], part[0], part[0]}
            : count == 3 ? (struct size){1, part[0], part[1], part[2]}
                         : (struct size){part[0], part[1], part[2], part[3]};
    return true;
}

/* False if a word is not a size, or there are too many; `wrong` points to it. */
static bool parse_sizes(const char *text, struct size sizes[MOST_SIZES], int *count, const char **wrong) {
    for (*count = 0; *text;) {
        size_t length = strcspn(text, ",");
        *wrong = text;
        if (*count == MOST_SIZES || !parse_size(text, length, &sizes[*count])) return false;
        (*count)++;
        text += length + (text[length] == ',');
    }
    *wrong = text;
    return *count > 0;
}

/* Whether the word is in a list with commas. */
static bool lists(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || !at[length])) return true;
    return false;
}

bool bench_matmul_check(const struct bench_products *wanted, char *message, size_t size) {
    struct size sizes[MOST_SIZES];
    int count;
    const char *wrong = "";
    if (wanted->sizes && !parse_sizes(wanted->sizes, sizes, &count, &wrong)) {
        snprintf(
            message, size,
            "--sizes is '%s', expected up to %d sizes like 1024, 1000x517x300 (M, N, K) or 64x256x256x256 "
            "(products, M, N, K), with commas",
            wanted->sizes, MOST_SIZES);
        return false;
    }
    bool known = !wanted->dtype;
    for (int d = 0; d < 3 && !known; d++) known = strcmp(wanted->dtype, dtype_names[d]) == 0;
    if (!known) {
        snprintf(message, size, "--dtype is '%s', expected float32, float16 or bfloat16", wanted->dtype);
        return false;
    }
    for (const char *at = wanted->algorithm; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
        known = false;
        for (int i = 0; matmul_name(i); i++) known |= strcmp(word, matmul_name(i)) == 0;
        if (known) continue;
        int used = snprintf(message, size, "--algorithm: '%s' is unknown; expected some of", word);
        for (int i = 0; matmul_name(i) && used > 0 && (size_t)used < size; i++)
            used += snprintf(message + used, size - (size_t)used, " %s", matmul_name(i));
        return false;
    }
    if (wanted->device && strcmp(wanted->device, "cpu") != 0 && strcmp(wanted->device, "cuda") != 0) {
        snprintf(message, size, "--device is '%s', expected cpu or cuda", wanted->device);
        return false;
    }
    return true;
}

static smelt_dtype dtype_of(const char *name) {
    return !name || strcmp(name, "float32") == 0 ? SMELT_FLOAT32
           : strcmp(name, "float16") == 0        ? SMELT_FLOAT16
                                                 : SMELT_BFLOAT16;
}

/* ---- A rung. */

/* *result is a new reference. On the host, a step writes to the ladder's c, as OpenBLAS does: new memory
 * would take longer. */
static smelt_status multiply(const struct rung *rung, smelt_array **result) {
    const struct ladder *l = rung->ladder;
    if (!rung->algorithm || l->start)
        return smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_MATMUL,
                                               .inputs = {l->a, l->b},
                                               .algorithm = rung->algorithm,
                                               .device = l->device,
                                               .stream = l->stream},
                           result);
    *result = smelt_array_retain(l->c);
    return matmul_run(&(struct matmul_desc){
        .algorithm = rung->algorithm, .a = l->a, .b = l->b, .c = l->c, .device = l->device});
}

static smelt_status run_rung(void *context) {
    smelt_array *result = NULL;
    smelt_status status = multiply(context, &result);
    smelt_array_release(result);
    return status;
}

static smelt_status measure_rung(void *context, double *seconds) {
    struct rung *rung = context;
    if (!rung->runs) rung->runs = ladder_runs(rung->ladder, run_rung, rung);
    return ladder_time(rung->ladder, run_rung, rung, rung->runs, seconds);
}

/* What takes seconds takes part in a few rounds. */
static int rounds_of(const struct rung *rung) {
    double seconds = 0;
    /* The first run may compile. */
    bool measured =
        measure_rung((void *)rung, &seconds) == SMELT_OK && measure_rung((void *)rung, &seconds) == SMELT_OK;
    return measured && seconds > 2 ? 1 : measured && seconds > 0.2 ? 3 : 0;
}

/* ---- A ladder. */

static double elements_of(const struct ladder *l) {
    return (double)(l->products * l->m * l->n);
}

static double operations_of(const struct ladder *l) {
    return 2 * elements_of(l) * (double)l->k;
}

static double bytes_of(const struct ladder *l) {
    return (double)(l->products * (l->m * l->k + l->k * l->n + l->m * l->n)) *
           (double)smelt_dtype_bytes(l->dtype);
}

static smelt_status measure(struct ladder *ladder) {
    struct rung rungs[MOST_RUNGS];
    struct bench_case cases[MOST_CASES];
    struct rivals rivals;
    int count = 0, case_count = 0;
    const char *wanted = ladder->bench->products.algorithm, *device = ladder->start ? "cuda" : "cpu";
    rivals_enter(ladder, &rivals);
    for (int i = 0; i < rivals.count; i++) {
        cases[case_count] = rivals.cases[i];
        if (!cases[case_count].work) {
            cases[case_count].work = operations_of(ladder);
            cases[case_count].elements = elements_of(ladder);
            cases[case_count].bytes = bytes_of(ladder);
            cases[case_count].peak = rivals.peak;
            cases[case_count].bandwidth = rivals.bandwidth;
            cases[case_count].work_unit = "FLOP";
        }
        case_count++;
    }
    for (int i = 0;; i++) {
        const char *name = matmul_name(i);
        bool several = ladder->products > 1; /* which a step does not take */
        if (name && (several || (wanted && !lists(wanted, name)))) continue;
        if (!name && wanted && !several) break;
        struct rung *rung = &rungs[count];
        *rung = (struct rung){.ladder = ladder, .algorithm = name};
        snprintf(rung->name, sizeof rung->name, "%s/%s", device, name ? name : "a @ b");
        if (ladder_is_right(ladder, multiply, rung)) {
            cases[case_count++] =
                (struct bench_case){.job = ladder->job,
                                    .variant = rung->name,
                                    .anchor = rivals.library,
                                    .peak = rivals.peak,
                                    .bandwidth = rivals.bandwidth,
                                    .measure = measure_rung,
                                    .context = rung,
                                    .most_rounds = ladder->bench->quick ? 1 : rounds_of(rung),
                                    .work = operations_of(ladder),
                                    .elements = elements_of(ladder),
                                    .bytes = bytes_of(ladder),
                                    .work_unit = "FLOP"};
            count++;
        }
        if (!name) break;
    }
    return bench_measure(ladder->bench, cases, case_count,
                         bench_repeats(ladder->bench, ladder->start ? 15 : 7));
}

/* Random values, rounded to the dtype, on the host and on the device. */
static smelt_status prepare_matrix(struct ladder *ladder, smelt_shape shape, uint64_t seed,
                                   smelt_array **host, smelt_array **there) {
    smelt_array *raw = NULL, *rounded = NULL;
    smelt_status status = random_floats(shape, seed, -1, 1, &raw);
    if (status == SMELT_OK) status = smelt_array_convert(raw, ladder->dtype, &rounded);
    if (status == SMELT_OK) status = smelt_array_convert(rounded, SMELT_FLOAT32, host);
    if (status == SMELT_OK) status = smelt_array_to(rounded, ladder->device, ladder->stream, there);
    smelt_array_release(raw);
    smelt_array_release(rounded);
    return status;
}

/* The shape of a product's matrix, or of all products' matrices. */
static smelt_shape shape_of(const struct ladder *ladder, int64_t rows, int64_t columns) {
    return ladder->products == 1 ? SHAPE_OF(rows, columns) : SHAPE_OF(ladder->products, rows, columns);
}

static smelt_status prepare(struct ladder *ladder) {
    smelt_shape c = shape_of(ladder, ladder->m, ladder->n);
    smelt_status status = SMELT_OK;
    if (strcmp(ladder->device, "cpu") != 0) {
        status = smelt_stream_create(ladder->device, &ladder->stream);
        if (status == SMELT_OK) status = smelt_event_create(ladder->device, &ladder->start);
        if (status == SMELT_OK) status = smelt_event_create(ladder->device, &ladder->end);
    }
    if (status == SMELT_OK)
        status = prepare_matrix(ladder, shape_of(ladder, ladder->m, ladder->k), 8, &ladder->x, &ladder->a);
    if (status == SMELT_OK)
        status = prepare_matrix(ladder, shape_of(ladder, ladder->k, ladder->n), 9, &ladder->y, &ladder->b);
    if (status == SMELT_OK) status = new_floats(c, &ladder->z);
    if (status == SMELT_OK)
        status = ladder->stream ? smelt_array_create_on(ladder->device, ladder->dtype, c, &ladder->c)
                                : smelt_array_create(ladder->dtype, c, &ladder->c);
    return status == SMELT_OK ? rivals_open(ladder) : status;
}

static void release(struct ladder *ladder) {
    smelt_array *arrays[] = {ladder->a, ladder->b, ladder->c, ladder->x, ladder->y, ladder->z};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) smelt_array_release(arrays[i]);
    rivals_close(ladder);
    smelt_event_release(ladder->start);
    smelt_event_release(ladder->end);
    smelt_stream_release(ladder->stream);
}

static void climb(struct bench *bench, const char *device, const struct size *size) {
    const char *dtype = bench->products.dtype ? bench->products.dtype : dtype_names[0];
    struct ladder ladder = {.bench = bench,
                            .device = device,
                            .dtype = dtype_of(dtype),
                            .products = size->products,
                            .m = size->m,
                            .n = size->n,
                            .k = size->k};
    char several[32] = "";
    if (size->products > 1) snprintf(several, sizeof several, "%lldx", (long long)size->products);
    snprintf(ladder.job, sizeof ladder.job, "product-%s%lldx%lldx%lld-%s", several, (long long)size->m,
             (long long)size->n, (long long)size->k, dtype);
    smelt_status status = prepare(&ladder);
    if (status == SMELT_OK) status = measure(&ladder);
    if (status != SMELT_OK) bench_fail(bench, ladder.job, "preparing", status, smelt_error());
    release(&ladder);
}

static smelt_status run(struct bench *bench) {
    const struct bench_products *wanted = &bench->products;
    uint64_t unused, total;
    const char *wrong;
    struct size sizes[MOST_SIZES];
    int count = 1;
    sizes[0] = bench->quick ? (struct size){1, 128, 128, 128} : (struct size){1, 1024, 1024, 1024};
    if (wanted->sizes) (void)parse_sizes(wanted->sizes, sizes, &count, &wrong);
    bool host = !wanted->device || strcmp(wanted->device, "cpu") == 0, gpu = !host || !wanted->device;
    smelt_status there = gpu ? smelt_device_memory(GPU, &unused, &total) : SMELT_OK;
    /* A GPU that is asked for must be there. */
    if (there != SMELT_OK && !host) return there;
    if (host) cpu_start_threads();
    for (int i = 0; i < count && host; i++) climb(bench, "cpu", &sizes[i]);
    for (int i = 0; i < count && gpu && there == SMELT_OK; i++) climb(bench, GPU, &sizes[i]);
    return SMELT_OK;
}

const struct benchmark bench_matmul = {
    .name = "matmul",
    .help = "products of matrices step by step (docs/matmul.md), next to OpenBLAS or cuBLAS and the peak",
    .run = run,
};
