/* Printable text: escapes characters that a terminal would act upon. */
#ifndef SMELT_BASE_PRINTABLE_H
#define SMELT_BASE_PRINTABLE_H

#include "base/text.h"

/* Adds the string with its control characters, bytes that are not UTF-8 and marks that reorder text as \x1b,
 * one escape per byte. Lines and tabs stay. Texts without such bytes are added as they are, so adding twice
 * is harmless. */
void text_add_printable(struct text *text, const char *string);

#endif
