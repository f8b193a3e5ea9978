#include "summary.h"
#include "json.h"

#include <math.h>
#include <string.h>

#define FIRST_VALUES 8

/* An element as it is printed: integers exactly, everything else as double. */
struct number {
    enum { NUMBER_SIGNED, NUMBER_UNSIGNED, NUMBER_REAL, NUMBER_COMPLEX } kind;
    uint64_t bits; /* of integers */
    double real, imaginary;
};

struct summary {
    struct number least, greatest; /* complex: of the absolute values */
    double mean;
    int64_t count, not_numbers;
    struct number first[FIRST_VALUES];
    int first_count;
};

/* The widest dtype of a kind, which all of the kind are read as. */
static smelt_dtype widest(smelt_dtype dtype) {
    if (dtype >= SMELT_BOOL && dtype <= SMELT_UINT64) return SMELT_UINT64;
    if (dtype >= SMELT_INT8 && dtype <= SMELT_INT64) return SMELT_INT64;
    return dtype == SMELT_COMPLEX64 ? SMELT_COMPLEX64 : SMELT_FLOAT64;
}

static struct number read_number(const smelt_array *values, int64_t index) {
    const char *address =
        (const char *)smelt_array_data(values) + 8 * index; /* all widest dtypes have 8 bytes */
    struct number n = {.kind = NUMBER_REAL};
    smelt_dtype dtype = smelt_array_dtype(values);
    if (dtype == SMELT_FLOAT64) {
        memcpy(&n.real, address, sizeof n.real);
    } else if (dtype == SMELT_COMPLEX64) {
        float parts[2];
        memcpy(parts, address, sizeof parts);
        n = (struct number){.kind = NUMBER_COMPLEX, .real = (double)parts[0], .imaginary = (double)parts[1]};
    } else {
        memcpy(&n.bits, address, sizeof n.bits);
        n.kind = dtype == SMELT_INT64 ? NUMBER_SIGNED : NUMBER_UNSIGNED;
        n.real = n.kind == NUMBER_SIGNED ? (double)(int64_t)n.bits : (double)n.bits;
    }
    return n;
}

static bool is_less(const struct number *a, const struct number *b) {
    if (a->kind == NUMBER_SIGNED) return (int64_t)a->bits < (int64_t)b->bits;
    if (a->kind == NUMBER_UNSIGNED) return a->bits < b->bits;
    return a->real < b->real;
}

static bool summarise(const smelt_array *array, struct summary *s) {
    smelt_array *values;
    *s = (struct summary){.mean = (double)NAN};
    if (smelt_array_convert(array, widest(smelt_array_dtype(array)), &values) != SMELT_OK) return false;
    double total = 0;
    for (; s->count < smelt_array_size(values); s->count++) {
        struct number n = read_number(values, s->count);
        if (s->count < FIRST_VALUES) s->first[s->first_count++] = n;
        /* hypot would tie wheels to glibc 2.35; the parts are floats, and their squares do not overflow. */
        if (n.kind == NUMBER_COMPLEX)
            n = (struct number){.kind = NUMBER_REAL,
                                .real = sqrt(n.real * n.real + n.imaginary * n.imaginary)};
        if (isnan(n.real)) {
            s->not_numbers++;
            continue;
        }
        bool is_first = s->count == s->not_numbers;
        if (is_first || is_less(&n, &s->least)) s->least = n;
        if (is_first || is_less(&s->greatest, &n)) s->greatest = n;
        total += n.real;
    }
    if (s->count > s->not_numbers) s->mean = total / (double)(s->count - s->not_numbers);
    smelt_array_release(values);
    return true;
}

/* ---- For people. */

static void print_number(FILE *out, const struct number *n) {
    if (n->kind == NUMBER_SIGNED)
        fprintf(out, "%lld", (long long)n->bits);
    else if (n->kind == NUMBER_UNSIGNED)
        fprintf(out, "%llu", (unsigned long long)n->bits);
    else if (n->kind == NUMBER_COMPLEX)
        fprintf(out, "%.6g%+.6gi", n->real, n->imaginary);
    else
        fprintf(out, "%.6g", n->real);
}

static void print_shape(FILE *out, const smelt_array *array) {
    smelt_shape shape = smelt_array_shape(array);
    if (!shape.ndim) fputs("scalar", out);
    for (int d = 0; d < shape.ndim; d++) fprintf(out, d ? "x%lld" : "%lld", (long long)shape.size[d]);
}

void summary_print(FILE *out, const char *name, const smelt_array *array) {
    struct summary s;
    fprintf(out, "%s %s ", name, smelt_dtype_name(smelt_array_dtype(array)));
    print_shape(out, array);
    if (!summarise(array, &s)) {
        fprintf(out, ": no summary, %s\n", smelt_error());
        return;
    }
    if (s.count > s.not_numbers) {
        fputs(smelt_array_dtype(array) == SMELT_COMPLEX64 ? ": absolute min " : ": min ", out);
        print_number(out, &s.least);
        fputs(", max ", out);
        print_number(out, &s.greatest);
        fprintf(out, ", mean %.6g", s.mean);
    }
    if (s.not_numbers) fprintf(out, ": %lld NaN", (long long)s.not_numbers);
    fputs(": [", out);
    for (int i = 0; i < s.first_count; i++) {
        if (i) fputs(", ", out);
        print_number(out, &s.first[i]);
    }
    fputs(s.count > s.first_count ? ", …]\n" : "]\n", out);
}

/* ---- As JSON. */

static void print_json_number(FILE *out, const struct number *n) {
    if (n->kind == NUMBER_COMPLEX) {
        fputc('[', out);
        json_print_number(out, n->real);
        fputs(", ", out);
        json_print_number(out, n->imaginary);
        fputc(']', out);
    } else if (n->kind == NUMBER_REAL) {
        json_print_number(out, n->real);
    } else {
        print_number(out, n);
    }
}

static void print_json_members(FILE *out, const struct summary *s) {
    bool any = s->count > s->not_numbers;
    fputs(", \"min\": ", out);
    if (any)
        print_json_number(out, &s->least);
    else
        fputs("null", out);
    fputs(", \"max\": ", out);
    if (any)
        print_json_number(out, &s->greatest);
    else
        fputs("null", out);
    fputs(", \"mean\": ", out);
    json_print_number(out, s->mean);
    fprintf(out, ", \"nan\": %lld, \"first\": [", (long long)s->not_numbers);
    for (int i = 0; i < s->first_count; i++) {
        if (i) fputs(", ", out);
        print_json_number(out, &s->first[i]);
    }
    fputc(']', out);
}

void summary_print_json(FILE *out, const char *name, const smelt_array *array) {
    struct summary s;
    smelt_shape shape = smelt_array_shape(array);
    fputs("{\"name\": ", out);
    json_print_string(out, name);
    fprintf(out, ", \"dtype\": \"%s\", \"shape\": [", smelt_dtype_name(smelt_array_dtype(array)));
    for (int d = 0; d < shape.ndim; d++) fprintf(out, d ? ", %lld" : "%lld", (long long)shape.size[d]);
    fputc(']', out);
    if (summarise(array, &s)) print_json_members(out, &s);
    fputc('}', out);
}
