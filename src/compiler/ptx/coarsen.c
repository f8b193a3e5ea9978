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
#include "compiler/ptx/coarse.h"

#include <llvm-c/DebugInfo.h>
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

static smelt_status build(struct coarsening *c) {
    struct unit *unit = c->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMBasicBlockRef before = LLVMGetEntryBasicBlock(unit->entry);
    LLVMBasicBlockRef begin = LLVMInsertBasicBlockInContext(unit->context, before, "coarse");
    LLVMBasicBlockRef together = new_block(unit, "together"), plain = new_block(unit, "plain"),
                      each = new_block(unit, "each"), next = new_block(unit, "next"),
                      end = new_block(unit, "end");
    LLVMTypeRef i32 = type_i32(unit);
    LLVMPositionBuilderAtEnd(b, begin);
    coarse_begin(c);
    LLVMBuildCondBr(b, coarse_all_inside(c), together, plain);
    TRY(coarse_build(c, together, plain));

    LLVMPositionBuilderAtEnd(b, plain);
    LLVMBuildBr(b, each);
    LLVMPositionBuilderAtEnd(b, each);
    LLVMValueRef t = LLVMBuildPhi(b, i32, "");
    LLVMBuildCondBr(b, coarse_one_inside(c, t), before, end);
    LLVMPositionBuilderAtEnd(b, next);
    LLVMValueRef following = LLVMBuildNUWAdd(b, t, constant_i32(unit, 1), "");
    LLVMValueRef more = LLVMBuildICmp(b, LLVMIntULT, following, constant_i32(unit, c->form.threads), "");
    keep_rolled(unit, LLVMBuildCondBr(b, more, each, end));
    LLVMValueRef values[2] = {constant_i32(unit, 0), following};
    LLVMBasicBlockRef from[2] = {plain, next};
    LLVMAddIncoming(t, values, from, 2);
    LLVMPositionBuilderAtEnd(b, end);
    LLVMBuildRetVoid(b);
    rebind(c, t, next);
    return SMELT_OK;
}

static void keep_form(struct coarsening *c) {
    struct image *image = &c->unit->result->image;
    for (int d = 0; d < 3; d++) {
        image->coarse[d] = d == c->form.dimension ? c->form.threads : 1;
        image->block[d] = c->form.block[d];
    }
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
    struct text text = {0};
    if (!form->threads) {
        text_addf(&text, "each thread does its own work: %s\n", c->because);
    } else {
        text_addf(&text,
                  "a thread of the hardware does the work of %u threads, %s in %s; blocks are %u x %u x %u\n",
                  form->threads, form->neighbours ? "neighbours" : "a block apart", axes[form->dimension],
                  form->block[0], form->block[1], form->block[2]);
        int loads = count_wide(c, true), stores = count_wide(c, false);
        if (form->neighbours)
            text_addf(&text, "one access for neighbours: %d load%s, %d store%s\n", loads,
                      loads == 1 ? "" : "s", stores, stores == 1 ? "" : "s");
    }
    c->unit->result->text = text.failed ? NULL : strdup(text_string(&text));
    text_free(&text);
    return c->unit->result->text ? SMELT_OK
                                 : unit_fail(c->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for a report");
}

smelt_status pass_ptx_coarsen(struct unit *unit) {
    struct coarsening c = {.unit = unit};
    bool wanted = unit->request->shape.coarse, why = unit->request->output == COMPILE_WHY;
    smelt_status status = coarse_take_apart(&c);
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
