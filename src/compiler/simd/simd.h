/* The data model of the vectoriser: from the optimised code of one thread to code of a gang of threads.
 *
 * Words. A gang is `lanes` neighbouring threads of a threadgroup. A value is *uniform* if all lanes have the
 * same; *affine* if lane i has the value of lane 0 plus a constant offset[i]; else *varying*. Uniform and
 * affine values stay scalars (that of lane 0); a varying value is an array of chunks, LLVM vectors of
 * `chunk_lanes` lanes each. A block's mask says which lanes execute it; NULL means all of them.
 *
 * Passes, in order: prepare.c (the entry becomes a form the others understand), flow_order.c (blocks in the
 * order they are laid out), divergence.c with shape.c, transfer.c and range.c (which values are uniform,
 * affine, varying; which blocks run for some lanes only), locks.c (refuses lanes that would wait for each
 * other), control.c with blocks.c and branches.c (loops, blocks, edges, masks, with one file for each family
 * of instructions: arithmetic.c, memory.c, private.c, atomic.c, simdgroup.c, context.c, log.c). gang_size.c
 * chooses the gang's lanes, with an analysis (analyse.c) for each choice that it tries; vectorise.c runs all
 * of it. */
#ifndef SMELT_COMPILER_SIMD_SIMD_H
#define SMELT_COMPILER_SIMD_SIMD_H

#include "base/arena.h"
#include "abi/cpu_context.h"
#include "compiler/budget.h"
#include "compiler/analysis/paths.h"

enum { SHAPE_UNKNOWN = -2, SHAPE_VARYING = -1, SHAPE_UNIFORM = 0 /* others: affine, by number */ };
enum { PIECE_UNKNOWN = -2, NO_PIECE = -1 /* others: a shape, see piece.c */ };

/* The properties and the code of one value of the original entry. */
struct value {
    LLVMValueRef original;
    int shape;
    int piece;             /* varying: the shape within each chunk, if there is one (piece.c) */
    int block;             /* where it is defined, by place in the order; -1: everywhere (constants) */
    LLVMValueRef scalar;   /* uniform, affine: lane 0's value; packed: a vector */
    LLVMValueRef *chunks;  /* varying: chunk_count vectors */
    LLVMValueRef slot;     /* stack slot of the scalar, for values that cross guarded blocks; or NULL */
    LLVMValueRef *slots;   /* … of the chunks */
    bool packed;           /* varying: the lanes of each simdgroup share it (packed.c) */
    bool signed_index;     /* a widened index: affine only if lane 0 is taken as signed (shape.c) */
    bool speculated;       /* its shape is assumed, and checked where it is computed (speculation.c) */
    int element;           /* alloca: bytes of its elements if these are interleaved by lane; or 0 */
    LLVMValueRef memory;   /* alloca: that of all lanes */
    struct matrix *matrix; /* it is a half of one, whose chunks are rows (matrix.h); or NULL */
    struct neighbours *neighbours; /* an access that is done together with others (neighbours.h); or NULL */
    const uint64_t *numbers;       /* of every thread of the group (numbers.c); or NULL … */
    bool unnumbered;               /* … for good */
    int order;                     /* its place among all instructions: see there */
    int loaded;                    /* the emission whose code may use `scalar` and `chunks`; -1: none yet */
    struct value *next;            /* in the table */
};

/* One block of the entry, by place; simd->paths has its loop and its divergence. */
struct block {
    LLVMBasicBlockRef original;
    int item;     /* its place in the layout */
    bool returns; /* all ways from here lead to an explicit return, and to no barrier */
    int mask_of;  /* the block whose mask this one has, too; itself: it keeps one */
    /* Emission. */
    LLVMBasicBlockRef guard, head, body; /* new: skips the block (or NULL), loads from slots, code */
    LLVMValueRef *mask_slots;            /* own mask: what arrives, one for each chunk */
    LLVMValueRef *held_slots;            /* header of a divergent loop: the mask of this round */
    LLVMValueRef *mask;                  /* in its code; entries NULL: all lanes */
};

struct loop {
    int item;              /* the place in the layout where its rounds end */
    bool full_rounds;      /* being emitted for the rounds in which all lanes stay */
    bool last_rounds;      /* being emitted for the one or two rounds after those */
    LLVMBasicBlockRef end; /* divergent: where the next round is decided */
};

