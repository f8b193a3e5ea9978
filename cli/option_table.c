#include "option_table.h"
#include "commands.h"
#include "values.h"

#include <string.h>

#define MOST_ROWS 80

const struct option *option_at(const struct command *command, int index) {
    for (int t = 0; command->options[t]; t++)
        for (const struct option *row = command->options[t]; row->name; row++)
            if (index-- == 0) return row;
    return NULL;
}

/* ---- Help. */

/* Lines of help behind the first start where it does. */
static void print_row(const struct option *row, int width) {
    char label[80];
    if (!*row->name) {
        puts(row->help);
        return;
    }
    snprintf(label, sizeof label, "%s%s%s", row->name, row->value ? " " : "", row->value ? row->value : "");
    int bytes = 0, columns = 0; /* an ellipsis is one character of three bytes */
    for (; label[bytes]; bytes++) columns += (label[bytes] & 0xc0) != 0x80;
    printf("  %s", label);
    if (*row->help) printf("%*s", columns > width ? 2 : width + 1 - columns, "");
    for (const char *line = row->help; *line;) {
        int length = (int)strcspn(line, "\n");
        printf("%.*s", length, line);
        line += length;
        if (*line == '\n' && *++line) printf("\n%*s", width + 3, "");
    }
    putchar('\n');
}

void print_command_help(const struct command *command) {
    printf("usage: %s\n", command->usage);
    if (command->list) command->list(stdout);
    const struct option *row;
    for (int i = 0; (row = option_at(command, i)); i++)
        if (row->help) print_row(row, command->width);
    if (command->examples) printf("\n%s", command->examples);
}

/* ---- Near names. */

#define LONGEST_WORD 32

static int least(int a, int b) {
    return a < b ? a : b;
}

/* Letters to insert, drop or change. */
static int distance(const char *a, const char *b) {
    int rows[2][LONGEST_WORD + 1], length = (int)strlen(b);
    if (strlen(a) > LONGEST_WORD || length > LONGEST_WORD) return LONGEST_WORD;
    for (int j = 0; j <= length; j++) rows[0][j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int *row = rows[i % 2], *above = rows[(i + 1) % 2];
        row[0] = i;
        for (int j = 1; j <= length; j++)
            row[j] = least(above[j - 1] + (a[i - 1] != b[j - 1]), 1 + least(above[j], row[j - 1]));
    }
    return rows[strlen(a) % 2][length];
}

/* Every other letter may be wrong, and two at most; dashes do not count as letters. */
const char *nearest_word(const char *text, word_at *word, const void *context) {
    const char *found = NULL, *one;
    int letters = (int)(strlen(text) - strspn(text, "-")), best = least(2, letters / 2) + 1;
    for (int i = 0; (one = word(context, i)); i++) {
        int steps = distance(text, one);
        if (steps == 0 || steps >= best) continue;
        best = steps;
        found = one;
    }
    return found;
}

static const char *option_name(const void *command, int index) {
    const struct option *row = option_at(command, index);
    return row ? row->name : NULL;
}

/* ---- Parsing. */

bool is_help(const char *argument) {
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

struct parser {
    const struct command *command;
    int count, at;
    char **arguments;
    void *target;
    bool seen[MOST_ROWS];
};

static bool unknown_option(const struct parser *p, const char *argument) {
    const struct command *command = p->command;
    size_t length = strcspn(argument, "=");
    const char *name;
    if (!command->argument)
        return complain(*command->options ? "argument '%s' is unknown; see smelt %s --help"
                                          : "argument '%s' is one too many; see smelt %s --help",
                        argument, command->name);
    for (int i = 0; argument[length] && (name = option_name(command, i)); i++)
        if (strlen(name) == length && strncmp(argument, name, length) == 0)
            return complain("option '%s' is unknown; give the value as a separate argument: %s %s", argument,
                            name, argument + length + 1);
    const char *near = nearest_word(argument, option_name, command);
    if (near) return complain("option '%s' is unknown; did you mean %s?", argument, near);
    return complain("option '%s' is unknown; see smelt %s --help", argument, command->name);
}

static bool set(const struct option *row, void *target, char *value) {
    void *field = (char *)target + row->offset;
    switch (row->action) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return true;
    case OPTION_TEXT:
        *(char **)field = value;
        return true;
    case OPTION_TRIPLE:
        return parse_triple(row->name, value, field);
    case OPTION_REAL:
        return parse_real(row->name, value, false, field);
    case OPTION_COUNT:
        return parse_integer(row->name, value, 1, row->most, field);
    case OPTION_ADD:
        return row->add(field, value);
    case OPTION_CALL:
        return row->call(target, value);
    case OPTION_NONE:
        break;
    }
    return true;
}

static bool take_option(struct parser *p, const struct option *row, int index) {
    char *value = NULL;
    if (row->value) {
        if (p->at + 1 == p->count) return complain("%s needs a value", row->name);
        value = p->arguments[++p->at];
        if (p->seen[index] && !row->many) return complain("%s is given twice", row->name);
        p->seen[index] = true;
    }
    return set(row, p->target, value);
}

/* The argument at hand, which is an option. */
static bool take(struct parser *p, const char *argument) {
    const struct option *row;
    for (int i = 0; i < MOST_ROWS && (row = option_at(p->command, i)); i++)
        if (row->action != OPTION_NONE && strcmp(argument, row->name) == 0) return take_option(p, row, i);
    return unknown_option(p, argument);
}

enum parsed parse_options(const struct command *command, int count, char **arguments, void *target) {
    struct parser p = {.command = command, .count = count, .arguments = arguments, .target = target};
    bool ended = false; /* by "--" */
    for (p.at = 0; p.at < count; p.at++) {
        char *argument = arguments[p.at];
        bool option = !ended && argument[0] == '-' && argument[1], good = true;
        if (option && is_help(argument)) return PARSED_HELP;
        if (option && strcmp(argument, "--") == 0)
            ended = true;
        else if (option)
            good = take(&p, argument);
        else
            good = command->argument ? command->argument(target, argument) : unknown_option(&p, argument);
        if (!good) return PARSED_WRONG;
    }
    return PARSED;
}
