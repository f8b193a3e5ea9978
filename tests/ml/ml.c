#include "ml.h"

#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CHECK(call)                                                                                         \
    do {                                                                                                    \
        smelt_status status_ = (call);                                                                      \
        if (status_ != SMELT_OK) FAIL_TEST("%s: %s: %s", #call, smelt_status_name(status_), smelt_error()); \
    } while (0)

/* ---- Memory that ends with a test. */

static struct tensor *tensors[256];
static int tensor_count;
static void *blocks[4096];
static int block_count;

void *scratch(size_t bytes) {
    assert_true(block_count < (int)(sizeof blocks / sizeof *blocks));
    void *block = calloc(1, bytes + 1);
    assert_non_null(block);
    return blocks[block_count++] = block;
}

double *doubles(int64_t count) {
    return scratch((size_t)count * sizeof(double));
}

int ml_end(void **state) {
    (void)state;
    for (int i = 0; i < tensor_count; i++) {
        smelt_array_release(tensors[i]->array);
        munmap(tensors[i]->mapping, tensors[i]->inner + (size_t)sysconf(_SC_PAGESIZE));
    }
    for (int i = 0; i < block_count; i++) free(blocks[i]);
    tensor_count = block_count = 0;
    return 0;
}

/* ---- Random numbers: splitmix64. */

static uint64_t state;

static uint64_t next(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint32_t random_below(uint32_t bound) {
    return (uint32_t)((next() >> 32) * bound >> 32);
}
double random_unit(void) {
    return (double)(next() >> 11) * 0x1p-53;
}

/* ---- Tensors. */

static smelt_shape line_of(int64_t count) {
    return (smelt_shape){1, {count}};
}

struct tensor *room(smelt_dtype dtype, int64_t count) {
    assert_true(tensor_count < (int)(sizeof tensors / sizeof *tensors));
    struct tensor *tensor = scratch(sizeof *tensor);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = (size_t)count * smelt_dtype_bytes(dtype);
    size_t inner = (bytes + page) / page * page;
    char *start = mmap(NULL, inner + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(start, MAP_FAILED);
    assert_int_equal(mprotect(start + inner, page, PROT_NONE), 0);
    *tensor =
        (struct tensor){.dtype = dtype, .count = count, .mapping = start, .bytes = bytes, .inner = inner};
    tensor->data = start + (inner - bytes) / 16 * 16;
    tensor->value = doubles(count);
    tensor->other = scratch(bytes);
    CHECK(smelt_array_from_memory(dtype, line_of(count), NULL, tensor->data, NULL, NULL, &tensor->array));
    return tensors[tensor_count++] = tensor;
}

static void widen(struct tensor *tensor, const void *from, double *to) {
    smelt_array *array, *wide;
    CHECK(smelt_array_from_values(tensor->dtype, line_of(tensor->count), from, &array));
    CHECK(smelt_array_convert(array, SMELT_FLOAT64, &wide));
    memcpy(to, smelt_array_data(wide), (size_t)tensor->count * sizeof(double));
    smelt_array_release(array);
    smelt_array_release(wide);
}

void changed(struct tensor *tensor) {
    memcpy(tensor->other, tensor->data, tensor->bytes);
    widen(tensor, tensor->data, tensor->value);
}

struct tensor *copy_of(smelt_dtype dtype, int64_t count, const void *elements) {
    struct tensor *tensor = room(dtype, count);
    memcpy(tensor->data, elements, tensor->bytes);
    changed(tensor);
    return tensor;
}

struct tensor *rounded(smelt_dtype dtype, int64_t count, const double *values) {
    smelt_array *wide, *narrow;
    CHECK(smelt_array_from_values(SMELT_FLOAT64, line_of(count), values, &wide));
    CHECK(smelt_array_convert(wide, dtype, &narrow));
    struct tensor *tensor = copy_of(dtype, count, smelt_array_data(narrow));
    smelt_array_release(wide);
    smelt_array_release(narrow);
    return tensor;
}

static bool is_float(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT32 || dtype == SMELT_FLOAT16 || dtype == SMELT_BFLOAT16;
}

struct tensor *uniform(smelt_dtype dtype, int64_t count, double low, double high) {
    double *values = doubles(count);
    for (int64_t i = 0; i < count; i++) {
        values[i] = low + random_unit() * (high - low);
        if (!is_float(dtype)) values[i] = floor(values[i]);
    }
    return rounded(dtype, count, values);
}

struct tensor *normal(smelt_dtype dtype, int64_t count, double scale) {
    double *values = doubles(count);
    for (int64_t i = 0; i < count; i++)
        values[i] = scale * sqrt(-2 * log(1 - random_unit())) * cos(6.283185307179586 * random_unit());
    return rounded(dtype, count, values);
}

struct tensor *constant_of(smelt_dtype dtype, int64_t count, double value) {
    double *values = doubles(count);
    for (int64_t i = 0; i < count; i++) values[i] = value;
    return rounded(dtype, count, values);
}

/* ---- Launches. */

static struct known {
    char file[64], entry[192];
    smelt_math_mode math;
    smelt_constant constants[SMELT_MAX_CONSTANTS];
    smelt_library *library;
    smelt_function *function;
} known[512];
static int known_count;
static char refusal[512];

static smelt_function *find_function(const struct launch *l) {
    smelt_library *library = NULL;
    for (int i = 0; i < known_count; i++) {
        if (strcmp(known[i].file, l->file) != 0 || known[i].math != l->math) continue;
        library = known[i].library;
        if (strcmp(known[i].entry, l->entry) == 0 &&
            memcmp(known[i].constants, l->constants, sizeof l->constants) == 0)
            return known[i].function;
    }
    assert_true(known_count < (int)(sizeof known / sizeof *known));
    struct known *new = &known[known_count];
    /* Names may belong to the test that first uses them: they are copied. */
    *new = (struct known){.math = l->math, .library = library};
    assert_true(snprintf(new->file, sizeof new->file, "%s", l->file) < (int)sizeof new->file);
    assert_true(snprintf(new->entry, sizeof new->entry, "%s", l->entry) < (int)sizeof new->entry);
    memcpy(new->constants, l->constants, sizeof l->constants);
    char name[256];
    snprintf(name, sizeof name, "tests/ml/%s", l->file);
    const char *path = test_source(SMELT_SOURCES, name);
    if (!library)
        CHECK(smelt_library_create(&(smelt_library_desc){.path = path, .math = l->math}, &new->library));
    smelt_function_desc desc = {.name = l->entry};
    memcpy(desc.constants, l->constants, sizeof l->constants);
    CHECK(smelt_library_function(new->library, &desc, &new->function));
    known_count++;
    return new->function;
}

static void note_refusal(smelt_log_level level, const char *line, void *context) {
    (void)level, (void)context;
    if (strstr(line, "runs on the scalar engine")) snprintf(refusal, sizeof refusal, "%s", line);
}

static void protect(struct tensor *tensor, int protection) {
    assert_int_equal(mprotect(tensor->mapping, tensor->inner, protection), 0);
}

static double processor_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double run_as(smelt_function *function, smelt_dispatch_desc desc, const struct launch *l) {
    smelt_run_info info = {0};
    const char *device = desc.device;
    desc.info = &info;
    desc.timeout = 60;
    memcpy(desc.grid, l->grid, sizeof desc.grid);
    memcpy(desc.groups, l->groups, sizeof desc.groups);
    memcpy(desc.threadgroup, l->threadgroup, sizeof desc.threadgroup);
    memcpy(desc.threadgroup_memory, l->threadgroup_memory, sizeof desc.threadgroup_memory);
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) {
        struct tensor *tensor = l->in[i] ? l->in[i] : l->out[i] ? l->out[i] : l->update[i];
        desc.buffers[i] = (smelt_buffer){
            .array = tensor ? tensor->array : NULL, .bytes = l->bytes[i].data, .size = l->bytes[i].size};
    }
    /* All bits set: NaN in every float, -1, and a true that no comparison produces. */
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) {
        if (l->out[i]) memset(l->out[i]->mapping, 0xff, l->out[i]->inner);
        if (l->in[i]) protect(l->in[i], PROT_READ);
    }
    double start = processor_seconds();
    smelt_status status = smelt_function_run(function, &desc);
    double used = processor_seconds() - start;
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++)
        if (l->in[i]) protect(l->in[i], PROT_READ | PROT_WRITE);
    if (status != SMELT_OK)
        FAIL_TEST("%s, %s on %s: %s: %s", l->file, l->entry, device, smelt_status_name(status),
                  smelt_error());
    if (getenv("ML_TIMES") && info.compile_seconds > 0)
        print_message("%-40s %s compiled in %.0f ms\n", l->entry, device, info.compile_seconds * 1e3);
    return desc.check || desc.unchecked ? used : info.seconds;
}

