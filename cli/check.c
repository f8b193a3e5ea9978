/* smelt check: a run in which every access of memory is checked, and what it finds. */
#include "bound.h"
#include "commands.h"
#include "json.h"
#include "options.h"
#include "output.h"
#include "session.h"
#include "smelt/check.h"

#include <stdio.h>
#include <string.h>

/* ---- For people. */

/* The line of the source that was given; NULL: another file's, or there is none. */
static const char *source_line(const struct options *o, const char *file, int line) {
    const char *at = o->package_size || strcmp(file, o->source_label) != 0 ? NULL : o->source;
    for (int i = 1; at && i < line; i++) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    return line > 0 ? at : NULL;
}

/* With a caret under the column, if it is known. */
static void print_source_line(const struct options *o, const char *file, int line, int column) {
    const char *text = source_line(o, file, line);
    if (!text) return;
    int length = (int)strcspn(text, "\r\n");
    printf("%6d | %.*s\n", line, length, text);
    if (column <= 0 || column > length) return;
    printf("       | ");
    for (int i = 0; i < column - 1; i++) putchar(text[i] == '\t' ? '\t' : ' ');
    puts("^");
}

static void print_finding(const struct options *o, const smelt_finding *f) {
    if (f->line && f->column)
        printf("%s:%d:%d: ", f->file, f->line, f->column);
    else if (f->line)
        printf("%s:%d: ", f->file, f->line);
    printf("%s (%s): %s", f->kind, f->code, f->message);
    if (f->count > 1) printf(" (%llu times)", (unsigned long long)f->count);
    putchar('\n');
    print_source_line(o, f->file, f->line, f->column);
    if (f->other_line && (f->other_line != f->line || strcmp(f->other_file, f->file) != 0))
        print_source_line(o, f->other_file, f->other_line, f->other_column);
}

/* ---- For programs. */

static void print_text(const char *name, const char *text) {
    printf(", \"%s\": ", name);
    json_print_string(stdout, text);
}

static void print_position(const char *name, const uint32_t position[3]) {
    printf(", \"%s\": [%u, %u, %u]", name, position[0], position[1], position[2]);
}

static void print_finding_json(const smelt_finding *f) {
    fputs("{\"code\": ", stdout);
    json_print_string(stdout, f->code);
    print_text("kind", f->kind);
    print_text("message", f->message);
    print_text("file", f->file);
    printf(", \"line\": %d, \"column\": %d", f->line, f->column);
    print_text("argument", f->argument);
    if (f->has_index)
        printf(", \"index\": %lld", (long long)f->index);
    else
        fputs(", \"index\": null", stdout);
    fputs(", \"threads\": [{\"thread\": ", stdout);
    printf("[%u, %u, %u]", f->thread[0], f->thread[1], f->thread[2]);
    print_position("threadgroup", f->threadgroup);
    putchar('}');
    bool other = f->other_line > 0;
    if (other) {
        printf(", {\"thread\": [%u, %u, %u]", f->other_thread[0], f->other_thread[1], f->other_thread[2]);
        print_position("threadgroup", f->other_threadgroup);
        putchar('}');
    }
    fputs("], \"other\": ", stdout);
    if (other) {
        fputs("{\"file\": ", stdout);
        json_print_string(stdout, f->other_file);
        printf(", \"line\": %d, \"column\": %d}", f->other_line, f->other_column);
    } else {
        fputs("null", stdout);
    }
    printf(", \"count\": %llu}", (unsigned long long)f->count);
}

/* ---- The command. */

static void print_findings(const struct options *o) {
    smelt_finding finding;
    int count = smelt_findings_count();
    if (o->json) putchar('[');
    for (int i = 0; smelt_findings_get(i, &finding); i++) {
        if (o->json) {
            if (i) fputs(",\n ", stdout);
            print_finding_json(&finding);
        } else {
            print_finding(o, &finding);
        }
    }
    if (o->json)
        puts("]");
    else
        printf("%d finding%s\n", count, count == 1 ? "" : "s");
}

/* The files of outputs, of a run without findings. */
static int write_outputs(const struct session *session, const struct options *o) {
    int exit_status = EXIT_OK;
    for (int i = 0; i < o->output_count; i++) {
        smelt_array *array;
        if (!o->outputs[i].file) continue;
        smelt_status status = session_output(session, o, i, &array);
        if (status != SMELT_OK) return report(status);
        /* The file may be standard output: what was printed so far comes first. */
        (void)fflush(stdout);
        int written = output_write(array, o->outputs[i].file);
        if (written != EXIT_OK) exit_status = written;
        smelt_array_release(array);
    }
    return exit_status;
}

static int check(const struct options *o) {
    struct session session;
    smelt_run_info info = {.seconds = 0};
    smelt_status status = session_open(o, &session);
    if (status == SMELT_OK && o->verbose) session_print_source(&session, stderr);
    int exit_status = status == SMELT_OK ? bound_check(&session, &info) : report(status);
    if (exit_status == EXIT_OK) {
        session.run.check = session.dispatch.check = true;
        status = session_run(&session, &info);
        if (status == SMELT_OK || status == SMELT_ERROR_CHECK) print_findings(o);
        exit_status = status == SMELT_OK            ? write_outputs(&session, o)
                      : status == SMELT_ERROR_CHECK ? EXIT_KERNEL
                                                    : report(status);
    }
    session_close(&session);
    return exit_status;
}

int command_check(int count, char **arguments) {
    struct options options;
    int exit_status = options_parse(&check_command, count, arguments, &options);
    if (exit_status == EXIT_OK && options.help)
        print_command_help(&check_command);
    else if (exit_status == EXIT_OK)
        exit_status = check(&options);
    options_free(&options);
    return exit_status;
}
