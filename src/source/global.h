/* Attributes of a thread as variables of a whole text: `uint3 gid [[thread_position_in_grid]];` at namespace
 * scope. The declaration is removed; each use becomes the attribute's value in the declared type. */
#ifndef SMELT_SOURCE_GLOBAL_H
#define SMELT_SOURCE_GLOBAL_H

#include "source/change.h"
#include "source/structure.h"

/* Fills the changes of such declarations and of the uses that follow them; other uses of the name (members,
 * parameters and variables of the same name, and where these hold) stay. */
void rewrite_globals(const struct tokens *tokens, const struct structure *structure, struct changes *changes);

#endif
