/* The smelt command: finds the subcommand. */
#include "commands.h"

#include <stdio.h>
#include <string.h>

static const struct command {
    const char *name;
    int (*run)(int count, char **arguments);
    const char *help;
} commands[] = {
    {"run", command_run, "run a kernel"},
};

static void print_help(FILE *out) {
    fprintf(out, "usage: smelt COMMAND …\n\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].help);
    fprintf(out, "\n`smelt COMMAND --help` tells more. smelt %s\n", smelt_version());
}

int main(int count, char **arguments) {
    if (count < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(arguments[1], "--help") == 0 || strcmp(arguments[1], "help") == 0) {
        print_help(stdout);
        return EXIT_OK;
    }
    if (strcmp(arguments[1], "--version") == 0) {
        printf("smelt %s\n", smelt_version());
        return EXIT_OK;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(arguments[1], commands[i].name) == 0) return commands[i].run(count - 2, arguments + 2);
    fprintf(stderr, "smelt: command '%s' is unknown; see smelt --help\n", arguments[1]);
    return EXIT_USAGE;
}
