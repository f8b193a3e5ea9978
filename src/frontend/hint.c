/* Hints for mistakes in bodies of kernels. */
#include "frontend/message.h"

#include <ctype.h>
#include <string.h>

/* The undeclared name of a message, or 0: its position in the text, and *length. */
static const char *undeclared_name(const struct message *m, size_t *length) {
    static const char *const starts[] = {"unknown type name '", "use of undeclared identifier '"};
    for (int i = 0; i < 2; i++) {
        size_t start = strlen(starts[i]);
        if (m->length <= start || memcmp(m->text, starts[i], start) != 0) continue;
        *length = strcspn(m->text + start, "'");
        bool ends = start + *length + 1 == message_useful_length(m->text, m->length);
        return ends ? m->text + start : NULL;
    }
    return NULL;
}

void hint_template(const struct translation *t, const struct message *m, struct text *note) {
    size_t length;
    const char *name = prelude_has_mlx(t->prelude) && !note->length ? undeclared_name(m, &length) : NULL;
    if (!name || !isupper((unsigned char)*name)) return;
    text_addf(note,
              "\nnote: if '%.*s' is a template argument, its value is missing: -t %.*s=VALUE (command line), "
              "template=[(\"%.*s\", VALUE)] (Python) or smelt_run_desc.templates (C)",
              (int)length, name, (int)length, name, (int)length, name);
}

#define SUBSCRIPTS "subscripted value is not an array, pointer, or vector"

void hint_value(const struct translation *t, const struct message *m, struct text *note) {
    if (!prelude_has_mlx(t->prelude) || note->length || m->length < sizeof SUBSCRIPTS - 1 ||
        memcmp(m->text, SUBSCRIPTS, sizeof SUBSCRIPTS - 1) != 0)
        return;
    text_add(note,
             "\nnote: an input without dimensions, such as a number, is a value, not an array; for x[0], "
             "pass an array of shape (1,)");
}

/* Names that are not a body's, and what the body has instead. */
static const char *const foreign_names[][2] = {
    {"kernel",
     "this is the body of a kernel, whose signature is generated; whole functions are for library() in "
     "Python, smelt_library_create in C, or the command without --body"},
    {"threadIdx", "Metal has thread_position_in_threadgroup"},
    {"blockIdx", "Metal has threadgroup_position_in_grid"},
    {"blockDim", "Metal has threads_per_threadgroup"},
    {"gridDim", "Metal has threadgroups_per_grid"},
    {"__syncthreads", "Metal has threadgroup_barrier(mem_flags::mem_threadgroup)"},
    {"gid", "in a body, a thread's place in the grid is thread_position_in_grid"},
    {"tid", "in a body, a thread's place in its group is thread_position_in_threadgroup"},
};

void hint_name(const struct translation *t, const struct message *m, struct text *note) {
    size_t length;
    const char *name = prelude_has_mlx(t->prelude) && !note->length ? undeclared_name(m, &length) : NULL;
    for (size_t i = 0; name && i < sizeof foreign_names / sizeof *foreign_names; i++)
        if (strlen(foreign_names[i][0]) == length && memcmp(foreign_names[i][0], name, length) == 0)
            text_addf(note, "\nnote: %s", foreign_names[i][1]);
}

#define PRINTS "use of undeclared identifier 'printf'"

void hint_log(struct message *m, struct text *note) {
    if (m->length < sizeof PRINTS - 1 || memcmp(m->text, PRINTS, sizeof PRINTS - 1) != 0) return;
    m->length = sizeof PRINTS - 1;
    if (note->length) return;
    text_add(
        note,
        "\nnote: a kernel prints by os_log: #include <metal_logging>, then os_log_default.log(\"%d\", i)");
}

bool hint_follows_guess(const struct message *m, const struct message *before) {
    return before->text && before->length == sizeof PRINTS - 1 && before->line == m->line &&
           before->column == m->column && strcmp(before->file, m->file) == 0;
}
