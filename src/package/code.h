/* Code of a package's entry for a launch: the package's own, or compiled from its bitcode if there is a
 * compiler. */
#ifndef SMELT_PACKAGE_CODE_H
#define SMELT_PACKAGE_CODE_H

#include "frontend/code.h"
#include "package/constants.h"

/* Code for options->shape with options->constants as above; *note: a sentence (heap) if it is slower than it
 * could be here, or NULL. *ready: nothing was compiled. NO_COMPILER says why the package's own codes do not
 * serve; further errors as code_make. */
smelt_status package_code(const struct package *package, const struct package_entry *entry,
                          const struct code_options *options, bool changed, struct image *image, bool *ready,
                          char **note);

/* The text of a stage after `rewritten`. */
smelt_status package_show(const struct package_entry *entry, const struct code_options *options,
                          smelt_stage stage, char **text);

#endif
