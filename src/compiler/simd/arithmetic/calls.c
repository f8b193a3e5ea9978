/* Calls of functions that depend only on their arguments: LLVM's intrinsics have vector forms; functions of
 * the C library run lane by lane.
 *
 * The vector forms give the same bits as the scalar ones: IEEE operations, integer operations, and what LLVM
 * expands into these. Intrinsics that approximate (exp, sin, …) are not in the table; the prelude has its
 * own. */
#include "abi/runtime_names.h"
#include "compiler/simd/arithmetic/arithmetic.h"

#include <string.h>

/* ---- Lane by lane. */

static LLVMValueRef lane_address(struct simd *s, LLVMValueRef slot, LLVMTypeRef element, LLVMValueRef lane) {
    return LLVMBuildInBoundsGEP2(s->unit->builder, element, slot, &lane, 1, "");
}

/* Through memory: an element at an index known at run time is accessed by its address. */
LLVMValueRef lanes_each(struct simd *s, LLVMValueRef origin, LLVMValueRef mask, LLVMValueRef const *vectors,
                        int count, LLVMTypeRef result, lane_code *code) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef slots[LANE_ARGUMENTS], lanes[LANE_ARGUMENTS];
    LLVMTypeRef elements[LANE_ARGUMENTS];
    LLVMValueRef result_slot = simd_slot(s, chunk_type(s, result));
    for (int i = 0; i < count; i++) {
        slots[i] = simd_slot(s, LLVMTypeOf(vectors[i]));
        elements[i] = LLVMGetElementType(LLVMTypeOf(vectors[i]));
        LLVMBuildStore(b, vectors[i], slots[i]);
    }
    LLVMValueRef all = mask_as_i32(s, mask), zero = simd_i32(s, 0);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
    LLVMBasicBlockRef head = simd_block(s, "lanes");
    LLVMBuildBr(b, head);
    LLVMPositionBuilderAtEnd(b, head);
    LLVMBasicBlockRef body = simd_block(s, "lane");
    LLVMValueRef left = LLVMBuildPhi(b, type_i32(s->unit), "lanes_left");
    LLVMAddIncoming(left, &all, &before, 1);
    LLVMValueRef more = LLVMBuildICmp(b, LLVMIntNE, left, zero, "");
    LLVMPositionBuilderAtEnd(b, body);
    LLVMBasicBlockRef after = simd_block(s, "lanes_done");
    LLVMPositionBuilderAtEnd(b, head);
    LLVMBuildCondBr(b, more, body, after);

    LLVMPositionBuilderAtEnd(b, body);
    LLVMTypeRef i32 = type_i32(s->unit);
    LLVMValueRef count_arguments[2] = {left, LLVMConstInt(simd_i1(s), 1, false)};
    LLVMValueRef lane = simd_intrinsic(s, "llvm.cttz", &i32, 1, count_arguments, 2);
    lane = LLVMBuildZExt(b, lane, type_i64(s->unit), "");
    for (int i = 0; i < count; i++)
        lanes[i] = LLVMBuildLoad2(b, elements[i], lane_address(s, slots[i], elements[i], lane), "");
    LLVMBuildStore(b, code(s, origin, lanes), lane_address(s, result_slot, result, lane));
    LLVMValueRef rest = LLVMBuildAnd(b, left, LLVMBuildSub(b, left, simd_i32(s, 1), ""), "");
    LLVMBasicBlockRef end = LLVMGetInsertBlock(b);
    LLVMAddIncoming(left, &rest, &end, 1);
    LLVMBuildBr(b, head);
    LLVMPositionBuilderAtEnd(b, after);
    return LLVMBuildLoad2(b, chunk_type(s, result), result_slot, "");
}

/* ---- Functions of the C library: those the runtime offers. */

static const char *const library[] = {RUNTIME_OF_NUMBERS(RUNTIME_NAME)};

static bool in_library(const char *name) {
    for (size_t i = 0; i < sizeof library / sizeof *library; i++)
        if (strcmp(name, library[i]) == 0) return true;
    return false;
}

