/* The bits in which the lanes of a warp may differ. Thread numbers differ only in the lowest five, so values
 * that are shifted, masked or compared above these are equal in all lanes. A mask of all bits stands for
 * anything except an integer, and for integers whose bits are not known. */
#include "compiler/analysis/phases.h"
#include "abi/simdgroup.h"
#include "compiler/combine.h"
#include "compiler/ptx/ptx.h"
#include "compiler/ptx/warp/divergence.h"
#include "compiler/analysis/uniform.h"

#include <string.h>

#define ANY UINT64_MAX
#define LANE_BITS UINT64_C(31)

/* ---- Positions. A block's threads are numbered along its rows. */

static bool is_line(const struct code_shape *shape) {
    return shape->size[1] == 1 && shape->size[2] == 1;
}

static uint64_t differing_position(const struct code_shape *shape, uint64_t dimension) {
    uint32_t row = shape->size[0];
    if (is_line(shape)) return dimension == 0 ? LANE_BITS : 0;
    if (shape->masked || !row) return ANY; /* groups at the edge have shorter rows */
    if (dimension == 0) return row % 32 == 0 ? LANE_BITS : (row & (row - 1)) == 0 ? row - 1 : ANY;
    if (dimension == 2) row *= shape->size[1];
    return row && row % 32 == 0 ? 0 : ANY;
}

static uint64_t differing_thread(const struct code_shape *shape, uint64_t dimension) {
    uint64_t own = differing_position(shape, dimension);
    uint32_t size = dimension < 3 ? shape->size[dimension] : 0;
    return own == 0 || (size && size % 32 == 0) ? own : ANY;
}

/* ---- Simdgroup operations. */

bool divergence_is_barrier(LLVMValueRef instruction) {
    return intrinsic_of(instruction) == INTRINSIC_THREADGROUP_BARRIER;
}

/* Where the answer is yes, __smelt_alike stands before barriers. */
bool divergence_has_barrier(LLVMBasicBlockRef block) {
    return intrinsic_in_block(block, INTRINSIC_THREADGROUP_BARRIER) ||
           intrinsic_in_block(block, INTRINSIC_ALIKE);
}

bool divergence_is_operation(LLVMValueRef instruction) {
    enum intrinsic intrinsic = intrinsic_of(instruction);
    return intrinsic_is_of_simdgroup(intrinsic) || intrinsic == INTRINSIC_THREADGROUP_BARRIER ||
           intrinsic == INTRINSIC_ALIKE;
}

static bool is_one(LLVMValueRef value) {
    uint64_t number;
    return is_constant_integer(value, &number) && number == 1;
}

/* Whether it is the first active lane, as simd_broadcast_first computes it in this block. */
static bool is_first_active(LLVMValueRef index, LLVMBasicBlockRef block) {
    if (strncmp(called_name(index), "llvm.cttz.", 10) != 0) return false;
    LLVMValueRef ballot = LLVMGetOperand(index, 0);
    return intrinsic_of(ballot) == INTRINSIC_SIMD_BALLOT && LLVMGetInstructionParent(ballot) == block &&
           is_one(LLVMGetOperand(ballot, 0));
}

/* If the source lane is off, every lane gets its own value. */
static uint64_t differing_shuffle(const struct divergence *d, LLVMValueRef call, int place) {
    LLVMValueRef index = LLVMGetOperand(call, 1);
    uint64_t lane, value = divergence_in_operand(d, LLVMGetOperand(call, 0), place);
    if (value == 0) return 0;
    if (LLVMIsAInstruction(index) && is_first_active(index, d->graph.blocks[place].block)) return 0;
    bool exists = is_constant_integer(index, &lane) && lane < SIMDGROUP_LANES;
    bool on = divergence_whole_warps(&d->unit->request->shape) && divergence_reached_by_all(d, place) &&
              !d->graph.blocks[place].short_of;
    return exists && on ? 0 : ANY;
}

