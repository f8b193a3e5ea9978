/* The handles of the shipped kernels: made at first use, kept as long as the process, so that their compiled
 * code is. Any thread may call these. */
#ifndef SMELT_KERNELS_SHIPPED_H
#define SMELT_KERNELS_SHIPPED_H

#include "kernels/call.h"

/* The kernel `desc` describes; `desc->name` tells kernels apart. The handle stays the table's. */
smelt_status shipped_kernel(const smelt_kernel_desc *desc, smelt_kernel **kernel);

/* The only kernel function of the .metal text `source`; `name` tells texts apart and stands in messages. */
smelt_status shipped_function(const char *name, const char *source, smelt_function **function);

/* The kernel function `entry` of the .metal text `source`, in a math mode; `entry` tells functions apart. */
smelt_status shipped_entry(const char *source, const char *entry, smelt_math_mode math,
                           smelt_function **function);

/* The same for the text of `defines` followed by that of `source`; each variant has an `entry` of its own. */
smelt_status shipped_variant(const char *defines, const char *source, const char *entry, smelt_math_mode math,
                             smelt_function **function);

/* Receives the text, the function's name and the math mode of each entry that the calling thread gets from
 * shipped_entry or shipped_variant; NULL: nothing does. */
struct shipped_sink {
    void (*add)(void *context, const char *source, const char *entry, smelt_math_mode math);
    void *context;
};
void shipped_collect(const struct shipped_sink *sink);

/* Gives the table the function `entry` from a package, unless it has one. */
smelt_status shipped_put(const char *entry, const void *package, size_t bytes);

/* Puts a call's settings into a descriptor. */
void shipped_apply_call(const smelt_call *call, smelt_run_desc *desc);

/* True if `array` has `ndim` dimensions and one of the three kernel float dtypes. */
bool shipped_is_float(const smelt_array *array, int ndim);

#endif
