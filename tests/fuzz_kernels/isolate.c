#include "isolate.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Shared by parent and child. */
struct progress {
    volatile uint64_t seed; /* in hand */
    volatile bool done;     /* all requested, or one that failed, with its `verdict` */
    struct totals totals;
    struct verdict verdict;
};

double seconds_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static struct progress *shared(void) {
    static struct progress *progress;
    if (!progress) {
        progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (progress == MAP_FAILED) abort();
    }
    return progress;
}

static pid_t start(struct progress *progress) {
    progress->done = false;
    progress->verdict = (struct verdict){0};
    fflush(stdout);
    pid_t child = fork();
    if (child < 0) {
        perror("fork");
        exit(3);
    }
    return child;
}

/* The child's processor time, which a busy machine does not extend, or a tenth of the elapsed time, since a
 * child that waits for ever uses none. */
static double seconds_of(pid_t child) {
    struct timespec used = {0};
    clockid_t clock;
    if (clock_getcpuclockid(child, &clock) == 0) (void)clock_gettime(clock, &used);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec + 0.1 * seconds_now();
}

/* Waits for the child; ends it if it works on one seed for longer than `seconds`. */
static void supervise(pid_t child, struct progress *progress, double seconds) {
    uint64_t seed = progress->seed;
    double since = seconds_of(child);
    int status;
    pid_t ended;
    while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
        if (progress->seed != seed) {
            seed = progress->seed;
            since = seconds_of(child);
        }
        if (seconds_of(child) - since > seconds) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            progress->verdict.outcome = HANGS;
            snprintf(progress->verdict.message, sizeof progress->verdict.message, "no end after %g seconds",
                     seconds);
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    if (ended < 0 && errno == ECHILD) status = 0;
    if (progress->done) return;
    progress->verdict.outcome = CRASHES;
    snprintf(progress->verdict.message, sizeof progress->verdict.message, "the process ended by %s %d",
             WIFSIGNALED(status) ? "signal" : "exit status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

void check_isolated(const struct kernel_case *kernel, const struct check_options *options, double seconds,
                    struct verdict *verdict) {
    struct progress *progress = shared();
    pid_t child = start(progress);
    if (child == 0) {
        check_case(kernel, options, &progress->verdict);
        progress->done = true;
        _exit(0);
    }
    supervise(child, progress, seconds);
    *verdict = progress->verdict;
}

static void add_totals(struct totals *totals, const unsigned counts[FEATURE_COUNT],
                       const struct verdict *verdict) {
    totals->kernels++;
    for (int f = 0; f < FEATURE_COUNT; f++) {
        totals->with[f] += counts[f] != 0;
        totals->counts[f] += counts[f];
    }
    if (!verdict->notes) return;
    totals->noted++;
    memcpy(totals->note, verdict->note, sizeof totals->note);
}

uint64_t check_seeds(uint64_t seed, uint64_t end, double until, const bool without[FEATURE_COUNT],
                     const struct check_options *options, double seconds, struct totals *totals,
                     struct verdict *verdict) {
    struct progress *progress = shared();
    progress->totals = *totals;
    progress->seed = seed;
    pid_t child = start(progress);
    if (child == 0) {
        for (; progress->seed < end && seconds_now() < until; progress->seed++) {
            unsigned counts[FEATURE_COUNT];
            struct kernel_case kernel = generate(progress->seed, without, counts);
            check_case(&kernel, options, &progress->verdict);
            add_totals(&progress->totals, counts, &progress->verdict);
            case_free(&kernel);
            if (progress->verdict.outcome != AGREES) break;
        }
        progress->done = true;
        _exit(0);
    }
    supervise(child, progress, seconds);
    *totals = progress->totals;
    *verdict = progress->verdict;
    return progress->seed;
}