static uint64_t differing_reduction(const struct divergence *d, LLVMValueRef call, int place) {
    uint64_t operation, width;
    bool known = is_constant_integer(LLVMGetOperand(call, 0), &operation) &&
                 is_constant_integer(LLVMGetOperand(call, 1), &width);
    if (!known) return ANY;
    if (width == SIMDGROUP_LANES) return 0;
    bool repeats = operation != SIMD_SUM && operation != SIMD_PRODUCT && operation != SIMD_XOR;
    return repeats && !divergence_in_operand(d, LLVMGetOperand(call, 2), place) ? 0 : ANY;
}

/* ---- Calls. */

static uint64_t differing_in_operands(const struct divergence *d, LLVMValueRef instruction, int place) {
    for (int i = 0; i < LLVMGetNumOperands(instruction); i++)
        if (divergence_in_operand(d, LLVMGetOperand(instruction, (unsigned)i), place)) return ANY;
    return 0;
}

/* It computes from its operands alone. */
static bool is_pure(LLVMValueRef call, const char *name) {
    LLVMValueRef callee = LLVMGetCalledValue(call);
    if (LLVMIsAInlineAsm(callee)) return !LLVMGetInlineAsmHasSideEffects(callee);
    if (strncmp(name, "llvm.", 5) != 0 || strstr(name, "sreg")) return false;
    LLVMAttributeRef memory = LLVMGetEnumAttributeAtIndex(
        callee, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, LLVMGetEnumAttributeKindForName("memory", 6));
    return memory && LLVMGetEnumAttributeValue(memory) == 0;
}

static bool is_same_in_group(enum intrinsic intrinsic) {
    return uniform_is_of_group(intrinsic) || intrinsic == INTRINSIC_ALIKE || intrinsic == INTRINSIC_NEVER;
}

static bool is_same_in_warp(enum intrinsic intrinsic) {
    return is_same_in_group(intrinsic) || intrinsic == INTRINSIC_SIMDGROUP ||
           intrinsic == INTRINSIC_SIMD_BALLOT;
}

/* Compared in a whole threadgroup: simdgroup operations have results of a simdgroup each. */
static uint64_t differing_in_group(const struct divergence *d, LLVMValueRef call, int place) {
    enum intrinsic intrinsic = intrinsic_of(call);
    if (is_same_in_group(intrinsic)) return 0;
    bool computes = intrinsic == INTRINSIC_NONE && is_pure(call, called_name(call));
    return computes ? differing_in_operands(d, call, place) : ANY;
}

/* ---- Calls in the final form. */

/* The operations of a warp whose lanes all get the same. The mask must name all: of lanes that perform the
 * operation at different times, each set gets a result of its own. */
static bool gives_all_the_same(LLVMValueRef call, const char *name) {
    uint64_t mask, lane, bound;
    bool reduces = strncmp(name, "llvm.nvvm.redux.sync.", 21) == 0;
    if (reduces || strcmp(name, "llvm.nvvm.vote.ballot.sync") == 0)
        return is_constant_integer(LLVMGetOperand(call, reduces ? 1 : 0), &mask) &&
               (uint32_t)mask == UINT32_MAX;
    if (strncmp(name, "llvm.nvvm.shfl.sync.idx.", 24) != 0) return false;
    return is_constant_integer(LLVMGetOperand(call, 0), &mask) && (uint32_t)mask == UINT32_MAX &&
           is_constant_integer(LLVMGetOperand(call, 2), &lane) &&
           is_constant_integer(LLVMGetOperand(call, 3), &bound) && bound == SIMDGROUP_LANES - 1;
}

static uint64_t differing_lowered(const struct divergence *d, LLVMValueRef call, int place) {
    static const char sreg[] = "llvm.nvvm.read.ptx.sreg.";
    const char *name = called_name(call);
    unsigned kind = LLVMGetMDKindIDInContext(d->unit->context, PTX_SAME, sizeof PTX_SAME - 1);
    if (LLVMGetMetadata(call, kind)) return 0;
    if (strncmp(name, sreg, sizeof sreg - 1) == 0) {
        name += sizeof sreg - 1;
        if (strncmp(name, "ctaid.", 6) == 0 || strncmp(name, "nctaid.", 7) == 0) return 0;
        return strcmp(name, "tid.x") == 0 ? LANE_BITS : ANY; /* blocks have one dimension */
    }
    if (gives_all_the_same(call, name)) return 0;
    return is_pure(call, name) && !ptx_is_convergent(call) ? differing_in_operands(d, call, place) : ANY;
}