/* The layout of the new function: blocks, and the ends of loops, in the order control passes them. */
struct item {
    int block, loop;   /* one of them, the other is -1 */
    uint64_t *pending; /* bit set of items that must still be visited when this one is reached */
};

/* A line of `smelt show --why`. */
struct remark {
    struct remark *next;
    const char *text; /* "gather: …" */
    const char *file;
    unsigned line, column;
};

#define SHARED_SLOTS 16

struct simd;
struct turns;
/* What values.c needs to know of matrices, where there are any: see matrix_operands.c. */
struct matrix_forms {
    LLVMValueRef (*lanes)(struct simd *s, LLVMValueRef half, int chunk);
    LLVMValueRef (*operand)(struct simd *s, LLVMValueRef operand, int chunk);
    void (*keep_row)(struct simd *s, LLVMValueRef half, int chunk, LLVMValueRef row);
};

/* Tests that run if `when` is true: they end in `end`, and `after` follows, where none has code yet. */
struct inside_rare {
    LLVMValueRef when;
    LLVMBasicBlockRef end, after;
};

/* The access of a gang that is being written chunk by chunk (gang_access.c): of loads, all chunks' values. */
struct gang_access {
    LLVMValueRef access, addresses, values; /* the slots of lanes' addresses and values */
    LLVMTypeRef element;                    /* of the slot of values */
    int serial;
};

struct simd {
    struct unit *unit;
    struct arena arena;
    LLVMValueRef entry;        /* the original */
    LLVMValueRef gang;         /* the function being written */
    LLVMBasicBlockRef start;   /* the gang's first code */
    LLVMBasicBlockRef general; /* written first: where gangs go on that fail a speculation; or NULL */
    bool speculating;
    bool behind_guards;   /* … also on quotients behind the kernel's guards */
    bool guards_matter;   /* masks inside the kernel's guards are expensive */
    bool edges_matter;    /* the code is small enough for a second one of gangs away from edges */
    bool parting_matters; /* … also where positions decide which accesses a thread does */
    LLVMValueRef context; /* its parameter */
    LLVMValueRef group;   /* struct group_context *, loaded once */
    LLVMValueRef extents; /* of tested code: const struct buffer_extent *, loaded once */
    int lanes, chunk_lanes, chunk_count;
    int first_chunk, end_chunk; /* that are being written: all, or a part of them (parts.c) */
    int vector_bits;            /* of a chunk of 32-bit elements: 512, 256 or 128, at most the target's */
    int registers;              /* vector registers of the target */
    bool multiplies_bfloats;    /* the target does (AVX512-BF16), … */
    bool multiplies_blocks;     /* … and has AMX */
    const struct code_shape *code;
    /* Analysis. */
    struct value **table;
    unsigned table_size;
    const int64_t **shapes; /* by number: lanes offsets, the first 0 */
    int shape_count, shape_capacity;
    int numbered_values; /* numbers.c */
    int first_effect;    /* place of the first block with an effect on memory (effects.c) */
    struct flow flow;
    struct path_graph paths;
    struct block *blocks;
    struct loop *loops;
    struct item *items;
    int item_count;
    /* Emission. */
    bool brief; /* quick code: an access calls a function for all lanes rather than branch for a chunk */
    bool many_accesses;             /* they must not branch one by one */
    bool many_unknown;              /* … nor those whose addresses only the run can tell */
    int current;                    /* block being emitted … */
    int serial;                     /* … and the number of this emission: some blocks are emitted twice */
    LLVMBasicBlockRef slots_block;  /* where stack slots are created */
    struct round_slot *round_slots; /* those of masks and values (slots.c) */
    LLVMValueRef shared_slots[SHARED_SLOTS]; /* of accesses lane by lane (access.c), one for each type */
    int shared_slot_count;
    LLVMValueRef address_slot;          /* a chunk's addresses in such accesses */
    struct extent_count *extent_counts; /* extents.c: computed once */
    struct inside_rare inside_rare;     /* … and the last block of tests that a loop's answer leads to */
    struct gang_access gang_access;     /* gang_access.c */
    LLVMValueRef lane_test; /* a slot for a struct lane_test, shared by all tests; NULL: none yet */
    LLVMValueRef
        inside_answered; /* … an answer that is known to be no: tests that wait for it are left out */
    struct matrix *matrices, *pending_matrices; /* matrix.h: all; products that wait to be written */
    const struct matrix_forms *matrix_forms;
    struct matrix_rows *free_matrix_rows;
    struct matrix_block *matrix_block; /* matrix_block.c: of the loop that is being written; or NULL */
    int matrix_part, matrix_tiles;     /* matrix_loop.c: which part is written, or NO_PART; tiles met in it */
    LLVMBasicBlockRef matrix_entry;    /* the part's loop is entered from there */
    bool packing;                      /* packed.c: a chunk has one lane for each simdgroup */
    LLVMValueRef row_reader;           /* half of a matrix: chunk_of gives rows of its operands */
    LLVMValueRef *entry_mask;          /* chunk_count; entries NULL: all lanes */
    struct remark *remarks;            /* by line */
    struct turns *turns;               /* turns.c: the gang is one chunk for now; or NULL */
    bool refused;                      /* the message in the unit's result has the reason */
};

