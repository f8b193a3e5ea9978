/* What this process compiles at the moment, for a display of progress, and how long the stages of a compile
 * took. */
#ifndef SMELT_FRONTEND_COMPILING_H
#define SMELT_FRONTEND_COMPILING_H

#include "abi/compile_progress.h"
#include "base/shared_memory.h"

#define COMPILING_NAME_BYTES 128

/* A run of a compiler, on the stack of the thread that waits for it. */
struct compiling {
    char name[COMPILING_NAME_BYTES];   /* of the kernel; "": not known yet */
    struct compile_progress *progress; /* in `memory`, or else `own` */
    struct shared_memory memory;
    struct compile_progress own;
    uint32_t capture;             /* of the trace that ran when it began */
    struct compiling *next, **at; /* of those that run */
};

/* `name` may be NULL. */
void compiling_begin(struct compiling *compiling, const char *name);
/* Its stages go to the trace and to the thread's record. */
void compiling_end(struct compiling *compiling);

/* Lists at most `most` of those that run; returns how many there are. Not for signal handlers. */
struct compiling_view {
    char name[COMPILING_NAME_BYTES];
    uint32_t stage; /* enum compile_stage_kind */
    int64_t since;  /* when it began, in times of clock_nanoseconds */
    struct compile_stage finished[COMPILE_MOST_STAGES];
    int finished_count;
};
int compiling_list(struct compiling_view *views, int most);

/* From now on calls `changed` after each change of what is listed, on the thread that began or ended it. A
 * process has one such function. */
void compiling_observe(void (*changed)(void));

/* The stages of all compilers that the calling thread runs until compile_record_end go to `record`, which
 * begins empty. Compilers on other threads, even if this thread waits for them, do not count. */
#define COMPILE_RECORD_STAGES 64
struct compile_record {
    struct compile_stage stages[COMPILE_RECORD_STAGES];
    int count;
};
void compile_record_begin(struct compile_record *record);
void compile_record_end(void);

#endif