static double run_on(smelt_function *function, const char *device, const struct launch *l) {
    return run_as(function, (smelt_dispatch_desc){.device = device}, l);
}

/* What checking costs: processor time of a checked run and of one by the scalar engine without tests. */
/* The results are those of the launch before: a kernel that updates its buffers changes them each time. */
static void measure_checking(smelt_function *function, const struct launch *l) {
    double checked = INFINITY, plain = INFINITY;
    void *results[SMELT_MAX_BUFFERS] = {0};
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) {
        struct tensor *t = l->update[i];
        if (t) results[i] = memcpy(scratch(t->bytes), t->data, t->bytes);
    }
    for (int i = 0; i < 4; i++) {
        checked = fmin(checked, run_as(function, (smelt_dispatch_desc){.device = "cpu", .check = true}, l));
        plain = fmin(plain,
                     run_as(function, (smelt_dispatch_desc){.device = "cpu-scalar", .unchecked = true}, l));
    }
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++)
        if (results[i]) memcpy(l->update[i]->data, results[i], l->update[i]->bytes);
    print_message("%-40s checked %9.1f us, cpu-scalar %9.1f us, cost %.2f\n", l->entry, checked * 1e6,
                  plain * 1e6, checked / plain);
}

/* The bytes before an output, and the few after it, must still be poison. */
static void check_borders(const struct launch *l, const struct tensor *out) {
    const unsigned char *start = out->mapping, *data = out->data;
    for (const unsigned char *p = start; p < start + out->inner; p++)
        if ((p < data || p >= data + out->bytes) && *p != 0xff)
            FAIL_TEST("%s, %s: byte %td of an output of %zu bytes was written", l->file, l->entry, p - data,
                      out->bytes);
}

