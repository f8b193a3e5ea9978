/* Attention compared with sums in double precision: heads that share keys, masks of each dtype, sinks, rows
 * that see few keys or none, sizes that no tile divides; keys in one piece and split into parts. Memory of
 * results is filled with bytes 0xfe when it is allocated. */
#include "graph.h"

#include "smelt/ops.h"
#include "tune/setting.h"

#include <float.h>
#include <fnmatch.h>
#include <malloc.h>
#include <math.h>

#define SHAPE4(a, b, c, d) ((smelt_shape){.ndim = 4, .size = {a, b, c, d}})

struct job {
    smelt_dtype dtype;
    int64_t batches, heads, key_heads, rows, keys, depth, value_depth;
    bool causal, sinks;
    smelt_dtype mask; /* SMELT_NO_DTYPE: none */
    int64_t parts;    /* 0: the operation chooses */
    int64_t width;    /* of the lines of keys that have a bias; 0: there is none */
    bool apart;       /* bias_columns are those of copy_apart */
    int64_t gap;      /* q, k and v are those of copy_by_rows; 0: they are contiguous */
    double scale;     /* 0: 0.3 */
    int64_t hidden;   /* keys whose mask is -FLT_MAX, from the first on; in a head's first row, all keys */
};

static smelt_array *array_of(smelt_dtype dtype, smelt_shape shape, double low, double high) {
    smelt_array *array;
    OK(smelt_array_create(dtype, shape, &array));
    fill_random(array, low, high);
    return array;
}

/* A copy on the device whose elements begin one element behind a multiple of 16 bytes. */
static smelt_array *copy_apart(const smelt_array *array) {
    smelt_array *longer, *there, *view;
    size_t element = smelt_dtype_bytes(array->dtype);
    OK(smelt_array_create(array->dtype, (smelt_shape){1, {array->size + 1}}, &longer));
    memcpy(longer->data + element, array->data, (size_t)array->size * element);
    OK(smelt_array_to(longer, test_device(), NULL, &there));
    OK(smelt_array_view(there, array->shape, NULL, 1, &view));
    smelt_array_release(longer);
    smelt_array_release(there);
    return view;
}

/* A copy on the device, as a layer of a model makes it: behind each row of a head that of the next one, with
 * `gap` elements before each. */
static smelt_array *copy_by_rows(const smelt_array *array, int64_t gap) {
    const int64_t *size = array->shape.size, width = size[3] + gap,
                  element = (int64_t)smelt_dtype_bytes(array->dtype);
    smelt_array *wide, *there, *view;
    OK(smelt_array_create(array->dtype, SHAPE4(size[0], size[2], size[1], width), &wide));
    for (int64_t b = 0; b < size[0]; b++)
        for (int64_t h = 0; h < size[1]; h++)
            for (int64_t r = 0; r < size[2]; r++)
                memcpy(wide->data + (((b * size[2] + r) * size[1] + h) * width + gap) * element,
                       array->data + ((b * size[1] + h) * size[2] + r) * size[3] * element,
                       (size_t)(size[3] * element));
    OK(smelt_array_to(wide, test_device(), NULL, &there));
    OK(smelt_array_view(there, array->shape,
                        (int64_t[]){size[2] * size[1] * width, width, size[1] * width, 1}, gap, &view));
    smelt_array_release(wide);
    smelt_array_release(there);
    return view;
}

/* Arrays' elements, converted once: a reference reads each of them many times. */
enum { Q, K, V, OUT, ALONE, NUMBERS };
typedef double *numbers[NUMBERS];

/* The score of a row and a key; -INFINITY where it does not see it. */
static double score_of(const struct job *job, const smelt_attention_desc *desc, const numbers all,
                       int64_t batch, int64_t head, int64_t row, int64_t key) {
    int64_t key_head = batch * job->key_heads + head / (job->heads / job->key_heads);
    int64_t line = (batch * job->heads + head) * job->rows + row;
    double sum = 0;
    if (job->causal && key > row + job->keys - job->rows) return -INFINITY;
    const double *q = all[Q] + line * job->depth, *k = all[K] + (key_head * job->keys + key) * job->depth;
    for (int64_t d = 0; d < job->depth; d++) sum += q[d] * k[d];
    if (job->width)
        return sum * desc->scale +
               element_at(desc->bias_lines, line * (job->keys / job->width) + key / job->width) +
               element_at(desc->bias_columns, line * job->width + key % job->width);
    if (!desc->mask) return sum * desc->scale;
    double mask =
        element_at(desc->mask, (head * job->rows + row) * job->keys + key); /* the same in all batches */
    return job->mask != SMELT_BOOL ? sum * desc->scale + mask : mask != 0 ? sum * desc->scale : -INFINITY;
}

