/* The analysis of the entry for s->lanes, from the order of its blocks to its shapes. It is repeated until
 * all lanes reach each barrier, or a question to them has replaced it. */
#include "compiler/simd/simd.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

/* ---- Barriers that some lanes may miss. */

/* A barrier in a block that runs only for some lanes becomes a question: lanes that must wait in vain leave
 * for the end. The analysis must then be repeated. */
static bool question_barriers(struct simd *s) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMBasicBlockRef end = NULL;
    LLVMValueRef found = NULL;
    for (int place = 0; place < s->paths.block_count; place++) {
        struct block *block = &s->blocks[place];
        LLVMValueRef terminator = LLVMGetBasicBlockTerminator(block->original);
        if (LLVMIsAReturnInst(terminator)) end = block->original;
        if (block->mask_of == 0 || found) continue;
        FOR_EACH_INSTRUCTION(call, block->original) {
            if (!found && intrinsic_of(call) == INTRINSIC_THREADGROUP_BARRIER) found = call;
        }
    }
    if (!found) return false;
    if (!end) {
        simd_refuse(s, found, "a barrier is in divergent control flow of a kernel that never ends");
        return false;
    }
    /* Only the return: lanes that leave have no values for the code before it. */
    LLVMValueRef last = LLVMGetBasicBlockTerminator(end);
    if (LLVMGetFirstInstruction(end) != last) end = flow_split_block(s->unit, last);
    uint64_t line = 0;
    (void)is_constant_integer(LLVMGetOperand(found, 1), &line);
    simd_remark(s, found, "barrier (line %u): lanes may miss it; which lanes reach it is checked at run time",
                (unsigned)line);
    LLVMTypeRef types[2] = {type_i32(s->unit), LLVMTypeOf(LLVMGetOperand(found, 2))};
    LLVMTypeRef type = LLVMFunctionType(simd_i1(s), types, 2, false);
    LLVMValueRef function = intrinsic_declare(s->unit->module, INTRINSIC_BARRIER_PASSES, type);
    LLVMValueRef arguments[2] = {LLVMGetOperand(found, 1), LLVMGetOperand(found, 2)};
    LLVMPositionBuilderBefore(b, found);
    LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(found));
    LLVMValueRef passes = LLVMBuildCall2(b, type, function, arguments, 2, "");
    LLVMBasicBlockRef rest = flow_split_block(s->unit, found);
    LLVMInstructionEraseFromParent(found);
    LLVMBasicBlockRef first = LLVMGetInstructionParent(passes);
    LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(first));
    LLVMPositionBuilderAtEnd(b, first);
    LLVMBuildCondBr(b, passes, rest, end);
    LLVMSetCurrentDebugLocation2(b, NULL);
    return true;
}

smelt_status simd_analyse_entry(struct simd *s) {
    for (;;) {
        memset(s->table, 0, s->table_size * sizeof *s->table);
        context_expand_positions(s);
        TRY(simd_order(s));
        if (s->refused) return SMELT_OK;
        private_find_layouts(s);
        effects_find(s);
        TRY(simd_analyse(s));
        simd_refuse_locks(s);
        if (s->refused || !question_barriers(s)) return SMELT_OK;
        /* Edges to the end may leave loops: restores their form. */
        TRY(run_passes(s->unit, "function(loop-simplify,lcssa)"));
    }
}
