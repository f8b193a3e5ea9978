#include "tune/space.h"
#include "base/error.h"
#include "base/reserved.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_TOLERANCE 1e-3

/* ---- Combinations. */

static smelt_status check(const smelt_tune_space *space, const char *what, struct space *result) {
    int64_t count = 1;
    TRY(reserved_check(smelt_tune_space, space));
    for (int i = 0; i <= SMELT_MAX_TUNE_PARAMETERS && space->parameters[i].name; i++) {
        const smelt_tune_parameter *parameter = &space->parameters[i];
        if (i == SMELT_MAX_TUNE_PARAMETERS)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "tuning '%s': more than %d parameters", what,
                        SMELT_MAX_TUNE_PARAMETERS);
        if (!parameter->values || parameter->count < 1)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "tuning '%s': parameter '%s' has no values", what,
                        parameter->name);
        count *= parameter->count;
        if (count > SMELT_MAX_TUNE_CANDIDATES)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "tuning '%s': the parameters have more than %d combinations", what,
                        SMELT_MAX_TUNE_CANDIDATES);
        result->parameter_count++;
    }
    if (!result->parameter_count)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "tuning '%s': the space has no parameters", what);
    result->count = (int)count;
    return SMELT_OK;
}

void tune_space_values(const struct space *space, int index, int64_t *values) {
    for (int i = space->parameter_count - 1; i >= 0; i--) {
        const smelt_tune_parameter *parameter = &space->space->parameters[i];
        values[i] = parameter->values[index % parameter->count];
        index /= parameter->count;
    }
}

static char *words_of(const struct space *space, int index) {
    int64_t values[SMELT_MAX_TUNE_PARAMETERS];
    struct text words = {0};
    tune_space_values(space, index, values);
    for (int i = 0; i < space->parameter_count; i++)
        text_addf(&words, "%s%s=%" PRId64, i ? "," : "", space->space->parameters[i].name, values[i]);
    if (words.failed) text_free(&words);
    return words.data;
}

smelt_status tune_space_begin(const smelt_tune_space *space, const char *what, struct space *result) {
    *result = (struct space){.space = space, .what = what};
    TRY(check(space, what, result));
    result->words = calloc((size_t)result->count, sizeof *result->words);
    if (!result->words) return fail_out_of_memory((size_t)result->count * sizeof *result->words);
    for (int i = 0; i < result->count; i++) {
        result->words[i] = words_of(result, i);
        if (!result->words[i]) return fail_out_of_memory(1);
    }
    return SMELT_OK;
}

void tune_space_end(struct space *space) {
    for (int i = 0; i < space->count && space->words; i++) free(space->words[i]);
    free(space->words);
}

/* ---- Keys. */

void tune_space_add_key(const struct space *space, struct text *key) {
    for (int i = 0; i < space->parameter_count; i++) {
        const smelt_tune_parameter *parameter = &space->space->parameters[i];
        text_addf(key, "%s%s=", i ? " " : "", parameter->name);
        for (int v = 0; v < parameter->count; v++)
            text_addf(key, "%s%" PRId64, v ? "," : "", parameter->values[v]);
    }
    if (space->space->key) text_addf(key, "; %s", space->space->key);
}

void tune_space_add_array(struct text *key, const smelt_array *array) {
    smelt_shape shape = smelt_array_shape(array);
    text_addf(key, " %s", smelt_dtype_name(smelt_array_dtype(array)));
    for (int d = 0; d < shape.ndim; d++) text_addf(key, "%c%" PRId64, d ? 'x' : ':', shape.size[d]);
}

/* ---- Results. */

/* On the host, dense; NULL: it failed. */
static smelt_array *reals_of(smelt_array *array) {
    smelt_array *host = NULL, *reals = NULL;
    if (smelt_array_to(array, "cpu", NULL, &host) == SMELT_OK)
        (void)smelt_array_convert(host, SMELT_FLOAT64, &reals);
    smelt_array_release(host);
    return reals;
}

static bool are_close(const double *made, const double *expected, int64_t count, double tolerance) {
    for (int64_t i = 0; i < count; i++) {
        bool same = made[i] == expected[i] || (isnan(made[i]) && isnan(expected[i]));
        if (!same && !(fabs(made[i] - expected[i]) <= tolerance * (1 + fabs(expected[i])))) return false;
    }
    return true;
}

bool tune_space_is_right(const struct space *space, smelt_array *made, smelt_array *expected) {
    smelt_array *a = reals_of(made), *b = reals_of(expected);
    double tolerance = space->space->tolerance > 0 ? space->space->tolerance : USUAL_TOLERANCE;
    bool right = a && b && smelt_array_size(a) == smelt_array_size(b) &&
                 are_close(smelt_array_data(a), smelt_array_data(b), smelt_array_size(a), tolerance);
    smelt_array_release(a);
    smelt_array_release(b);
    return right;
}