static LLVMValueRef lane_call(struct simd *s, LLVMValueRef origin, LLVMValueRef *arguments) {
    LLVMValueRef call =
        LLVMBuildCall2(s->unit->builder, LLVMGetCalledFunctionType(origin), LLVMGetCalledValue(origin),
                       arguments, LLVMGetNumArgOperands(origin), "");
    copy_flags(origin, call);
    return call;
}

static LLVMValueRef library_call(struct simd *s, LLVMValueRef call, int chunk) {
    unsigned count = LLVMGetNumArgOperands(call);
    if (count < 1 || count > LANE_ARGUMENTS) return NULL;
    LLVMValueRef vectors[LANE_ARGUMENTS];
    for (unsigned i = 0; i < count; i++) vectors[i] = chunk_of(s, LLVMGetOperand(call, i), chunk);
    return lanes_each(s, call, mask_chunk(s, chunk), vectors, (int)count, LLVMTypeOf(call), lane_call);
}

/* ---- Intrinsics. */

/* The types from which the name of an intrinsic's vector form is built. */
enum overload { BY_RESULT, BY_OPERAND, BY_RESULT_AND_FIRST, BY_RESULT_AND_SECOND };

static const struct {
    const char *name;
    enum overload overload;
} intrinsics[] = {
    {"llvm.fma", BY_RESULT},
    {"llvm.fabs", BY_RESULT},
    {"llvm.sqrt", BY_RESULT},
    {"llvm.floor", BY_RESULT},
    {"llvm.ceil", BY_RESULT},
    {"llvm.trunc", BY_RESULT},
    {"llvm.rint", BY_RESULT},
    {"llvm.nearbyint", BY_RESULT},
    {"llvm.roundeven", BY_RESULT},
    {"llvm.round", BY_RESULT},
    {"llvm.minnum", BY_RESULT},
    {"llvm.maxnum", BY_RESULT},
    {"llvm.minimum", BY_RESULT},
    {"llvm.maximum", BY_RESULT},
    {"llvm.copysign", BY_RESULT},
    {"llvm.arithmetic.fence", BY_RESULT},
    {"llvm.is.fpclass", BY_OPERAND},
    {"llvm.ldexp", BY_RESULT_AND_SECOND},
    {"llvm.ctpop", BY_RESULT},
    {"llvm.ctlz", BY_RESULT},
    {"llvm.cttz", BY_RESULT},
    {"llvm.bitreverse", BY_RESULT},
    {"llvm.bswap", BY_RESULT},
    {"llvm.fshl", BY_RESULT},
    {"llvm.fshr", BY_RESULT},
    {"llvm.smin", BY_RESULT},
    {"llvm.smax", BY_RESULT},
    {"llvm.umin", BY_RESULT},
    {"llvm.umax", BY_RESULT},
    {"llvm.abs", BY_RESULT},
    {"llvm.uadd.sat", BY_RESULT},
    {"llvm.sadd.sat", BY_RESULT},
    {"llvm.usub.sat", BY_RESULT},
    {"llvm.ssub.sat", BY_RESULT},
    {"llvm.ushl.sat", BY_RESULT},
    {"llvm.sshl.sat", BY_RESULT},
    {"llvm.scmp", BY_RESULT_AND_FIRST},
    {"llvm.ucmp", BY_RESULT_AND_FIRST},
    {"llvm.ptrmask", BY_RESULT_AND_SECOND},
    {"llvm.uadd.with.overflow", BY_OPERAND},
    {"llvm.sadd.with.overflow", BY_OPERAND},
    {"llvm.usub.with.overflow", BY_OPERAND},
    {"llvm.ssub.with.overflow", BY_OPERAND},
    {"llvm.umul.with.overflow", BY_OPERAND},
    {"llvm.smul.with.overflow", BY_OPERAND},
};

/* The name without its overloaded types. */
static bool is_intrinsic(const char *name, const char *base) {
    size_t length = strlen(base);
    return strncmp(name, base, length) == 0 && name[length] == '.';
}