/* NaNs are equal whatever their bits. */
static bool same(const struct tensor *t, int64_t i, const double *other) {
    size_t size = smelt_dtype_bytes(t->dtype);
    return memcmp((char *)t->data + (size_t)i * size, (char *)t->other + (size_t)i * size, size) == 0 ||
           (isnan(t->value[i]) && isnan(other[i]));
}

static void check_same(const struct launch *l, int buffer, const struct tensor *t) {
    if (memcmp(t->data, t->other, t->bytes) == 0) return;
    double *other = doubles(t->count);
    widen((struct tensor *)t, t->other, other);
    for (int64_t i = 0; i < t->count; i++)
        if (!same(t, i, other))
            FAIL_TEST("%s, %s, buffer %d: element %lld of %lld is %.9g on %s, %.9g on %s", l->file, l->entry,
                      buffer, (long long)i, (long long)t->count, t->value[i], test_device(), other[i],
                      test_oracle());
}

bool runs_all(void) {
    return getenv("SMELT_TEST_FULL") || getenv("SMELT_TEST_DEVICE") || getenv("ML_TIMES");
}

/* One of five parts of the kernels, chosen by name. */
static unsigned part_of(const struct launch *l) {
    unsigned sum = 0;
    for (const char *c = l->entry; *c; c++) sum += (unsigned char)*c;
    return sum % 5;
}

/* Whether the oracle runs a kernel, too: in make check, a fifth of them, since each engine compiles code of
 * its own. */
static bool has_oracle(const struct launch *l) {
    return part_of(l) == 3 || runs_all();
}

/* In make check, two fifths run quick code, which has the same results and takes half the time to compile;
 * the others, and all in make check-long, run what the environment says. */
static void choose_tier(const struct launch *l) {
    static char given[16];
    if (!given[0]) snprintf(given, sizeof given, "%s", getenv("SMELT_TIERS") ? getenv("SMELT_TIERS") : "1");
    (void)setenv("SMELT_TIERS", part_of(l) < 2 && !runs_all() ? "quick" : given, 1);
}