/* A row of both results, and its sum in `sums`. */
static void check_row(const struct job *job, const smelt_attention_desc *desc, const numbers all,
                      const smelt_array *sums, int64_t batch, int64_t head, int64_t row) {
    int64_t key_head = batch * job->key_heads + head / (job->heads / job->key_heads);
    int64_t line = (batch * job->heads + head) * job->rows + row;
    double rounding = job->dtype == SMELT_FLOAT16 ? 0x1p-11 : job->dtype == SMELT_BFLOAT16 ? 0x1p-8 : 0x1p-24;
    double *weights = calloc((size_t)job->keys, sizeof *weights), sum = 0, top = -INFINITY;
    if (desc->sinks) top = element_at(desc->sinks, head);
    for (int64_t key = 0; key < job->keys; key++)
        top = fmax(top, weights[key] = score_of(job, desc, all, batch, head, row, key));
    if (desc->sinks) sum = exp(element_at(desc->sinks, head) - top);
    for (int64_t key = 0; key < job->keys; key++)
        sum += weights[key] = top == -INFINITY ? 0 : exp(weights[key] - top);
    double log_sum = top + log(sum), log_made = element_at(sums, line);
    if (log_sum != log_made && !(fabs(log_sum - log_made) <= fmax(1e-4, 1e-6 * fabs(log_sum))))
        FAIL_TEST("row %lld: the sum's logarithm is %g, expected %g", (long long)line, log_made, log_sum);
    for (int64_t key = 0; key < job->keys && sum > 0; key++) weights[key] /= sum;
    for (int64_t d = 0; d < job->value_depth; d++) {
        const double *v = all[V] + key_head * job->keys * job->value_depth + d;
        double value = 0, size = 0;
        for (int64_t key = 0; key < job->keys && sum > 0; key++) {
            double term = weights[key] * v[key * job->value_depth];
            value += term, size += fabs(term);
        }
        for (int i = OUT; i <= ALONE; i++) {
            double made = all[i][line * job->value_depth + d];
            if (!(fabs(value - made) <= 2e-5 * (1 + size) + 2 * rounding * size))
                FAIL_TEST("row %lld, column %lld: %g, expected %g", (long long)line, (long long)d, made,
                          value);
        }
    }
    free(weights);
}

/* The result of rows_first: the same bits, in rows that hold all heads. */
static void check_placed(const struct job *job, smelt_array *by_rows, const smelt_array *expected) {
    const int64_t *strides = smelt_array_strides(by_rows), row = job->heads * job->value_depth;
    const int64_t wanted[4] = {job->rows * row, job->value_depth, row, 1};
    smelt_array *dense;
    for (int d = 0; d < 4; d++) assert_int_equal(strides[d], wanted[d]);
    OK(smelt_array_contiguous(by_rows, &dense));
    OK(test_to_host(&dense));
    assert_memory_equal(dense->data, expected->data, (size_t)expected->size * smelt_dtype_bytes(job->dtype));
    smelt_array_release(dense);
}

