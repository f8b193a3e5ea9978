/* Accesses of one thread to more than 16 bytes of neighbours: one vector of 32 or 64 bytes for each lane. If
 * a cache line were taken in parts of 16 bytes, one part for all lanes after the other, lines would be lost
 * in between where more of them are in one set of the first cache than it has ways: in rows whose length is a
 * power of two.
 *
 * A chunk of 16 lanes in registers of 512 bits, or of 8 in registers of 256. Pieces are 16 bytes. Vectors of
 * lanes i, i + lanes / parts, … have a piece of each; they are transposed within the parts (transpose.c). */
#include "compiler/simd/lanes/lanes.h"
#include "compiler/simd/memory/neighbours.h"

enum { PIECE_BYTES = 16, MOST_PIECES = 4 };

/* Pieces of both vectors, by number. */
static LLVMValueRef pick(struct simd *s, LLVMValueRef a, LLVMValueRef b, const int *pieces, int count) {
    LLVMTypeRef element = LLVMGetElementType(LLVMTypeOf(a));
    int width = PIECE_BYTES / (int)LLVMABISizeOfType(s->unit->layout, element), indexes[GANG_MAX_LANES];
    for (int i = 0; i < count * width; i++) indexes[i] = pieces[i / width] * width + i % width;
    return lanes_shuffle(s, a, b, indexes, count * width);
}

/* Four lanes' vectors become vectors of one piece of each. */
static void pieces_of_four(struct simd *s, LLVMValueRef const *lanes, int pieces, LLVMValueRef *out) {
    for (int from = 0; from < pieces; from += 2) {
        const int both[4] = {from, from + 1, pieces + from, pieces + from + 1};
        LLVMValueRef a = pick(s, lanes[0], lanes[1], both, 4), b = pick(s, lanes[2], lanes[3], both, 4);
        for (int n = 0; n < 2; n++) out[from + n] = pick(s, a, b, (const int[4]){n, 2 + n, 4 + n, 6 + n}, 4);
    }
}

static void lanes_of_four(struct simd *s, LLVMValueRef const *vectors, int pieces, LLVMValueRef *out) {
    LLVMValueRef pairs[MOST_PIECES]; /* lanes 0 and 1, lanes 2 and 3, of two pieces; of two others */
    for (int from = 0; from < pieces; from += 2)
        for (int n = 0; n < 2; n++)
            pairs[from + n] = pick(s, vectors[from], vectors[from + 1],
                                   (const int[4]){2 * n, 4 + 2 * n, 2 * n + 1, 5 + 2 * n}, 4);
    for (int lane = 0; lane < 4; lane++) {
        int first = lane % 2 * 2;
        const int own[4] = {first, first + 1, 4 + first, 5 + first};
        out[lane] = pick(s, pairs[lane / 2], pieces == 4 ? pairs[2 + lane / 2] : NULL, own, pieces);
    }
}

/* One of two lanes, of vectors with a piece of each. */
static LLVMValueRef lane_of_two(struct simd *s, LLVMValueRef const *vectors, int pieces, int lane) {
    LLVMValueRef pairs[2] = {NULL};
    for (int from = 0; from < pieces; from += 2)
        pairs[from / 2] = pick(s, vectors[from], vectors[from + 1], (const int[2]){lane, 2 + lane}, 2);
    return pieces == 4 ? pick(s, pairs[0], pairs[1], (const int[4]){0, 1, 2, 3}, 4) : pairs[0];
}

void lanes_from_lines(struct simd *s, LLVMValueRef const *loaded, int count, int size, LLVMValueRef *values) {
    int pieces = count * size / PIECE_BYTES, parts = s->chunk_lanes * size / PIECE_BYTES,
        lanes = s->chunk_lanes / parts;
    LLVMValueRef vectors[MOST_PIECES][GANG_MAX_LANES], own[MOST_PIECES], together[MOST_PIECES];
    for (int i = 0; i < lanes; i++) {
        for (int part = 0; part < parts; part++) together[part] = loaded[part * lanes + i];
        if (parts == 4)
            pieces_of_four(s, together, pieces, own);
        else
            for (int n = 0; n < pieces; n++)
                own[n] = pick(s, together[0], together[1], (const int[2]){n, pieces + n}, 2);
        for (int n = 0; n < pieces; n++) vectors[n][i] = own[n];
    }
    for (int n = 0; n < pieces; n++)
        (void)lanes_transpose(s, vectors[n], lanes, lanes, parts, values + (ptrdiff_t)n * lanes);
}

void lanes_to_lines(struct simd *s, LLVMValueRef const *values, int count, int size, LLVMValueRef *stored) {
    int pieces = count * size / PIECE_BYTES, parts = s->chunk_lanes * size / PIECE_BYTES,
        lanes = s->chunk_lanes / parts;
    LLVMValueRef vectors[MOST_PIECES][GANG_MAX_LANES], own[MOST_PIECES], together[MOST_PIECES];
    for (int n = 0; n < pieces; n++)
        (void)lanes_transpose(s, values + (ptrdiff_t)n * lanes, lanes, lanes, parts, vectors[n]);
    for (int i = 0; i < lanes; i++) {
        for (int n = 0; n < pieces; n++) own[n] = vectors[n][i];
        if (parts == 4)
            lanes_of_four(s, own, pieces, together);
        else
            for (int part = 0; part < 2; part++) together[part] = lane_of_two(s, own, pieces, part);
        for (int part = 0; part < parts; part++) stored[part * lanes + i] = together[part];
    }
}
