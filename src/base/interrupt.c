#include "base/interrupt.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

struct smelt_interrupt {
    atomic_int references;
    atomic_bool raised;
};

static smelt_interrupt before_compile = {.references = 1};

static _Thread_local smelt_interrupt *of_call __attribute__((tls_model("initial-exec")));

/* Counts raises. A semaphore: posting is all that a signal handler may do. */
static sem_t raises;

/* In a forked child the sleeper is gone. */
static void start_counting(void) {
    (void)sem_init(&raises, 0, 0);
}

__attribute__((constructor)) static void prepare(void) {
    start_counting();
    (void)pthread_atfork(NULL, NULL, start_counting);
}

smelt_status smelt_interrupt_create(smelt_interrupt **out) {
    if (!out)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "interrupt: the address for the new interrupt is NULL");
    smelt_interrupt *interrupt = calloc(1, sizeof *interrupt);
    if (!interrupt) return fail_out_of_memory(sizeof *interrupt);
    atomic_init(&interrupt->references, 1);
    *out = interrupt;
    return SMELT_OK;
}

smelt_interrupt *smelt_interrupt_retain(smelt_interrupt *interrupt) {
    if (interrupt) atomic_fetch_add(&interrupt->references, 1);
    return interrupt;
}

void smelt_interrupt_release(smelt_interrupt *interrupt) {
    if (interrupt && atomic_fetch_sub(&interrupt->references, 1) == 1) free(interrupt);
}

void smelt_interrupt_raise(smelt_interrupt *interrupt) {
    int error = errno;
    if (interrupt && !atomic_exchange(&interrupt->raised, true)) (void)sem_post(&raises);
    errno = error;
}

void smelt_interrupt_clear(smelt_interrupt *interrupt) {
    if (interrupt) atomic_store(&interrupt->raised, false);
}

bool smelt_interrupt_is_raised(const smelt_interrupt *interrupt) {
    return interrupt_is_raised(interrupt);
}

bool interrupt_is_raised(const smelt_interrupt *interrupt) {
    return interrupt && atomic_load(&interrupt->raised);
}

smelt_interrupt *interrupt_begin_call(smelt_interrupt *interrupt) {
    smelt_interrupt *outer = of_call;
    of_call = interrupt;
    return outer;
}

void interrupt_end_call(smelt_interrupt *outer) {
    of_call = outer;
}

smelt_interrupt *interrupt_of_call(void) {
    return of_call;
}

smelt_status interrupt_check(void) {
    if (!interrupt_is_raised(of_call)) return SMELT_OK;
    return fail(SMELT_ERROR_INTERRUPTED, "the call was interrupted");
}

smelt_interrupt *smelt_interrupt_before_compile(void) {
    return &before_compile;
}

smelt_status interrupt_check_compile(void) {
    if (of_call != &before_compile) return SMELT_OK;
    return fail(SMELT_ERROR_INTERRUPTED, "the call ended where code must be compiled");
}

bool interrupt_was_before_compile(smelt_status status) {
    return status == SMELT_ERROR_INTERRUPTED && of_call == &before_compile;
}

smelt_status interrupt_status(const char *kernel, smelt_status status) {
    if (status != SMELT_ERROR_INTERRUPTED) return status;
    return fail(status, "kernel '%s' was interrupted by the caller", kernel);
}

void interrupt_await_any(void) {
    while (sem_wait(&raises) != 0 && errno == EINTR) {
    }
    while (sem_trywait(&raises) == 0) {
    }
}

void interrupt_tell_again(void) {
    (void)sem_post(&raises);
}
