#include "frontend/compile_process.h"
#include "abi/compiler_wire.h"
#include "base/interrupt.h"
#include "frontend/clang.h"
#include "frontend/companion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What it wrote about one kernel: more is a mistake. */
#define OUTPUT_BYTES ((size_t)512 << 20)

static char program[4096];

static smelt_status run(const char *action, const char *argument, const struct text *input, int shared,
                        struct process_result *done) {
    const char *const arguments[] = {program, action, argument, NULL};
    struct process_request request = {.arguments = arguments,
                                      .input = input->data,
                                      .input_size = input->length,
                                      .shared = shared,
                                      .seconds = (double)clang_limit_seconds(),
                                      .memory_bytes = clang_limit_bytes(),
                                      .output_bytes = OUTPUT_BYTES};
    return process_run(&request, done);
}

static smelt_status say_memory(char message[COMPILE_MESSAGE_BYTES]) {
    size_t allowed = clang_limit_bytes(), limit = process_memory_limit(allowed);
    snprintf(message, COMPILE_MESSAGE_BYTES,
             "LLVM needed more than %zu MiB of memory%s for the kernel and was stopped", limit >> 20,
             limit < allowed ? ", the limit of this process (ulimit -v)," : "");
    return SMELT_ERROR_LIMIT;
}

/* How a process that gave no result ended. */
static smelt_status say_end(const struct process_result *done, char message[COMPILE_MESSAGE_BYTES]) {
    const char *messages = text_string(&done->messages);
    if (done->timed_out) {
        snprintf(message, COMPILE_MESSAGE_BYTES, "LLVM took longer than %ld seconds", clang_limit_seconds());
        return SMELT_ERROR_TIMEOUT;
    }
    if (clang_lacked_memory(done)) return say_memory(message);
    if (done->signal) {
        snprintf(message, COMPILE_MESSAGE_BYTES, "LLVM cannot generate code for it: it crashed (signal %d)",
                 done->signal);
        return SMELT_ERROR_COMPILE;
    }
    snprintf(message, COMPILE_MESSAGE_BYTES, "smelt-cc1 broke down: exit status %d, \"%.*s\"",
             done->exit_code, (int)strcspn(messages, "\n"), messages);
    return SMELT_ERROR_INTERNAL;
}

smelt_status compile_process_judge(const struct process_result *done, struct bytes output,
                                   struct compile_result *result) {
    smelt_status status;
    bool whole = !done->signal && done->exit_code == 0 &&
                 compile_result_read(output.data, output.size, &status, result);
    return whole ? status : say_end(done, result->message);
}

static smelt_status compile(const struct compile_request *request, struct compile_result *result) {
    struct text input = {0};
    struct process_result done = {.exit_code = -1};
    *result = (struct compile_result){0};
    compile_request_write(request, &input);
    smelt_status status = input.failed ? fail_out_of_memory(request->bitcode_size)
                                       : run("-compile", NULL, &input, request->progress_fd, &done);
    text_free(&input);
    if (status != SMELT_OK) {
        snprintf(result->message, sizeof result->message, "%s", smelt_error());
        return status;
    }
    status = compile_process_judge(&done, (struct bytes){done.output.data, done.output.length}, result);
    process_result_free(&done);
    return status;
}

static int vector_bits(const char *cpu) {
    struct text nothing = {0};
    struct process_result done;
    /* It is short, and an interruption must not look like a program that cannot be run. */
    smelt_interrupt *interrupt = interrupt_begin_call(NULL);
    smelt_status status = run("-vector-bits", cpu ? cpu : "", &nothing, 0, &done);
    interrupt_end_call(interrupt);
    if (status != SMELT_OK) return 0;
    int bits = atoi(text_string(&done.output));
    process_result_free(&done);
    return bits;
}

static struct compiler compiler = {.interface = COMPILER_INTERFACE,
                                   .llvm_version = SMELT_LLVM_VERSION,
                                   .in_process_of_its_own = true,
                                   .vector_bits = vector_bits,
                                   .compile = compile};

/* Called under compiler_open's lock. */
const struct compiler *compile_process_find(void) {
    bool there = companion_find(COMPANION_CC1, program) && access(program, X_OK) == 0;
    return there ? &compiler : NULL;
}
