/* Tests of accesses, in the code of one thread, against the extents of their arrays and their alignment:
 *
 *   void __smelt_inside_S(ptr address, i64 low, i64 bytes, i64 start, i64 extent, i1 when, ptr sites)
 *       if `when`: ends the launch unless the `bytes` bytes from address + low on are among the `extent`
 *       bytes from `start` on; sites: the accesses that it covers, struct access_site (abi/cpu_context.h)
 *
 *   i1 __smelt_leaves_S(ptr first, ptr last, i64 low, i64 bytes, i64 start, i64 extent, i1 also)
 *       whether, for any thread that runs along, `also` is true or an access from `first` or `last` would not
 *       be inside; true is always right
 *
 *   i1 __smelt_launch_leaves(i32 number)
 *       the answer to a question about all threads of the launch (launch.c); true is always right
 *
 *   void __smelt_aligned_S(ptr address, i64 bytes, ptr sites)
 *       ends the launch unless the address is a multiple of `bytes`; only for engines that need it
 *       (engine.h, needs_alignment)
 *
 * S is the address space of the addresses. Engines lower them (cpu/inside.c, simd/memory/inside.c,
 * ptx/memory/inside.c).
 *
 * A test stands before the first of the accesses that it covers: those of a block that are a constant apart.
 * None is needed for what constants show, nor where one covers it on all ways that lead there. In loops whose
 * addresses are linear in a counter, `leaves` looks at the first and the last round, and `inside` only asks
 * for its answer. */
#ifndef SMELT_COMPILER_BOUNDS_BOUNDS_H
#define SMELT_COMPILER_BOUNDS_BOUNDS_H

#include "abi/cpu_context.h"
#include "compiler/analysis/flow.h"

enum {
    INSIDE_ADDRESS,
    INSIDE_LOW,
    INSIDE_BYTES,
    INSIDE_START,
    INSIDE_EXTENT,
    INSIDE_WHEN,
    INSIDE_SITES,
    INSIDE_OPERANDS
};
enum { ALIGNED_ADDRESS, ALIGNED_BYTES, ALIGNED_SITES, ALIGNED_OPERANDS };
enum {
    LEAVES_FIRST,
    LEAVES_LAST,
    LEAVES_LOW,
    LEAVES_BYTES,
    LEAVES_START,
    LEAVES_EXTENT,
    LEAVES_ALSO,
    LEAVES_OPERANDS
};

/* What an address is computed from. */
struct array_object {
    LLVMValueRef start, extent; /* i64; NULL: not known, and nothing is tested */
    enum access_object kind;
    uint32_t slot;         /* of an argument */
    LLVMValueRef variable; /* ACCESS_VARIABLE, ACCESS_PRIVATE */
};

/* An address as a sum: root + extended(index) * scale + constant; index NULL: root + constant. `wraps`: a
 * part of the constant was added to the index before it was extended, and may have wrapped around. `wide`:
 * the rest of the constant leads out of the index's element. */
struct place {
    LLVMValueRef root, index;
    LLVMOpcode extension; /* LLVMSExt, LLVMZExt, or 0 */
    int64_t scale, constant;
    bool wraps, wide;
};

struct bounds {
    struct unit *unit;
    struct arena arena;
    struct flow flow;
    struct array_object *arguments; /* CPU_MAX_SLOTS, by index, created when first needed */
    struct array_object *slots;     /* … of threadgroup memory */
    struct joined *joined;          /* objects.c */
    struct test *tests;             /* bounds.c: those that are always done, the last first */
    struct loop_test *loop_tests;   /* loops.c: by loop */
    struct fact **facts;            /* facts.c: by block */
    struct questions *questions;    /* launch.c */
    struct apart *apart;            /* apart.c: the last first */
    LLVMMetadataRef file;           /* of the last site, and its text */
    LLVMValueRef file_text;
    LLVMValueRef named, name_text; /* of the last variable */
};

/* objects.c */
struct array_object bounds_object(struct bounds *b, LLVMValueRef address);
/* Of an address in a private array, i64, at the builder's place; NULL: it takes several ways. */
LLVMValueRef bounds_private_offset(struct bounds *b, LLVMValueRef address);
struct place bounds_place(struct unit *unit, LLVMValueRef address);
/* Whether it is computed from an address, its first operand, by adding to it or by a cast. */
bool bounds_is_step(LLVMValueRef value);
/* … with the index as the address's steps have it: a narrow one is signed, and `extension` is 0. */
struct place bounds_steps(struct unit *unit, LLVMValueRef address);

/* range.c — the least and the greatest value of a signed number, or of an offset in bytes. */
struct value_range {
    int64_t low, high;
};
/* … of an address of `block` from the root that it is computed from. False: nothing is known. */
bool bounds_offset(struct bounds *b, int block, LLVMValueRef address, LLVMValueRef *root,
                   struct value_range *range);