static void attend(struct job job) {
    smelt_attention_desc desc = {
        .scale = job.scale != 0 ? job.scale : 0.3, .causal = job.causal, .device = test_device()};
    smelt_array *out = NULL, *sums = NULL, *alone = NULL, *by_rows = NULL;
    desc.q = array_of(job.dtype, SHAPE4(job.batches, job.heads, job.rows, job.depth), -1, 1);
    desc.k = array_of(job.dtype, SHAPE4(job.batches, job.key_heads, job.keys, job.depth), -1, 1);
    desc.v = array_of(job.dtype, SHAPE4(job.batches, job.key_heads, job.keys, job.value_depth), -1, 1);
    if (job.mask) desc.mask = array_of(job.mask, SHAPE4(1, job.heads, job.rows, job.keys), -2, 2);
    for (int64_t i = 0; i < job.heads * job.rows * job.keys && job.hidden; i++)
        if (i % job.keys < job.hidden || i / job.keys % job.rows == 0)
            ((float *)desc.mask->data)[i] = -FLT_MAX;
    if (job.sinks) desc.sinks = array_of(SMELT_FLOAT32, ((smelt_shape){1, {job.heads}}), -1, 3);
    if (job.width) {
        desc.bias_lines =
            array_of(job.dtype, SHAPE4(job.batches, job.heads, job.rows, job.keys / job.width), -2, 2);
        desc.bias_columns = array_of(job.dtype, SHAPE4(job.batches, job.heads, job.rows, job.width), -2, 2);
    }
    if (job.parts) tune_setting_force((int64_t[SETTING_NUMBERS]){0, 0, job.parts});
    smelt_attention_desc given = desc;
    smelt_array **operands[] = {&given.q, &given.k, &given.v};
    if (job.apart) given.bias_columns = copy_apart(desc.bias_columns);
    for (int i = 0; i < 3 && job.gap; i++) *operands[i] = copy_by_rows(*operands[i], job.gap);
    OK(smelt_attention(&given, &out, &sums));
    OK(smelt_attention(&given, &alone, NULL)); /* the room for its sums is part of its memory */
    given.rows_first = true;
    OK(smelt_attention(&given, &by_rows, NULL));
    if (job.apart) smelt_array_release(given.bias_columns);
    for (int i = 0; i < 3 && job.gap; i++) smelt_array_release(*operands[i]);
    tune_setting_force(NULL);
    OK(test_to_host(&out));
    OK(test_to_host(&sums));
    OK(test_to_host(&alone));
    check_placed(&job, by_rows, alone);
    numbers elements = {numbers_of(desc.q), numbers_of(desc.k), numbers_of(desc.v), numbers_of(out),
                        numbers_of(alone)};
    for (int64_t b = 0; b < job.batches; b++)
        for (int64_t h = 0; h < job.heads; h++)
            for (int64_t r = 0; r < job.rows; r++) check_row(&job, &desc, elements, sums, b, h, r);
    for (int i = 0; i < NUMBERS; i++) free(elements[i]);
    smelt_array *const all[] = {
        desc.q, desc.k, desc.v, desc.mask, desc.sinks, desc.bias_lines, desc.bias_columns,
        out,    sums,   alone,  by_rows};
    for (int i = 0; i < 11; i++) smelt_array_release(all[i]);
}

/* Each job compiles a kernel: make check runs the first of a list, make check-long all. */
static void attend_each(const struct job *jobs, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (in_sample(i, count) || getenv("SMELT_TEST_DEVICE")) attend(jobs[i]);
}
#define ATTEND_EACH(jobs) attend_each(jobs, sizeof jobs / sizeof *jobs)

static void few_rows(void **state) {
    (void)state;
    static const struct job jobs[] = {
        {SMELT_FLOAT16, 1, 3, 3, 5, 130, 40, 24, .causal = true, .sinks = true},
        {SMELT_FLOAT32, 1, 4, 1, 1, 70, 64, 64, .sinks = false},
        {SMELT_BFLOAT16, 2, 8, 2, 1, 301, 128, 128, .sinks = false},
        {SMELT_BFLOAT16, 2, 6, 2, 16, 65, 80, 80, .mask = SMELT_BFLOAT16},
    };
    ATTEND_EACH(jobs);
}

static void parts(void **state) {
    (void)state;
    static const struct job jobs[] = {
        {SMELT_FLOAT16, 1, 5, 1, 2, 19, 7, 13, .parts = 40, .mask = SMELT_BOOL},
        {SMELT_FLOAT32, 1, 4, 1, 1, 70, 64, 64, .parts = 1},
        {SMELT_FLOAT32, 1, 1, 1, 1, 9, 12, 4, .parts = 1}, /* 12: not a multiple of a lane's 8 elements */
        {SMELT_FLOAT32, 2, 2, 1, 3, 37, 24, 56, .parts = 4, .mask = SMELT_FLOAT32},
        {SMELT_FLOAT16, 1, 3, 3, 5, 130, 40, 24, .parts = 3, .causal = true, .sinks = true},
        {SMELT_BFLOAT16, 2, 8, 2, 1, 301, 128, 128, .parts = 5, .sinks = true},
        {SMELT_BFLOAT16, 1, 2, 2, 20, 9, 200, 256, .parts = 2, .causal = true},
        {SMELT_FLOAT32, 1, 7, 1, 1, 33, 1, 100, .parts = 2, .sinks = true, .mask = SMELT_BOOL},
        {SMELT_FLOAT32, 1, 2, 1, 2, 90, 256, 130, .parts = 3, .mask = SMELT_FLOAT32},
    };
    ATTEND_EACH(jobs);
}

