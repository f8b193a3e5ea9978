/* The choice between quick and best code.
 *
 * Best code of the SIMD engine takes long to compile because a gang's vector code is many times larger than
 * the code of one thread. The scalar engine's code is not, comes from the same optimised IR, and gives the
 * same bits, unless
 *
 *   arithmetic may be reassociated or approximated: then either code generator may do it in its own way;
 *   threads meet in atomic operations whose order shows in the results: lanes of a gang come in another
 *   order than threads that run one after another.
 *
 * Quick code of a GPU comes from the same engine as the best code, but calls a function for each product of
 * matrices (ptx/matrix_outlined.c). The same conditions apply.
 *
 * The engine that checks has quick code of its own: the same code, but LLVM does not optimise its machine
 * code (codegen.c). It is generated on request only, since the best code takes little longer to compile. */
#include "compiler/quick.h"
#include "compiler/budget.h"
#include "compiler/engine.h"

/* Instructions of optimised IR times the registers that a simdgroup's 32-bit value fills. The best code of
 * smaller kernels in tests/ml takes at most 0.1 seconds of a 3 GHz processor more than quick code; that of
 * larger ones up to ten seconds, without regularity. */
#define LARGE 320

#define SIMDGROUP_VALUE_BITS (32 * 32)

static bool is_ordered(LLVMValueRef instruction) {
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMLoad:
    case LLVMStore:
        return LLVMGetOrdering(instruction) != LLVMAtomicOrderingNotAtomic;
    case LLVMAtomicCmpXchg:
        return true;
    case LLVMAtomicRMW: {
        LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(instruction));
        return LLVMGetFirstUse(instruction) || kind != LLVMIntegerTypeKind;
    }
    default:
        return false;
    }
}

static bool is_inexact(LLVMValueRef instruction) {
    return LLVMCanValueUseFastMathFlags(instruction) && LLVMGetFastMathFlags(instruction) != 0;
}

bool quick_gives_same_bits(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        FOR_EACH_BLOCK(block, f)
        FOR_EACH_INSTRUCTION(instruction, block) {
            if (is_ordered(instruction) || is_inexact(instruction)) return false;
        }
    }
    return true;
}

bool quick_applies(struct unit *unit) {
    const struct compile_request *request = unit->request;
    bool code = request->output == COMPILE_OBJECT || request->output == COMPILE_ASM;
    if (request->effort == COMPILE_BEST || !code || !unit->target->has_quick) return false;
    if (unit->target->quick == unit->engine) return request->effort == COMPILE_QUICK;
    uint64_t registers = SIMDGROUP_VALUE_BITS / (uint64_t)simd_vector_bits(request->cpu, request->features);
    bool wanted = request->effort == COMPILE_QUICK || budget_count_all(unit->module) * registers >= LARGE;
    return wanted && quick_gives_same_bits(unit);
}

void quick_choose(struct unit *unit) {
    unit->engine = unit->target->quick;
    unit->target = engine_target(unit->engine);
    unit->result->image.quick = true;
}
