#include "summary.h"
#include "json.h"

#include <math.h>
#include <string.h>

#define FIRST_VALUES 8

struct summary {
    double least, greatest, mean;
    int64_t count, not_numbers;
    double first[FIRST_VALUES], first_imaginary[FIRST_VALUES];
    int first_count;
};

static bool summarise(const smelt_array *array, struct summary *s) {
    smelt_array *values;
    smelt_dtype dtype = smelt_array_dtype(array);
    bool complex = dtype == SMELT_COMPLEX64;
    *s = (struct summary){.least = INFINITY, .greatest = -INFINITY};
    if (smelt_array_convert(array, complex ? SMELT_COMPLEX64 : SMELT_FLOAT64, &values) != SMELT_OK)
        return false;
    double total = 0;
    for (int64_t i = 0; i < smelt_array_size(values); i++) {
        double real, imaginary = 0;
        if (complex) {
            float parts[2];
            memcpy(parts, (const float *)smelt_array_data(values) + 2 * i, sizeof parts);
            real = (double)parts[0];
            imaginary = (double)parts[1];
        } else {
            real = ((const double *)smelt_array_data(values))[i];
        }
        if (i < FIRST_VALUES) {
            s->first[i] = real;
            s->first_imaginary[i] = imaginary;
            s->first_count++;
        }
        if (complex) real = hypot(real, imaginary);
        s->count++;
        if (isnan(real)) {
            s->not_numbers++;
            continue;
        }
        s->least = fmin(s->least, real);
        s->greatest = fmax(s->greatest, real);
        total += real;
    }
    s->mean = s->count > s->not_numbers ? total / (double)(s->count - s->not_numbers) : NAN;
    smelt_array_release(values);
    return true;
}

static void print_shape(FILE *out, const smelt_array *array) {
    smelt_shape shape = smelt_array_shape(array);
    if (!shape.ndim) fputs("scalar", out);
    for (int d = 0; d < shape.ndim; d++) fprintf(out, d ? "x%lld" : "%lld", (long long)shape.size[d]);
}

void summary_print(FILE *out, const char *name, const smelt_array *array) {
    struct summary s;
    bool complex = smelt_array_dtype(array) == SMELT_COMPLEX64;
    if (!summarise(array, &s)) return;
    fprintf(out, "%s %s ", name, smelt_dtype_name(smelt_array_dtype(array)));
    print_shape(out, array);
    if (s.count > s.not_numbers)
        fprintf(out, ": %s %.6g, max %.6g, mean %.6g", complex ? "absolute min" : "min", s.least, s.greatest,
                s.mean);
    if (s.not_numbers) fprintf(out, ": %lld NaN", (long long)s.not_numbers);
    fputs(": [", out);
    for (int i = 0; i < s.first_count; i++) {
        fprintf(out, i ? ", %.6g" : "%.6g", s.first[i]);
        if (complex) fprintf(out, "%+.6gi", s.first_imaginary[i]);
    }
    fputs(s.count > s.first_count ? ", …]\n" : "]\n", out);
}

void summary_print_json(FILE *out, const char *name, const smelt_array *array) {
    struct summary s;
    if (!summarise(array, &s)) return;
    fprintf(out, "{\"name\": \"%s\", \"dtype\": \"%s\", \"shape\": [", name,
            smelt_dtype_name(smelt_array_dtype(array)));
    smelt_shape shape = smelt_array_shape(array);
    for (int d = 0; d < shape.ndim; d++) fprintf(out, d ? ", %lld" : "%lld", (long long)shape.size[d]);
    fputs("], \"min\": ", out);
    json_print_number(out, s.least);
    fputs(", \"max\": ", out);
    json_print_number(out, s.greatest);
    fputs(", \"mean\": ", out);
    json_print_number(out, s.mean);
    fprintf(out, ", \"nan\": %lld, \"first\": [", (long long)s.not_numbers);
    for (int i = 0; i < s.first_count; i++) {
        if (i) fputs(", ", out);
        json_print_number(out, s.first[i]);
    }
    fputs("]}", out);
}
