/* How a call of the C API must end. */
#ifndef SMELT_TESTS_OUTCOME_H
#define SMELT_TESTS_OUTCOME_H

#include "unit.h"

#include "smelt/smelt.h"

#include <string.h>

static inline void succeed(smelt_status status) {
    if (status != SMELT_OK) FAIL_TEST("%s", smelt_error());
}

/* With this status and this sentence. */
static inline void refused(smelt_status found, smelt_status wanted, const char *sentence) {
    if (found != wanted || strcmp(smelt_error(), sentence) != 0)
        FAIL_TEST("%s: \"%s\", expected %s: \"%s\"", smelt_status_name(found), smelt_error(),
                  smelt_status_name(wanted), sentence);
}

#endif
