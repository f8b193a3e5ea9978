/* A message of clang on its way to the user: diagnostic.c and warning.c compose what the other files find. */
#ifndef SMELT_FRONTEND_MESSAGE_H
#define SMELT_FRONTEND_MESSAGE_H

#include "frontend/translation.h"

/* file:line:column: kind: message */
struct message {
    char file[512];
    int line, column;
    char kind[32];
    const char *text;
    size_t length;
};

/* message.c — false: the line is not a message. */
bool message_read(const char *line, size_t length, struct message *out);
/* Whether the file is one of smelt's own. */
bool message_is_ours(const char *file);
/* Hints at names of ours, and the names of clang's warnings that are errors, are left out. */
size_t message_useful_length(const char *text, size_t length);
/* The message of our static_assert follows the condition. */
const char *message_said(const char *text, size_t length);
/* Our words for address spaces become Metal's again. */
void message_add_text(const char *text, size_t length, struct text *out);

/* user_line.c — a line of the user's text, in `storage` if it is a file's; NULL: there is none. */
const char *user_line(const struct translation *t, const char *file, int line, struct text *storage,
                      size_t *length);
/* The column in the user's line of a byte of the program's input; 0 if it cannot be told. */
int user_line_column(const struct translation *t, uint32_t origin, const char *user, size_t user_length);
/* The same for a place in the rewritten text, as clang reports it. */
int user_line_message_column(const struct translation *t, const struct message *m, const char *user,
                             size_t user_length);
/* The file and line of a byte of the source, by its #line directives and line markers. */
int user_line_place(const struct text *source, uint32_t position, char file[512]);

/* hint.c — notes that are shown once, after all messages: none is added if `note` has one. A capital name
 * that nothing declares is, in a body, most likely a template argument left out. */
void hint_template(const struct translation *t, const struct message *m, struct text *note);
/* For a body that indexes a value: most likely an input without dimensions. */
void hint_value(const struct translation *t, const struct message *m, struct text *note);
/* For a body in the words of a whole function, or of CUDA. */
void hint_name(const struct translation *t, const struct message *m, struct text *note);
/* For a kernel that calls printf: names os_log, and drops clang's "did you mean". */
void hint_log(struct message *m, struct text *note);
/* Whether an error is about the function that clang guessed for printf, at the same place. */
bool hint_follows_guess(const struct message *m, const struct message *before);

/* diagnostic.c — adds a message with its line; line: NULL if there is none. */
void diagnostics_add_kind(const char *kind, const char *file, int line_number, int column, const char *text,
                          size_t length, const char *line, size_t line_length, struct text *out);
/* Adds a message, unless it is there already: each instantiation of a template repeats its own. */
void diagnostics_add_placed(const char *kind, const struct translation *t, const struct message *m,
                            struct text *out);

#endif
