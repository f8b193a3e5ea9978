/* The instructions of one block. Those with a uniform or affine result are emitted once, for lane 0. Those
 * that need all lanes at once are emitted once, too. All others are emitted chunk by chunk, a run of them for
 * one chunk before the next, which keeps few values live at a time.
 *
 * Accesses to memory stay in the order of each thread. Between threads, only barriers and simdgroup
 * operations order anything, and these end a run. */
#include "compiler/bounds/bounds.h"
#include "compiler/simd/matrix/matrix.h"
#include "compiler/simd/lanes/packed.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

enum kind {
    KIND_ONCE,   /* one scalar, or one packed vector, serves all lanes */
    KIND_LANES,  /* all lanes at once */
    KIND_CHUNK,  /* chunk by chunk */
    KIND_NOTHING /* nothing to do */
};

static bool is_uniform(struct simd *s, LLVMValueRef value) {
    return shape_of(s, value) == SHAPE_UNIFORM;
}

static bool is_atomic(LLVMValueRef i) {
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
    case LLVMFence:
        return true;
    case LLVMLoad:
    case LLVMStore:
        return LLVMGetOrdering(i) != LLVMAtomicOrderingNotAtomic;
    case LLVMExtractValue:
        return LLVMIsAAtomicCmpXchgInst(LLVMGetOperand(i, 0)) != NULL;
    default:
        return false;
    }
}

static bool is_ignored(const char *name) {
    static const char *const names[] = {"llvm.dbg.",
                                        "llvm.lifetime.",
                                        "llvm.assume",
                                        "llvm.donothing",
                                        "llvm.experimental.noalias.scope.decl",
                                        NULL};
    for (int i = 0; names[i]; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0) return true;
    return false;
}

static enum kind kind_of(struct simd *s, LLVMValueRef i) {
    const char *name = called_name(i);
    if (LLVMIsAPHINode(i) || LLVMIsATerminatorInst(i) || is_ignored(name)) return KIND_NOTHING;
    if (intrinsic_of(i) == INTRINSIC_INSIDE)
        return emit_inside_is_once(s, i)                        ? KIND_ONCE
               : LLVMIsConstant(LLVMGetOperand(i, INSIDE_WHEN)) ? KIND_CHUNK
                                                                : KIND_LANES;
    if (intrinsic_called(i)) return KIND_LANES;
    if (is_atomic(i)) {
        bool once = LLVMIsALoadInst(i) && is_uniform(s, i);
        return once ? KIND_ONCE : KIND_LANES;
    }
    if (LLVMIsAAllocaInst(i)) return KIND_CHUNK;
    if (LLVMIsAStoreInst(i))
        return is_uniform(s, LLVMGetOperand(i, 0)) && is_uniform(s, LLVMGetOperand(i, 1)) ? KIND_ONCE
                                                                                          : KIND_CHUNK;
    if (LLVMGetTypeKind(LLVMTypeOf(i)) == LLVMVoidTypeKind) return KIND_CHUNK;
    if (shape_of(s, i) == SHAPE_VARYING && !packed_is(s, i)) return KIND_CHUNK;
    return KIND_ONCE;
}

static void refuse_instruction(struct simd *s, LLVMValueRef i) {
    if (s->refused) return;
    char name[200];
    if (unit_calls_itself(s->unit, i, name)) {
        simd_refuse(s, i, CALLS_ITSELF, name);
        return;
    }
    char *text = LLVMPrintValueToString(i);
    simd_refuse(s, i, "the SIMD engine has no vector form of '%s'", text);
    LLVMDisposeMessage(text);
}

/* ---- Once. */

static void emit_once(struct simd *s, LLVMValueRef i) {
    if (intrinsic_of(i) == INTRINSIC_INSIDE) {
        emit_inside(s, i, 0);
        return;
    }
    if (value_of(s, i)->speculated && shape_of(s, i) != SHAPE_VARYING) {
        emit_speculated(s, i);
        return;
    }
    if (value_of(s, i)->signed_index && shape_of(s, i) > SHAPE_UNIFORM) {
        LLVMValueRef index = scalar_of(s, LLVMGetOperand(i, 0));
        scalar_set(s, i, LLVMBuildSExt(s->unit->builder, index, LLVMTypeOf(i), ""));
        return;
    }
    if (packed_is(s, i)) {
        if (!packed_emit(s, i)) refuse_instruction(s, i);
        return;
    }
    LLVMValueRef copy = LLVMInstructionClone(i);
    bool same = true; /* in all lanes, not only the result */
    for (int o = 0; o < LLVMGetNumOperands(i); o++) {
        LLVMValueRef operand = LLVMGetOperand(i, (unsigned)o);
        if (!LLVMIsAInstruction(operand)) continue;
        LLVMSetOperand(copy, (unsigned)o, scalar_of(s, operand));
        same &= is_uniform(s, operand);
    }
    copy_drop_metadata(copy);
    LLVMInsertIntoBuilder(s->unit->builder, copy);
    LLVMInstructionSetDebugLoc(copy, LLVMInstructionGetDebugLoc(i));
    if (LLVMGetTypeKind(LLVMTypeOf(i)) == LLVMVoidTypeKind) return;
    if (!same) copy_drop_promises(copy);
    scalar_set(s, i, copy);
}

/* ---- All lanes, and chunks. */

/* A trap ends the launch: once one lane traps, the others need not go on. */
static void emit_trap(struct simd *s) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMBasicBlockRef ends = simd_block(s, "trap"), go = simd_block(s, "go");
    LLVMValueRef masks[GANG_MAX_LANES];
    int count = 0;
    for (int chunk = s->first_chunk; chunk < s->end_chunk; chunk++) masks[count++] = mask_chunk(s, chunk);
    LLVMBuildCondBr(b, mask_any(s, masks, count), ends, go);
    LLVMPositionBuilderAtEnd(b, ends);
    simd_intrinsic(s, "llvm.trap", NULL, 0, NULL, 0);
    LLVMBuildUnreachable(b);
    LLVMPositionBuilderAtEnd(b, go);
}

