/* The options of `smelt tune` beyond those of `smelt run`. */
#ifndef SMELT_CLI_TUNE_OPTIONS_H
#define SMELT_CLI_TUNE_OPTIONS_H

#include "options.h"
#include "smelt/tune.h"

#define MOST_TUNE_VALUES 64
#define MOST_TUNE_SIZES 16

struct tune_options {
    struct {
        char name[64];
        int64_t values[MOST_TUNE_VALUES];
        int count;
    } spaces[SMELT_MAX_TUNE_PARAMETERS];
    int space_count;
    int divide[3]; /* the number of a parameter; -1: none */
    char divide_names[3][64];
    struct {
        char name[64], path[4096];
    } expected[SMELT_MAX_BUFFERS];
    int expected_count;
    double tolerance, budget;
    bool again, list, forget;
    int64_t sizes[MOST_TUNE_SIZES][4];
    int size_numbers[MOST_TUNE_SIZES], size_count;
    smelt_dtype dtype;
};

/* Options that may be repeated, or set; each complains about a bad value. */
bool option_add_space(struct options *options, const char *text);
bool option_set_divide(struct options *options, const char *text);
bool option_add_expected(struct options *options, const char *text);
bool option_set_tolerance(struct options *options, const char *text);
bool option_set_budget(struct options *options, const char *text);
bool option_set_sizes(struct options *options, const char *text);
bool option_set_tune_dtype(struct options *options, const char *text);
bool option_tune_again(void *target, const char *text);
bool option_tune_list(void *target, const char *text);
bool option_tune_forget(void *target, const char *text);

/* Whether the command needs no source: an operation, or the stored results. */
bool tune_needs_no_source(const struct options *options);

void tune_options_free(struct tune_options *tune);

#endif
