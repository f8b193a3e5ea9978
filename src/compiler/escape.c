#include "compiler/escape.h"

#include <llvm-c/ErrorHandling.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>

#define SIGNAL_STACK_BYTES 65536

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
#define SIGNALS (sizeof signals / sizeof *signals)
static struct sigaction previous[SIGNALS];
static pthread_once_t installed = PTHREAD_ONCE_INIT;
static _Thread_local struct escape *current;

static void on_fatal_error(const char *reason) {
    struct escape *escape = current;
    if (!escape) return;
    snprintf(escape->reason, sizeof escape->reason, "%s", reason);
    siglongjmp(escape->place, 1);
}

static void call_previous(int signal, siginfo_t *info, void *context) {
    for (size_t i = 0; i < SIGNALS; i++) {
        if (signals[i] != signal) continue;
        if (previous[i].sa_flags & SA_SIGINFO)
            previous[i].sa_sigaction(signal, info, context);
        else if (previous[i].sa_handler == SIG_DFL || previous[i].sa_handler == SIG_IGN)
            (void)sigaction(signal, &previous[i], NULL); /* the instruction raises it again */
        else
            previous[i].sa_handler(signal);
    }
}

static void on_crash(int signal, siginfo_t *info, void *context) {
    struct escape *escape = current;
    bool sent = info->si_code <= 0; /* sent by a process (kill) */
    if (!escape || sent) {
        call_previous(signal, info, context);
        return;
    }
    current = NULL;
    snprintf(escape->reason, sizeof escape->reason, "it crashed (signal %d)", signal);
    siglongjmp(escape->place, 1);
}

static void install(void) {
    LLVMInstallFatalErrorHandler(on_fatal_error);
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < SIGNALS; i++) (void)sigaction(signals[i], &action, &previous[i]);
}

void escape_install(void) {
    pthread_once(&installed, install);
}

/* An overflowed stack cannot take a signal, so the handlers have a stack of their own. */
void escape_begin(struct escape *escape) {
    escape->stack = malloc(SIGNAL_STACK_BYTES);
    stack_t stack = {.ss_sp = escape->stack, .ss_size = SIGNAL_STACK_BYTES};
    if (escape->stack) (void)sigaltstack(&stack, NULL);
    current = escape;
}

void escape_end(struct escape *escape) {
    current = NULL;
    stack_t none = {.ss_flags = SS_DISABLE};
    if (escape->stack) (void)sigaltstack(&none, NULL);
    free(escape->stack);
}
