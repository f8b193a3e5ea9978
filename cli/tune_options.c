#include "tune_options.h"
#include "values.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NULL: out of memory. */
static struct tune_options *tune_of(struct options *o) {
    if (!o->tune) o->tune = calloc(1, sizeof *o->tune);
    if (!o->tune) complain("out of memory");
    return o->tune;
}

void tune_options_free(struct tune_options *tune) {
    free(tune);
}

bool tune_needs_no_source(const struct options *o) {
    return o->operation || (o->tune && (o->tune->list || o->tune->forget));
}

/* Copies the part of `text` before `end`; false: it is empty or too long. */
static bool copy_word(char to[64], const char *text, const char *end) {
    if (end <= text || end - text > 63) return false;
    memcpy(to, text, (size_t)(end - text));
    to[end - text] = 0;
    return true;
}

bool option_add_space(struct options *o, const char *text) {
    struct tune_options *tune = tune_of(o);
    const char *equals = strchr(text, '=');
    if (!tune) return false;
    if (tune->space_count == SMELT_MAX_TUNE_PARAMETERS)
        return complain("--space is given more than %d times", SMELT_MAX_TUNE_PARAMETERS);
    if (!equals || !copy_word(tune->spaces[tune->space_count].name, text, equals))
        return complain("--space is '%s', expected NAME=V,V…, like TILE=8,16,32", text);
    int64_t *values = tune->spaces[tune->space_count].values;
    int count = 0;
    for (const char *at = equals + 1;;) {
        char *end;
        if (count == MOST_TUNE_VALUES) return complain("--space '%s' has more than %d values", text, count);
        values[count++] = strtoll(at, &end, 10);
        if (end == at || (*end && *end != ','))
            return complain("--space is '%s', expected whole numbers after '='", text);
        if (!*end) break;
        at = end + 1;
    }
    tune->spaces[tune->space_count++].count = count;
    return true;
}

bool option_set_divide(struct options *o, const char *text) {
    struct tune_options *tune = tune_of(o);
    const char *at = text;
    if (!tune) return false;
    for (int d = 0; d < 3; d++) {
        const char *end = at + strcspn(at, ",");
        if (!copy_word(tune->divide_names[d], at, end))
            return complain("--divide is '%s', expected names of parameters, like TILE_X,TILE_Y", text);
        if (!*end) return true;
        at = end + 1;
    }
    return complain("--divide is '%s', expected at most three names", text);
}

bool option_add_expected(struct options *o, const char *text) {
    struct tune_options *tune = tune_of(o);
    const char *equals = strchr(text, '=');
    if (!tune) return false;
    if (tune->expected_count == SMELT_MAX_BUFFERS)
        return complain("--expect is given more than %d times", SMELT_MAX_BUFFERS);
    if (!equals || !equals[1] || strlen(equals) > 4096 ||
        !copy_word(tune->expected[tune->expected_count].name, text, equals))
        return complain("--expect is '%s', expected NAME=FILE.npy or INDEX=FILE.npy", text);
    snprintf(tune->expected[tune->expected_count++].path, 4096, "%s", equals + 1);
    return true;
}

bool option_set_tolerance(struct options *o, const char *text) {
    return tune_of(o) && parse_real("--tolerance", text, false, &o->tune->tolerance);
}

bool option_set_budget(struct options *o, const char *text) {
    return tune_of(o) && parse_real("--budget", text, false, &o->tune->budget);
}

bool option_set_sizes(struct options *o, const char *text) {
    struct tune_options *tune = tune_of(o);
    if (!tune) return false;
    tune->size_count = 0;
    for (const char *at = text;;) {
        if (tune->size_count == MOST_TUNE_SIZES)
            return complain("--sizes has more than %d entries", MOST_TUNE_SIZES);
        int64_t *sizes = tune->sizes[tune->size_count];
        int count = 0;
        for (;;) {
            char *end;
            if (count == 4) return complain("--sizes is '%s', expected at most four numbers per entry", text);
            sizes[count] = strtoll(at, &end, 10);
            if (end == at || sizes[count] < 1 || (*end && *end != 'x' && *end != ','))
                return complain("--sizes is '%s', expected sizes like 1024,1000x300x517", text);
            count++;
            at = end;
            if (*at != 'x') break;
            at++;
        }
        tune->size_numbers[tune->size_count++] = count;
        if (!*at) return true;
        at++;
    }
}

bool option_set_tune_dtype(struct options *o, const char *text) {
    static const smelt_dtype dtypes[] = {SMELT_FLOAT32, SMELT_FLOAT16, SMELT_BFLOAT16};
    struct tune_options *tune = tune_of(o);
    if (!tune) return false;
    for (int i = 0; i < 3; i++)
        if (strcmp(smelt_dtype_name(dtypes[i]), text) == 0) {
            tune->dtype = dtypes[i];
            return true;
        }
    return complain("--dtype is '%s', expected float32, float16 or bfloat16", text);
}

bool option_tune_again(void *target, const char *text) {
    (void)text;
    return tune_of(target) && (((struct options *)target)->tune->again = true);
}

bool option_tune_list(void *target, const char *text) {
    (void)text;
    return tune_of(target) && (((struct options *)target)->tune->list = true);
}

bool option_tune_forget(void *target, const char *text) {
    (void)text;
    return tune_of(target) && (((struct options *)target)->tune->forget = true);
}