/* ---- Types and constants (values.c). */
/* Whether threads side by side, of one lane per chunk, go on together from instruction to instruction. */
bool simd_goes_together(const struct simd *s);
LLVMTypeRef chunk_type(struct simd *s, LLVMTypeRef element);
LLVMTypeRef simd_i1(struct simd *s);
LLVMTypeRef mask_type(struct simd *s);                         /* of one chunk */
LLVMValueRef chunk_splat(struct simd *s, LLVMValueRef scalar); /* to a chunk */
LLVMValueRef lanes_splat(struct simd *s, LLVMValueRef scalar, int lanes);
LLVMValueRef lanes_constant(struct simd *s, LLVMTypeRef element, const int64_t *values, int count);
LLVMValueRef mask_all(struct simd *s); /* a chunk's mask of ones */

/* ---- Values during emission (values.c). The builder is in the code of block s->current. */
struct value *value_of(struct simd *s, LLVMValueRef original); /* finds or adds */
int shape_of(struct simd *s, LLVMValueRef original);           /* constants are uniform */
/* Lane 0's value, of uniform and affine values; of a packed value, its vector. */
LLVMValueRef scalar_of(struct simd *s, LLVMValueRef original);
/* Of a piece (piece.c): the scalar of one chunk. */
LLVMValueRef chunk_scalar(struct simd *s, LLVMValueRef original, int chunk);
/* The vector of one chunk, of any value: uniform ones are spread, affine ones get their offsets. */
LLVMValueRef chunk_of(struct simd *s, LLVMValueRef original, int chunk);
/* The same as it is kept: of a half of a matrix, a row. */
LLVMValueRef chunk_kept(struct simd *s, LLVMValueRef original, int chunk);
/* Whether a value that is not an operand of the current instruction is available here. */
bool value_is_here(struct simd *s, LLVMValueRef original);
/* Whether the code of the block may be jumped over: what it computes is in slots. */
bool simd_is_skipped(struct simd *s, int place);
/* Values that the lanes of each simdgroup share (packed.c): vectors with an element for each of the gang's
 * simdgroups. packed_of: the vector of such a value, or of an operand of one. */
bool packed_is(struct simd *s, LLVMValueRef original);
int packed_count(const struct simd *s);
LLVMTypeRef packed_type(struct simd *s, LLVMTypeRef element);
LLVMValueRef packed_of(struct simd *s, LLVMValueRef original);
/* The code of an instruction. Kept in stack slots if other blocks need it. */
void scalar_set(struct simd *s, LLVMValueRef original, LLVMValueRef scalar);
void chunk_set(struct simd *s, LLVMValueRef original, int chunk, LLVMValueRef vector);
/* The mask of a chunk of the current block; NULL: all its lanes are on. */
LLVMValueRef mask_chunk(struct simd *s, int chunk);
/* The same, never NULL. */
LLVMValueRef mask_or_ones(struct simd *s, int chunk);
/* i1: is any lane of the chunks on? NULL entries count as on. */
LLVMValueRef mask_any(struct simd *s, LLVMValueRef const *masks, int count);
/* The mask of one chunk as an integer of chunk_lanes bits. */
LLVMValueRef mask_bits(struct simd *s, LLVMValueRef mask);
/* As i32; NULL: all lanes are on. */
LLVMValueRef mask_as_i32(struct simd *s, LLVMValueRef mask);
/* Chunks side by side as one vector of count × chunk_lanes lanes, and back. */
LLVMValueRef chunks_join(struct simd *s, LLVMValueRef const *chunks, int count);
LLVMValueRef lanes_part(struct simd *s, LLVMValueRef vector, int first, int lanes);
/* Chunks of one simdgroup: 32 / chunk_lanes, or all where the gang is smaller. */
int chunks_of_simdgroup(struct simd *s);
/* A new block after the builder's. */
LLVMBasicBlockRef simd_block(struct simd *s, const char *name);
/* Calls an intrinsic with `count` overloaded types. */
LLVMValueRef simd_intrinsic(struct simd *s, const char *name, LLVMTypeRef *types, unsigned type_count,
                            LLVMValueRef *arguments, unsigned count);