void launch(struct launch l) {
    bool compared = has_oracle(&l);
    choose_tier(&l);
    smelt_function *function = find_function(&l);
    void *before[SMELT_MAX_BUFFERS] = {NULL};
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++)
        if (l.update[i])
            before[i] = memcpy(scratch(l.update[i]->bytes), l.update[i]->data, l.update[i]->bytes);
    double oracle = compared ? run_on(function, test_oracle(), &l) : 0;
    for (int i = 0; compared && i < SMELT_MAX_BUFFERS; i++) {
        struct tensor *t = l.out[i] ? l.out[i] : l.update[i];
        if (!t) continue;
        if (l.out[i]) check_borders(&l, t);
        memcpy(t->other, t->data, t->bytes);
        if (before[i]) memcpy(t->data, before[i], t->bytes);
    }
    bool apart = test_device_has_memory() && rounded_apart(l.file, l.entry);
    refusal[0] = 0;
    double tested = run_on(function, test_device(), &l);
    if (refusal[0]) FAIL_TEST("%s, %s: %s", l.file, l.entry, refusal);
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) {
        struct tensor *t = l.out[i] ? l.out[i] : l.update[i];
        if (!t) continue;
        if (l.out[i]) check_borders(&l, t);
        widen(t, t->data, t->value);
        if (!compared) memcpy(t->other, t->data, t->bytes);
        if (!l.open && !apart) check_same(&l, i, t);
    }
    const char *times = getenv("ML_TIMES");
    if (times && strcmp(times, "check") == 0) {
        measure_checking(function, &l);
    } else if (times) {
        /* Once more: the first run on a device loads its code. */
        for (int i = 0; i < SMELT_MAX_BUFFERS; i++)
            if (l.update[i]) return;
        oracle = fmin(oracle, run_on(function, test_oracle(), &l));
        for (int i = 0; i < 3; i++) tested = fmin(tested, run_on(function, test_device(), &l));
        print_message("%-40s %s %9.1f us, %s %9.1f us, %.2f\n", l.entry, test_device(), tested * 1e6,
                      test_oracle(), oracle * 1e6, oracle / tested);
    }
}

/* ---- Comparison. */

double roundoff(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT16 ? 0x1p-11 : dtype == SMELT_BFLOAT16 ? 0x1p-8 : 0x1p-24;
}

static void compare(const char *what, const char *device, const struct tensor *t, const double *actual,
                    const double *expected, const double *bound, double relative, double absolute) {
    for (int64_t i = 0; i < t->count; i++) {
        double allowed = bound ? bound[i] : relative * fabs(expected[i]) + absolute;
        double error = fabs(actual[i] - expected[i]);
        /* Written so that NaN fails. */
        if (error <= allowed || actual[i] == expected[i] || (isnan(actual[i]) && isnan(expected[i])))
            continue;
        FAIL_TEST("%s on %s: element %lld of %lld is %.9g, expected %.9g: off by %.3g, allowed %.3g", what,
                  device, (long long)i, (long long)t->count, actual[i], expected[i], error, allowed);
    }
}

static void compare_both(const char *what, const struct tensor *t, const double *expected,
                         const double *bound, double relative, double absolute) {
    compare(what, test_device(), t, t->value, expected, bound, relative, absolute);
    if (memcmp(t->data, t->other, t->bytes) == 0) return;
    double *other = doubles(t->count);
    widen((struct tensor *)t, t->other, other);
    compare(what, test_oracle(), t, other, expected, bound, relative, absolute);
}

void check(const char *what, const struct tensor *actual, const double *expected, double relative,
           double absolute) {
    compare_both(what, actual, expected, NULL, relative, absolute);
}

void check_bounds(const char *what, const struct tensor *actual, const double *expected,
                  const double *bound) {
    compare_both(what, actual, expected, bound, 0, 0);
}

void check_exact(const char *what, const struct tensor *actual, const void *expected) {
    size_t size = smelt_dtype_bytes(actual->dtype);
    for (int64_t i = 0; i < actual->count; i++) {
        size_t at = (size_t)i * size;
        if (memcmp((char *)actual->data + at, (const char *)expected + at, size) == 0 &&
            memcmp((char *)actual->other + at, (const char *)expected + at, size) == 0)
            continue;
        uint64_t got = 0, wanted = 0, oracle = 0;
        memcpy(&got, (char *)actual->data + at, size);
        memcpy(&oracle, (char *)actual->other + at, size);
        memcpy(&wanted, (const char *)expected + at, size);
        FAIL_TEST("%s: element %lld of %lld is 0x%llx on %s, 0x%llx on %s, expected 0x%llx", what,
                  (long long)i, (long long)actual->count, (unsigned long long)got, test_device(),
                  (unsigned long long)oracle, test_oracle(), (unsigned long long)wanted);
    }
}

int ml_main(const struct CMUnitTest *tests, size_t count, const char *name) {
    if (getenv("ML_ONLY")) cmocka_set_test_filter(getenv("ML_ONLY"));
    const char *text = getenv("ML_SEED");
    state = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid();
    print_message("ML_SEED=%llu\n", (unsigned long long)state);
    smelt_set_log(note_refusal, NULL);
    int failed = _cmocka_run_group_tests(name, tests, count, NULL, NULL);
    for (int i = 0; i < known_count; i++) {
        smelt_function_release(known[i].function);
        bool first = true;
        for (int j = 0; j < i; j++) first = first && known[j].library != known[i].library;
        if (first) smelt_library_release(known[i].library);
    }
    return failed;
}
