/* Rows become columns. In each step, the elements of two vectors alternate in a longer one, or in two where
 * that would be too long for one instruction: more than 128 bits, or a register if elements may cross from
 * one part of 128 bits to another. Vectors of several parts are as many transpositions at once. */
#include "compiler/simd/lanes/lanes.h"
#include "compiler/simd/memory/neighbours.h"

/* Elements first … first + width - 1 of both, in each part; the vectors have `stride` elements in a part. */
static LLVMValueRef alternate(struct simd *s, LLVMValueRef a, LLVMValueRef b, int parts, int stride,
                              int first, int width) {
    int indexes[GANG_MAX_LANES], count = 0;
    for (int part = 0; part < parts; part++)
        for (int i = 0; i < width; i++) {
            indexes[count++] = part * stride + first + i;
            indexes[count++] = (parts + part) * stride + first + i;
        }
    return lanes_shuffle(s, a, b, indexes, count);
}

/* `room`: elements of the longest vector of a part. */
static int transpose(struct simd *s, LLVMValueRef const *vectors, int count, int width, int parts, int room,
                     LLVMValueRef *out) {
    LLVMValueRef current[MOST_TRANSPOSED] = {NULL}, next[MOST_TRANSPOSED] = {NULL};
    int pieces = 1; /* vectors that belong together, by place of the elements */
    for (int i = 0; i < count; i++) current[i] = vectors[i];
    for (; count > 1; count /= 2) {
        bool fits = 2 * width <= room;
        for (int i = 0; i < count / 2; i++)
            for (int p = 0; p < pieces; p++) {
                LLVMValueRef a = current[i * pieces + p], b = current[(i + count / 2) * pieces + p];
                if (fits) {
                    next[i * pieces + p] = alternate(s, a, b, parts, width, 0, width);
                    continue;
                }
                for (int half = 0; half < 2; half++)
                    next[(i * pieces + p) * 2 + half] =
                        alternate(s, a, b, parts, width, half * width / 2, width / 2);
            }
        if (fits)
            width *= 2;
        else
            pieces *= 2;
        for (int i = 0; i < count / 2 * pieces; i++) current[i] = next[i];
    }
    for (int p = 0; p < pieces; p++) out[p] = current[p];
    return pieces;
}

static int bits_of(struct simd *s, LLVMValueRef vector) {
    return (int)LLVMSizeOfTypeInBits(s->unit->layout, LLVMGetElementType(LLVMTypeOf(vector)));
}

int lanes_transpose(struct simd *s, LLVMValueRef const *vectors, int count, int width, int parts,
                    LLVMValueRef *out) {
    return transpose(s, vectors, count, width, parts, 128 / bits_of(s, vectors[0]), out);
}

int lanes_interleave(struct simd *s, LLVMValueRef const *vectors, int count, int width, LLVMValueRef *out) {
    return transpose(s, vectors, count, width, 1, s->vector_bits / bits_of(s, vectors[0]), out);
}