LLVMValueRef simd_i32(struct simd *s, int64_t value);

/* ---- Stack slots (slots.c). */
/* A slot in the function's first block. */
LLVMValueRef simd_slot(struct simd *s, LLVMTypeRef type);
/* … of the contents of a slot, which may lie in an array of them. */
LLVMTypeRef simd_slot_type(LLVMValueRef slot);
/* A slot for one round of a loop of the original (-1: the function), with its first contents; NULL:
 * none. The headers of the loop must have their new blocks. */
LLVMValueRef simd_round_slot(struct simd *s, LLVMTypeRef type, LLVMValueRef first, int loop);
/* … when all code has been written. */
smelt_status simd_begin_slots(struct simd *s);

/* A function of the runtime; at most 8 arguments. */
LLVMValueRef simd_call_runtime(struct simd *s, const char *name, LLVMTypeRef result, LLVMValueRef *arguments,
                               unsigned count);
/* The address of mask bits of a gang, one word for 32 lanes. */
LLVMValueRef lanes_in_memory(struct simd *s, LLVMValueRef const *masks);
/* The address of a field, `offset` bytes from `base`. */
LLVMValueRef simd_field(struct simd *s, LLVMValueRef base, size_t offset);

/* ---- Places in the order (flow_order.c). */
int simd_place(struct simd *s, LLVMBasicBlockRef original);

/* ---- Shapes (shape.c). */
int shape_intern(struct simd *s, const int64_t *offsets); /* SHAPE_VARYING when there are too many */
int shape_stride(struct simd *s, int64_t stride);
const int64_t *shape_offsets(struct simd *s, int shape); /* of shape >= 0 */
/* … the least and the greatest of so many lanes. */
struct span {
    int64_t least, most;
};
struct span shape_span(struct simd *s, int shape, int first, int count);
int shape_join(int a, int b);
/* a × p + b × q; `width` of the result's type. */
int shape_combine(struct simd *s, int a, int64_t p, int b, int64_t q, unsigned width);
int64_t shape_wrap(uint64_t value, unsigned width);
/* Of an integer or address; 0 of anything else. */
unsigned shape_width(LLVMValueRef value);
bool shape_constant(LLVMValueRef value, int64_t *out);
/* Offsets that cannot carry an index from one end of the 32-bit numbers to another one that is used. */
bool shape_is_near(struct simd *s, int shape);
/* A widened integer that is an index into memory and used for nothing else. */
bool shape_is_index(LLVMValueRef widened);
/* transfer.c — the shape of an instruction's result from its operands' (phis: divergence.c). */
int shape_transfer(struct simd *s, LLVMValueRef instruction);
/* numbers.c — the shape of an integer that follows from the thread's place in a group of known size; or
 * SHAPE_VARYING. */
int shape_by_number(struct simd *s, LLVMValueRef instruction);

/* ---- Intervals and low bits (range.c). */
struct range {
    uint64_t low, high;
};
/* The integer, taken as unsigned, is in the interval in all lanes: those that hold no thread or are off, too,
 * as far as their value comes from positions and constants. Wider integers than 64 bits: nothing is known. */
struct range range_unsigned(struct simd *s, LLVMValueRef integer);
/* How many low bits of an integer are zero in lane 0 of every gang (compiler/analysis/zeros.h). */
unsigned range_zero_bits(struct simd *s, LLVMValueRef lane0);

/* ---- Families of instructions. Each returns false for an instruction of another family; a construct
 * that cannot be done is refused with a sentence. `chunk` is the chunk to emit. */
/* remark.c — refuses: the scalar engine will run the kernel. The line is that of the instruction, if there is
 * one. */
