#include "abi/compile_progress.h"
#include "base/clock.h"

#include <string.h>

const char *compile_stage_name(uint32_t kind) {
    static const char *const names[COMPILE_STAGE_KINDS] = {
        [COMPILE_STAGE_PREPROCESS] = "preprocess", [COMPILE_STAGE_PRELUDE] = "precompile prelude",
        [COMPILE_STAGE_CLANG] = "clang",           [COMPILE_STAGE_OPTIMISE] = "optimise",
        [COMPILE_STAGE_VECTORISE] = "vectorise",   [COMPILE_STAGE_LOWER] = "lower",
        [COMPILE_STAGE_PTX] = "make PTX",          [COMPILE_STAGE_CODE] = "generate code"};
    return kind < COMPILE_STAGE_KINDS && names[kind] ? names[kind] : "compile";
}

static int64_t processor_nanoseconds(void) {
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

void compile_stage_begin(struct compile_progress *progress, enum compile_stage_kind kind) {
    if (!progress) return;
    progress->processor = processor_nanoseconds();
    atomic_store(&progress->since, clock_nanoseconds());
    atomic_store(&progress->now, kind);
}

void compile_stage_end(struct compile_progress *progress, uint64_t instructions) {
    if (!progress) return;
    uint32_t count = atomic_load(&progress->count);
    struct compile_stage stage = {.kind = atomic_load(&progress->now),
                                  .start = atomic_load(&progress->since),
                                  .end = clock_nanoseconds(),
                                  .processor = processor_nanoseconds() - progress->processor,
                                  .instructions = instructions};
    atomic_store(&progress->now, COMPILE_STAGE_NONE);
    if (count >= COMPILE_MOST_STAGES) return;
    progress->stages[count] = stage;
    atomic_store(&progress->count, count + 1);
}

int compile_progress_read(const struct compile_progress *progress,
                          struct compile_stage stages[COMPILE_MOST_STAGES]) {
    uint32_t count = atomic_load(&progress->count);
    if (count > COMPILE_MOST_STAGES) count = COMPILE_MOST_STAGES;
    memcpy(stages, progress->stages, count * sizeof *stages);
    return (int)count;
}

void compile_progress_copy(const struct compile_progress *from, struct compile_progress *to) {
    int count = compile_progress_read(from, to->stages);
    atomic_store(&to->count, (uint32_t)count);
    atomic_store(&to->since, atomic_load(&from->since));
    atomic_store(&to->now, atomic_load(&from->now));
}
