#include "kernel/also.h"
#include "abi/check.h"

#include <stdlib.h>
#include <string.h>

#define VARIABLE "SMELT_CHECK_ALSO"

static const struct {
    const char *word;
    uint32_t bits;
} words[] = {{"not-finite", CHECK_ALSO_NOT_FINITE},
             {"unsigned", CHECK_ALSO_UNSIGNED},
             {"divergent", CHECK_ALSO_DIVERGENT},
             {"conversions", CHECK_ALSO_CONVERSIONS},
             {"advice", CHECK_ALSO_ADVICE},
             {"all", CHECK_ALSO_NOT_FINITE | CHECK_ALSO_UNSIGNED | CHECK_ALSO_DIVERGENT | CHECK_ALSO_ADVICE}};

static uint32_t bits_of(const char *word, size_t length) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].word) == length && strncmp(words[i].word, word, length) == 0)
            return words[i].bits;
    return 0;
}

/* The first word that is unknown, and its length; NULL: all are known. */
static const char *read_list(const char *list, uint32_t *bits, size_t *length) {
    for (const char *at = list; at && *at; at += *length + (at[*length] == ',')) {
        *length = strcspn(at, ",");
        uint32_t one = bits_of(at, *length);
        if (!one) return at;
        *bits |= one;
    }
    return NULL;
}

#define EXPECTED \
    "expected words of not-finite, unsigned, divergent, conversions, advice, all, separated by commas"

smelt_status also_parse(const char *what, const char *also, uint32_t *bits) {
    size_t length;
    *bits = 0;
    const char *unknown = read_list(getenv(VARIABLE), bits, &length);
    if (unknown) log_line(SMELT_LOG_WARNING, VARIABLE " has '%.*s', " EXPECTED, (int)length, unknown);
    unknown = read_list(also, bits, &length);
    *bits &= ~(uint32_t)CHECK_ALSO_CONVERSIONS; /* nothing that a run looks for */
    if (!unknown) return SMELT_OK;
    return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': also has '%.*s', " EXPECTED, what, (int)length,
                unknown);
}
