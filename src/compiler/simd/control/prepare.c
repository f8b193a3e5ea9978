/* Brings the optimised entry into the form that the vectoriser requires: one return, reducible loops with
 * preheaders, one latch, dedicated exits and LCSSA phis; no vectors within a thread; no calls that copy
 * memory.
 *
 * Requires: everything inlined. Maintains: what a thread does. */
#include "compiler/simd/memory/access.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

/* ---- Copies and fills of memory. */

static LLVMValueRef element_address(struct simd *s, LLVMValueRef base, uint64_t bytes) {
    LLVMValueRef index = LLVMConstInt(type_i64(s->unit), bytes, false);
    return LLVMBuildGEP2(s->unit->builder, LLVMInt8TypeInContext(s->unit->context), base, &index, 1, "");
}

#define MAX_COPY_PIECES 512
#define MAX_INDEXES 8

static unsigned argument_align(LLVMValueRef call, unsigned argument) {
    unsigned kind = LLVMGetEnumAttributeKindForName("align", 5);
    LLVMAttributeRef align = LLVMGetCallSiteEnumAttribute(call, argument + 1, kind);
    return align ? (unsigned)LLVMGetEnumAttributeValue(align) : 1;
}

static LLVMValueRef alloca_of(LLVMValueRef address) {
    while (LLVMIsAGetElementPtrInst(address)) address = LLVMGetOperand(address, 0);
    return LLVMIsAAllocaInst(address);
}

/* The smallest element that is loaded from or stored to a private array, in bytes, if it is below `most`. */
static uint64_t least_access(struct simd *s, LLVMValueRef address, uint64_t most) {
    for (LLVMUseRef use = LLVMGetFirstUse(address); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        LLVMTypeRef type = LLVMIsALoadInst(user)    ? LLVMTypeOf(user)
                           : LLVMIsAStoreInst(user) ? LLVMTypeOf(LLVMGetOperand(user, 0))
                                                    : NULL;
        if (LLVMIsAGetElementPtrInst(user)) most = least_access(s, user, most);
        if (type && LLVMABISizeOfType(s->unit->layout, type) < most)
            most = LLVMABISizeOfType(s->unit->layout, type);
    }
    return most;
}

/* The size of the words that a copy or fill moves. A CPU accepts them at any address, but private arrays are
 * interleaved only if they are aligned and of one size. */
static uint64_t piece_bytes(struct simd *s, LLVMValueRef call, uint64_t size, bool copy) {
    uint64_t wide = 8, piece = 8;
    for (unsigned i = 0; i <= copy; i++) {
        LLVMValueRef alloca = alloca_of(LLVMGetOperand(call, i));
        if (alloca && argument_align(call, i) < wide) wide = argument_align(call, i);
        if (alloca) piece = least_access(s, alloca, piece);
    }
    if (piece > wide || size / piece > MAX_COPY_PIECES) piece = wide;
    while (piece > 1 && (size % piece || (piece & (piece - 1)))) piece--;
    return piece;
}

static unsigned align_at(unsigned align, uint64_t offset) {
    return (unsigned)access_align_at((int)align, (int64_t)offset);
}

static LLVMTypeRef piece_type(struct simd *s, uint64_t bytes) {
    return LLVMIntTypeInContext(s->unit->context, (unsigned)(8 * bytes));
}

/* Loads everything before storing anything, as memmove requires. */
static void expand_copy(struct simd *s, LLVMValueRef call, uint64_t size) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef to = LLVMGetOperand(call, 0), from = LLVMGetOperand(call, 1), pieces[MAX_COPY_PIECES];
    unsigned to_align = argument_align(call, 0), from_align = argument_align(call, 1);
    uint64_t bytes = piece_bytes(s, call, size, true);
    for (uint64_t at = 0; at < size; at += bytes) {
        LLVMValueRef load = LLVMBuildLoad2(b, piece_type(s, bytes), element_address(s, from, at), "");
        LLVMSetAlignment(load, align_at(from_align, at));
        pieces[at / bytes] = load;
    }
    for (uint64_t at = 0; at < size; at += bytes)
        LLVMSetAlignment(LLVMBuildStore(b, pieces[at / bytes], element_address(s, to, at)),
                         align_at(to_align, at));
}

static void expand_fill(struct simd *s, LLVMValueRef call, uint64_t size) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef to = LLVMGetOperand(call, 0), byte = LLVMGetOperand(call, 1);
    unsigned align = argument_align(call, 0);
    uint64_t bytes = piece_bytes(s, call, size, false);
    LLVMTypeRef type = piece_type(s, bytes);
    LLVMValueRef ones = LLVMConstInt(type, UINT64_C(0x0101010101010101), false);
    LLVMValueRef value = LLVMBuildMul(b, LLVMBuildZExtOrBitCast(b, byte, type, ""), ones, "");
    for (uint64_t at = 0; at < size; at += bytes)
        LLVMSetAlignment(LLVMBuildStore(b, value, element_address(s, to, at)), align_at(align, at));
}

