/* A kernel's log line from its format and arguments. Formats come from kernels: printf never sees them.
 * Conversions are those of C with `vN` for vectors (%v4f) and `{…}` annotations (%{public}d) skipped. Each
 * argument carries its type: if it does not match its conversion, it is printed by its type. */
#ifndef SMELT_BASE_FORMAT_H
#define SMELT_BASE_FORMAT_H

#include "base/text.h"

#include <stdint.h>

enum format_kind {
    FORMAT_SIGNED = 1, /* sign-extended to 64 bits */
    FORMAT_UNSIGNED,
    FORMAT_FLOAT, /* the bits of a float, also for smaller types */
    FORMAT_POINTER,
    FORMAT_TEXT /* `text`; words[0] is its address */
};

#define FORMAT_MAX_COMPONENTS 4

struct format_argument {
    enum format_kind kind;
    int bytes; /* of a component, as the kernel has it */
    int count; /* of components: 1 for scalars */
    uint64_t words[FORMAT_MAX_COMPONENTS];
    const char *text;
    size_t text_length;
};

/* No line is longer; a longer one ends in "…". */
#define FORMAT_LONGEST_LINE 4096

/* Appends the line without a newline. The format ends at `length` or at its first zero. A conversion without
 * an argument is printed as "(missing)"; invalid conversions are printed unchanged. */
void format_line(const char *format, size_t length, const struct format_argument *arguments, int count,
                 struct text *line);

#endif
