/* String literals. In Metal they are in the constant address space. The rewritten text moves a run of them
 * there (prelude: __smelt_text), except where C++ requires the bare literal: as the initialiser of an array
 * of characters, and as an argument of the language's own (asm labels, static_assert, attributes). */
#ifndef SMELT_SOURCE_LITERAL_H
#define SMELT_SOURCE_LITERAL_H

#include "source/token.h"

/* If a run of neighbouring string literals that is a value starts at `first`: its last token; else NO_PLACE.
 * Names that stand for literals (__FILE__, __func__) count. */
uint32_t literal_value_end(const struct tokens *tokens, uint32_t first);

#endif
