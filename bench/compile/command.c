#include "bench/compile/command.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COMMANDS 20

extern char **environ;

static const char body[] = "uint i = thread_position_in_grid.x;\nT x = inp[i];\nout[i] = metal::exp(x);\n";

struct job {
    char program[4096], path[32];
    char message[256]; /* of a failure */
    unsigned made;
};

/* bench_case.error has no context. */
static const char *last_message;

static const char *message(void) {
    return last_message;
}

static smelt_status fail(struct job *job, const char *what, const char *detail) {
    snprintf(job->message, sizeof job->message, "'smelt run': %s%s", what, detail);
    last_message = job->message;
    return SMELT_ERROR_IO;
}

static smelt_status write_body(struct job *job) {
    strcpy(job->path, "/tmp/smelt-bench-XXXXXX");
    int fd = mkstemp(job->path);
    bool written = fd >= 0 && write(fd, body, sizeof body - 1) == (ssize_t)(sizeof body - 1);
    if (fd >= 0) (void)close(fd);
    return written ? SMELT_OK : fail(job, "cannot write ", job->path);
}

/* Without its output; its messages are the caller's. */
static int run_command(struct job *job, char *const *words) {
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    int error = posix_spawn(&child, job->program, &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error) return -1;
    while (waitpid(child, &status, 0) < 0) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static smelt_status time_command(void *context, double *seconds) {
    struct job *job = context;
    char name[64];
    /* The name is part of the text: no cache has seen it. */
    snprintf(name, sizeof name, "exp_%ld_%lld_command_%u", (long)getpid(), (long long)time(NULL),
             job->made++);
    char *words[] = {job->program,
                     "run",
                     "--body",
                     job->path,
                     "--name",
                     name,
                     "-i",
                     "inp=arange:float32:64",
                     "-o",
                     "out:float32:64",
                     "-t",
                     "T=float32",
                     "--grid",
                     "64",
                     "--threadgroup",
                     "64",
                     NULL};
    double start = bench_now();
    int status = run_command(job, words);
    *seconds = bench_now() - start;
    return status == 0 ? SMELT_OK : fail(job, "it failed", "");
}

smelt_status bench_compile_command(struct bench *bench) {
    static struct job job;
    ssize_t length = readlink("/proc/self/exe", job.program, sizeof job.program - 1);
    if (length <= 0) return fail(&job, "this program's own path is unknown", "");
    job.program[length] = 0;
    smelt_status status = write_body(&job);
    const struct bench_case one = {.job = "cold command",
                                   .variant = "smelt run, exp kernel, warm prelude",
                                   .anchor = "50 ms",
                                   .anchor_seconds = 0.05,
                                   .measure = time_command,
                                   .error = message,
                                   .context = &job,
                                   .bar = {BENCH_TIME_AT_MOST, 1}};
    if (status == SMELT_OK) status = bench_measure(bench, &one, 1, bench_repeats(bench, COMMANDS));
    (void)unlink(job.path);
    return status;
}
