/* Preprocessor conditions that name template parameters. */
#ifndef SMELT_FRONTEND_CONDITION_H
#define SMELT_FRONTEND_CONDITION_H

#include "frontend/translation.h"

/* Adds a warning for each #if and #elif of the user's text that names a template parameter: the preprocessor
 * replaces a name that is not a macro by 0. */
void conditions_warn(const struct translation *translation, struct text *out);

#endif
