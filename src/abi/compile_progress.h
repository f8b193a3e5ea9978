/* Where a compile is. The thread or process that compiles writes it; others may read it at any time, from
 * memory that they share with it. */
#ifndef SMELT_ABI_COMPILE_PROGRESS_H
#define SMELT_ABI_COMPILE_PROGRESS_H

#include <stdatomic.h>
#include <stdint.h>

enum compile_stage_kind {
    COMPILE_STAGE_NONE,
    COMPILE_STAGE_PREPROCESS, /* by clang, as is … */
    COMPILE_STAGE_PRELUDE,    /* … the precompiled prelude, … */
    COMPILE_STAGE_CLANG,      /* … and IR from source and prelude */
    COMPILE_STAGE_OPTIMISE,   /* code of one thread */
    COMPILE_STAGE_VECTORISE,  /* the SIMD engine's lowering, … */
    COMPILE_STAGE_LOWER,      /* … the scalar engine's … */
    COMPILE_STAGE_PTX,        /* … and the PTX engine's, to PTX */
    COMPILE_STAGE_CODE,       /* from IR to machine code */
    COMPILE_STAGE_KINDS
};

/* "optimise" …; "compile" for an unknown number. */
const char *compile_stage_name(uint32_t kind);

struct compile_stage {
    uint32_t kind;
    int64_t start, end;    /* in times of clock_nanoseconds */
    int64_t processor;     /* nanoseconds that its thread ran */
    uint64_t instructions; /* of the IR when it ended */
};

/* A kernel that is tried in several forms has more stages; the rest are not noted. */
#define COMPILE_MOST_STAGES 24

struct compile_progress {
    _Atomic uint32_t now;        /* the stage that runs; COMPILE_STAGE_NONE between stages */
    _Atomic int64_t since;       /* when it began */
    _Atomic uint32_t count;      /* of stages that ended; the entries below them do not change any more */
    _Atomic uint64_t text_bytes; /* of clang's output, once it is whole */
    int64_t processor;           /* the writer's own: its time when the stage began */
    struct compile_stage stages[COMPILE_MOST_STAGES];
};

/* For the one thread that writes. `progress` may be NULL. */
void compile_stage_begin(struct compile_progress *progress, enum compile_stage_kind kind);
void compile_stage_end(struct compile_progress *progress, uint64_t instructions);

/* Copies what has ended to `stages` and returns how many they are. Another process may have written anything:
 * the count is at most COMPILE_MOST_STAGES. */
int compile_progress_read(const struct compile_progress *progress,
                          struct compile_stage stages[COMPILE_MOST_STAGES]);

/* `to` shows what `from` does. For the one thread that writes `to`. */
void compile_progress_copy(const struct compile_progress *from, struct compile_progress *to);

#endif
