/* As many fused multiply-adds as the CPU can do, on registers. */
#include "bench/hand/handwritten.h"
#include "bench/cpu/threads.h"

#include "bench/hand/vector.h"

/* Twelve chains hide the latency of two units that take four cycles. */
#define CHAINS 12
#define ROUNDS 4000000

static void piece(void *context, int64_t index) {
    float *results = context;
    vector chain[CHAINS], factor = vector_set(0.999f), term = vector_set(0.001f);
    for (int c = 0; c < CHAINS; c++) chain[c] = vector_set((float)c);
    for (int round = 0; round < ROUNDS; round++)
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; c++) chain[c] = vector_fmadd(chain[c], factor, term);
    vector sum = chain[0];
    for (int c = 1; c < CHAINS; c++) sum = vector_add(sum, chain[c]);
    results[index] = vector_reduce_add(sum);
}

double BY_HAND(multiply_adds)(void) {
    float results[256];
    team_run(piece, results, team_size());
    return (double)LANES * CHAINS * ROUNDS * team_size();
}