/* On CPUs, up to four rows have a kernel of their own, of 1, 2 or 4 lines, which are rows of heads that share
 * keys. */
static void lines_on_cpus(void **state) {
    (void)state;
    static const struct job jobs[] = {
        {SMELT_FLOAT32, 1, 8, 2, 1, 600, 64, 64, .sinks = true},
        {SMELT_FLOAT32, 2, 6, 2, 3, 530, 128, 128, .causal = true, .gap = 3},
        {SMELT_BFLOAT16, 1, 12, 4, 2, 100, 80, 80, .mask = SMELT_BOOL},
        {SMELT_FLOAT16, 1, 2, 1, 4, 37, 24, 56, .mask = SMELT_FLOAT32},
        {SMELT_FLOAT32, 1, 3, 3, 1, 9, 200, 256, .sinks = true},
        {SMELT_FLOAT16, 1, 2, 2, 4, 98, 32, 32, .width = 14},
        {SMELT_FLOAT32, 1, 5, 1, 4, 2, 32, 32, .causal = true}, /* rows that see no key */
        {SMELT_BFLOAT16, 1, 64, 1, 4, 70, 32, 32, .causal = true},
    };
    ATTEND_EACH(jobs);
}

static void many_rows(void **state) {
    (void)state;
    static const struct job jobs[] = {
        {SMELT_BFLOAT16, 1, 2, 1, 130, 140, 80, 80, .mask = SMELT_BFLOAT16, .sinks = true},
        {SMELT_FLOAT32, 1, 4, 2, 67, 70, 64, 64, .causal = true},
        {SMELT_FLOAT16, 1, 2, 1, 40, 200, 128, 64, .mask = SMELT_FLOAT32},
        /* Several tiles for each multiprocessor of a large GPU; tiles whose rows see no key. */
        {SMELT_BFLOAT16, 1, 70, 35, 131, 70, 64, 40, .sinks = true},
        {SMELT_FLOAT16, 1, 70, 35, 129, 70, 128, 128, .sinks = false},
        /* Where the device has 132 multiprocessors, tiles of 192 rows take fewer rounds; the second one of a
           head has 188. */
        {SMELT_BFLOAT16, 1, 132, 66, 380, 140, 64, 40, .sinks = true},
        {SMELT_FLOAT16, 1, 3, 1, 300, 100, 128, 128, .causal = true},
        {SMELT_BFLOAT16, 1, 2, 2, 70, 90, 64, 64, .causal = true, .scale = -0.3},
        /* Pairs of tiles of a causal mask, for each multiprocessor more than one; a head's third tile is
           alone. */
        {SMELT_BFLOAT16, 2, 60, 30, 260, 290, 64, 64, .causal = true},
        {SMELT_FLOAT16, 1, 132, 66, 330, 200, 64, 64, .causal = true, .sinks = true},
        {SMELT_FLOAT16, 1, 70, 35, 257, 130, 128, 128, .causal = true, .sinks = true},
        /* Tiles of 192 rows, one after the other; a head's first sees no key. */
        {SMELT_BFLOAT16, 1, 140, 70, 560, 300, 64, 64, .causal = true, .sinks = true},
        {SMELT_FLOAT16, 1, 140, 35, 560, 590, 24, 16, .causal = true},
        /* Many tiles without keys, one after another. */
        {SMELT_BFLOAT16, 1, 90, 45, 2500, 100, 64, 64, .causal = true},
        {SMELT_FLOAT16, 1, 90, 45, 2500, 100, 128, 128, .causal = true, .sinks = true},
    };
    ATTEND_EACH(jobs);
}

