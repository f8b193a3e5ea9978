/* Addresses as sums: of what is the same in all lanes, each times a number that the lane decides, and a
 * number that the lane decides. So can be seen where all lanes of a simdgroup load from, when only the code
 * knows. */
#ifndef SMELT_COMPILER_PTX_MATRIX_ADDRESS_H
#define SMELT_COMPILER_PTX_MATRIX_ADDRESS_H

#include "compiler/ptx/matrix/matrix.h"

#define ADDRESS_LANES 32
#define ADDRESS_TERMS 6

/* How a narrower value counts: RAW: whichever way it will be extended. */
enum extension { EXTENSION_RAW, EXTENSION_SIGN, EXTENSION_ZERO };

struct term {
    LLVMValueRef value; /* the same in all lanes; of __smelt_thread_index, the simdgroup's first */
    enum extension extension;
    int64_t times[ADDRESS_LANES];
};

struct address {
    struct term terms[ADDRESS_TERMS];
    int count;
    int64_t number[ADDRESS_LANES];
    /* The sum is the value, taken as signed, or unsigned; else only modulo its width. */
    bool is_signed, is_unsigned;
};

/* As the block takes it; false: it is no such sum. */
bool address_find(struct matrices *m, LLVMValueRef value, LLVMBasicBlockRef reader, struct address *address);
/* Bytes that the lane's addresses are apart at least: they are multiples of this power of two. */
uint64_t address_alignment(struct matrices *m, const struct address *address, int lane);
/* b - a, if it is a number. */
bool address_distance(const struct address *a, int lane_a, const struct address *b, int lane_b,
                      int64_t *distance);
/* A term's value as i32, built at the builder's position. */
LLVMValueRef address_term(struct unit *unit, const struct term *term);

#endif
