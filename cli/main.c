/* The smelt command: finds the subcommand, and sees to it that what was printed arrived. */
#include "commands.h"
#include "values.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const struct {
    const struct command *command;
    int (*run)(int count, char **arguments);
} commands[] = {
    {&run_command, command_run},         {&check_command, command_check},
    {&show_command, command_show},       {&build_command, command_build},
    {&bench_command, command_bench},     {&tune_command, command_tune},
    {&devices_command, command_devices}, {&layout_command, command_layout},
    {&cache_command, command_cache},     {&completion_command, command_completion},
};
#define COMMAND_COUNT (int)(sizeof commands / sizeof *commands)

const struct command *command_at(int index) {
    return index < COMMAND_COUNT ? commands[index].command : NULL;
}

static const char *command_name(const void *context, int index) {
    (void)context;
    return index < COMMAND_COUNT ? commands[index].command->name : NULL;
}

static void print_help(FILE *out) {
    fprintf(out, "usage: smelt COMMAND …\n\n"
                 "Runs Metal compute kernels on machines without Metal.\n\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-8s%s %s\n", commands[i].command->name,
                strlen(commands[i].command->name) > 8 ? " " : "", commands[i].command->summary);
    fprintf(
        out,
        "\nSee `smelt COMMAND --help`; `smelt -V` prints the version. Exit status: 0 ok, 1 the kernel "
        "failed, 2 bad\n"
        "command line or input, 3 environment (no compiler, no device, output cannot be written). smelt %s\n",
        smelt_version());
}

/* A file opened later must not become standard output because that was closed: the number is taken by
 * something that cannot be written, so that what is printed is an error and not lost. */
static void occupy_standard_files(void) {
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
        int opened = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
        if (opened >= 0 && opened != fd) (void)close(opened);
    }
}

static int run(int count, char **arguments) {
    if (count < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (is_help(arguments[1]) || strcmp(arguments[1], "help") == 0) {
        print_help(stdout);
        return EXIT_OK;
    }
    if (strcmp(arguments[1], "--version") == 0 || strcmp(arguments[1], "-V") == 0) {
        printf("smelt %s\n", smelt_version());
        return EXIT_OK;
    }
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(arguments[1], commands[i].command->name) == 0)
            return commands[i].run(count - 2, arguments + 2);
    const char *near = nearest_word(arguments[1], command_name, NULL);
    if (near)
        complain("command '%s' is unknown; did you mean %s?", arguments[1], near);
    else
        complain("command '%s' is unknown; see smelt --help", arguments[1]);
    return EXIT_USAGE;
}

/* Less stack than this (ulimit -s) is too little for compiling; then the command has a thread with more. */
#define LEAST_STACK_BYTES ((rlim_t)1 << 20)
#define STACK_BYTES ((size_t)8 << 20)

struct call {
    int count;
    char **arguments;
    int exit_status;
};

static void *run_call(void *argument) {
    struct call *call = argument;
    call->exit_status = run(call->count, call->arguments);
    return NULL;
}

static int run_with_stack(int count, char **arguments) {
    struct rlimit stack;
    struct call call = {count, arguments, EXIT_ENVIRONMENT};
    pthread_attr_t attributes;
    pthread_t thread;
    if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= LEAST_STACK_BYTES)
        return run(count, arguments);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int error = pthread_create(&thread, &attributes, run_call, &call);
    pthread_attr_destroy(&attributes);
    if (error)
        complain("no thread with enough stack can be started: %s%s", strerror(error),
                 error == EAGAIN ? " (ulimit -u, ulimit -v)" : "");
    else
        (void)pthread_join(thread, NULL);
    return call.exit_status;
}

int main(int count, char **arguments) {
    occupy_standard_files();
    if (isatty(STDERR_FILENO)) smelt_set_progress(smelt_progress_on_terminal, NULL);
    (void)signal(SIGXFSZ, SIG_IGN); /* writing beyond `ulimit -f` is an error as others are */
    int exit_status = run_with_stack(count, arguments);
    errno = 0;
    bool lost = fflush(stdout) != 0;
    int reason = errno;
    if (!lost && !ferror(stdout)) return exit_status;
    fprintf(stderr, "smelt: standard output cannot be written%s%s\n", lost && reason ? ": " : "",
            lost && reason ? strerror(reason) : "");
    return exit_status == EXIT_OK ? EXIT_ENVIRONMENT : exit_status;
}