static uint64_t differing_call(const struct divergence *d, LLVMValueRef call, int place) {
    if (d->lowered) return differing_lowered(d, call, place);
    const struct code_shape *shape = &d->unit->request->shape;
    enum intrinsic intrinsic = intrinsic_of(call);
    uint64_t dimension = 3;
    if (d->in_group) return differing_in_group(d, call, place);
    if (is_same_in_warp(intrinsic)) return 0;
    if (intrinsic == INTRINSIC_LANE || intrinsic == INTRINSIC_THREAD_INDEX) return LANE_BITS;
    enum simd_kind kind;
    if (simdgroup_kind(intrinsic, &kind) && kind == SIMD_REDUCE) return differing_reduction(d, call, place);
    if (simdgroup_kind(intrinsic, &kind) && kind == SIMD_SHUFFLE) return differing_shuffle(d, call, place);
    if (LLVMGetNumArgOperands(call) == 1) (void)is_constant_integer(LLVMGetOperand(call, 0), &dimension);
    if (intrinsic == INTRINSIC_POSITION_IN_THREADGROUP) return differing_position(shape, dimension);
    if (intrinsic == INTRINSIC_THREAD_POSITION) return differing_thread(shape, dimension);
    return is_pure(call, called_name(call)) ? differing_in_operands(d, call, place) : ANY;
}

/* ---- Arithmetic. */

static uint64_t low_bits(LLVMTypeRef type) {
    unsigned width = LLVMGetIntTypeWidth(type);
    return width >= 64 ? ANY : (UINT64_C(1) << width) - 1;
}

static bool is_integer(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) <= 64;
}

/* Whether all bits that differ are below those of the number. */
static bool differs_below(uint64_t bits, uint64_t number) {
    return number == 0 || bits < (number & -number);
}

/* `x < c` and similar depend only on x's upper bits if c's lower ones are 0; for a signed x and c = 0, only
 * on its sign. */
static bool compares_above(LLVMValueRef comparison, uint64_t bits) {
    uint64_t bound;
    LLVMValueRef left = LLVMGetOperand(comparison, 0);
    if (!is_integer(left) || !is_constant_integer(LLVMGetOperand(comparison, 1), &bound)) return false;
    uint64_t whole = low_bits(LLVMTypeOf(left)), sign = whole - whole / 2;
    bool is_signed = false;
    switch (LLVMGetICmpPredicate(comparison)) {
    case LLVMIntSLT:
    case LLVMIntSGE:
        is_signed = true;
        break;
    case LLVMIntSGT:
    case LLVMIntSLE:
        is_signed = true;
        bound++;
        break;
    case LLVMIntULT:
    case LLVMIntUGE:
        break;
    case LLVMIntUGT:
    case LLVMIntULE:
        bound++;
        break;
    default:
        return false;
    }
    bound &= whole;
    return differs_below(bits & whole, is_signed && bound == 0 ? sign : bound);
}

/* For an integer operation with a constant as its right operand, whose left operand differs in `bits`; ANY:
 * not known. */
static uint64_t differing_with_constant(LLVMOpcode opcode, uint64_t bits, uint64_t constant) {
    switch (opcode) {
    case LLVMLShr:
        return constant < 64 ? bits >> constant : ANY;
    case LLVMShl:
        return constant < 64 ? bits << constant : ANY;
    case LLVMAnd:
        return bits & constant;
    case LLVMOr:
        return bits & ~constant;
    case LLVMXor:
        return bits;
    case LLVMAdd:
        return differs_below(bits, constant) ? bits : ANY;
    case LLVMUDiv:
        return constant && differs_below(bits, constant) ? 0 : ANY;
    default:
        return ANY;
    }
}

