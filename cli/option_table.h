/* The options of every command, in tables: the same rows are parsed, printed by --help (and so in the manual
 * page), suggested in place of misspelt ones, and completed by shells. */
#ifndef SMELT_CLI_OPTION_TABLE_H
#define SMELT_CLI_OPTION_TABLE_H

#include "smelt/smelt.h"

#include <stdio.h>

struct options;

enum option_action {
    OPTION_NONE,   /* only documented: an argument, a second form of an option */
    OPTION_FLAG,   /* bool */
    OPTION_TEXT,   /* char * */
    OPTION_TRIPLE, /* int64_t[3] */
    OPTION_REAL,   /* double, not negative */
    OPTION_COUNT,  /* int64_t, from 1 to `most` */
    OPTION_ADD,    /* `add` puts it into the struct options at `offset` */
    OPTION_CALL    /* calls `call` with the target; without a value, NULL */
};

/* A row; those of a table are ended by {0}. */
struct option {
    const char *name;  /* "--grid"; "": a heading, or a separate line */
    const char *value; /* "X[,Y[,Z]]"; NULL: it takes no value */
    const char *help;  /* lines; NULL: --help and shells leave it out */
    enum option_action action;
    size_t offset; /* in what the command fills: of what the action sets */
    bool (*add)(struct options *options, const char *text);
    bool (*call)(void *target, const char *text);
    bool many; /* it may be repeated */
    int64_t most;
    const char *words; /* for shells: the values there are, with spaces between */
};

/* Words by number; NULL behind the last. */
typedef const char *word_at(const void *context, int index);

struct command {
    const char *name, *summary;      /* one line of `smelt --help` */
    const char *usage;               /* the first lines of --help */
    const char *examples;            /* its last; may be NULL */
    const struct option *options[3]; /* tables, ended by NULL */
    int width;                       /* of the names in --help */
    bool (*argument)(void *target,
                     char *text); /* accepts arguments that are not options; NULL: there are none */
    void (*list)(FILE *out);      /* prints further lines of --help, before the options; may be NULL */
    word_at *word;                /* for shells: the arguments there are; may be NULL */
};

enum parsed { PARSED, PARSED_HELP, PARSED_WRONG };

/* Reads the arguments into `target`, as far as one that asks for help. PARSED_WRONG: after a sentence on
 * standard error. */
enum parsed parse_options(const struct command *command, int count, char **arguments, void *target);

void print_command_help(const struct command *command);

/* Whether the argument asks for help. */
bool is_help(const char *argument);

/* Of the words the one that the text is a misspelling of, or NULL. */
const char *nearest_word(const char *text, word_at *word, const void *context);

/* The command's row number `index`, over all its tables; NULL behind the last. */
const struct option *option_at(const struct command *command, int index);

#endif
