/* A kernel or a library function from options, ready to run or to be shown. */
#ifndef SMELT_CLI_SESSION_H
#define SMELT_CLI_SESSION_H

#include "options.h"

#include <stdio.h>

struct session {
    const struct options *options;
    /* Body form. */
    smelt_kernel *kernel;
    smelt_run_desc run;
    smelt_array *outputs[SMELT_MAX_ARGUMENTS];
    /* Whole-file form. */
    smelt_library *library;
    smelt_function *function;
    smelt_dispatch_desc dispatch;
};

/* `options` must outlive the session. Close it also after a failure. */
smelt_status session_open(const struct options *options, struct session *session);
void session_close(struct session *session);

smelt_status session_run(struct session *session, smelt_run_info *info);
/* The same, with warnings about what the kernel did not write of outputs that are not initialised (of 2 GiB
 * and less). */
smelt_status session_run_last(struct session *session, smelt_run_info *info);
smelt_status session_show(struct session *session, smelt_stage stage, char **text);

/* Output number `index` after a run, on the host; a reference for the caller. */
smelt_status session_output(const struct session *session, const struct options *options, int index,
                            smelt_array **array);

/* The source with its generated signature, for --verbose. */
void session_print_source(struct session *session, FILE *out);

#endif
