/* Checked runs in several orders of threadgroups and simdgroups, and on smaller grids. */
#ifndef SMELT_CLI_SCHEDULES_H
#define SMELT_CLI_SCHEDULES_H

#include "findings.h"
#include "session.h"

/* Runs the session in as many orders as its options say (at least 1) and collects the findings. Results that
 * differ between orders are a finding, too. OK, CHECK, or the first run's other failure. */
smelt_status schedules_run(struct session *session, smelt_run_info *info, struct findings *findings);

/* Prints, to standard error, the smallest grid that still shows the finding: halves of the given one, in
 * whole threadgroups. */
void schedules_shrink(struct session *session, const smelt_finding *finding);

#endif