/* … of an integer where `block` sees it. */
struct value_range bounds_range(struct bounds *b, int block, LLVMValueRef value);

/* facts.c — what a value can be in `block`, of the range r that it can have anywhere; `range` returns that of
 * values it is compared with. */
struct fact {
    LLVMValueRef value, other; /* value predicate other */
    LLVMIntPredicate predicate;
    struct fact *next; /* of this block and those above */
};
smelt_status bounds_facts_begin(struct bounds *b);
/* The first fact of a value in a block, and the next one; NULL: there is none. */
const struct fact *bounds_facts(struct bounds *b, int block, LLVMValueRef value);
const struct fact *bounds_next_fact(const struct fact *fact);
struct value_range bounds_narrow(struct bounds *b, int block, LLVMValueRef value, struct value_range r,
                                 struct value_range (*range)(void *context, LLVMValueRef other),
                                 void *context);

/* aligned.c — tests a block's addresses that are not proved to be multiples of their elements' size. */
void bounds_test_alignment(struct bounds *b, int block);

/* sites.c — an array of struct access_site that begins at the first access; `offset`: from the test's address
 */
struct tested_access {
    LLVMValueRef instruction;
    int64_t offset;
    uint64_t bytes;
    bool writes;
    struct tested_access *next;
};
LLVMValueRef bounds_sites(struct bounds *b, const struct array_object *object,
                          const struct tested_access *accesses, int64_t low);

/* counters.c — of a loop's counter whose first and last value are constants: its values where `block` sees
 * it. */
bool bounds_loop_counts(struct bounds *b, LLVMValueRef phi, int block, struct value_range *range);
/* The comparison of the phi or of its next value by which the block goes on in the loop. */
bool bounds_loop_bound(struct bounds *b, int loop, int block, LLVMValueRef phi, LLVMValueRef next,
                       LLVMIntPredicate *predicate, LLVMValueRef *bound, bool *sees_next);
/* Whether the phi of the loop's header counts to a known last value. */
bool bounds_loop_is_counter(struct bounds *b, int loop, LLVMValueRef phi);
/* Whether it is computed in the loop. */
bool bounds_in_loop(struct bounds *b, LLVMValueRef value, int loop);
/* i1: x or y, of which NULL is false. */
LLVMValueRef bounds_either(struct bounds *b, LLVMValueRef x, LLVMValueRef y);
/* Whether `next` is the phi and a constant, not zero. */
bool bounds_loop_step(LLVMValueRef phi, LLVMValueRef next, int64_t *step);

/* loops.c — the loop whose preheader can tell whether any round's access leaves the object: then a question
 * is added there; else -1. The address is that of `block`. */
smelt_status bounds_loops_begin(struct bounds *b);
int bounds_loop_ask(struct bounds *b, int block, LLVMValueRef address, int64_t low, uint64_t bytes,
                    const struct array_object *object);
/* The test is done if the answers to the loop's questions say so. */
void bounds_loop_wait(struct bounds *b, int loop, LLVMValueRef test);
/* The kind of metadata of answers to questions about accesses that each round makes. */
unsigned bounds_sure_answer(struct unit *unit);
/* When all questions are asked. */
void bounds_loops_end(struct bounds *b);
/* Moves the instructions of `before`'s block that compute the address in front of it; only of an address that
 * bounds_loop_ask has accepted. */
void bounds_loop_lift(LLVMValueRef address, LLVMValueRef before);

/* launch.c — i1, the same for all threads: whether the address may leave the object in any thread of the
 * launch. NULL: that is not known before the launch, or a test of the address itself is as simple. */
LLVMValueRef bounds_launch_ask(struct bounds *b, int block, LLVMValueRef address, int64_t low, uint64_t bytes,
                               const struct array_object *object);
/* When all questions are asked. */
void bounds_launch_end(struct bounds *b);

/* apart.c — a call of `inside` before an access of a block that is in no loop; `when`: of bounds_launch_ask.
 */
void bounds_apart_add(struct bounds *b, int block, LLVMValueRef place,
                      const LLVMValueRef arguments[INSIDE_OPERANDS]);
/* Blocks are split: `flow` is not valid afterwards. */
void bounds_apart_end(struct bounds *b);

/* call.c — at the builder's place. */
LLVMValueRef bounds_intrinsic(struct bounds *b, enum intrinsic intrinsic, LLVMTypeRef result,
                              LLVMValueRef *arguments, unsigned count);
static inline LLVMValueRef bounds_i64(struct bounds *b, uint64_t value) {
    return LLVMConstInt(type_i64(b->unit), value, false);
}

#endif
