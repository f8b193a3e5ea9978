#include "bench/peers.h"

#include "bench/kernel_text.h"
#include "bench/quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Importing PyTorch takes long where its files are not in memory yet. */
#define START_SECONDS 120
#define JOB_SECONDS 60

extern char **environ;

static struct {
    pid_t process; /* 0: none */
    bool started, ready;
    int to, from; /* its standard input and output */
    char line[512], why[600];
} child;

static const char *give_up(const char *why) {
    snprintf(child.why, sizeof child.why, "%s", why);
    if (child.process) {
        (void)kill(child.process, SIGKILL);
        (void)waitpid(child.process, NULL, 0);
        (void)close(child.to);
        (void)close(child.from);
        child.process = 0;
    }
    return child.why;
}

void peers_start_on(const char *script, bool quick, const char *device) {
    if (child.started) return;
    child.started = true;
    int input[2], output[2];
    if (pipe2(input, O_CLOEXEC) != 0) {
        (void)give_up("no pipe to python3");
        return;
    }
    if (pipe2(output, O_CLOEXEC) != 0) {
        (void)close(input[0]);
        (void)close(input[1]);
        (void)give_up("no pipe from python3");
        return;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    char *const arguments[] = {(char *)"python3",
                               (char *)"-c",
                               (char *)kernel_text_peers,
                               (char *)(quick ? "quick" : "full"),
                               (char *)script,
                               (char *)(strncmp(device, "cuda", 4) == 0 ? "cuda" : "cpu"),
                               NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input[0], 0);
    posix_spawn_file_actions_adddup2(&actions, output[1], 1);
    int error = posix_spawnp(&child.process, "python3", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    (void)close(input[0]);
    (void)close(output[1]);
    child.to = input[1];
    child.from = output[0];
    if (!error) return;
    child.process = 0;
    (void)close(child.to);
    (void)close(child.from);
    (void)give_up("python3 cannot be started");
}

void peers_start(const char *script, bool quick) {
    peers_start_on(script, quick, "cpu");
}

/* One line of the child's, without its end; false after `seconds` without one, or at its end. */
static bool read_line(int seconds) {
    size_t length = 0;
    for (;;) {
        struct pollfd wait = {.fd = child.from, .events = POLLIN};
        int ready = poll(&wait, 1, seconds * 1000);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return false;
        char c;
        if (read(child.from, &c, 1) != 1) return false;
        if (c == '\n') break;
        if (length + 1 < sizeof child.line) child.line[length++] = c;
    }
    child.line[length] = 0;
    return true;
}

const char *peers_absent(void) {
    if (!child.started) return "PyTorch was not started";
    if (!child.process) return child.why;
    if (child.ready) return NULL;
    if (!read_line(START_SECONDS)) return give_up("python3 did not answer");
    if (strncmp(child.line, "absent ", 7) == 0) {
        char why[sizeof child.line];
        memcpy(why, child.line + 7, sizeof why - 7);
        return give_up(why);
    }
    child.ready = true;
    return NULL;
}

static bool send_line(const char *verb, const char *job, int count) {
    char line[128];
    int length = snprintf(line, sizeof line, "%s %s %d\n", verb, job, count);
    return write(child.to, line, (size_t)length) == length;
}

const char *peers_measure(const char *job, int count, double *seconds) {
    const char *absent = peers_absent();
    if (absent) return absent;
    if (!send_line("run", job, count) || !read_line(JOB_SECONDS)) return give_up("python3 ended or hangs");
    clockid_t clock;
    if (clock_getcpuclockid(child.process, &clock) == 0) bench_wait_quiet(clock);
    char *end;
    if (strncmp(child.line, "ok ", 3) != 0) return child.line;
    *seconds = strtod(child.line + 3, &end);
    return end != child.line + 3 && *seconds > 0 ? NULL : "PyTorch's time is not a number";
}

void peers_forget(const char *job) {
    if (!child.process || !child.ready) return;
    if (!send_line("forget", job, 0) || !read_line(JOB_SECONDS)) (void)give_up("python3 ended or hangs");
}

void peers_stop(void) {
    if (child.process) (void)give_up("PyTorch was stopped");
    child.started = child.ready = false;
}
