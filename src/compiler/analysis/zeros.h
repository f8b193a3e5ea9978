/* How many low bits of an integer or address are zero: the power of two that it is a multiple of. */
#ifndef SMELT_COMPILER_ANALYSIS_ZEROS_H
#define SMELT_COMPILER_ANALYSIS_ZEROS_H

#include "compiler/pass.h"

struct zeros_rules {
    /* An engine's facts about calls of intrinsics, parameters, objects and loads. 0 of other values; 63: the
     * value is 0. */
    unsigned (*of_source)(void *context, LLVMValueRef source);
    void *context;
    /* Addresses are followed, whose types have this layout. NULL: nothing is known of them. */
    LLVMTargetDataRef addresses;
};

/* At most the width of its type, and at most 63. Must hold for inactive lanes, too, so flags of instructions
 * are not used. */
unsigned zeros_of_value(const struct zeros_rules *rules, LLVMValueRef value);

/* Of a number; 63 of 0. */
unsigned zeros_of_number(uint64_t number);

#endif
