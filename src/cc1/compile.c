#include "cc1/compile.h"
#include "abi/compiler_wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

const struct compiler *smelt_compiler(void); /* src/compiler/compiler.c */

/* LLVM recurses deeply over large functions. */
#define STACK_BYTES ((size_t)64 << 20)

/* src/base/process.h: extra and shared. */
#define REQUEST_DESCRIPTOR 3
#define PROGRESS_DESCRIPTOR 4

static bool read_all(int fd, struct text *bytes) {
    char chunk[65536];
    for (;;) {
        ssize_t count = read(fd, chunk, sizeof chunk);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return count == 0 && !bytes->failed;
        text_append(bytes, chunk, (size_t)count);
    }
}

static bool write_all(int fd, const char *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t count = write(fd, bytes + done, size - done);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        done += (size_t)count;
    }
    return true;
}

static struct work {
    struct compile_request request;
    struct text output;
    ucontext_t caller;
} work;

static void compile(void) {
    struct compile_result result;
    smelt_status status = smelt_compiler()->compile(&work.request, &result);
    compile_result_write(status, work.request.output, &result, &work.output);
}

/* On a stack of its own rather than a thread, which would make every lock and allocation slower. */
static void compile_with_stack(void) {
    void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    ucontext_t there;
    if (stack == MAP_FAILED || getcontext(&there) != 0) {
        compile();
        return;
    }
    /* Below the stack, an overflow is a fault. */
    (void)mprotect(stack, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = STACK_BYTES;
    there.uc_link = &work.caller;
    makecontext(&there, compile, 0);
    swapcontext(&work.caller, &there);
}

/* What the host shares to see how far the compile is; NULL where it shares nothing. */
static struct compile_progress *shared_progress(void) {
    struct stat status;
    if (fstat(PROGRESS_DESCRIPTOR, &status) != 0 || status.st_size != sizeof(struct compile_progress))
        return NULL;
    void *bytes = mmap(NULL, sizeof(struct compile_progress), PROT_READ | PROT_WRITE, MAP_SHARED,
                       PROGRESS_DESCRIPTOR, 0);
    return bytes == MAP_FAILED ? NULL : bytes;
}

/* What the request points to lies in memory that is never freed. */
static bool read_request(int fd) {
    static smelt_constant constants[SMELT_MAX_CONSTANTS + 1];
    struct text input = {0};
    if (read_all(fd, &input) && compile_request_read(input.data, input.length, &work.request, constants))
        return true;
    fputs("error: there is no compile request of this version of smelt\n", stderr);
    return false;
}

static int compile_to_output(struct compile_progress *progress) {
    work.request.progress = progress;
    compile_with_stack();
    bool whole = !work.output.failed && write_all(STDOUT_FILENO, work.output.data, work.output.length);
    return whole ? 0 : 2;
}

int cc1_compile(void) {
    return read_request(STDIN_FILENO) ? compile_to_output(shared_progress()) : 2;
}

/* ---- Both halves. */

static struct compile_progress *progress;

static void limit_processor_time(long seconds) {
    struct itimerval timer = {.it_value = {.tv_sec = seconds}};
    (void)setitimer(ITIMER_PROF, &timer, NULL);
}

void cc1_begin_translation(long seconds) {
    limit_processor_time(seconds);
    progress = shared_progress();
    compile_stage_begin(progress, COMPILE_STAGE_CLANG);
}

int cc1_compile_translation(const char *bitcode, size_t size, uint64_t instructions, long seconds) {
    if (!write_all(STDOUT_FILENO, bitcode, size)) return 2;
    if (progress) atomic_store(&progress->text_bytes, size);
    compile_stage_end(progress, instructions);
    limit_processor_time(seconds);
    if (!read_request(REQUEST_DESCRIPTOR)) return 2;
    work.request.bitcode = bitcode;
    work.request.bitcode_size = size;
    return compile_to_output(progress);
}

int cc1_print_vector_bits(const char *cpu) {
    printf("%d\n", smelt_compiler()->vector_bits(*cpu ? cpu : NULL));
    return fflush(stdout) == 0 ? 0 : 2;
}