static void emit_lanes(struct simd *s, LLVMValueRef i) {
    enum intrinsic intrinsic = intrinsic_of(i);
    if (intrinsic == INTRINSIC_TRAP) {
        emit_trap(s);
        return;
    }
    if (intrinsic == INTRINSIC_INSIDE) {
        for (int chunk = s->first_chunk; chunk < s->end_chunk; chunk++) emit_inside(s, i, chunk);
        return;
    }
    if (emit_simdgroup(s, i, intrinsic) || emit_context(s, i, intrinsic)) return;
    if (emit_atomic(s, i)) return;
    if (!s->refused)
        simd_refuse(s, i, "it calls '%s', which the SIMD engine does not support", called_name(i));
}

/* A chunk of one lane: the thread's own instruction. */
static void emit_copy(struct simd *s, LLVMValueRef i, int chunk) {
    LLVMValueRef copy = LLVMInstructionClone(i);
    for (int o = 0; o < LLVMGetNumOperands(i); o++) {
        LLVMValueRef operand = LLVMGetOperand(i, (unsigned)o);
        if (LLVMIsAInstruction(operand)) LLVMSetOperand(copy, (unsigned)o, chunk_of(s, operand, chunk));
    }
    copy_drop_metadata(copy);
    LLVMInsertIntoBuilder(s->unit->builder, copy);
    LLVMInstructionSetDebugLoc(copy, LLVMInstructionGetDebugLoc(i));
    if (LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMVoidTypeKind) chunk_set(s, i, chunk, copy);
}

static void emit_chunk(struct simd *s, LLVMValueRef i, int chunk) {
    bool memory = LLVMIsALoadInst(i) || LLVMIsAStoreInst(i) || LLVMIsAAllocaInst(i);
    if (intrinsic_of(i) == INTRINSIC_INSIDE) {
        emit_inside(s, i, chunk);
        return;
    }
    if (emit_prefetch(s, i, chunk)) return;
    if (s->chunk_lanes == 1 && !memory) {
        emit_copy(s, i, chunk);
        return;
    }
    if (emit_piece(s, i, chunk)) return;
    if (emit_private(s, i, chunk) || emit_memory(s, i, chunk) || emit_arithmetic(s, i, chunk)) return;
    refuse_instruction(s, i);
}

/* ---- Runs. */

struct run {
    LLVMValueRef *instructions;
    int count;
    bool writes;
};

static void emit_of_run(struct simd *s, const struct run *run, int n, int chunk) {
    if (s->refused) return;
    LLVMSetCurrentDebugLocation2(s->unit->builder, LLVMInstructionGetDebugLoc(run->instructions[n]));
    emit_chunk(s, run->instructions[n], chunk);
}

static void flush(struct simd *s, struct run *run) {
    if (simd_goes_together(s) || s->brief) {
        for (int n = 0; n < run->count; n++)
            for (int chunk = s->first_chunk; chunk < s->end_chunk; chunk++) emit_of_run(s, run, n, chunk);
    } else {
        for (int chunk = s->first_chunk; chunk < s->end_chunk; chunk++)
            for (int n = 0; n < run->count; n++) emit_of_run(s, run, n, chunk);
    }
    run->count = 0;
    run->writes = false;
}

/* ---- Matrices in rows: all chunks at once, in order. */

static void emit_matrix(struct simd *s, LLVMValueRef i, struct run *run) {
    const struct matrix *matrix = matrix_of(s, i);
    LLVMSetCurrentDebugLocation2(s->unit->builder, LLVMInstructionGetDebugLoc(i));
    if (matrix->kind == MATRIX_PRODUCT) {
        matrix_emit_later(s, i);
        return;
    }
    if (matrix->kind != MATRIX_ARITHMETIC || matrix->mixed) flush(s, run);
    matrix_emit(s, i);
}

void emit_instructions(struct simd *s, LLVMBasicBlockRef block) {
    int count = 0;
    FOR_EACH_INSTRUCTION(instruction, block) count++;
    struct run run = {.instructions = arena_alloc(&s->arena, (size_t)count * sizeof(LLVMValueRef))};
    if (!run.instructions) return;
    FOR_EACH_INSTRUCTION(i, block) {
        enum kind kind = kind_of(s, i);
        if (s->refused) return;
        if (s->matrices) {
            if (matrix_is_awaited(s, i)) {
                flush(s, &run);
                matrix_emit_pending(s);
            }
            if (matrix_of(s, i)) {
                emit_matrix(s, i, &run);
                continue;
            }
        }
        switch (kind) {
        case KIND_NOTHING:
            continue;
        case KIND_CHUNK:
            if (LLVMIsAAllocaInst(i)) { /* addresses in it are computed once, before the run */
                flush(s, &(struct run){.instructions = &i, .count = 1});
                continue;
            }
            run.instructions[run.count++] = i;
            run.writes |= LLVMIsAStoreInst(i) != NULL;
            continue;
        case KIND_ONCE:
            if (LLVMIsAStoreInst(i) || (LLVMIsALoadInst(i) && run.writes)) flush(s, &run);
            break;
        case KIND_LANES:
            flush(s, &run);
            break;
        }
        LLVMSetCurrentDebugLocation2(s->unit->builder, LLVMInstructionGetDebugLoc(i));
        if (kind == KIND_ONCE)
            emit_once(s, i);
        else
            emit_lanes(s, i);
    }
    flush(s, &run);
    if (s->pending_matrices) matrix_emit_pending(s);
}
