/* The subcommands. Each takes the arguments behind its name and returns the exit status. */
#ifndef SMELT_CLI_COMMANDS_H
#define SMELT_CLI_COMMANDS_H

#include "option_table.h"

enum exit_status {
    EXIT_OK = 0,
    EXIT_KERNEL = 1, /* missing or wrong argument to the kernel, compile error, barrier, fault, time-out */
    EXIT_USAGE = 2,  /* bad command line, unreadable or damaged input */
    EXIT_ENVIRONMENT = 3 /* no clang, LLVM or device; output or cache I/O; out of memory */
};

int command_run(int count, char **arguments);
int command_check(int count, char **arguments);
int command_show(int count, char **arguments);
int command_build(int count, char **arguments);
int command_bench(int count, char **arguments);
int command_tune(int count, char **arguments);
int command_devices(int count, char **arguments);
int command_layout(int count, char **arguments);
int command_cache(int count, char **arguments);
int command_completion(int count, char **arguments);

/* Their tables. */
extern const struct command run_command, check_command, show_command, build_command, bench_command,
    tune_command, devices_command, layout_command, cache_command, completion_command;

/* All of them, by number; NULL behind the last. */
const struct command *command_at(int index);

/* The exit status for a failed call of the library. */
int exit_status_of(smelt_status status);

/* Prints "smelt: MESSAGE" with the library's message and returns exit_status_of(status). */
int report(smelt_status status);

#endif
