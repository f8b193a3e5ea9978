/* Writing JSON. */
#ifndef SMELT_BASE_JSON_H
#define SMELT_BASE_JSON_H

#include "base/text.h"

/* Appends at most `most` bytes of `string`, with quotation marks around them. Bytes that are not UTF-8 become
 * U+FFFD, so that readers accept any name of a kernel or path; a truncated string ends in "…". */
void json_add_string(struct text *text, const char *string, size_t most);

#endif
