/* The choice between quick and best code.
 *
 * The best code of a CPU takes long to compile because a gang's vector code is many times larger than the
 * code of one thread, and most of this time is LLVM's code generation. Quick code is vector code, too, but of
 * gangs of one simdgroup (simd/gang_size.c), whose accesses call functions of the runtime for all lanes
 * (simd/memory/gang_access.c), and LLVM does not optimise its machine code (cpu/codegen.c). Where even that
 * is too large, quick code is the scalar engine's, from the same optimised IR. It is compiled sooner and runs
 * up to fifty times as long. Both give the same bits as the best code, unless
 *
 *   arithmetic may be reassociated or approximated: then a code generator may do so in its own way;
 *   threads meet in atomic operations whose order shows in the results: threads of a gang come in another
 *   order than those of several gangs, or than threads that run one after another.
 *
 * Quick code of a GPU comes from the same engine as the best code, but calls a function for each product of
 * matrices (ptx/matrix/matrix_outlined.c). The same conditions apply.
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

/* Instructions of vector code. A gang may be a group of hundreds of threads, and its code large though that
 * of a thread is small: a step of a bitonic sort has 92 instructions of a thread and 6,600 of 256 threads.
 * LLVM takes 0.05 to 0.08 ms of a 3 GHz processor for one. */
#define LARGE_GANG 3500

/* Quick code is vector code if it has few instructions. Those of a thread's optimised IR give an estimate
 * before they are counted. Below the limits, LLVM takes at most 0.1 seconds of a 3 GHz processor for it. All
 * attention and quantised kernels in tests/ml are; scalar code saves half of that, and takes 0.1 to 0.2
 * seconds more to run at a real size. Kernels with products of matrices, at which the threads of the scalar
 * engine must wait for each other, all have it sooner: their quick code is vector code of any size. A
 * function computes the products (simd/matrix/matrix_outlined.c), so that they do not count. */
#define MOST_THREAD_INSTRUCTIONS 700
#define MOST_VECTOR_INSTRUCTIONS 6000

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

static bool gives_same_bits(LLVMModuleRef module) {
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        FOR_EACH_BLOCK(block, f)
        FOR_EACH_INSTRUCTION(instruction, block) {
            if (is_ordered(instruction) || is_inexact(instruction)) return false;
        }
    }
    return true;
}

bool quick_gives_same_bits(struct unit *unit) {
    return gives_same_bits(unit->module);
}

static bool is_allowed(struct unit *unit) {
    const struct compile_request *request = unit->request;
    bool code = request->output == COMPILE_OBJECT || request->output == COMPILE_ASM ||
                (request->output == COMPILE_AFTER && request->effort == COMPILE_QUICK);
    return request->effort != COMPILE_BEST && code && unit->target->has_quick;
}

bool quick_applies(struct unit *unit) {
    const struct compile_request *request = unit->request;
    if (!is_allowed(unit)) return false;
    if (unit->target->quick_on_request) return request->effort == COMPILE_QUICK;
    uint64_t registers = SIMDGROUP_VALUE_BITS / (uint64_t)simd_vector_bits(request->cpu, request->features);
    bool wanted = request->effort == COMPILE_QUICK || budget_count_all(unit->module) * registers >= LARGE;
    return wanted && quick_gives_same_bits(unit);
}

static bool has_matrices(LLVMValueRef entry) {
    return intrinsic_in_function(entry, INTRINSIC_SIMD_MATRIX_PRODUCT);
}

bool quick_needs_other_engine(struct unit *unit) {
    return unit->result->image.quick && unit->target->may_refuse && !has_matrices(unit->entry) &&
           budget_count_all(unit->module) > MOST_THREAD_INSTRUCTIONS;
}

bool quick_suits_gang(struct unit *unit, LLVMModuleRef optimised) {
    return !unit->result->image.quick && unit->target->may_refuse && is_allowed(unit) &&
           budget_count_all(unit->module) > LARGE_GANG && gives_same_bits(optimised);
}

bool quick_is_too_large(struct unit *unit, LLVMModuleRef optimised) {
    return unit->result->image.quick && !has_matrices(LLVMGetNamedFunction(optimised, ENTRY_NAME)) &&
           budget_count_all(unit->module) > MOST_VECTOR_INSTRUCTIONS;
}
