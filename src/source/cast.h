/* Casts between half and bfloat, which clang lacks. The operand of a cast to a type that may be one of them
 * goes through __smelt_from_t<type> (prelude/metal_type_traits) first, which is the type itself for all
 * others.
 *
 *   static_cast<T>(x)  → static_cast<T>((__smelt_from_t<T>)(x))
 *   T(x), half(x)      → T((__smelt_from_t<T>)(x))
 *   (T)x, (bfloat)x    → (T)(__smelt_from_t<T>)x
 *
 * T is a type if it is a template's type parameter, or declared by using or typedef. */
#ifndef SMELT_SOURCE_CAST_H
#define SMELT_SOURCE_CAST_H

#include "source/change.h"

/* Does nothing for a text without bfloat. */
void casts_rewrite(struct changes *changes);

#endif
