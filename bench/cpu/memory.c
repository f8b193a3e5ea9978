#include "bench/cpu/memory.h"
#include "bench/cpu/threads.h"

#include <immintrin.h>

#define PIECE (1 << 18) /* floats: 1 MiB */

struct copy {
    const float *from;
    float *to;
    int64_t count;
};

/* One piece of a copy. `wide` ones need AVX-512, the others run anywhere. */
#define COPY_PIECE(name, attributes, vector, load, store, step, end)                             \
    attributes static void name(void *context, int64_t index) {                                  \
        const struct copy *copy = context;                                                       \
        int64_t first = index * PIECE, past = first + PIECE;                                     \
        if (past > copy->count) past = copy->count;                                              \
        for (int64_t i = first; i < past; i += 4 * (step)) {                                     \
            vector a = load(copy->from + i), b = load(copy->from + i + (step));                  \
            vector c = load(copy->from + i + 2 * (step)), d = load(copy->from + i + 3 * (step)); \
            store(copy->to + i, a);                                                              \
            store(copy->to + i + (step), b);                                                     \
            store(copy->to + i + 2 * (step), c);                                                 \
            store(copy->to + i + 3 * (step), d);                                                 \
        }                                                                                        \
        end;                                                                                     \
    }

#define WIDE __attribute__((target("avx512f")))
COPY_PIECE(plain, , __m128, _mm_loadu_ps, _mm_storeu_ps, 4, (void)0)
COPY_PIECE(plain_wide, WIDE, __m512, _mm512_loadu_ps, _mm512_storeu_ps, 16, (void)0)
COPY_PIECE(bypassing, , __m128, _mm_loadu_ps, _mm_stream_ps, 4, _mm_sfence())
COPY_PIECE(bypassing_wide, WIDE, __m512, _mm512_loadu_ps, _mm512_stream_ps, 16, _mm_sfence())

static void run(team_piece *narrow, team_piece *wide, const float *from, float *to, int64_t count) {
    struct copy copy = {from, to, count};
    team_run(__builtin_cpu_supports("avx512f") ? wide : narrow, &copy, (count + PIECE - 1) / PIECE);
}

void machine_copy(const float *from, float *to, int64_t count) {
    run(plain, plain_wide, from, to, count);
}

void machine_copy_bypassing(const float *from, float *to, int64_t count) {
    run(bypassing, bypassing_wide, from, to, count);
}