/* Several of the largest tiles of CPUs, which have 64 rows and 512 keys (attention_tiles.c); the last ones
 * are not full. */
static void many_tiles(void **state) {
    (void)state;
    static const struct job jobs[] = {
        {SMELT_FLOAT32, 1, 16, 4, 513, 520, 8, 8, .sinks = false},
        {SMELT_FLOAT16, 2, 64, 32, 128, 200, 8, 16, .causal = true, .sinks = true},
        {SMELT_FLOAT32, 1, 2, 1, 65, 1100, 256, 250, .sinks = true},
        {SMELT_BFLOAT16, 1, 2, 1, 1000, 1030, 32, 48, .causal = true, .mask = SMELT_BOOL},
    };
    ATTEND_EACH(jobs);
}

/* Rows that lie as layers of models leave them, and tiles of other sizes than 64. */
static void rows_of_layers(void **state) {
    (void)state;
    static const struct job jobs[] = {
        {SMELT_FLOAT32, 2, 4, 2, 67, 77, 24, 40, .gap = 3},
        {SMELT_FLOAT32, 1, 2, 2, 197, 197, 64, 64, .gap = 64},
        {SMELT_BFLOAT16, 2, 3, 1, 17, 257, 40, 40, .gap = 8, .causal = true},
        {SMELT_FLOAT16, 3, 2, 2, 100, 7, 16, 8, .gap = 1, .sinks = true},
        {SMELT_FLOAT16, 1, 6, 2, 2, 50, 64, 64, .gap = 32},
    };
    ATTEND_EACH(jobs);
}

/* A row whose keys all have the same lowest score weighs them equally; a score of 1e10 hides those below. */
static void large_scores(void **state) {
    (void)state;
    static const struct job jobs[] = {
        {SMELT_FLOAT32, 1, 2, 1, 3, 600, 64, 64, .mask = SMELT_FLOAT32, .hidden = 520},
        {SMELT_FLOAT16, 1, 2, 1, 200, 600, 64, 64, .mask = SMELT_FLOAT32, .hidden = 520},
    };
    ATTEND_EACH(jobs);
    if (strncmp(test_device(), "cpu", 3) == 0)
        attend((struct job){SMELT_FLOAT32, 1, 2, 1, 20, 30, 64, 64, .scale = 1e10});
}

/* The bits of infinity, with the highest bit of the mantissa those of NaN. */
static uint16_t special(smelt_dtype dtype, bool nan) {
    return dtype == SMELT_FLOAT16 ? (nan ? 0x7e00 : 0x7c00) : (nan ? 0x7fc0 : 0x7f80);
}

/* NaN in a row of q, or in a key that a row sees, or an infinite score make the whole row NaN, and no other
 * one. Which key it is matters where exponentials are computed in several ways. */
static void not_numbers(void **state) {
    (void)state;
    enum { ROWS = 150, KEYS = 170, DEPTH = 64, HEADS = 8 };
    const int keys_of_head[HEADS] = {26, 40, 58, 79, 90, 121, 154, -1};
    for (int type = 0; type < 2; type++) {
        smelt_dtype dtype = type ? SMELT_FLOAT16 : SMELT_BFLOAT16;
        smelt_array *q = array_of(dtype, SHAPE4(1, HEADS, ROWS, DEPTH), 0.1, 1), *out,
                    *k = array_of(dtype, SHAPE4(1, HEADS, KEYS, DEPTH), -1, 1),
                    *v = array_of(dtype, SHAPE4(1, HEADS, KEYS, DEPTH), -1, 1);
        for (int h = 0; h < HEADS; h++) {
            bool nan = h % 2 == 0;
            if (keys_of_head[h] >= 0)
                ((uint16_t *)k->data)[(h * KEYS + keys_of_head[h]) * DEPTH + 5] = special(dtype, nan);
            else
                ((uint16_t *)q->data)[(h * ROWS + 33) * DEPTH + 7] = special(dtype, true);
        }
        OK(smelt_attention(
            &(smelt_attention_desc){
                .q = q, .k = k, .v = v, .scale = 0.2, .causal = true, .device = test_device()},
            &out, NULL));
        OK(test_to_host(&out));
        for (int64_t i = 0; i < out->size; i++) {
            int head = (int)(i / DEPTH / ROWS), row = (int)(i / DEPTH % ROWS), key = keys_of_head[head];
            bool expected = key >= 0 ? key <= row + KEYS - ROWS : row == 33, made = isnan(element_at(out, i));
            if (made != expected)
                FAIL_TEST("head %d, row %d, key %d: the result is %s number", head, row, key,
                          made ? "no" : "a");
        }
        smelt_array_release(q), smelt_array_release(k), smelt_array_release(v), smelt_array_release(out);
    }
}