static bool expand_memory_call(struct simd *s, LLVMValueRef call, const char *name) {
    bool copy = strncmp(name, "llvm.memcpy", 11) == 0 || strncmp(name, "llvm.memmove", 12) == 0;
    bool fill = strncmp(name, "llvm.memset", 11) == 0;
    uint64_t size;
    if (!copy && !fill) return false;
    if (!is_constant_integer(LLVMGetOperand(call, 2), &size)) {
        simd_refuse(s, call, "it copies or fills memory of a size known only at run time");
        return false;
    }
    if (size / piece_bytes(s, call, size, copy) > MAX_COPY_PIECES) {
        simd_refuse(s, call, "it copies or fills %llu bytes at once", (unsigned long long)size);
        return false;
    }
    LLVMPositionBuilderBefore(s->unit->builder, call);
    if (copy)
        expand_copy(s, call, size);
    else
        expand_fill(s, call, size);
    return true;
}

static void expand_memory_calls(struct simd *s) {
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(call, block) {
        if (s->refused) return;
        if (LLVMIsACallInst(call) && expand_memory_call(s, call, called_name(call)))
            LLVMInstructionEraseFromParent(call);
    }
}

/* ---- Vectors within a thread. LLVM's scalarizer leaves casts between vectors and integers. */

static bool is_vector(LLVMValueRef value) {
    return LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMVectorTypeKind;
}

static LLVMTypeRef bits_type(struct simd *s, LLVMTypeRef type) {
    return LLVMIntTypeInContext(s->unit->context, (unsigned)LLVMSizeOfTypeInBits(s->unit->layout, type));
}

static LLVMValueRef element_as_bits(struct simd *s, LLVMValueRef vector, unsigned index) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef element = LLVMBuildExtractElement(b, vector, simd_i32(s, index), "");
    return LLVMBuildBitCast(b, element, bits_type(s, LLVMTypeOf(element)), "");
}

/* A vector as an integer; casts between vectors of different elements go through one. */
static LLVMValueRef join_bits(struct simd *s, LLVMValueRef vector) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef whole = bits_type(s, LLVMTypeOf(vector));
    unsigned width = (unsigned)LLVMSizeOfTypeInBits(s->unit->layout, LLVMGetElementType(LLVMTypeOf(vector)));
    LLVMValueRef bits = LLVMConstNull(whole);
    for (unsigned i = 0; i < (unsigned)LLVMGetVectorSize(LLVMTypeOf(vector)); i++) {
        LLVMValueRef part = LLVMBuildZExtOrBitCast(b, element_as_bits(s, vector, i), whole, "");
        bits = LLVMBuildOr(b, bits,
                           LLVMBuildShl(b, part, LLVMConstInt(whole, (uint64_t)i * width, false), ""), "");
    }
    return bits;
}

static LLVMValueRef split_bits(struct simd *s, LLVMValueRef bits, LLVMTypeRef type) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef element = LLVMGetElementType(type), whole = LLVMTypeOf(bits), part = bits_type(s, element);
    LLVMValueRef vector = LLVMGetPoison(type);
    for (unsigned i = 0; i < (unsigned)LLVMGetVectorSize(type); i++) {
        LLVMValueRef shift = LLVMConstInt(whole, (uint64_t)i * LLVMGetIntTypeWidth(part), false);
        LLVMValueRef own = LLVMBuildTruncOrBitCast(b, LLVMBuildLShr(b, bits, shift, ""), part, "");
        vector = LLVMBuildInsertElement(b, vector, LLVMBuildBitCast(b, own, element, ""), simd_i32(s, i), "");
    }
    return vector;
}

static void expand_vector_casts(struct simd *s) {
    LLVMBuilderRef b = s->unit->builder;
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(cast, block) {
        if (!LLVMIsABitCastInst(cast)) continue;
        LLVMValueRef from = LLVMGetOperand(cast, 0);
        if (!is_vector(cast) && !is_vector(from)) continue;
        LLVMPositionBuilderBefore(b, cast);
        LLVMTypeRef type = LLVMTypeOf(cast);
        LLVMValueRef bits = is_vector(from) ? join_bits(s, from)
                                            : LLVMBuildBitCast(b, from, bits_type(s, LLVMTypeOf(from)), "");
        LLVMValueRef value =
            is_vector(cast) ? split_bits(s, bits, type) : LLVMBuildBitCast(b, bits, type, "");
        LLVMReplaceAllUsesWith(cast, value);
        LLVMInstructionEraseFromParent(cast);
    }
}

