#include "seeds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void check_status(smelt_status status, const char *call, const char *file, int line) {
    if (status == SMELT_OK) return;
    print_error("%s: %s: %s\n", call, smelt_status_name(status), smelt_error());
    _fail(file, line);
}

smelt_array *random_array(smelt_dtype dtype, smelt_shape shape, uint64_t seed) {
    smelt_array *array;
    CHECK(smelt_array_normal(dtype, shape, seed, &array));
    return array;
}

smelt_array *random_points(int64_t batch, int64_t rows, int64_t columns, double reach, uint64_t seed) {
    smelt_array *points;
    CHECK(smelt_array_uniform(SMELT_FLOAT32, SHAPE(batch, rows, columns, 2), seed, &points));
    float *value = smelt_array_data(points);
    for (int64_t i = 0; i < smelt_array_size(points); i++) value[i] = (float)((2.0 * value[i] - 1.0) * reach);
    return points;
}

/* A new reference to the array, or to a copy of it in host memory. */
static smelt_array *on_host(const smelt_array *array) {
    smelt_array *here = smelt_array_retain((smelt_array *)(uintptr_t)array);
    CHECK(test_to_host(&here));
    return here;
}

double *values_of(const smelt_array *array) {
    smelt_array *wide, *here = on_host(array);
    CHECK(smelt_array_convert(here, SMELT_FLOAT64, &wide));
    smelt_array_release(here);
    size_t bytes = (size_t)smelt_array_size(array) * sizeof(double);
    double *values = malloc(bytes + 1);
    assert_non_null(values);
    memcpy(values, smelt_array_data(wide), bytes);
    smelt_array_release(wide);
    return values;
}

void assert_close(const char *what, const smelt_array *actual, const double *expected, double relative,
                  double absolute) {
    double *values = values_of(actual);
    for (int64_t i = 0; i < smelt_array_size(actual); i++) {
        double error = fabs(values[i] - expected[i]);
        /* Written so that NaN fails. */
        if (error <= absolute || error <= relative * fabs(expected[i])) continue;
        print_error(
            "%s: element %lld of %lld is %.9g, expected %.9g (error %.3g, allowed %.3g or %.3g relative)\n",
            what, (long long)i, (long long)smelt_array_size(actual), values[i], expected[i], error, absolute,
            relative);
        free(values);
        _fail(__FILE__, __LINE__);
    }
    free(values);
}

void assert_same_bits(const char *what, const smelt_array *a, const smelt_array *b) {
    assert_int_equal(smelt_array_size(a), smelt_array_size(b));
    assert_int_equal(smelt_array_dtype(a), smelt_array_dtype(b));
    size_t bytes = (size_t)smelt_array_size(a) * smelt_dtype_bytes(smelt_array_dtype(a));
    smelt_array *a_here = on_host(a), *b_here = on_host(b);
    bool same = memcmp(smelt_array_data(a_here), smelt_array_data(b_here), bytes) == 0;
    smelt_array_release(a_here);
    smelt_array_release(b_here);
    if (same) return;
    print_error("%s: the bits differ\n", what);
    _fail(__FILE__, __LINE__);
}

double rounding(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT16 ? 0x1p-11 : dtype == SMELT_BFLOAT16 ? 0x1p-8 : 0x1p-24;
}

/* ---- Memory between inaccessible pages. */

struct mapping {
    void *start;
    size_t bytes;
};

static void unmap(void *context) {
    struct mapping *mapping = context;
    munmap(mapping->start, mapping->bytes);
    free(mapping);
}

smelt_array *between_guards(const smelt_array *array, bool at_end) {
    /* Wide borders: any row before the first or after the last must fall into them, whatever its length. */
    const size_t border = 1 << 20, page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = (size_t)smelt_array_size(array) * smelt_dtype_bytes(smelt_array_dtype(array));
    size_t inner = (bytes + page - 1) / page * page;
    struct mapping *mapping = malloc(sizeof *mapping);
    assert_non_null(mapping);
    mapping->bytes = inner + 2 * border;
    mapping->start = mmap(NULL, mapping->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(mapping->start, MAP_FAILED);
    char *data = (char *)mapping->start + border;
    assert_int_equal(mprotect(data, inner, PROT_READ | PROT_WRITE), 0);
    if (at_end) data += inner - bytes;
    smelt_array *guarded;
    CHECK(smelt_array_from_memory(smelt_array_dtype(array), smelt_array_shape(array), NULL, data, unmap,
                                  mapping, &guarded));
    CHECK(smelt_array_copy(guarded, array));
    return guarded;
}

/* ---- The seeds' documents. */

char *seed_document(const char *file) {
    /* SMELT_TEST_SEEDS: the folder on another machine than the one that built this. */
    const char *folder = getenv("SMELT_TEST_SEEDS");
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder && *folder ? folder : SMELT_SEEDS_FOLDER, file);
    FILE *stream = fopen(path, "rb");
    if (!stream) {
        print_message("skipped: the seeds' document %s is not here\n", file);
        return NULL;
    }
    fseek(stream, 0, SEEK_END);
    long length = ftell(stream);
    rewind(stream);
    char *text = calloc(1, (size_t)length + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)length, stream), length);
    fclose(stream);
    return text;
}

char *seed_block(const char *document, const char *opening, const char *closing, int index) {
    const char *start = document;
    for (int i = 0; i <= index; i++) {
        start = strstr(start, opening);
        assert_non_null(start);
        start += strlen(opening);
    }
    const char *end = strstr(start, closing);
    assert_non_null(end);
    char *block = strndup(start, (size_t)(end - start));
    assert_non_null(block);
    return block;
}

void seed_repair(char *text, const char *const *last_words) {
    char *to = text;
    for (const char *from = text; *from; from++)
        if (*from != '\\') *to++ = *from;
    *to = 0;
    char *comment = text;
    for (int i = 0; last_words[i]; i++) {
        comment = strstr(comment, "//");
        assert_non_null(comment);
        char *end = strstr(comment, last_words[i]);
        assert_non_null(end);
        comment = end + strlen(last_words[i]);
        assert_int_equal(*comment, ' ');
        *comment = '\n';
    }
    assert_null(strstr(comment, "//"));
}
