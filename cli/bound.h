/* Whether what the command line binds to a library's function suits its parameters. */
#ifndef SMELT_CLI_BOUND_H
#define SMELT_CLI_BOUND_H

#include "session.h"

/* Compiles the function where that is still to be done (*info then has the times), and complains about a
 * buffer whose dtype differs from the parameter's; warns about an output that it cannot write. Returns an
 * exit status. */
int bound_check(struct session *session, smelt_run_info *info);

#endif
