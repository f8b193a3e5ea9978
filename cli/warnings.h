/* The compiler's warnings among the findings of smelt check. */
#ifndef SMELT_CLI_WARNINGS_H
#define SMELT_CLI_WARNINGS_H

#include "findings.h"
#include "session.h"

/* Adds them as advice, SM026: those about conversions only if --also or SMELT_CHECK_ALSO has "conversions" or
 * "all". A package has no source, and no warnings. */
smelt_status warnings_collect(struct session *session, const struct options *options,
                              struct findings *findings);

#endif
