/* smelt check: runs in which every access of memory is checked, and what they find. */
#include "bound.h"
#include "commands.h"
#include "findings.h"
#include "options.h"
#include "output.h"
#include "schedules.h"
#include "session.h"
#include "warnings.h"

#include <stdio.h>

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

static const char *form_of(const struct options *o) {
    return o->format ? o->format : o->json ? "json" : "text";
}

static int run(struct session *session, const struct options *o, smelt_run_info *info) {
    struct findings findings = {0};
    session->run.check = session->dispatch.check = true;
    smelt_status status = schedules_run(session, info, &findings);
    int found = findings.count; /* by runs */
    if (status == SMELT_OK || status == SMELT_ERROR_CHECK) {
        smelt_status warned = warnings_collect(session, o, &findings);
        if (warned != SMELT_OK) status = warned;
    }
    if (status != SMELT_OK && status != SMELT_ERROR_CHECK) {
        findings_clear(&findings);
        return report(status);
    }
    findings_print(&findings, form_of(o), o);
    if (o->shrink && found) schedules_shrink(session, &findings.list[0]);
    int exit_status = findings_fail(&findings) ? EXIT_KERNEL : write_outputs(session, o);
    findings_clear(&findings);
    return exit_status;
}

static int check(const struct options *o) {
    struct session session;
    smelt_run_info info = {.seconds = 0};
    if (o->format && !findings_form_is_known(o->format)) return EXIT_USAGE;
    smelt_status status = session_open(o, &session);
    if (status == SMELT_OK && o->verbose) session_print_source(&session, stderr);
    int exit_status = status == SMELT_OK ? bound_check(&session, &info) : report(status);
    if (exit_status == EXIT_OK) exit_status = run(&session, o, &info);
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
