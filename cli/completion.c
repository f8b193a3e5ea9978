/* smelt completion: what a shell reads to complete smelt's command lines, written from the tables of options.
 */
#include "commands.h"
#include "values.h"

#include <string.h>

/* Commands' rows that shells complete. */
#define FOR_EACH_COMMAND(command) for (int c_ = 0; (command = command_at(c_)); c_++)
#define FOR_EACH_OPTION(command, row)                        \
    for (int r_ = 0; (row = option_at((command), r_)); r_++) \
        if (row->action != OPTION_NONE && row->help)

/* The first line, with the shell's own characters escaped. */
static void print_first_line(const char *text, const char *special, const char *quote) {
    for (; *text && *text != '\n'; text++) {
        if (*text == '\'')
            fputs(quote, stdout);
        else
            printf(strchr(special, *text) ? "\\%c" : "%c", *text);
    }
}

static void print_words(const struct command *command) {
    const char *word;
    for (int i = 0; command->word && (word = command->word(NULL, i)); i++) printf(i ? " %s" : "%s", word);
}

static void print_bash(void) {
    const struct command *command;
    const struct option *row;
    puts("_smelt() {\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} line=\"${COMP_WORDS[1]} ${COMP_WORDS[COMP_CWORD-1]}\" "
         "words=\n"
         "    case \"$line\" in");
    FOR_EACH_COMMAND(command)
    FOR_EACH_OPTION(command, row)
    if (row->words) printf("    '%s %s') words='%s' ;;\n", command->name, row->name, row->words);
    puts("    *) case \"${COMP_WORDS[1]} $word\" in");
    FOR_EACH_COMMAND(command) {
        printf("        '%s -'*) words='--help", command->name);
        FOR_EACH_OPTION(command, row) printf(" %s", row->name);
        puts("' ;;");
        if (!command->word) continue;
        printf("        '%s '*) words='", command->name);
        print_words(command);
        puts("' ;;");
    }
    puts("    esac ;;\n    esac");
    fputs("    [ \"$COMP_CWORD\" = 1 ] && words='--help --version", stdout);
    FOR_EACH_COMMAND(command) printf(" %s", command->name);
    puts("'\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o default -F _smelt smelt");
}

static void print_zsh_option(const struct option *row) {
    printf(" \\\n        '%s%s[", row->many || !row->value ? "*" : "", row->name);
    print_first_line(row->help, "[]:\\", "'\\''");
    putchar(']');
    if (row->value) {
        putchar(':');
        print_first_line(row->value, ":\\", "'\\''");
        printf(row->words ? ":(%s)" : ":_files", row->words);
    }
    putchar('\'');
}

static void print_zsh(void) {
    const struct command *command;
    const struct option *row;
    puts("#compdef smelt\n"
         "_smelt() {\n"
         "    local -a commands=(");
    FOR_EACH_COMMAND(command) {
        printf("        '%s:", command->name);
        print_first_line(command->summary, ":\\", "'\\''");
        puts("'");
    }
    puts("    )\n"
         "    if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
         "    shift words; (( CURRENT-- ))\n"
         "    case $words[1] in");
    FOR_EACH_COMMAND(command) {
        printf("    %s) _arguments", command->name);
        FOR_EACH_OPTION(command, row) print_zsh_option(row);
        fputs(" \\\n        '*:argument:", stdout);
        putchar(command->word ? '(' : '_');
        if (command->word) print_words(command);
        puts(command->word ? ")' ;;" : "files' ;;");
    }
    puts("    esac\n"
         "}\n"
         "if [ \"$funcstack[1]\" = _smelt ]; then _smelt \"$@\"; else compdef _smelt smelt; fi");
}

static void print_fish_option(const struct command *command, const struct option *row) {
    bool is_long = row->name[1] == '-';
    printf("complete -c smelt -n '__fish_seen_subcommand_from %s' -%c %s", command->name, is_long ? 'l' : 's',
           row->name + 1 + is_long);
    if (row->value) fputs(row->words ? " -x" : " -r", stdout);
    if (row->words) printf(" -a '%s'", row->words);
    fputs(" -d '", stdout);
    print_first_line(row->help, "\\", "\\'");
    puts("'");
}

static void print_fish(void) {
    const struct command *command;
    const struct option *row;
    FOR_EACH_COMMAND(command) {
        printf("complete -c smelt -n __fish_use_subcommand -f -a %s -d '", command->name);
        print_first_line(command->summary, "\\", "\\'");
        puts("'");
        FOR_EACH_OPTION(command, row) print_fish_option(command, row);
        if (!command->word) continue;
        printf("complete -c smelt -n '__fish_seen_subcommand_from %s' -f -a '", command->name);
        print_words(command);
        puts("'");
    }
}

/* ---- The command. */

static const struct shell {
    const char *name;
    void (*print)(void);
} shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
#define SHELL_COUNT (int)(sizeof shells / sizeof *shells)

static const char *shell_name(const void *context, int index) {
    (void)context;
    return index < SHELL_COUNT ? shells[index].name : NULL;
}

static bool set_shell(void *target, char *text) {
    const struct shell **chosen = target;
    if (*chosen) return complain("argument '%s' is one too many; expected one shell", text);
    for (int i = 0; i < SHELL_COUNT; i++)
        if (strcmp(text, shells[i].name) == 0) *chosen = &shells[i];
    return *chosen || complain("shell '%s' is unknown; expected bash, zsh or fish", text);
}

const struct command completion_command = {
    .name = "completion",
    .summary = "print a shell's completion script for smelt",
    .usage = "smelt completion bash|zsh|fish\n\n"
             "Prints a script for the shell. An installation includes it where shells look; otherwise:\n\n"
             "  bash       source <(smelt completion bash)\n"
             "  zsh        source <(smelt completion zsh), after compinit\n"
             "  fish       smelt completion fish | source",
    .argument = set_shell,
    .word = shell_name,
};

int command_completion(int count, char **arguments) {
    const struct shell *shell = NULL;
    enum parsed parsed = parse_options(&completion_command, count, arguments, &shell);
    if (parsed == PARSED_HELP) print_command_help(&completion_command);
    if (parsed != PARSED) return parsed == PARSED_HELP ? EXIT_OK : EXIT_USAGE;
    if (!shell) {
        complain("no shell is named; expected bash, zsh or fish");
        return EXIT_USAGE;
    }
    shell->print();
    return EXIT_OK;
}
