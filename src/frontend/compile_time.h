/* A table of how long each stage on the way to one code took. */
#ifndef SMELT_FRONTEND_COMPILE_TIME_H
#define SMELT_FRONTEND_COMPILE_TIME_H

#include "base/text.h"
#include "frontend/compiling.h"

#include <stdbool.h>

/* In nanoseconds. */
struct compile_times {
    int64_t translate;            /* reading, preprocessing and rewriting the source */
    int64_t recall;               /* the search in the disk cache, … */
    bool cached;                  /* … and whether it has the code */
    int64_t compile;              /* from the rewritten source to code … */
    struct compile_record record; /* … and the stages of that */
    bool has_quick;               /* a first launch runs quick code, */
    int64_t quick_compile;        /* as above, … */
    struct compile_record quick_record;
};

void compile_times_describe(const struct compile_times *times, struct text *table);

#endif