/* The results of cmpxchg are never poison; without freezes, their users see the instruction itself. */
static void drop_pair_freezes(struct simd *s) {
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(freeze, block) {
        if (LLVMGetInstructionOpcode(freeze) != LLVMFreeze) continue;
        if (!LLVMIsAAtomicCmpXchgInst(LLVMGetOperand(freeze, 0))) continue;
        LLVMReplaceAllUsesWith(freeze, LLVMGetOperand(freeze, 0));
        LLVMInstructionEraseFromParent(freeze);
    }
}

/* A phi of pairs becomes a phi of the extracted members. */
static void split_pair_phi(struct simd *s, LLVMValueRef phi, LLVMValueRef extract) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMPositionBuilderBefore(b, phi);
    LLVMValueRef member = LLVMBuildPhi(b, LLVMTypeOf(extract), "");
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMValueRef pair = LLVMGetIncomingValue(phi, i);
        LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi, i);
        bool made = LLVMIsAInstruction(pair) && !LLVMIsAPHINode(pair);
        LLVMPositionBuilderBefore(b, made ? LLVMGetNextInstruction(pair) : LLVMGetBasicBlockTerminator(from));
        LLVMValueRef value = LLVMBuildExtractValue(b, pair, LLVMGetIndices(extract)[0], "");
        LLVMAddIncoming(member, &value, &from, 1);
    }
    LLVMReplaceAllUsesWith(extract, member);
    LLVMInstructionEraseFromParent(extract);
}

static bool split_pair_phis_once(struct simd *s) {
    bool found = false;
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(extract, block) {
        if (!LLVMIsAExtractValueInst(extract) || LLVMGetNumIndices(extract) != 1) continue;
        LLVMValueRef phi = LLVMGetOperand(extract, 0);
        if (!LLVMIsAPHINode(phi)) continue;
        split_pair_phi(s, phi, extract);
        found = true;
    }
    return found;
}

/* The first instruction that creates or stores a vector; NULL: there is none. */
static LLVMValueRef find_vector(struct simd *s) {
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (is_vector(instruction)) return instruction;
        if (LLVMIsAStoreInst(instruction) && is_vector(LLVMGetOperand(instruction, 0))) return instruction;
    }
    return NULL;
}

/* A remaining vector is usually an argument or a result of a call. */
static void refuse_vector(struct simd *s, LLVMValueRef left) {
    char name[200];
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(call, block) {
        if (unit_calls_itself(s->unit, call, name)) simd_refuse(s, call, CALLS_ITSELF, name);
    }
    char *text = LLVMPrintValueToString(left);
    simd_refuse(s, left, "a vector within a thread remains: '%s'", text);
    LLVMDisposeMessage(text);
}

static smelt_status remove_vectors(struct simd *s) {
    if (!find_vector(s)) return SMELT_OK;
    TRY(run_passes(s->unit, "function(scalarizer,instcombine<no-verify-fixpoint>,early-cse,adce)"));
    expand_vector_casts(s);
    TRY(run_passes(s->unit, "function(scalarizer,early-cse,adce)"));
    LLVMValueRef left = find_vector(s);
    if (left) refuse_vector(s, left);
    return SMELT_OK;
}

/* ---- Addresses in private arrays. */

/* Whether all incoming addresses are computed alike, from one array, and differ in numbers only. */
static bool is_phi_of_elements(LLVMValueRef phi) {
    if (!LLVMIsAPHINode(phi) || LLVMCountIncoming(phi) == 0) return false;
    LLVMValueRef first = LLVMGetIncomingValue(phi, 0);
    if (!LLVMIsAGetElementPtrInst(first) || !alloca_of(first)) return false;
    LLVMTypeRef type = LLVMGetGEPSourceElementType(first);
    int count = LLVMGetNumOperands(first);
    for (unsigned n = 1; n < LLVMCountIncoming(phi); n++) {
        LLVMValueRef other = LLVMGetIncomingValue(phi, n);
        if (!LLVMIsAGetElementPtrInst(other) || LLVMGetNumOperands(other) != count ||
            LLVMGetGEPSourceElementType(other) != type ||
            LLVMGetOperand(other, 0) != LLVMGetOperand(first, 0))
            return false;
        for (unsigned i = 1; i < (unsigned)count; i++) {
            LLVMValueRef a = LLVMGetOperand(first, i), b = LLVMGetOperand(other, i);
            bool member = i > 1 && LLVMIsAConstantInt(a); /* maybe a struct's, which must be constant */
            if (a != b && (member || LLVMTypeOf(a) != LLVMTypeOf(b))) return false;
        }
    }
    return true;
}