static uint64_t differing_integer(const struct divergence *d, LLVMValueRef instruction, int place) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
    LLVMValueRef left = LLVMGetOperand(instruction, 0);
    if (!is_integer(instruction) || !is_integer(left)) return differing_in_operands(d, instruction, place);
    uint64_t bits = divergence_in_operand(d, left, place) & low_bits(LLVMTypeOf(left)), constant;
    uint64_t whole = low_bits(LLVMTypeOf(instruction));
    if (opcode == LLVMZExt || opcode == LLVMTrunc || opcode == LLVMFreeze) return bits & whole;
    if (opcode == LLVMSExt) return bits >> (LLVMGetIntTypeWidth(LLVMTypeOf(left)) - 1) ? ANY : bits;
    if (LLVMGetNumOperands(instruction) != 2) return differing_in_operands(d, instruction, place);
    LLVMValueRef right = LLVMGetOperand(instruction, 1);
    uint64_t others = divergence_in_operand(d, right, place);
    if (!bits && !others) return 0;
    if (is_constant_integer(right, &constant)) return differing_with_constant(opcode, bits, constant) & whole;
    if (opcode == LLVMAnd || opcode == LLVMOr || opcode == LLVMXor) return bits | others;
    return ANY;
}

/* Private memory has the same addresses in all lanes, but different contents: addresses there count as
 * differing. */
static uint64_t differing_load(const struct divergence *d, LLVMValueRef load, int place) {
    if (LLVMGetVolatile(load) || LLVMGetOrdering(load) != LLVMAtomicOrderingNotAtomic) return ANY;
    /* Lanes that have parted unnoticed may load at different times: only what nothing changes is the same. */
    if (d->lowered && !ptx_is_in_parameter(d->unit, LLVMGetOperand(load, 0), false)) return ANY;
    /* Compared in a group, the module is not yet retargeted: private memory is in the space 0. Addresses
     * there are equal, as loops over a thread's arrays compare them. */
    if (d->in_group && LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(load, 0))) == 0) return ANY;
    return divergence_in_operand(d, LLVMGetOperand(load, 0), place) ? ANY : 0;
}

static uint64_t differing_phi(const struct divergence *d, LLVMValueRef phi, int place) {
    uint64_t bits = 0;
    LLVMValueRef only = NULL;
    bool same = true;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMValueRef value = LLVMGetIncomingValue(phi, i);
        if (value == phi || LLVMIsUndef(value) || LLVMIsPoison(value)) continue;
        bits |= divergence_in_operand(d, value, place);
        if (!only) only = value;
        same &= only == value;
    }
    return d->graph.blocks[place].join && !same ? ANY : bits;
}

uint64_t divergence_in_operand(const struct divergence *d, LLVMValueRef operand, int place) {
    if (!LLVMIsAInstruction(operand)) return 0;
    uint64_t bits = divergence_bits(d, operand);
    if (bits == ANY || !d->graph.rounds_differ) return bits;
    /* A loop's value differs after the loop if lanes left it in different rounds. */
    int from = divergence_place(d, LLVMGetInstructionParent(operand));
    for (int loop = from < 0 ? -1 : d->graph.blocks[from].loop; loop >= 0; loop = d->graph.loops[loop].parent)
        if (d->graph.loops[loop].divergent && !paths_within(&d->graph, place, loop)) return ANY;
    return bits;
}

uint64_t divergence_in_result(const struct divergence *d, LLVMValueRef instruction, int place) {
    uint64_t condition;
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMAlloca:
        return d->in_group ? 0 : ANY;
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
    case LLVMVAArg:
        return ANY;
    case LLVMLoad:
        return differing_load(d, instruction, place);
    case LLVMCall:
        return differing_call(d, instruction, place);
    case LLVMPHI:
        return differing_phi(d, instruction, place);
    case LLVMSelect:
        condition = divergence_in_operand(d, LLVMGetOperand(instruction, 0), place);
        return condition ? ANY
                         : divergence_in_operand(d, LLVMGetOperand(instruction, 1), place) |
                               divergence_in_operand(d, LLVMGetOperand(instruction, 2), place);
    case LLVMICmp:
        condition = divergence_in_operand(d, LLVMGetOperand(instruction, 0), place);
        if (compares_above(instruction, condition)) return 0;
        return differing_in_operands(d, instruction, place);
    default:
        return differing_integer(d, instruction, place);
    }
}
