/* Text for people: what a terminal would act upon is written out. */
#ifndef SMELT_BASE_PRINTABLE_H
#define SMELT_BASE_PRINTABLE_H

#include "base/text.h"

/* Adds the string with its control characters, bytes that are not UTF-8 and marks that reorder text as \x1b,
 * one escape per byte. Lines and tabs stay. Texts without such bytes are added as they are, so twice is as
 * good as once. */
void text_add_printable(struct text *text, const char *string);

#endif
