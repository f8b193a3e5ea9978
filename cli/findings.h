/* The findings of one or more checked runs, and the forms in which they are printed. */
#ifndef SMELT_CLI_FINDINGS_H
#define SMELT_CLI_FINDINGS_H

#include "options.h"
#include "smelt/check.h"

struct findings {
    smelt_finding *list; /* its strings are heap */
    int count;
    bool out_of_memory;
};

/* Adds the findings of the calling thread's last checked run; one that is there already is counted once more.
 */
void findings_collect(struct findings *findings);
/* Adds a copy of one. */
void findings_add_one(struct findings *findings, const smelt_finding *finding);
void findings_clear(struct findings *findings);

/* Advice does not make a command fail; findings_fail: something else is there. */
bool findings_is_advice(const smelt_finding *finding);
bool findings_fail(const struct findings *findings);

/* Whether the two are about the same places. */
bool findings_are_same(const smelt_finding *a, const smelt_finding *b);

/* `form`: text, json, sarif or github. False, with a complaint: another one. */
bool findings_form_is_known(const char *form);
void findings_print(const struct findings *findings, const char *form, const struct options *options);

#endif
