/* Faults in generated code: recognised, taken back to the worker, reported as errors. Everything else goes to
 * the handler that was there before. */
#include "device/cpu/leave.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define SIGNAL_STACK_BYTES 65536

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static struct sigaction previous[sizeof signals / sizeof *signals];
static pthread_mutex_t install_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local void *own_stack;
/* Set while a fault is with the previous handler: one that hands it back to us would go round for ever. */
static _Thread_local volatile sig_atomic_t handing_on;

/* The instruction to blame: the faulting one, or the call into a library function that faulted; NULL if the
 * kernel has overwritten its own stack and jumped to an arbitrary address. */
static const void *blamed_instruction(const struct worker *worker, const ucontext_t *context) {
    const void *instruction = arch_instruction(context);
    if (leave_in_code(worker, instruction)) return instruction;
    if (worker->caller) return (const char *)worker->caller - 1;
    const void *const *stack = arch_stack(context);
    for (int i = 0; i < 64 && leave_on_fiber(worker, stack + i); i++)
        if (leave_in_code(worker, stack[i])) return (const char *)stack[i] - 1;
    return NULL;
}

/* While kernel code runs nothing else runs on its fiber but the engine's few functions it calls. */
static bool is_of_kernel(const struct worker *worker, const ucontext_t *context) {
    return leave_in_code(worker, arch_instruction(context)) || leave_on_fiber(worker, arch_stack(context));
}

static void call_previous(int signal, siginfo_t *info, void *context) {
    static const struct sigaction standard = {.sa_handler = SIG_DFL};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        if (signals[i] != signal) continue;
        if (handing_on || (!(previous[i].sa_flags & SA_SIGINFO) && previous[i].sa_handler == SIG_DFL)) {
            /* Let it happen again, by default. */
            (void)sigaction(signal, &standard, NULL);
            return;
        }
        handing_on = 1;
        if (previous[i].sa_flags & SA_SIGINFO)
            previous[i].sa_sigaction(signal, info, context);
        else if (previous[i].sa_handler != SIG_IGN)
            previous[i].sa_handler(signal);
        handing_on = 0;
    }
}

NOT_COUNTED static void on_fault(int signal, siginfo_t *info, void *opaque) {
    ucontext_t *context = opaque;
    struct worker *worker = worker_in_kernel();
    if (!worker || !is_of_kernel(worker, context)) {
        call_previous(signal, info, opaque);
        return;
    }
    worker->fault_address = info->si_addr;
    worker->fault_signal = signal;
    worker->fault_instruction = blamed_instruction(worker, context);
    worker->caller = NULL;
    leave_kernel(worker, context, ENDED_BY_FAULT);
}

static bool is_installed(int signal) {
    struct sigaction now;
    return sigaction(signal, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault;
}

void fault_install(void) {
    /* Others may install handlers at any time: checked before each launch (about 0.2 µs). */
    if (is_installed(SIGSEGV)) return;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    pthread_mutex_lock(&install_lock);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (!is_installed(signals[i])) (void)sigaction(signals[i], &action, &previous[i]);
    pthread_mutex_unlock(&install_lock);
}

void fault_prepare_thread(void) {
    stack_t old;
    if (sigaltstack(NULL, &old) != 0 || !(old.ss_flags & SS_DISABLE)) return;
    own_stack = malloc(SIGNAL_STACK_BYTES);
    if (!own_stack) return;
    stack_t stack = {.ss_sp = own_stack, .ss_size = SIGNAL_STACK_BYTES};
    (void)sigaltstack(&stack, NULL);
}

void fault_release_thread(void) {
    if (!own_stack) return;
    stack_t off = {.ss_flags = SS_DISABLE};
    (void)sigaltstack(&off, NULL);
    free(own_stack);
    own_stack = NULL;
}
