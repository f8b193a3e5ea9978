/* The compiler's warnings among the findings of smelt check. */
#ifndef SMELT_CLI_WARNINGS_H
#define SMELT_CLI_WARNINGS_H

#include "findings.h"
#include "session.h"

/* Adds the compiler's warnings about the source as advice, SM026. Those about conversions are added only if
 * --also or SMELT_CHECK_ALSO contains "conversions" or "all". A package has no source, and so no warnings. */
smelt_status warnings_collect(struct session *session, const struct options *options,
                              struct findings *findings);

#endif
