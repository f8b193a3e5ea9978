/* Types of arguments that are not supported: textures, samplers, tables of functions, ray tracing. Kernels
 * with such an argument are removed from the text and refused when requested. */
#ifndef SMELT_SOURCE_RESOURCE_H
#define SMELT_SOURCE_RESOURCE_H

#include "source/token.h"

/* The token of the first such type among the tokens [first, last) of an argument, or NO_PLACE. */
uint32_t resource_type(const struct tokens *tokens, uint32_t first, uint32_t last);

/* The tensor type, if the argument with the tokens [first, last) is an array of tensors that the host binds;
 * otherwise NO_PLACE. */
uint32_t resource_tensor_array(const struct tokens *tokens, uint32_t first, uint32_t last);

/* What a kernel can use in place of an argument of this type, or with this attribute; NULL: nothing. */
const char *resource_alternative(const char *name);

/* Whether an argument's attribute belongs only to other stages and resources. */
bool resource_attribute(const struct tokens *tokens, uint32_t name);

#endif
