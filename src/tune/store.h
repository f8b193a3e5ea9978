/* Results of tuning, in `tuning.sqlite` in the cache folder. Each call opens the file for itself, so threads,
 * processes and their children share it; they wait for each other ten seconds at most. */
#ifndef SMELT_TUNE_STORE_H
#define SMELT_TUNE_STORE_H

#include "base/text.h"
#include "smelt/tune.h"

#define STORE_FILE "tuning.sqlite"

/* Appends the choice to `choice`; false if there is none, or the file cannot be used (a warning, once). */
bool store_find(const char *machine, const char *name, const char *key, struct text *choice);

/* A failure is logged, once: the caller has its result. */
void store_add(const char *machine, const char *name, const char *key, const char *choice, double seconds);

/* Changes when this process has added or removed a result. */
unsigned store_generation(void);

#endif
