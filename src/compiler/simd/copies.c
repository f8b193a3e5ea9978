/* What a copy of one thread's instruction, or what it became, keeps of its promises. */
#include "compiler/simd/simd.h"

void copy_flags(LLVMValueRef from, LLVMValueRef to) {
    /* The builder folds constants. */
    if (!LLVMIsAInstruction(to) || !LLVMIsAInstruction(from)) return;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(from);
    if (LLVMGetInstructionOpcode(to) != opcode) return;
    if (LLVMCanValueUseFastMathFlags(from) && LLVMCanValueUseFastMathFlags(to))
        LLVMSetFastMathFlags(to, LLVMGetFastMathFlags(from));
    switch (opcode) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
        LLVMSetNUW(to, LLVMGetNUW(from));
        LLVMSetNSW(to, LLVMGetNSW(from));
        break;
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMLShr:
    case LLVMAShr:
        LLVMSetExact(to, LLVMGetExact(from));
        break;
    case LLVMZExt:
    case LLVMUIToFP:
        LLVMSetNNeg(to, LLVMGetNNeg(from));
        break;
    case LLVMOr:
        LLVMSetIsDisjoint(to, LLVMGetIsDisjoint(from));
        break;
    default:
        break;
    }
}

/* What metadata says of one thread's accesses need not hold between threads. */
void copy_drop_metadata(LLVMValueRef i) {
    size_t count;
    LLVMValueMetadataEntry *entries = LLVMInstructionGetAllMetadataOtherThanDebugLoc(i, &count);
    for (unsigned n = 0; n < count; n++)
        LLVMSetMetadata(i, LLVMValueMetadataEntriesGetKind(entries, n), NULL);
    LLVMDisposeValueMetadataEntries(entries);
}

/* Lane 0 may be off, or hold no thread: what the flags promise of active lanes it need not keep. */
void copy_drop_promises(LLVMValueRef i) {
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
    case LLVMTrunc:
        LLVMSetNSW(i, false);
        LLVMSetNUW(i, false);
        break;
    case LLVMLShr:
    case LLVMAShr:
    case LLVMUDiv:
    case LLVMSDiv:
        LLVMSetExact(i, false);
        break;
    case LLVMOr:
        LLVMSetIsDisjoint(i, false);
        break;
    case LLVMZExt:
    case LLVMUIToFP:
        LLVMSetNNeg(i, false);
        break;
    case LLVMGetElementPtr:
        LLVMGEPSetNoWrapFlags(i, 0);
        break;
    default:
        break;
    }
}