static void lines_of_keys(void **state) {
    (void)state;
    static const struct job jobs[] = {
        {SMELT_FLOAT16, 1, 2, 1, 35, 35, 24, 24, .width = 7},
        {SMELT_BFLOAT16, 1, 2, 2, 196, 196, 80, 80, .width = 14},
        {SMELT_BFLOAT16, 1, 2, 2, 40, 98, 80, 80, .width = 14, .apart = true},
        {SMELT_BFLOAT16, 2, 2, 1, 130, 320, 80, 80, .width = 64, .causal = true},
        {SMELT_FLOAT16, 1, 2, 2, 70, 256, 64, 64, .width = 128},
        {SMELT_FLOAT16, 1, 2, 2, 70, 200, 64, 40, .width = 8, .sinks = true},
        {SMELT_BFLOAT16, 1, 2, 2, 3, 90, 128, 64, .width = 9, .parts = 2},
        {SMELT_FLOAT32, 1, 2, 1, 70, 60, 40, 40, .width = 60},
    };
    ATTEND_EACH(jobs);
}

static void refusals(void **state) {
    (void)state;
    smelt_array *x = array_of(SMELT_FLOAT16, SHAPE4(1, 2, 3, 8), -1, 1), *out = NULL,
                *mask = array_of(SMELT_BFLOAT16, SHAPE4(1, 2, 3, 3), -1, 1);
    smelt_attention_desc desc = {.q = x, .k = x, .v = x, .mask = mask, .scale = 1};
    assert_int_equal(smelt_attention(&desc, &out, NULL), SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(smelt_error(),
                        "attention: mask has dtype bfloat16; expected bool, float32 or float16");
    desc.mask = NULL, desc.bias_lines = x;
    assert_int_equal(smelt_attention(&desc, &out, NULL), SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(smelt_error(),
                        "attention: bias_lines is an array, bias_columns NULL and mask NULL; expected "
                        "both biases, and no mask with them");
    desc.bias_columns = x;
    assert_int_equal(smelt_attention(&desc, &out, NULL), SMELT_ERROR_INVALID_ARGUMENT);
    assert_string_equal(smelt_error(),
                        "attention: bias_lines has 8 lines and bias_columns 8 columns; expected lines times "
                        "columns to be 3, the number of keys, with 1 to 65535 columns");
    smelt_array_release(x), smelt_array_release(mask);
}

/* Whether a test's name matches; if none does, says which there are. */
static bool has_test(const struct CMUnitTest *tests, size_t count, const char *pattern) {
    for (size_t t = 0; t < count; t++)
        if (fnmatch(pattern, tests[t].name, 0) == 0) return true;
    fprintf(stderr, "unit_attention: no test matches '%s', expected one of", pattern);
    for (size_t t = 0; t < count; t++) fprintf(stderr, " %s", tests[t].name);
    fprintf(stderr, "\n");
    return false;
}

/* With an argument, runs the tests whose names match it (`*` stands for any text). */
int main(int count, char **arguments) {
    test_quick_code();
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_PERTURB, 1); /* allocated memory holds bytes 0xfe */
    const struct CMUnitTest tests[] = {cmocka_unit_test(few_rows),      cmocka_unit_test(parts),
                                       cmocka_unit_test(lines_on_cpus), cmocka_unit_test(many_rows),
                                       cmocka_unit_test(many_tiles),    cmocka_unit_test(rows_of_layers),
                                       cmocka_unit_test(large_scores),  cmocka_unit_test(not_numbers),
                                       cmocka_unit_test(lines_of_keys), cmocka_unit_test(refusals)};
    if (count > 1 && !has_test(tests, sizeof tests / sizeof *tests, arguments[1])) return 2;
    if (count > 1) cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
