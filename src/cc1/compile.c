#include "cc1/compile.h"
#include "abi/compiler_wire.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

const struct compiler *smelt_compiler(void); /* src/compiler/compiler.c */

/* LLVM recurses deeply over large functions. */
#define STACK_BYTES ((size_t)64 << 20)

static bool read_all(int fd, struct text *bytes) {
    char chunk[65536];
    for (;;) {
        ssize_t count = read(fd, chunk, sizeof chunk);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return count == 0 && !bytes->failed;
        text_append(bytes, chunk, (size_t)count);
    }
}

static bool write_all(int fd, const struct text *bytes) {
    for (size_t done = 0; done < bytes->length;) {
        ssize_t count = write(fd, bytes->data + done, bytes->length - done);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        done += (size_t)count;
    }
    return !bytes->failed;
}

/* A process that compiles once: memory is taken in large steps and not given back. */
void cc1_tune_memory(void) {
    mallopt(M_TOP_PAD, 16 << 20);
    mallopt(M_MMAP_THRESHOLD, 256 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
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

int cc1_compile(void) {
    static smelt_constant constants[SMELT_MAX_CONSTANTS + 1];
    struct text input = {0};
    if (!read_all(STDIN_FILENO, &input) ||
        !compile_request_read(input.data, input.length, &work.request, constants)) {
        fputs("error: standard input is not a compile request of this version of smelt\n", stderr);
        return 2;
    }
    compile_with_stack();
    return write_all(STDOUT_FILENO, &work.output) ? 0 : 2;
}

int cc1_print_vector_bits(const char *cpu) {
    printf("%d\n", smelt_compiler()->vector_bits(*cpu ? cpu : NULL));
    return fflush(stdout) == 0 ? 0 : 2;
}