void simd_refuse(struct simd *s, LLVMValueRef instruction, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A line for --why; costs nothing without it. */
void simd_remark(struct simd *s, LLVMValueRef instruction, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The line of the user's that the instruction comes from; 0: none. */
unsigned remark_line(LLVMValueRef instruction);

/* ahead.c — a value that is the result of a reduction over a simdgroup, for pass_simd_ahead. */
void ahead_mark(struct unit *unit, LLVMValueRef reduction);
/* arithmetic.c — everything without memory and without other lanes: varying results only. */
bool emit_arithmetic(struct simd *s, LLVMValueRef instruction, int chunk);
/* division.c — a chunk of 32-bit numbers, none above 2^31, by a scalar that is not 0, all unsigned. */
LLVMValueRef chunk_divide(struct simd *s, LLVMValueRef chunk, LLVMValueRef divisor, bool remainder);
/* piece.c — values with a scalar for each chunk. */
int piece_view(struct simd *s, LLVMValueRef original); /* the offsets within chunks, of any value */
int piece_transfer(struct simd *s, LLVMValueRef instruction);
int piece_of_phi(struct simd *s, LLVMValueRef phi);
bool piece_is(struct simd *s, LLVMValueRef original);
/* The scalar of a chunk's first lane; of values that have a view. */
LLVMValueRef piece_first_lane(struct simd *s, LLVMValueRef original, int chunk);
bool emit_piece(struct simd *s, LLVMValueRef instruction, int chunk);
/* copies.c — removes promises of one thread's instruction that do not hold for a gang. */
void copy_drop_metadata(LLVMValueRef copy);
void copy_drop_promises(LLVMValueRef copy);
/* … poison-generating and fast-math flags of a scalar instruction, for its vector form: poison is per lane.
 */
void copy_flags(LLVMValueRef from, LLVMValueRef to);
/* whole_group.c — before the analysis: how large the code of a gang would be that is the whole group. */
struct whole_group {
    int instructions; /* of its code, on vectors */
    int carried;      /* vectors of sums that its loops carry and that must stay in registers */
    bool uneven;      /* a loop with accesses lane by lane runs for as many rounds as each thread needs */
};
smelt_status simd_measure_whole_group(struct simd *s, int threads, int chunk_lanes,
                                      struct whole_group *group);
/* rounds.c — whether a loop of one block, of a thread's code, ends after few rounds whatever its operands. */
bool simd_has_few_rounds(LLVMBasicBlockRef block);

/* narrow.c — code that computes only with bytes and 16-bit numbers. A cheap test of whether it may be such
 * code; after the analysis, the lanes that its chunks should have. */
bool simd_may_be_narrow(struct simd *s);
int simd_narrow_lanes(struct simd *s);

/* parts.c — threads side by side whose tiles are written one after another. */
#define LANES_IN_PARTS 8
/* … how many chunks of the gang a loop of this one block is written for at a time; *before: the block
 * that leads to it, if these are not all. */
int simd_part_chunks(struct simd *s, int place, int *before);
/* Registers that the values take which a chunk carries around the loop of one block. */
int simd_carried_registers(struct simd *s, LLVMBasicBlockRef block);
/* … whether the block is a loop of its own, of instructions that suit, which can be written in parts. */
bool simd_can_be_in_parts(struct simd *s, int place, bool (*suits)(struct simd *s, LLVMValueRef instruction),
                          int *before);
/* … whether the instruction may be written more than once, for some lanes each time. */
bool simd_is_alone(struct simd *s, LLVMValueRef instruction);
/* effects.c — sets first_effect. */
void effects_find(struct simd *s);
/* No effect of the thread comes before the instruction. */
bool effects_follow(struct simd *s, LLVMValueRef i);
/* speculation.c — the shape of a division in speculating code, or SHAPE_VARYING. */
int speculation_shape(struct simd *s, LLVMValueRef division);
bool speculation_pays(struct simd *s);              /* after an analysis without it */
bool speculation_needs_small_gangs(struct simd *s); /* … so much that gangs should be small */
bool speculation_pays_behind_guards(struct simd *s);
void emit_speculated(struct simd *s, LLVMValueRef i);
/* edges.c — the shape of a comparison, minimum or maximum in speculating code, or SHAPE_VARYING. */
int edges_shape(struct simd *s, LLVMValueRef i);
/* After an analysis without speculation: whether to speculate on guards; on other edges. */
bool edges_have_guard(struct simd *s);
/* Whether the block is the first, or follows it but for detours that all lanes take or none: all are there.
 */
bool edges_all_start(struct simd *s, LLVMBasicBlockRef block);
/* Whether the block follows guards that are speculated on, so that all lanes or none are there. */
bool edges_guard_block(struct simd *s, LLVMBasicBlockRef block);
/* Whether the block is on the side of a branch that threads at an edge take, where the others access several
 * elements. */
bool edges_is_aside(struct simd *s, int place);
bool edges_have_others(struct simd *s);
bool edges_reach_address(LLVMValueRef value);   /* an address is computed from it, in a few steps */
bool emit_edge(struct simd *s, LLVMValueRef i); /* false: it is not one */
/* Of a condition that consists of comparisons of positions with bounds that all lanes share, all of them for
 * an order: the first bound; of other conditions NULL. */
LLVMValueRef edges_bound(struct simd *s, LLVMValueRef condition);
/* i1: such a condition holds (or fails) in all lanes, also in those that are off. May be false where it does.
 */
LLVMValueRef edges_all_agree(struct simd *s, LLVMValueRef condition, bool holds);
/* first_gang.c — the mask of a block that only the first gang of a group enters, by chunk (NULL: all lanes).
 * False: another block. */
bool first_gang_mask(struct simd *s, int place, LLVMValueRef *mask);
/* full_rounds.c — the loops that are written twice. Whether this one first has rounds in which all lanes
 * stay; of such a loop, the condition, and whether lanes stay where it holds. */
bool simd_full_rounds_suit(struct simd *s, int loop);
LLVMValueRef simd_full_rounds_condition(struct simd *s, int loop, bool *holds);
/* Whether all lanes of the gang are on in blocks with the mask of block `entered`; whether lanes are off
 * there only if the loop has few rounds. */
bool simd_full_rounds_all_enter(const struct simd *s, int entered);
bool simd_full_rounds_guarded(struct simd *s, int loop, int entered);
/* Of a short loop that consists of this block and that all lanes leave together: the answer that is to be
 * asked before the loop. If it is no, the rounds need no tests that wait for it. NULL: another block. */
LLVMValueRef simd_full_rounds_answer(struct simd *s, int place);
/* memory.c — loads, stores, getelementptr with varying results or operands. */
bool emit_memory(struct simd *s, LLVMValueRef instruction, int chunk);
/* apart.c — what only tests that hardly ever run need is computed where they are. */
void simd_keep_tests_apart(struct simd *s);

/* inside.c — tests of accesses: once for the gang, where the lanes' addresses follow from lane 0's, else for
 * a chunk. */
bool emit_inside_is_once(struct simd *s, LLVMValueRef call);
void emit_inside(struct simd *s, LLVMValueRef call, int chunk);
/* leaves.c — questions of loops. */
void emit_leaves(struct simd *s, LLVMValueRef call);
/* The answer that tests of this loop wait for, if it comes before the loop and all of them run in each round;
 * else NULL. */
LLVMValueRef emit_inside_answer(struct simd *s, int loop);
/* extremes.c — i1: whether it is true in an active lane; of comparisons, true is always right. */
LLVMValueRef emit_any_lane(struct simd *s, LLVMValueRef condition);
/* rows.c — the lanes of a chunk by rows: each has the value of an earlier lane, its leader, plus a constant.
 * A leader's leader is itself. rows_find returns the number of leaders; rows_lane is the value of one lane.
 */
struct row_view {
    int leader[GANG_MAX_LANES]; /* by lane of the chunk */
    int64_t offset[GANG_MAX_LANES];
};
int rows_find(struct simd *s, LLVMValueRef value, int chunk, struct row_view *out);
/* The same of the first lanes of all chunks: leaders are chunks. */
void rows_find_chunks(struct simd *s, LLVMValueRef value, struct row_view *out);
/* Offsets from the leader's first lane, of the lanes of all chunks that it leads; `piece`: those within a
 * chunk (piece_view). */
struct span rows_span(struct simd *s, int piece, const struct row_view *chunks, int leader);
LLVMValueRef rows_lane(struct simd *s, LLVMValueRef value, int chunk, int lane);
/* row_access.c — a chunk of a load whose lanes fall into a few rows of constant offsets; false if they do
 * not. */
bool rows_load(struct simd *s, LLVMValueRef load, int chunk, LLVMValueRef *out);
/* The same of a store. */
bool rows_store(struct simd *s, LLVMValueRef store, int chunk);
/* table.c — a load from an array of the kernel's own with a small index. False: another load. */
bool access_look_up(struct simd *s, LLVMValueRef load, int chunk, LLVMValueRef *result);
/* prefetch.c — a prefetch of what the lanes of a chunk will load. */
bool emit_prefetch(struct simd *s, LLVMValueRef call, int chunk);
/* spread.c — a chunk at lane 0's address plus constant offsets, all lanes on. */
LLVMValueRef spread_load(struct simd *s, LLVMTypeRef element, LLVMValueRef base, const int64_t *offsets,
                         int align);
void spread_store(struct simd *s, LLVMValueRef vector, LLVMValueRef base, const int64_t *offsets, int align);
/* private.c — allocas: one copy for each lane. */
void private_find_layouts(struct simd *s); /* before the analysis */
int private_shape(struct simd *s, LLVMValueRef alloca);
/* Is the address computed from an alloca whose elements are interleaved by lane? Such an address exists only
 * in the loads and stores that use it. */
bool private_is(struct simd *s, LLVMValueRef address);
bool emit_private(struct simd *s, LLVMValueRef instruction, int chunk);
/* atomic.c — atomicrmw, cmpxchg, atomic loads and stores: all chunks at once. */
bool emit_atomic(struct simd *s, LLVMValueRef instruction);
/* simdgroup.c — __smelt_simd_*: all chunks at once. The results' shapes: simdgroup_shape. */
bool emit_simdgroup(struct simd *s, LLVMValueRef call, enum intrinsic intrinsic);
/* The shape of a simdgroup operation's result, given those of its operands. */
int simdgroup_shape(struct simd *s, LLVMValueRef call, enum intrinsic intrinsic);
/* context.c — positions, sizes, addresses of arguments, barriers, returns. */
bool emit_context(struct simd *s, LLVMValueRef call, enum intrinsic intrinsic);
int context_shape(struct simd *s, LLVMValueRef call, enum intrinsic intrinsic);
/* Before the analysis: positions that are not affine become arithmetic on the thread's index. */
void context_expand_positions(struct simd *s);
/* The gang's first code: loads common values, and computes the mask of the lanes that hold a thread. */
void gang_start(struct simd *s);
LLVMValueRef gang_stop_flag(struct simd *s);                           /* its address */
void context_mark_returned(struct simd *s, LLVMValueRef const *masks); /* they count as arrived at barriers */
void gang_stop(struct simd *s); /* calls the runtime, which does not return */
/* log.c — log calls: all lanes at once. */
void emit_log(struct simd *s, LLVMValueRef call);
void emit_tile(struct simd *s, LLVMValueRef call);

/* instructions.c — the instructions of one block, each by its family. */
void emit_instructions(struct simd *s, LLVMBasicBlockRef block);

/* ---- Reports (report.c). */
/* "it depends on what is loaded from memory in line 7", or "" without --why. */
const char *report_varying(struct simd *s, LLVMValueRef value);
void report_control_flow(struct simd *s);
/* Into the result's text: the remarks; the thread's code with shapes; the gang's code. */
void report_why(struct simd *s);
void report_shapes(struct simd *s);
void report_gang(struct unit *unit);

/* ---- Passes. */
/* vectorise.c — does the work with a data model of its own, which ends with it. */
smelt_status simd_run(struct unit *unit, smelt_status (*work)(struct simd *s));
/* words.c — for prepare.c: loads and stores of integers of three, five, six or seven bytes are split. */
void words_split_odd(struct simd *s);
smelt_status simd_order(struct simd *s);
void simd_refuse_locks(struct simd *s); /* locks.c, behind simd_analyse */
smelt_status simd_analyse(struct simd *s);
/* analyse.c — all of the analysis, for s->lanes and s->chunk_lanes. */
smelt_status simd_analyse_entry(struct simd *s);
/* gang_size.c — chooses them; ends with the analysis for them. */
smelt_status simd_choose_gang(struct simd *s);
bool simd_is_short(struct simd *s); /* a simdgroup of the thread's code is short code */
/* Whether loads may depend on quotients of positions, in code that is not too long to be written twice. */
bool simd_may_sample(struct simd *s);
int simd_count_accesses(struct simd *s);
int simd_count_unknown(struct simd *s); /* accesses to addresses that are known only at run time */
smelt_status simd_emit(struct simd *s);
smelt_status simd_check_size(struct simd *s, enum budget budget); /* gang_budget.c */

#endif
