#include "base/process.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/older_glibc.h"
#include "base/pipe_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Input and outputs are files in memory, not pipes: nothing has to be fed or drained while the child runs, a
 * write cannot raise SIGPIPE, and a copy of a descriptor in some other fork of the host keeps nobody waiting.
 */
enum channel {
    INPUT,
    OUTPUT,
    MESSAGES,
    EXTRA,
    SHARED,
    STATUS,
    FIRST_FILE = PROCESS_FIRST_FILE,
    CHANNELS = FIRST_FILE + PROCESS_FILES
};

struct channels {
    int fd[CHANNELS]; /* -1: not there */
};

/* All but the caller's own. */
static void close_channels(struct channels *channels) {
    for (int c = 0; c < CHANNELS; c++)
        if (channels->fd[c] >= 0 && c != SHARED) close(channels->fd[c]);
}

/* A file in memory with `size` bytes, to be read from its start. Its descriptor lies above those the child is
 * given, also in a host that closed its standard streams. */
static int memory_file(const char *bytes, size_t size) {
    int low = memfd_create("smelt", MFD_CLOEXEC);
    if (low < 0) return -1;
    int fd = fcntl(low, F_DUPFD_CLOEXEC, CHANNELS);
    close(low);
    if (fd < 0) return -1;
    for (size_t done = 0; done < size;) {
        ssize_t count = pwrite(fd, bytes + done, size - done, (off_t)done);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) {
            close(fd);
            return -1;
        }
        done += (size_t)count;
    }
    return fd;
}

static bool open_channels(const struct process_request *request, bool with_status,
                          struct channels *channels) {
    bool files = true;
    for (int c = 0; c < CHANNELS; c++) channels->fd[c] = -1;
    channels->fd[INPUT] = memory_file(request->input, request->input_size);
    channels->fd[OUTPUT] = memory_file(NULL, 0);
    channels->fd[MESSAGES] = memory_file(NULL, 0);
    if (request->extra) channels->fd[EXTRA] = memory_file(request->extra, request->extra_size);
    if (request->shared > 0) channels->fd[SHARED] = request->shared;
    if (with_status) channels->fd[STATUS] = memory_file(NULL, 0);
    for (int i = 0; i < PROCESS_FILES && request->files && request->files[i]; i++) {
        channels->fd[FIRST_FILE + i] = memory_file(request->files[i], strlen(request->files[i]));
        files &= channels->fd[FIRST_FILE + i] >= 0;
    }
    return channels->fd[INPUT] >= 0 && channels->fd[OUTPUT] >= 0 && channels->fd[MESSAGES] >= 0 &&
           (channels->fd[EXTRA] >= 0) == (request->extra != NULL) &&
           (channels->fd[STATUS] >= 0) == with_status && files;
}

/* The child starts with default signals and an empty mask, whatever the host program set, and with no
 * descriptor of the host's. */
static int spawn(const char *const *arguments, const struct channels *channels, pid_t *child) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    int given = 0;
    for (int c = 0; c < CHANNELS; c++)
        if (channels->fd[c] >= 0) {
            posix_spawn_file_actions_adddup2(&actions, channels->fd[c], c);
            given = c + 1;
        } else {
            posix_spawn_file_actions_addclose(&actions, c);
        }
    posix_spawn_file_actions_addclosefrom_np(&actions, given);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    int error = posix_spawnp(child, arguments[0], &actions, &attributes, (char *const *)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

/* The unit of RLIMIT_CPU; a started second counts. */
static long whole_seconds(const struct process_request *request) {
    return (long)ceil(request->seconds);
}

size_t process_memory_limit(size_t wanted) {
    struct rlimit own;
    bool limited = getrlimit(RLIMIT_AS, &own) == 0 && own.rlim_cur != RLIM_INFINITY;
    return limited && (!wanted || own.rlim_cur < wanted) ? (size_t)own.rlim_cur : wanted;
}

static void limit_child(pid_t child, const struct process_request *request) {
    rlim_t processor_seconds = (rlim_t)whole_seconds(request);
    struct rlimit processor = {processor_seconds, processor_seconds + 1};
    size_t bytes = process_memory_limit(request->memory_bytes);
    struct rlimit memory = {bytes, bytes};
    struct rlimit output = {request->output_bytes, request->output_bytes};
    struct rlimit core = {0, 0};
    if (request->seconds > 0) (void)prlimit(child, RLIMIT_CPU, &processor, NULL);
    if (bytes) (void)prlimit(child, RLIMIT_AS, &memory, NULL);
    if (request->output_bytes) (void)prlimit(child, RLIMIT_FSIZE, &output, NULL);
    (void)prlimit(child, RLIMIT_CORE, &core, NULL);
}

/* How often to check a child that may wait for a pipe. */
#define PIPE_LOOK_SECONDS 0.2

/* Waits until the child has ended; false: the deadline passed, the call was interrupted, or the child waits
 * for the pipe that *pipe names. `pidfd` is -1 where the kernel has none. */
static bool await_end(pid_t child, int pidfd, double deadline, char **pipe) {
    double next_look = clock_seconds() + PIPE_LOOK_SECONDS;
    for (double pause = 0.0005;; pause = pause < 0.02 ? 2 * pause : pause) {
        double now = clock_seconds(), left = deadline > 0 ? deadline - now : 3600;
        if (left <= 0 || interrupt_is_raised(interrupt_of_call())) return false;
        if (now >= next_look) {
            char name[PIPE_NAME_BYTES];
            if (pipe_wait_find(child, name) && (*pipe = string_copy(name, strlen(name)))) return false;
            next_look = now + PIPE_LOOK_SECONDS;
        }
        if (left > PIPE_LOOK_SECONDS) left = PIPE_LOOK_SECONDS;
        if (interrupt_of_call() && left > INTERRUPT_LOOK_SECONDS) left = INTERRUPT_LOOK_SECONDS;
        if (pidfd >= 0) {
            struct pollfd fd = {pidfd, POLLIN, 0};
            if (poll(&fd, 1, (int)(left * 1000) + 1) > 0) return true;
        } else {
            siginfo_t info = {.si_pid = 0};
            int result = waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT);
            if (result != 0 && errno == ECHILD && kill(child, 0) != 0) return true;
            if (result == 0 && info.si_pid == child) return true;
            struct timespec time = {0, (long)(pause * 1e9)};
            nanosleep(&time, NULL);
        }
    }
}

