/* Checked launches on the scalar engine: what check/check.h needs to know of a launch and its threadgroups.
 * All of it does nothing in other launches. */
#ifndef SMELT_DEVICE_CPU_CHECKED_H
#define SMELT_DEVICE_CPU_CHECKED_H

#include "device/cpu/worker.h"

/* Sets launch->check if the launch is a checked one. Its codes and buffers are there. */
smelt_status checked_begin(struct cpu_launch *launch);

/* The threadgroup worker->group begins. */
smelt_status checked_begin_group(struct worker *worker);

/* Threads of the threadgroup do not meet at a barrier. */
void checked_barrier(const struct worker *worker, const struct standing *waiting,
                     const struct standing *other);

/* Memory where the code puts tiles that are held in slots. */
void checked_tile_memory(const struct worker *worker, void *memory, size_t bytes);

/* The words of a product of tiles, called for from `caller`: its operands lie within arrays, and elements of
 * its result have values from now on, unless those that they depend on have none. False: the operands or the
 * result do not lie there, and there must be no product. */
bool checked_tile(const struct worker *worker, const uint64_t *words, const void *caller);

/* Frees it. `status`: how the threadgroups ended; findings count more than a barrier that was missed. */
smelt_status checked_end(struct cpu_launch *launch, smelt_status status);

#endif
