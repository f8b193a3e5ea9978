/* The settings that shipped operations run with: what `smelt tune` has stored for this machine, else what
 * defaults.c has for machines like it, else none. A look-up that was made before takes well under a
 * microsecond; results that other processes store are seen by later processes. */
#ifndef SMELT_TUNE_SETTING_H
#define SMELT_TUNE_SETTING_H

#include "base/text.h"
#include "smelt/smelt.h"

#define SETTING_NUMBERS 4
#define SETTING_SIZES 4

/* A job of an operation. Sizes count by their class: the power of two that holds them. */
struct tune_job {
    const char *operation; /* static: "matmul" */
    const char *device;
    smelt_dtype dtype;
    int64_t sizes[SETTING_SIZES];
    int size_count;
};

/* The class of a size: n for 2^(n-1) < size <= 2^n. */
int tune_size_class(int64_t size);

/* Fills the numbers, whose meaning is the operation's; false if there is no setting. */
bool tune_setting(const struct tune_job *job, int64_t numbers[SETTING_NUMBERS]);

/* Gives the calling thread's operations these numbers; NULL: ends that. For searches. */
void tune_setting_force(const int64_t *numbers);

/* Appends the words under which a job's setting is stored. */
void tune_setting_key(const struct tune_job *job, struct text *key);

/* Appends the words that are stored for a setting: "64,128". */
void tune_setting_words(const int64_t *numbers, int count, struct text *words);

/* defaults.c: the numbers for a job on a kind of machine ("avx512 16": vectors of 512 bits and 9 to 16
 * threads; "sm_90"); NULL: there are none. */
const int64_t *tune_default(const char *machine, const char *operation, const char *key);

#endif
