/* Tests before accesses (bounds.h). Only in code for tested launches.
 *
 * Requires: everything inlined; intrinsics not lowered. Establishes: no access of memory that an argument or
 * a variable at program scope or of the threadgroup gives misses it before a test has ended the launch. */
#include "compiler/bounds/bounds.h"
#include "compiler/budget.h"
#include "compiler/engine.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

/* ---- The accesses of a block, those a constant apart as one. */

struct group {
    struct place place; /* of its accesses but for the constant */
    struct array_object object;
    LLVMValueRef first;   /* before which the test stands … */
    LLVMValueRef address; /* … and the first's address, whose constant is `constant` */
    int64_t constant, low, high;
    struct tested_access *accesses, **last;
    LLVMValueRef length; /* i64: of a copy or fill; else NULL */
    struct group *next;
};

/* A test that is done whenever its block runs. */
struct test {
    struct place place;
    int64_t low, high;
    int block;
    struct test *next;
};

/* Whether a test of the one address and of bytes around it may cover the other: both are the same sum of
 * root and index. A tested index that has wrapped around may lead inside although the other one, which has
 * not, leads far away. */
static bool is_same_sum(const struct place *tested, const struct place *other) {
    return tested->root == other->root && tested->index == other->index &&
           (!tested->index || (tested->extension == other->extension && tested->scale == other->scale)) &&
           !(tested->wraps && other->wide);
}

static void extend(struct bounds *b, struct group *g, LLVMValueRef instruction, int64_t constant,
                   uint64_t bytes, bool writes) {
    struct tested_access *access = arena_alloc(&b->arena, sizeof *access);
    if (!access) return;
    *access = (struct tested_access){instruction, constant, bytes, writes, NULL};
    *g->last = access;
    g->last = &access->next;
    if (constant < g->low) g->low = constant;
    if (constant + (int64_t)bytes > g->high) g->high = constant + (int64_t)bytes;
}

/* Farther apart, one that is inside says little of the other. */
#define MOST_SPAN (1 << 20)

static void add_access(struct bounds *b, struct group **groups, LLVMValueRef instruction,
                       LLVMValueRef address, uint64_t bytes, LLVMValueRef length, bool writes) {
    struct array_object object = bounds_object(b, address);
    struct place place = bounds_place(b->unit, address);
    if (!object.start) return;
    for (; *groups; groups = &(*groups)->next) {
        struct group *g = *groups;
        int64_t distance = place.constant - g->constant;
        if (!is_same_sum(&g->place, &place) || length || g->length) continue;
        if (g->object.start != object.start || distance > MOST_SPAN || distance < -MOST_SPAN) continue;
        extend(b, g, instruction, place.constant, bytes, writes);
        return;
    }
    struct group *g = arena_alloc(&b->arena, sizeof *g);
    if (!g) return;
    *g = (struct group){.place = place,
                        .object = object,
                        .first = instruction,
                        .address = address,
                        .constant = place.constant,
                        .low = place.constant,
                        .high = place.constant,
                        .length = length,
                        .last = &g->accesses};
    extend(b, g, instruction, place.constant, bytes, writes);
    *groups = g;
}

static uint64_t bytes_of(struct bounds *b, LLVMValueRef value) {
    return LLVMStoreSizeOfType(b->unit->layout, LLVMTypeOf(value));
}

static void add_copy(struct bounds *b, struct group **groups, LLVMValueRef call) {
    const char *name = called_name(call);
    bool copies = strncmp(name, "llvm.memcpy.", 12) == 0 || strncmp(name, "llvm.memmove.", 13) == 0;
    uint64_t bytes = 0;
    if (!copies && strncmp(name, "llvm.memset.", 12) != 0) return;
    LLVMValueRef length = LLVMGetOperand(call, 2);
    if (is_constant_integer(length, &bytes)) length = NULL;
    if (!length && !bytes) return;
    if (copies) add_access(b, groups, call, LLVMGetOperand(call, 1), bytes, length, false);
    add_access(b, groups, call, LLVMGetOperand(call, 0), bytes, length, true);
}

