/* Coarsening: where threads neither wait for each other nor exchange values, one thread of the hardware does
 * the work of several, so that more loads are in flight, and neighbours' are one. A thread's own accesses
 * keep their order; those of different threads never had one.
 *
 * Which threads these are, and how large the hardware's blocks are, depends on the code and on the shape of
 * the launch; the launch reads it in the image.
 *
 * Requires: the retargeted module, without operations of simdgroups. Establishes: image.coarse, image.block;
 * if image.coarse is set, no call asks for a position or a group's own size. */
#include "base/text.h"
#include "compiler/ptx/coarsen/coarse.h"

#include <llvm-c/DebugInfo.h>
#include <stdlib.h>
#include <string.h>

/* The loop over threads one by one stays a loop. */
static void keep_rolled(struct unit *unit, LLVMValueRef branch) {
    static const char wish[] = "llvm.loop.unroll.disable";
    unsigned kind = LLVMGetMDKindIDInContext(unit->context, "llvm.loop", 9);
    LLVMMetadataRef text = LLVMMDStringInContext2(unit->context, wish, strlen(wish));
    LLVMMetadataRef self = LLVMTemporaryMDNode(unit->context, NULL, 0);
    LLVMMetadataRef parts[2] = {self, LLVMMDNodeInContext2(unit->context, &text, 1)};
    LLVMMetadataRef node = LLVMMDNodeInContext2(unit->context, parts, 2);
    LLVMMetadataReplaceAllUsesWith(self, node);
    LLVMSetMetadata(branch, kind, LLVMMetadataAsValue(unit->context, node));
}

/* The code as it was becomes that of thread number `t`, and goes on at `next`. */
static void rebind(struct coarsening *c, LLVMValueRef t, LLVMBasicBlockRef next) {
    LLVMBuilderRef b = c->unit->builder;
    for (int i = 0; i < c->count; i++) {
        LLVMValueRef value = c->items[i].value;
        enum intrinsic_kind kind = intrinsic_traits(intrinsic_of(value))->kind;
        LLVMPositionBuilderBefore(b, value);
        if (LLVMIsAReturnInst(value)) {
            LLVMBuildBr(b, next);
            LLVMInstructionEraseFromParent(value);
        } else if (kind == OF_RETURN) {
            LLVMInstructionEraseFromParent(value);
        } else if (kind == OF_THREAD) {
            LLVMValueRef position = coarse_position(c, value, t);
            if (!position) continue;
            LLVMReplaceAllUsesWith(value, position);
            LLVMInstructionEraseFromParent(value);
        }
    }
}

static LLVMBasicBlockRef new_block(struct unit *unit, const char *name) {
    return LLVMAppendBasicBlockInContext(unit->context, unit->entry, name);
}

/* ---- Alignment. */

static bool is_of_dimension(LLVMValueRef call, enum intrinsic intrinsic, int dimension) {
    uint64_t d;
    return intrinsic_of(call) == intrinsic && is_constant_integer(LLVMGetOperand(call, 0), &d) &&
           (int)d == dimension;
}

/* Whether a value is the group's number times the size of a full group. */
static bool is_start_of_group(struct coarsening *c, LLVMValueRef value) {
    int d = c->form.dimension;
    uint64_t number, size = c->unit->request->shape.size[d];
    LLVMOpcode opcode = LLVMIsAInstruction(value) ? LLVMGetInstructionOpcode(value) : LLVMRet;
    if (opcode != LLVMMul && opcode != LLVMShl) return false;
    for (unsigned i = 0; i < 2; i++) {
        LLVMValueRef group = LLVMGetOperand(value, i), by = LLVMGetOperand(value, 1 - i);
        if (!is_of_dimension(group, INTRINSIC_THREADGROUP_POSITION, d)) continue;
        if (is_of_dimension(by, INTRINSIC_DISPATCH_THREADGROUP_SIZE, d)) return opcode == LLVMMul;
        if (!is_constant_integer(by, &number)) return false;
        return opcode == LLVMMul ? number == size : i == 0 && number < 32 && UINT64_C(1) << number == size;
    }
    return false;
}

static bool is_position(struct coarsening *c, LLVMValueRef value) {
    LLVMOpcode opcode = LLVMIsAInstruction(value) ? LLVMGetInstructionOpcode(value) : LLVMRet;
    if (opcode != LLVMAdd && opcode != LLVMOr) return false;
    for (unsigned i = 0; i < 2; i++)
        if (is_of_dimension(LLVMGetOperand(value, i), INTRINSIC_POSITION_IN_THREADGROUP, c->form.dimension) &&
            is_start_of_group(c, LLVMGetOperand(value, 1 - i)))
            return true;
    return false;
}

/* Constants and arguments are the same in all groups. */
static bool is_alike_in_groups(struct coarsening *c, LLVMValueRef value) {
    const struct coarse_item *item = coarse_item_of(c, value);
    return !item || item->alike;
}

