#include "base/process.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct pipe_pair {
    int read_end, write_end;
};

static bool open_pipe(struct pipe_pair *pair) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    *pair = (struct pipe_pair){ends[0], ends[1]};
    return true;
}

static void close_end(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* The child starts with default signals and an empty mask, whatever the host program set. */
static int spawn(const struct process_request *request, const struct pipe_pair pipes[3], pid_t *child) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, pipes[0].read_end, 0);
    posix_spawn_file_actions_adddup2(&actions, pipes[1].write_end, 1);
    posix_spawn_file_actions_adddup2(&actions, pipes[2].write_end, 2);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawnp(child, request->arguments[0], &actions, &attributes,
                             (char *const *)request->arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

static void limit_child(pid_t child, const struct process_request *request) {
    rlim_t processor_seconds = (rlim_t)request->seconds + 1;
    struct rlimit processor = {processor_seconds, processor_seconds + 1};
    struct rlimit memory = {request->memory_bytes, request->memory_bytes};
    struct rlimit core = {0, 0};
    if (request->seconds > 0) (void)prlimit(child, RLIMIT_CPU, &processor, NULL);
    if (request->memory_bytes) (void)prlimit(child, RLIMIT_AS, &memory, NULL);
    (void)prlimit(child, RLIMIT_CORE, &core, NULL);
}

/* Reads what is there; false at the end of the stream. */
static bool drain(int fd, struct text *into) {
    char chunk[65536];
    ssize_t count = read(fd, chunk, sizeof chunk);
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    text_append(into, chunk, (size_t)count);
    return count > 0;
}

/* Feeds the input and collects both outputs until they are closed or the time is over. */
static bool converse(const struct process_request *request, struct process_result *result, int *input,
                     int *output, int *messages) {
    double deadline = clock_seconds() + request->seconds;
    size_t written = 0;
    (void)fcntl(*input, F_SETFL, O_NONBLOCK);
    while (*output >= 0 || *messages >= 0) {
        if (*input >= 0 && written == request->input_size) close_end(input);
        struct pollfd fds[3] = {{*input, POLLOUT, 0}, {*output, POLLIN, 0}, {*messages, POLLIN, 0}};
        double left = deadline - clock_seconds();
        if (request->seconds > 0 && left <= 0) return false;
        int ready = poll(fds, 3, request->seconds > 0 ? (int)(left * 1000) + 1 : -1);
        if (ready < 0 && errno != EINTR) return false;
        if (ready <= 0) continue;
        if (fds[0].revents & POLLOUT) {
            ssize_t count = write(*input, request->input + written, request->input_size - written);
            if (count > 0)
                written += (size_t)count;
            else if (errno != EINTR && errno != EAGAIN)
                close_end(input);
        } else if (fds[0].revents) {
            close_end(input);
        }
        if (fds[1].revents && !drain(*output, &result->output)) close_end(output);
        if (fds[2].revents && !drain(*messages, &result->messages)) close_end(messages);
    }
    return true;
}

/* A write to a child that has gone raises SIGPIPE in this thread only: hold it back, and take it away again
 * if it was ours. */
static bool block_sigpipe(sigset_t *previous) {
    sigset_t pipe_signal, pending;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, previous);
    return sigismember(&pending, SIGPIPE);
}

static void restore_sigpipe(const sigset_t *previous, bool was_pending) {
    sigset_t pipe_signal;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    if (!was_pending) {
        struct timespec now = {0, 0};
        while (sigtimedwait(&pipe_signal, NULL, &now) < 0 && errno == EINTR) {}
    }
    pthread_sigmask(SIG_SETMASK, previous, NULL);
}

smelt_status process_run(const struct process_request *request, struct process_result *result) {
    *result = (struct process_result){.exit_code = -1};
    struct pipe_pair pipes[3] = {{-1, -1}, {-1, -1}, {-1, -1}};
    smelt_status status = SMELT_OK;
    pid_t child = -1;
    if (!open_pipe(&pipes[0]) || !open_pipe(&pipes[1]) || !open_pipe(&pipes[2])) {
        status = fail(SMELT_ERROR_IO, "pipes to '%s' cannot be made: %s", request->arguments[0], strerror(errno));
    } else {
        int error = spawn(request, pipes, &child);
        if (error)
            status = fail(error == ENOENT ? SMELT_ERROR_NO_COMPILER : SMELT_ERROR_IO,
                          "program '%s' cannot be started: %s", request->arguments[0], strerror(error));
    }
    close_end(&pipes[0].read_end);
    close_end(&pipes[1].write_end);
    close_end(&pipes[2].write_end);
    if (status == SMELT_OK) {
        sigset_t previous;
        bool was_pending = block_sigpipe(&previous);
        limit_child(child, request);
        if (!converse(request, result, &pipes[0].write_end, &pipes[1].read_end, &pipes[2].read_end)) {
            result->timed_out = true;
            kill(child, SIGKILL);
        }
        restore_sigpipe(&previous, was_pending);
        int state = 0;
        while (waitpid(child, &state, 0) < 0 && errno == EINTR) {}
        if (WIFEXITED(state)) result->exit_code = WEXITSTATUS(state);
        if (WIFSIGNALED(state)) result->signal = WTERMSIG(state);
        if (result->signal == SIGXCPU) result->timed_out = true;
        if (result->output.failed || result->messages.failed)
            status = fail(SMELT_ERROR_OUT_OF_MEMORY, "the output of '%s' does not fit in memory",
                          request->arguments[0]);
    }
    close_end(&pipes[0].write_end);
    close_end(&pipes[1].read_end);
    close_end(&pipes[2].read_end);
    if (status != SMELT_OK) process_result_free(result);
    return status;
}

void process_result_free(struct process_result *result) {
    text_free(&result->output);
    text_free(&result->messages);
}
