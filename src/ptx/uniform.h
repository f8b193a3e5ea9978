/* What is the same for all lanes of a simdgroup in a retargeted module, and where they all are together. */
#ifndef SMELT_PTX_UNIFORM_H
#define SMELT_PTX_UNIFORM_H

#include "base/arena.h"
#include "ir/flow.h"
#include "ir/pass.h"

struct uniformity {
    struct unit *unit;
    struct arena arena;
    struct flow flow;
    LLVMValueRef *differing; /* a set: values that may differ between lanes */
    size_t capacity;
    uint64_t *after; /* by block, a bit set: those that every way from it to the end passes */
    int words;       /* of such a set */
    bool *partial;   /* by block: run by some lanes only, or by lanes at different times */
    bool *joining;   /* by block: lanes meet there that went different ways */
    bool *followed;  /* by block: its branch was */
};

/* A snapshot: blocks and branches must not change while it is used; values that are added later are taken to
 * be uniform. To be freed, after a failure too. */
smelt_status uniformity_find(struct unit *unit, struct uniformity *u);
void uniformity_free(struct uniformity *u);

/* The value is the same in all lanes that compute it together. */
bool is_uniform(const struct uniformity *u, LLVMValueRef value);
/* All lanes the simdgroup has run the block together, or none does. */
bool is_uniform_block(const struct uniformity *u, LLVMBasicBlockRef block);
/* Assembly that makes a lane's value of the lane's own, and does no more. */
bool is_plain_assembly(LLVMValueRef instruction);
/* The shape says that every simdgroup has 32 lanes. */
bool has_whole_simdgroups(const struct code_shape *shape);

#endif