static bool follows_from_position(struct coarsening *c, LLVMValueRef value) {
    uint64_t d;
    if (is_position(c, value)) return true;
    switch (intrinsic_of(value)) {
    case INTRINSIC_POSITION_IN_THREADGROUP:
    case INTRINSIC_THREADGROUP_POSITION:
    case INTRINSIC_THREADGROUP_SIZE:
        return is_constant_integer(LLVMGetOperand(value, 0), &d) && (int)d != c->form.dimension;
    case INTRINSIC_THREAD_INDEX:
        return false;
    default:
        break;
    }
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (!is_alike_in_groups(c, LLVMGetOperand(value, (unsigned)i))) return false;
    return true;
}

/* Finds the values that follow in all groups in the same way from a thread's position in the grid. In
 * i + group, the first threads of two groups may be aligned differently. Operands come before what is
 * computed from them, except those that a phi takes from a later block. */
static void find_alike_in_groups(struct coarsening *c) {
    for (int i = 0; i < c->count; i++) c->items[i].alike = follows_from_position(c, c->items[i].value);
}

/* i1: the neighbours' accesses are aligned wherever the block's row of threads begins; it is the same for all
 * threads of that row. NULL: they are known to be, or it is not known before the rest of the code. */
static LLVMValueRef ask_alignment(struct coarsening *c) {
    struct unit *unit = c->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef all = NULL;
    find_alike_in_groups(c);
    coarse_start_at_tile(c);
    for (int i = 0; i < c->count; i++) {
        if (!c->items[i].wide) continue;
        LLVMValueRef access = c->items[i].value;
        LLVMValueRef address = LLVMGetOperand(access, LLVMIsALoadInst(access) ? 0 : 1);
        uint64_t bytes = coarse_wide_bytes(c, access);
        if (!coarse_is_simple(c, address) || !is_alike_in_groups(c, address)) {
            coarse_forget_copies(c);
            return NULL;
        }
        LLVMValueRef start = coarse_first_value(c, 0, address);
        if (bytes >> ptx_known_zeros(unit, start) <= 1) continue;
        LLVMValueRef number = LLVMBuildPtrToInt(b, start, type_i64(unit), "");
        LLVMValueRef rest = LLVMBuildAnd(b, number, LLVMConstInt(type_i64(unit), bytes - 1, false), "");
        LLVMValueRef one = LLVMBuildICmp(b, LLVMIntEQ, rest, LLVMConstInt(type_i64(unit), 0, false), "");
        all = all ? LLVMBuildAnd(b, all, one, "") : one;
    }
    coarse_forget_copies(c);
    return all;
}

/* Code for several threads at once, and where it begins. */
struct version {
    LLVMBasicBlockRef begin, otherwise; /* `otherwise`: leads to the code for one by one */
    LLVMValueRef first, step;
};

static smelt_status build_version(struct coarsening *c, struct version *v, bool neighbours) {
    LLVMBuilderRef b = c->unit->builder;
    LLVMBasicBlockRef together = new_block(c->unit, "together");
    v->otherwise = new_block(c->unit, "otherwise");
    LLVMPositionBuilderAtEnd(b, v->begin);
    coarse_start(c, neighbours);
    v->first = c->first[c->form.dimension];
    v->step = c->step;
    LLVMBuildCondBr(b, coarse_all_inside(c), together, v->otherwise);
    if (c->loop >= 0)
        coarse_build_loop(c, together, v->otherwise);
    else
        TRY(coarse_build(c, together, v->otherwise));
    coarse_forget_copies(c);
    return SMELT_OK;
}

/* Not neighbours, and no access for several. */
static void set_apart(struct coarsening *c) {
    c->form.neighbours = c->proved = false;
    for (int i = 0; i < c->count; i++) {
        c->items[i].wide = false;
        for (int d = 0; d < 3; d++) c->items[i].steps[d] = (struct step){STEP_NONE, 0};
    }
}

/* The versions' threads, one by one: the code as it was. */
static void build_plain(struct coarsening *c, struct version *versions, int count) {
    struct unit *unit = c->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMBasicBlockRef before = c->flow.blocks[0].block;
    LLVMBasicBlockRef plain = new_block(unit, "plain"), each = new_block(unit, "each"),
                      next = new_block(unit, "next"), end = new_block(unit, "end");
    LLVMTypeRef i32 = type_i32(unit);
    LLVMPositionBuilderAtEnd(b, plain);
    LLVMValueRef first = LLVMBuildPhi(b, i32, ""), step = LLVMBuildPhi(b, i32, "");
    LLVMBuildBr(b, each);
    for (int i = 0; i < count; i++) {
        LLVMAddIncoming(first, &versions[i].first, &versions[i].otherwise, 1);
        LLVMAddIncoming(step, &versions[i].step, &versions[i].otherwise, 1);
        LLVMPositionBuilderAtEnd(b, versions[i].otherwise);
        LLVMBuildBr(b, plain);
    }
    c->first[c->form.dimension] = first;
    c->step = step;
    c->one_group = false;
    LLVMPositionBuilderAtEnd(b, each);
    LLVMValueRef t = LLVMBuildPhi(b, i32, "");
    LLVMBuildCondBr(b, coarse_one_inside(c, t), before, end);
    LLVMPositionBuilderAtEnd(b, next);
    LLVMValueRef following = LLVMBuildNUWAdd(b, t, constant_i32(unit, 1), "");
    LLVMValueRef more =
        LLVMBuildICmp(b, LLVMIntULT, following, constant_i32(unit, coarse_threads(&c->form)), "");
    keep_rolled(unit, LLVMBuildCondBr(b, more, each, end));
    LLVMValueRef values[2] = {constant_i32(unit, 0), following};
    LLVMBasicBlockRef from[2] = {plain, next};
    LLVMAddIncoming(t, values, from, 2);
    LLVMPositionBuilderAtEnd(b, end);
    LLVMBuildRetVoid(b);
    rebind(c, t, next);
}