static struct group *groups_of(struct bounds *b, LLVMBasicBlockRef block) {
    struct group *groups = NULL;
    FOR_EACH_INSTRUCTION(i, block) {
        if (LLVMIsALoadInst(i))
            add_access(b, &groups, i, LLVMGetOperand(i, 0), bytes_of(b, i), NULL, false);
        else if (LLVMIsAStoreInst(i))
            add_access(b, &groups, i, LLVMGetOperand(i, 1), bytes_of(b, LLVMGetOperand(i, 0)), NULL, true);
        else if (LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i))
            add_access(b, &groups, i, LLVMGetOperand(i, 0), bytes_of(b, LLVMGetOperand(i, 1)), NULL, true);
        else if (LLVMIsACallInst(i))
            add_copy(b, &groups, i);
    }
    return groups;
}

/* ---- What needs no test. */

/* The bytes that a launch makes sure of: of an argument that is an object, not an array. */
static uint64_t sure_bytes(struct bounds *b, const struct array_object *object) {
    const struct image *image = &b->unit->result->image;
    uint64_t bytes;
    if (is_constant_integer(object->extent, &bytes)) return bytes;
    for (int i = 0; i < image->binding_count && object->kind == ACCESS_BUFFER; i++) {
        const struct binding *binding = &image->bindings[i];
        if (binding->kind == BINDING_BUFFER && binding->index == (int32_t)object->slot &&
            !BINDING_POINTER(binding->type))
            return binding->size > 0 ? (uint64_t)binding->size : 0;
    }
    return 0;
}

/* A root that is the object itself. */
static bool is_object(const struct array_object *object, LLVMValueRef root) {
    if (object->variable) return root == object->variable;
    return object->kind == ACCESS_BUFFER && intrinsic_of(root) == INTRINSIC_BUFFER_ADDRESS;
}

static bool is_proven(struct bounds *b, const struct group *g, int block) {
    uint64_t bytes = sure_bytes(b, &g->object);
    LLVMValueRef root;
    struct value_range range;
    if (g->length || !bytes || bytes > INT32_MAX) return false;
    if (!bounds_offset(b, block, g->address, &root, &range) || !is_object(&g->object, root)) return false;
    if (range.low < INT32_MIN || range.high > INT32_MAX) return false;
    return range.low + g->low - g->constant >= 0 && range.high + g->high - g->constant <= (int64_t)bytes;
}

/* Long kernels: the latest tests are the likely ones. */
#define MOST_COMPARED 128

static bool is_done(struct bounds *b, const struct group *g, int block) {
    int left = MOST_COMPARED;
    for (const struct test *t = b->tests; t && left--; t = t->next)
        if (is_same_sum(&t->place, &g->place) && t->low <= g->low && g->high <= t->high &&
            flow_dominates(&b->flow, t->block, block))
            return true;
    return false;
}

/* ---- Inserting. */

static void note_test(struct bounds *b, const struct group *g, int block) {
    struct test *test = arena_alloc(&b->arena, sizeof *test);
    if (!test) return;
    *test = (struct test){g->place, g->low, g->high, block, b->tests};
    b->tests = test;
}

/* Of a block: where tests stand that a loop's answer decides on, and the first of them. */
struct lifted {
    LLVMValueRef place, test;
};

/* Quick code is not worth the time. */
static bool asks_launch(struct bounds *b, const struct group *g) {
    return !g->length && b->unit->target->asks_launches && !b->unit->result->image.quick;
}

