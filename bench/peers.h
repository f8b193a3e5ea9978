/* PyTorch, where this machine's python3 has it: a child process (bench/peers.py) that does the jobs of a
 * script (such as bench/ml/peers_ml.py) when told to, so that its rounds alternate with smelt's. */
#ifndef SMELT_BENCH_PEERS_H
#define SMELT_BENCH_PEERS_H

#include <stdbool.h>

/* Starts the child, which prepares while the caller continues. A second call does nothing until
 * peers_stop. quick: small sizes. */
void peers_start(const char *script, bool quick);

/* The same for a script whose third argument is "cpu" or "cuda". device: of smelt. */
void peers_start_on(const char *script, bool quick, const char *device);

/* Ends it, and waits for its end. */
void peers_stop(void);

/* NULL if it is there; else a sentence why not. Waits until it is ready. */
const char *peers_absent(void);

/* Does a job `count` times; *seconds is the time for one. NULL, or a sentence why not (valid until
 * the next call). The first time prepares its data and warms up, which is not counted. */
const char *peers_measure(const char *job, int count, double *seconds);

/* Gives back what a job's data takes of memory. */
void peers_forget(const char *job);

#endif
