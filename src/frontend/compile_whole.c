#include "frontend/compile_whole.h"
#include "abi/compiler_wire.h"
#include "frontend/companion.h"
#include "frontend/compile_slot.h"
#include "frontend/compile_process.h"
#include "frontend/compiler_library.h"
#include "frontend/compiling.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

bool compile_whole_is_possible(const struct clang *clang) {
    char own[4096];
    const struct compiler *compiler;
    return companion_find(COMPANION_CC1, own) && strcmp(own, clang->path) == 0 &&
           compiler_open(&compiler) == SMELT_OK && compiler->in_process_of_its_own;
}

/* smelt-cc1 -whole SECONDS and what follows -cc1. */
static void list_arguments(const struct clang *clang, const struct clang_request *source, const char *seconds,
                           const char *arguments[CLANG_MAX_ARGUMENTS + 1]) {
    clang_list_arguments(clang, source, arguments + 1);
    arguments[0] = arguments[1];
    arguments[1] = "-whole";
    arguments[2] = seconds;
}

/* A failure before the end of clang's half is clang's error; a later one is LLVM's. */
static smelt_status judge(struct process_result *done, const struct compile_progress *progress,
                          struct compile_whole *whole) {
    struct compile_stage stages[COMPILE_MOST_STAGES];
    size_t bitcode = atomic_load(&progress->text_bytes);
    bool translated = compile_progress_read(progress, stages) > 0 && bitcode <= done->output.length;
    if (!translated) bitcode = 0;
    whole->ok = translated || (!done->signal && done->exit_code == 0);
    /* smelt-cc1's own clock for each half. */
    done->timed_out |= done->signal == SIGPROF;
    if (!whole->ok) {
        TRY(clang_judge(done));
        whole->messages = done->messages;
        done->messages = (struct text){0};
        return SMELT_OK;
    }
    struct bytes output = {text_string(&done->output) + bitcode, done->output.length - bitcode};
    whole->status = compile_process_judge(done, output, &whole->result);
    whole->bitcode = done->output;
    whole->bitcode.length = bitcode;
    done->output = (struct text){0};
    return SMELT_OK;
}

static smelt_status take_slot(void *slot) {
    return compile_slot_take(slot);
}
static void give_slot(void *slot) {
    compile_slot_give(slot);
}

/* The slot is held only while smelt-cc1 runs: while its input is prepared and its output read, another
 * compiler can run. */
static smelt_status run(const struct clang *clang, const struct clang_request *source,
                        const struct text *request, const struct compiling *compiling,
                        struct compile_whole *whole) {
    const char *arguments[CLANG_MAX_ARGUMENTS + 1];
    char seconds[32];
    struct process_result done;
    struct compile_slot slot;
    if (compiling->memory.fd < 0)
        return fail(SMELT_ERROR_IO, "files for '%s' cannot be created", clang->path);
    snprintf(seconds, sizeof seconds, "%ld", clang_limit_seconds());
    list_arguments(clang, source, seconds, arguments);
    struct process_request process = clang_process(source, arguments);
    process.seconds *= 2;
    process.extra = request->data;
    process.extra_size = request->length;
    process.shared = compiling->memory.fd;
    process.begin = take_slot;
    process.end = give_slot;
    process.turn = &slot;
    TRY(process_run(&process, &done));
    smelt_status status = judge(&done, compiling->progress, whole);
    process_result_free(&done);
    return status;
}

smelt_status compile_whole_run(const struct clang *clang, const struct clang_request *source,
                               const struct compile_request *compile, struct compile_whole *whole) {
    struct compiling compiling;
    struct text request = {0};
    *whole = (struct compile_whole){0};
    compile_request_write(compile, &request);
    if (request.failed) return fail_out_of_memory(1);
    compiling_begin(&compiling, source->name);
    smelt_status status = run(clang, source, &request, &compiling, whole);
    compiling_end(&compiling);
    text_free(&request);
    return status;
}