/* Neighbours where their accesses are aligned; where they are not, the same threads of the block's row, a
 * block apart. */
static smelt_status build(struct coarsening *c) {
    struct unit *unit = c->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMBasicBlockRef before = LLVMGetEntryBasicBlock(unit->entry);
    struct version versions[2] = {{.begin = LLVMInsertBasicBlockInContext(unit->context, before, "coarse")}};
    bool neighbours = c->form.neighbours;
    LLVMPositionBuilderAtEnd(b, versions[0].begin);
    coarse_begin(c);
    LLVMValueRef aligned = neighbours ? ask_alignment(c) : NULL;
    if (aligned) {
        LLVMBasicBlockRef near = new_block(unit, "near");
        versions[1].begin = new_block(unit, "apart");
        LLVMBuildCondBr(b, aligned, near, versions[1].begin);
        versions[0].begin = near;
        c->proved = true;
    }
    TRY(build_version(c, &versions[0], neighbours));
    if (aligned) {
        set_apart(c);
        TRY(build_version(c, &versions[1], false));
    }
    build_plain(c, versions, aligned ? 2 : 1);
    return SMELT_OK;
}

/* How many of the hardware's threads a multiprocessor is to hold at once: all it can. ptxas then uses at most
 * 32 registers per thread, and loads the second round's elements late, but other threads fill the time. GPUs
 * that hold fewer ignore the number. (GELU of bfloats on an H200, in us: 83.8, 79.0, 77.5, 75.7 with 1024,
 * 1280, 1536, 2048.) */
#define RESIDENT 2048

static void keep_form(struct coarsening *c) {
    struct image *image = &c->unit->result->image;
    for (int d = 0; d < 3; d++) {
        image->coarse[d] = d == c->form.dimension ? coarse_threads(&c->form) : 1;
        image->block[d] = c->form.block[d];
    }
    uint32_t threads = image->block[0] * image->block[1] * image->block[2];
    if (c->form.rounds > 1) ptx_annotate(c->unit, "minctasm", RESIDENT / threads);
}

/* ---- For the kernel's author. */

static int count_wide(const struct coarsening *c, bool loads) {
    int count = 0;
    for (int i = 0; i < c->count; i++)
        count += c->items[i].wide && (LLVMIsALoadInst(c->items[i].value) != NULL) == loads;
    return count;
}

static smelt_status report(struct coarsening *c) {
    static const char *const axes[] = {"x", "y", "z"};
    const struct coarse_form *form = &c->form;
    int loads = count_wide(c, true), stores = count_wide(c, false);
    if (!form->threads) return ptx_note(c->unit, "each thread does its own work: %s", c->because);
    TRY(ptx_note(c->unit,
                 "a thread of the hardware does the work of %u threads, %s in %s; blocks are %u x %u x %u",
                 coarse_threads(form), form->neighbours ? "neighbours" : "a block apart",
                 axes[form->dimension], form->block[0], form->block[1], form->block[2]));
    if (form->rounds > 1)
        TRY(ptx_note(c->unit, "it does %u neighbours at once, in %u rounds", form->threads, form->rounds));
    if (!form->neighbours) return SMELT_OK;
    return ptx_note(c->unit, "one access for neighbours: %d load%s, %d store%s", loads, loads == 1 ? "" : "s",
                    stores, stores == 1 ? "" : "s");
}

bool ptx_coarsens_loop(struct unit *unit) {
    struct coarsening c = {.unit = unit, .loop = -1};
    if (!unit->request->shape.coarse) return false;
    bool apart = coarse_take_apart_with_selects(&c) == SMELT_OK && !c.because && c.loop >= 0;
    if (apart) coarse_choose(&c);
    arena_free(&c.arena);
    return apart && c.form.threads;
}

smelt_status pass_ptx_coarsen(struct unit *unit) {
    struct coarsening c = {.unit = unit, .loop = -1};
    bool wanted = unit->request->shape.coarse, why = unit->request->output == COMPILE_WHY;
    smelt_status status = coarse_take_apart_with_selects(&c);
    unit->result->image.alone = c.because != NULL;
    if (status == SMELT_OK && !c.because && wanted) coarse_choose(&c);
    if (!wanted && !c.because) c.because = "the grid is small"; /* or the setting says so */
    if (status == SMELT_OK && why) status = report(&c);
    if (status == SMELT_OK && c.form.threads) {
        keep_form(&c);
        status = build(&c);
    }
    arena_free(&c.arena);
    return status;
}
