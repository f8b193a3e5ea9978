/* Launches in traces. */
#ifndef SMELT_KERNEL_TRACE_H
#define SMELT_KERNEL_TRACE_H

#include "base/trace.h"
#include "kernel/dispatch.h"

/* A launch that ended with `status`: on a CPU it has run; on a GPU it is enqueued, and an arrow with the
 * number launch->flow goes from here to the GPU's track. */
void trace_launch(struct trace_span span, const struct launch *launch, smelt_status status);

/* Missing code was compiled, or could not be. */
void trace_compile(struct trace_span span, const struct launch *launch, bool cache_hit, smelt_status status);

/* The text of a kernel or file was translated for clang. */
void trace_translation(struct trace_span span, const char *name, smelt_status status);

#endif