/* Arguments that are scalars in the vector form (of llvm.ctlz, llvm.is.fpclass, …) are constants. */
static unsigned vector_arguments(struct simd *s, LLVMValueRef call, LLVMTypeRef vector_type, int chunk,
                                 LLVMValueRef *arguments) {
    unsigned count = LLVMGetNumArgOperands(call);
    LLVMTypeRef parameters[4];
    if (count > 4 || LLVMCountParamTypes(vector_type) != count) return 0;
    LLVMGetParamTypes(vector_type, parameters);
    for (unsigned i = 0; i < count; i++) {
        LLVMValueRef argument = LLVMGetOperand(call, i);
        bool vector = LLVMGetTypeKind(parameters[i]) == LLVMVectorTypeKind;
        arguments[i] = vector ? chunk_of(s, argument, chunk) : argument;
    }
    return count;
}

static LLVMValueRef vector_form(struct simd *s, LLVMValueRef call, LLVMTypeRef *types, unsigned type_count,
                                int chunk) {
    unsigned id = LLVMGetIntrinsicID(LLVMGetCalledValue(call));
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(s->unit->module, id, types, type_count);
    LLVMTypeRef type = LLVMGlobalGetValueType(function);
    LLVMValueRef arguments[4];
    unsigned count = vector_arguments(s, call, type, chunk, arguments);
    if (count == 0) return NULL;
    LLVMValueRef result = LLVMBuildCall2(s->unit->builder, type, function, arguments, count, "");
    copy_flags(call, result);
    return result;
}

/* LLVM 19 loses NaNs next to zeros in vectors of half on CPUs without half arithmetic. */
static LLVMValueRef keep_nan(struct simd *s, LLVMValueRef call, LLVMValueRef extreme, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef x = chunk_of(s, LLVMGetOperand(call, 0), chunk),
                 y = chunk_of(s, LLVMGetOperand(call, 1), chunk);
    LLVMValueRef nan = LLVMBuildFCmp(b, LLVMRealUNO, x, y, "");
    return LLVMBuildSelect(b, nan, LLVMBuildFAdd(b, x, y, ""), extreme, "");
}

static bool loses_nan(LLVMValueRef call, const char *name) {
    return LLVMGetTypeKind(LLVMTypeOf(call)) == LLVMHalfTypeKind &&
           (is_intrinsic(name, "llvm.minimum") || is_intrinsic(name, "llvm.maximum"));
}

static LLVMValueRef intrinsic_call(struct simd *s, LLVMValueRef call, const char *name, int chunk) {
    for (size_t i = 0; i < sizeof intrinsics / sizeof *intrinsics; i++) {
        if (!is_intrinsic(name, intrinsics[i].name)) continue;
        enum overload overload = intrinsics[i].overload;
        LLVMTypeRef first = chunk_type(s, LLVMTypeOf(LLVMGetOperand(call, 0)));
        LLVMTypeRef types[2] = {overload == BY_OPERAND ? first : chunk_type(s, LLVMTypeOf(call)), first};
        if (overload == BY_RESULT_AND_SECOND) types[1] = chunk_type(s, LLVMTypeOf(LLVMGetOperand(call, 1)));
        unsigned type_count = overload == BY_RESULT || overload == BY_OPERAND ? 1 : 2;
        LLVMValueRef result = vector_form(s, call, types, type_count, chunk);
        return loses_nan(call, name) ? keep_nan(s, call, result, chunk) : result;
    }
    return NULL;
}

/* Calls that only inform the optimiser or the debugger. */
static bool is_ignorable(const char *name) {
    static const char *const prefixes[] = {
        "llvm.dbg.",       "llvm.lifetime.",  "llvm.assume",      "llvm.experimental.noalias.scope.decl",
        "llvm.donothing",  "llvm.sideeffect", "llvm.pseudoprobe", "llvm.var.annotation",
        "llvm.invariant.",
    };
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return false;
}

bool emit_pure_call(struct simd *s, LLVMValueRef call, int chunk) {
    const char *name = called_name(call);
    if (is_ignorable(name)) return true;
    LLVMValueRef result = strncmp(name, "llvm.", 5) == 0 ? intrinsic_call(s, call, name, chunk)
                          : in_library(name)             ? library_call(s, call, chunk)
                                                         : NULL;
    if (!result) return false;
    chunk_set(s, call, chunk, result);
    return true;
}