/* What the child left in a file, at most `limit` bytes (0: all); `failed` is set if it cannot be read.
 * *beyond: there was more. */
static struct text collect(int fd, size_t limit, bool *beyond) {
    struct text text = {0};
    struct stat status;
    char chunk[16384];
    size_t size = fstat(fd, &status) == 0 && status.st_size > 0 ? (size_t)status.st_size : 0;
    if (limit && size > limit) {
        size = limit;
        *beyond = true;
    }
    if (size) text_reserve(&text, size);
    for (off_t at = 0; !text.failed;) {
        size_t wanted = sizeof chunk;
        if (limit && limit - (size_t)at < wanted) wanted = limit - (size_t)at;
        ssize_t count = pread(fd, chunk, wanted, at);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) text.failed = true;
        if (count <= 0) break;
        text_append(&text, chunk, (size_t)count);
        at += count;
    }
    return text;
}

static const char *start_reason(int error) {
    return error == EAGAIN ? "its user has reached the limit on processes and threads (ulimit -u)"
                           : strerror(error);
}

static double seconds_of(struct timeval time) {
    return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

/* Runs `arguments`; sets timed_out and pipe of the result. *state is what waitpid says, -1 if the host took
 * that from us. */
static smelt_status run_child(const struct process_request *request, const char *const *arguments,
                              const struct channels *channels, struct process_result *result, int *state) {
    pid_t child;
    int error = spawn(arguments, channels, &child);
    if (error)
        return fail(error == ENOENT   ? SMELT_ERROR_NO_COMPILER
                    : error == ENOMEM ? SMELT_ERROR_OUT_OF_MEMORY
                                      : SMELT_ERROR_IO,
                    "program '%s' cannot be started: %s", request->arguments[0], start_reason(error));
    int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
    limit_child(child, request);
    double deadline = request->seconds > 0 ? clock_seconds() + PROCESS_PATIENCE * request->seconds : 0;
    background_pause();
    bool ended = await_end(child, pidfd, deadline, &result->pipe);
    background_resume();
    smelt_status status = ended ? SMELT_OK : interrupt_check();
    result->timed_out = !ended && !result->pipe && status == SMELT_OK;
    if (!ended) {
        /* The group too: the program may be a script that started others. */
        (void)kill(-child, SIGKILL);
        (void)kill(child, SIGKILL);
    }
    if (pidfd >= 0) close(pidfd);
    pid_t waited;
    struct rusage usage = {0};
    while ((waited = wait4(child, state, 0, &usage)) < 0 && errno == EINTR) {
    }
    if (waited < 0) *state = -1;
    result->processor_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    return status;
}

static smelt_status run_in_turn(const struct process_request *request, const char *const *arguments,
                                const struct channels *channels, struct process_result *result, int *state) {
    if (request->begin) TRY(request->begin(request->turn));
    smelt_status status = run_child(request, arguments, channels, result, state);
    if (request->end) request->end(request->turn);
    return status;
}

/* Then a limit set after the child's start may come too late for it. */
static bool has_little_stack(void) {
    struct rlimit stack;
    return getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < PROCESS_STACK_BYTES / 8;
}

/* A host that ignores SIGCHLD, or waits for any child, takes the way the child ended from us: then a shell
 * writes it down. Limits go through the shell too: the child may be gone, and its number another's, before we
 * could set them. */
static const char *const *watched_arguments(const struct process_request *request, char script[256]) {
    size_t count = 0;
    while (request->arguments[count]) count++;
    const char **arguments = calloc(count + 5, sizeof *arguments);
    if (!arguments) return NULL;
    int length = snprintf(script, 256, "ulimit -c 0; ");
    if (has_little_stack())
        length += snprintf(script + length, 256 - (size_t)length, "ulimit -s 8192 2>&-; ");
    if (request->seconds > 0)
        length += snprintf(script + length, 256 - (size_t)length, "ulimit -t %ld; ", whole_seconds(request));
    if (request->memory_bytes)
        length += snprintf(script + length, 256 - (size_t)length, "ulimit -v %zu; ",
                           process_memory_limit(request->memory_bytes) / 1024);
    if (request->output_bytes)
        length +=
            snprintf(script + length, 256 - (size_t)length, "ulimit -f %zu; ", request->output_bytes / 512);
    snprintf(script + length, 256 - (size_t)length, "\"$@\" 5>&-; echo $? >&5");
    arguments[0] = "/bin/sh";
    arguments[1] = "-c";
    arguments[2] = script;
    arguments[3] = "smelt";
    for (size_t i = 0; i < count; i++) arguments[4 + i] = request->arguments[i];
    return arguments;
}

/* Set when a result was taken from us once: the host will do it again. */
static atomic_bool host_takes_children;

static bool host_ignores_children(void) {
    struct sigaction action;
    return atomic_load(&host_takes_children) ||
           (sigaction(SIGCHLD, NULL, &action) == 0 &&
            (action.sa_handler == SIG_IGN || (action.sa_flags & SA_NOCLDWAIT)));
}

/* *lost: how the child ended could not be told. */
static smelt_status run_once(const struct process_request *request, bool watched,
                             struct process_result *result, bool *lost) {
    struct channels channels;
    char script[256];
    const char *const *arguments = watched ? watched_arguments(request, script) : request->arguments;
    smelt_status status = SMELT_OK;
    int state = -1;
    if (!arguments) return fail_out_of_memory(1);
    if (!open_channels(request, watched, &channels))
        status = fail(SMELT_ERROR_IO, "files for '%s' cannot be created: %s", request->arguments[0],
                      strerror(errno));
    if (status == SMELT_OK) status = run_in_turn(request, arguments, &channels, result, &state);
    if (status == SMELT_OK) {
        bool beyond = false;
        result->output = collect(channels.fd[OUTPUT], request->output_bytes, &beyond);
        result->messages = collect(channels.fd[MESSAGES], request->output_bytes, &beyond);
        bool stopped = result->timed_out || result->pipe;
        *lost = state == -1 && !stopped;
        if (watched && !stopped) {
            struct text code = collect(channels.fd[STATUS], 0, &(bool){false});
            int value = code.length ? atoi(code.data) : 128 + SIGKILL;
            /* A shell's word for "ended by signal n". */
            if (value > 128)
                result->signal = value - 128;
            else
                result->exit_code = value;
            *lost = false;
            text_free(&code);
        } else if (state != -1) {
            if (WIFEXITED(state)) result->exit_code = WEXITSTATUS(state);
            if (WIFSIGNALED(state)) result->signal = WTERMSIG(state);
        }
        /* It wrote before the limit was in force; the next write, had there been one, would have ended it. */
        if (beyond && !result->signal && !stopped) {
            result->signal = SIGXFSZ;
            result->exit_code = -1;
        }
        /* One that handles SIGXCPU is killed a second later. */
        bool spent = request->seconds > 0 && result->processor_seconds >= (double)whole_seconds(request);
        if (result->signal == SIGXCPU || (result->signal == SIGKILL && spent)) result->timed_out = true;
        if (result->output.failed || result->messages.failed)
            status = fail(SMELT_ERROR_OUT_OF_MEMORY, "the output of '%s' does not fit in memory",
                          request->arguments[0]);
    }
    close_channels(&channels);
    if (watched) free((void *)arguments);
    return status;
}

smelt_status process_run(const struct process_request *request, struct process_result *result) {
    *result = (struct process_result){.exit_code = -1};
    bool watched = host_ignores_children() || has_little_stack(), lost = false;
    smelt_status status = run_once(request, watched, result, &lost);
    if (status == SMELT_OK && lost) {
        atomic_store(&host_takes_children, true);
        process_result_free(result);
        *result = (struct process_result){.exit_code = -1};
        status = run_once(request, true, result, &lost);
    }
    if (status != SMELT_OK) process_result_free(result);
    return status;
}

void process_result_free(struct process_result *result) {
    text_free(&result->output);
    text_free(&result->messages);
    free(result->pipe);
    result->pipe = NULL;
}
