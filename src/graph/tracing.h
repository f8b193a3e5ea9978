/* What smelt_kernel_run does with values of graphs. */
#ifndef SMELT_GRAPH_TRACING_H
#define SMELT_GRAPH_TRACING_H

#include "kernel/kernel.h"

smelt_status graph_trace_kernel(smelt_kernel *kernel, const smelt_run_desc *desc, smelt_array **outputs);

#endif
