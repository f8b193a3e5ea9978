/* As many fused multiply-adds as the CPU can do, on registers. */
#include "bench/hand/handwritten.h"
#include "bench/cpu/threads.h"

#include <immintrin.h>

/* Twelve chains hide the latency of two units that take four cycles. */
#define CHAINS 12
#define ROUNDS 4000000

static void piece(void *context, int64_t index) {
    float *results = context;
    __m512 chain[CHAINS], factor = _mm512_set1_ps(0.999f), term = _mm512_set1_ps(0.001f);
    for (int c = 0; c < CHAINS; c++) chain[c] = _mm512_set1_ps((float)c);
    for (int round = 0; round < ROUNDS; round++)
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; c++) chain[c] = _mm512_fmadd_ps(chain[c], factor, term);
    __m512 sum = chain[0];
    for (int c = 1; c < CHAINS; c++) sum = _mm512_add_ps(sum, chain[c]);
    results[index] = _mm512_reduce_add_ps(sum);
}

double handwritten_multiply_adds(void) {
    float results[256];
    team_run(piece, results, team_size());
    return 16.0 * CHAINS * ROUNDS * team_size();
}