/* The incoming addresses' operand: theirs if it is the same, which then dominates the phi; else a phi. */
static LLVMValueRef join_operands(struct simd *s, LLVMValueRef phi, unsigned operand) {
    LLVMValueRef first = LLVMGetOperand(LLVMGetIncomingValue(phi, 0), operand), joined = NULL;
    unsigned count = LLVMCountIncoming(phi), same = 0;
    for (unsigned n = 0; n < count; n++)
        same += LLVMGetOperand(LLVMGetIncomingValue(phi, n), operand) == first;
    if (same == count) return first;
    LLVMPositionBuilderBefore(s->unit->builder, phi);
    joined = LLVMBuildPhi(s->unit->builder, LLVMTypeOf(first), "");
    for (unsigned n = 0; n < count; n++) {
        LLVMValueRef value = LLVMGetOperand(LLVMGetIncomingValue(phi, n), operand);
        LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi, n);
        LLVMAddIncoming(joined, &value, &from, 1);
    }
    return joined;
}

static LLVMValueRef first_behind_phis(LLVMValueRef phi) {
    while (LLVMIsAPHINode(phi)) phi = LLVMGetNextInstruction(phi);
    return phi;
}

/* A phi of addresses within one private array becomes the address of joined indexes: an array whose address
 * is used for loads and stores only can be interleaved. */
static void join_element_addresses(struct simd *s) {
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(phi, block) {
        if (!is_phi_of_elements(phi)) continue;
        LLVMValueRef first = LLVMGetIncomingValue(phi, 0), indexes[MAX_INDEXES];
        unsigned count = (unsigned)LLVMGetNumOperands(first) - 1;
        if (count > MAX_INDEXES) continue;
        for (unsigned i = 0; i < count; i++) indexes[i] = join_operands(s, phi, i + 1);
        LLVMPositionBuilderBefore(s->unit->builder, first_behind_phis(phi));
        LLVMReplaceAllUsesWith(phi, LLVMBuildGEP2(s->unit->builder, LLVMGetGEPSourceElementType(first),
                                                  LLVMGetOperand(first, 0), indexes, count, ""));
        LLVMInstructionEraseFromParent(phi);
    }
}

/* `x | 2` becomes x + 2, which does not wrap, if x has none of these bits. An affine value is computed from
 * lane 0's, which may have them if lane 0 does not execute the instruction. */
static void add_disjoint_bits(struct simd *s) {
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        if (LLVMGetInstructionOpcode(i) != LLVMOr || !LLVMGetIsDisjoint(i)) continue;
        LLVMPositionBuilderBefore(s->unit->builder, i);
        LLVMReplaceAllUsesWith(
            i, LLVMBuildNUWAdd(s->unit->builder, LLVMGetOperand(i, 0), LLVMGetOperand(i, 1), ""));
        LLVMInstructionEraseFromParent(i);
    }
}

/* For the analysis of paths, a thread that traps returns: a block that ends in `unreachable` would belong to
 * all lanes. Calls of llvm.trap, which LLVM knows never to return, become calls of __smelt_trap. */
static void return_from_traps(struct simd *s) {
    LLVMValueRef llvms = LLVMGetNamedFunction(s->unit->module, "llvm.trap");
    if (!llvms) return;
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = LLVMGlobalGetValueType(llvms);
    LLVMValueRef own = intrinsic_declare(s->unit->module, INTRINSIC_TRAP, type);
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        if (!LLVMIsACallInst(i) || LLVMGetCalledValue(i) != llvms) continue;
        LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
        LLVMPositionBuilderBefore(b, i);
        LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(i));
        LLVMBuildCall2(b, type, own, NULL, 0, "");
        LLVMInstructionEraseFromParent(i);
        if (!LLVMIsAUnreachableInst(end)) continue;
        LLVMInstructionEraseFromParent(end);
        LLVMPositionBuilderAtEnd(b, block);
        LLVMBuildRetVoid(b);
        break;
    }
    LLVMSetCurrentDebugLocation2(b, NULL);
}

static smelt_status prepare(struct simd *s) {
    TRY(memory_measure_private(s->unit));
    expand_memory_calls(s);
    if (s->refused) return SMELT_OK;
    words_split_odd(s);
    TRY(remove_vectors(s));
    if (s->refused) return SMELT_OK;
    join_element_addresses(s);
    return_from_traps(s);
    TRY(run_passes(s->unit, "function(mergereturn,simplifycfg<no-switch-to-lookup>)"));
    TRY(flow_make_reducible(s->unit));
    TRY(run_passes(s->unit, "function(loop-simplify,lcssa)"));
    hold_release(s->unit, s->entry);
    drop_pair_freezes(s);
    add_disjoint_bits(s);
    if (!split_pair_phis_once(s)) return SMELT_OK;
    while (split_pair_phis_once(s)) continue;
    return run_passes(s->unit, "function(adce)");
}

smelt_status pass_simd_prepare(struct unit *unit) {
    return simd_run(unit, prepare);
}