static void add_test(struct bounds *b, const struct group *g, int block, struct lifted *lifted) {
    LLVMBuilderRef builder = b->unit->builder;
    LLVMTypeRef i1 = LLVMInt1TypeInContext(b->unit->context);
    LLVMValueRef place = g->first, when = LLVMConstInt(i1, 1, false),
                 bytes = bounds_i64(b, (uint64_t)(g->high - g->low));
    int64_t low = g->low - g->constant;
    if (is_proven(b, g, block) || is_done(b, g, block)) return;
    bool private = g->object.kind == ACCESS_PRIVATE;
    int loop = g->length || private
                   ? -1
                   : bounds_loop_ask(b, block, g->address, low, (uint64_t)(g->high - g->low), &g->object);
    if (loop >= 0) {
        /* Side by side, so that one branch may skip them. */
        if (lifted->place) place = lifted->place;
        bounds_loop_lift(g->address, lifted->test ? lifted->test : place);
    }
    LLVMValueRef of_launch = NULL, address = g->address;
    if (loop < 0 && asks_launch(b, g))
        of_launch = bounds_launch_ask(b, block, address, low, (uint64_t)(g->high - g->low), &g->object);
    if (of_launch) when = of_launch;
    LLVMPositionBuilderBefore(builder, place);
    LLVMSetCurrentDebugLocation2(builder, LLVMInstructionGetDebugLoc(g->first));
    if (private) {
        address = bounds_private_offset(b, address);
        if (!address) return;
        address = LLVMBuildIntToPtr(builder, address, type_pointer(b->unit), "");
    }
    if (g->length) {
        bytes = LLVMBuildZExtOrBitCast(builder, g->length, type_i64(b->unit), "");
        when = LLVMBuildICmp(builder, LLVMIntNE, bytes, bounds_i64(b, 0), "");
    }
    LLVMValueRef arguments[INSIDE_OPERANDS] = {
        [INSIDE_ADDRESS] = address,
        [INSIDE_LOW] = bounds_i64(b, (uint64_t)low),
        [INSIDE_BYTES] = bytes,
        [INSIDE_START] = g->object.start,
        [INSIDE_EXTENT] = g->object.extent,
        [INSIDE_WHEN] = when,
        [INSIDE_SITES] = bounds_sites(b, &g->object, g->accesses, g->low),
    };
    if (!g->length) note_test(b, g, block);
    if (of_launch && b->flow.blocks[block].loop < 0) {
        bounds_apart_add(b, block, place, arguments);
        LLVMSetCurrentDebugLocation2(builder, NULL);
        return;
    }
    LLVMValueRef test = bounds_intrinsic(b, INTRINSIC_INSIDE, LLVMVoidTypeInContext(b->unit->context),
                                         arguments, INSIDE_OPERANDS);
    if (loop >= 0) {
        bounds_loop_wait(b, loop, test);
        if (!lifted->test) *lifted = (struct lifted){place, test};
    }
    LLVMSetCurrentDebugLocation2(builder, NULL);
}

static void test_block(struct bounds *b, int block) {
    struct lifted lifted = {NULL, NULL};
    for (const struct group *g = groups_of(b, b->flow.blocks[block].block); g; g = g->next)
        add_test(b, g, block, &lifted);
}

smelt_status pass_bounds(struct unit *unit) {
    struct bounds b = {.unit = unit};
    uint64_t blocks;
    if (!unit->request->shape.tested) return SMELT_OK;
    uint64_t before = budget_count(unit->entry, &blocks);
    b.arguments = arena_alloc(&b.arena, CPU_MAX_SLOTS * sizeof *b.arguments);
    b.slots = arena_alloc(&b.arena, CPU_MAX_THREADGROUP_SLOTS * sizeof *b.slots);
    smelt_status status = b.arguments && b.slots
                              ? flow_find(unit, unit->entry, &b.arena, &b.flow)
                              : unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for tests of accesses");
    if (status == SMELT_OK) status = bounds_facts_begin(&b);
    if (status == SMELT_OK) status = bounds_loops_begin(&b);
    for (int i = 0; i < b.flow.block_count && status == SMELT_OK; i++) {
        test_block(&b, i);
        if (unit->target->needs_alignment) bounds_test_alignment(&b, i);
    }
    if (status == SMELT_OK) bounds_loops_end(&b);
    if (status == SMELT_OK) bounds_launch_end(&b);
    if (status == SMELT_OK) bounds_apart_end(&b);
    arena_free(&b.arena);
    unit->test_instructions = budget_count(unit->entry, &blocks) - before;
    return status;
}
