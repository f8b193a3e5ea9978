/* Every access of memory asks the checker first, and uses the address that it returns.
 *
 * The object that an access is meant for is the one its address is computed from: an access that misses it
 * may well hit another. Where an address comes from memory or from several objects, the checker finds what
 * lies there. Variables that LLVM still sees are those whose accesses all lie inside (private.c). */
#include "compiler/check/check.h"

#include <string.h>

enum { MOST_STEPS = 32 };

/* What an address is computed from. base NULL: not known. */
struct object {
    LLVMValueRef base;
    uint64_t extent; /* bytes; 0: not known here */
    uint32_t index;  /* of an argument */
    enum check_space space;
    bool visible; /* to LLVM: nothing to ask */
};

static const struct object anywhere = {.space = CHECK_ANYWHERE};

static bool calls(LLVMValueRef value, const char *name) {
    return LLVMIsACallInst(value) && strcmp(called_name(value), name) == 0;
}

static struct object of_global(struct unit *unit, LLVMValueRef global) {
    bool threadgroup = LLVMGetPointerAddressSpace(LLVMTypeOf(global)) == THREADGROUP_SPACE;
    return (struct object){.base = global,
                           .extent = LLVMABISizeOfType(unit->layout, LLVMGlobalGetValueType(global)),
                           .space = threadgroup ? CHECK_THREADGROUP : CHECK_CONSTANT};
}

static struct object of_call(struct unit *unit, LLVMValueRef call) {
    enum intrinsic intrinsic = intrinsic_of(call);
    uint64_t index;
    if (intrinsic == INTRINSIC_BUFFER_ADDRESS && is_constant_integer(LLVMGetOperand(call, 0), &index))
        return (struct object){.base = call, .index = (uint32_t)index, .space = CHECK_DEVICE};
    if (intrinsic == INTRINSIC_THREADGROUP_ADDRESS)
        return (struct object){.base = call, .space = CHECK_THREADGROUP};
    /* The runtime's own memory. */
    if (intrinsic == INTRINSIC_TILE_MEMORY) return (struct object){.visible = true};
    if (!calls(call, "smelt_check_object")) return anywhere;
    LLVMValueRef variable = LLVMGetOperand(call, 0);
    while (LLVMIsAAddrSpaceCastInst(variable) || LLVMIsABitCastInst(variable))
        variable = LLVMGetOperand(variable, 0);
    if (!LLVMIsAAllocaInst(variable)) return anywhere;
    return (struct object){.base = call,
                           .extent = LLVMABISizeOfType(unit->layout, LLVMGetAllocatedType(variable)),
                           .space = CHECK_PRIVATE};
}

static struct object find_object(struct unit *unit, LLVMValueRef pointer, LLVMValueRef *phis, int depth);

/* The object that all operands share. In loops they lead back to phis that are being looked at. */
static struct object of_all(struct unit *unit, LLVMValueRef *operands, int count, LLVMValueRef *phis,
                            int depth) {
    struct object found = anywhere;
    for (int i = 0; i < count; i++) {
        bool again = false;
        for (int p = 0; p <= depth; p++) again |= phis[p] == operands[i];
        if (again) continue;
        struct object one = find_object(unit, operands[i], phis, depth);
        if (one.visible) continue; /* an undefined operand */
        if (!one.base || (found.base && found.base != one.base)) return anywhere;
        found = one;
    }
    return found;
}

static struct object of_phi(struct unit *unit, LLVMValueRef phi, LLVMValueRef *phis, int depth) {
    LLVMValueRef operands[MOST_STEPS];
    unsigned count = LLVMCountIncoming(phi);
    if (count > MOST_STEPS || depth + 1 >= MOST_STEPS) return anywhere;
    for (int p = 0; p <= depth; p++)
        if (phis[p] == phi) return (struct object){.visible = true};
    for (unsigned i = 0; i < count; i++) operands[i] = LLVMGetIncomingValue(phi, i);
    phis[depth + 1] = phi;
    return of_all(unit, operands, (int)count, phis, depth + 1);
}

static struct object find_object(struct unit *unit, LLVMValueRef pointer, LLVMValueRef *phis, int depth) {
    for (;;) {
        if (LLVMIsAUndefValue(pointer)) return (struct object){.visible = true};
        if (LLVMIsAGlobalVariable(pointer)) return of_global(unit, pointer);
        if (LLVMIsAAllocaInst(pointer))
            return (struct object){.base = pointer, .space = CHECK_PRIVATE, .visible = true};
        if (LLVMIsACallInst(pointer)) return of_call(unit, pointer);
        if (LLVMIsAPHINode(pointer)) return of_phi(unit, pointer, phis, depth);
        if (LLVMIsASelectInst(pointer)) {
            LLVMValueRef arms[2] = {LLVMGetOperand(pointer, 1), LLVMGetOperand(pointer, 2)};
            return of_all(unit, arms, 2, phis, depth);
        }
        LLVMOpcode opcode = LLVMIsAConstantExpr(pointer)  ? LLVMGetConstOpcode(pointer)
                            : LLVMIsAInstruction(pointer) ? LLVMGetInstructionOpcode(pointer)
                                                          : LLVMRet;
        if (opcode != LLVMGetElementPtr && opcode != LLVMBitCast && opcode != LLVMAddrSpaceCast)
            return anywhere;
        pointer = LLVMGetOperand(pointer, 0);
    }
}

static struct object object_of(struct unit *unit, LLVMValueRef pointer) {
    LLVMValueRef phis[MOST_STEPS] = {0};
    return find_object(unit, pointer, phis, 0);
}

/* The variable itself; NULL: it is an argument, or not known. */
static LLVMValueRef variable_of(const struct object *object) {
    LLVMValueRef value = object->base;
    if (!value || !object->extent) return NULL;
    while (!LLVMIsAGlobalVariable(value) && !LLVMIsAAllocaInst(value)) value = LLVMGetOperand(value, 0);
    return value;
}

static uint32_t element_bytes(struct unit *unit, const struct object *object) {
    LLVMValueRef variable = variable_of(object);
    if (!variable) return 0;
    LLVMTypeRef type =
        LLVMIsAAllocaInst(variable) ? LLVMGetAllocatedType(variable) : LLVMGlobalGetValueType(variable);
    while (LLVMGetTypeKind(type) == LLVMArrayTypeKind) type = LLVMGetElementType(type);
    uint64_t bytes = LLVMABISizeOfType(unit->layout, type);
    return bytes < CHECK_MOST_NUMBER ? (uint32_t)bytes : 0;
}

/* Of a variable; NULL for arguments, whose names the launch has. */
static const char *object_name(struct unit *unit, const struct object *object, char name[200]) {
    LLVMValueRef value = variable_of(object);
    if (!value) return NULL;
    if (LLVMIsAAllocaInst(value))
        unit_variable_name(value, name);
    else
        unit_plain_name(unit, value, name);
    return name;
}

/* ---- Asking. */

/* Of the address, as a power of 2. */
static uint32_t alignment_of(LLVMValueRef instruction) {
    bool one = LLVMIsALoadInst(instruction) || LLVMIsAStoreInst(instruction) ||
               LLVMIsAAtomicRMWInst(instruction) || LLVMIsAAtomicCmpXchgInst(instruction);
    uint32_t power = 0;
    while (one && power < 15 && LLVMGetAlignment(instruction) >> (power + 1)) power++;
    return power;
}

/* The address for the instruction to use; the builder stands before it. bytes: an i64. */
static LLVMValueRef ask(struct unit *unit, LLVMValueRef instruction, LLVMValueRef pointer,
                        const struct object *object, LLVMValueRef bytes, enum check_access access) {
    LLVMBuilderRef b = unit->builder;
    char name[200];
    LLVMValueRef base = object->base ? check_pointer(unit, object->base) : LLVMConstNull(type_pointer(unit));
    uint32_t number = object->space == CHECK_DEVICE ? object->index : element_bytes(unit, object);
    LLVMValueRef arguments[6] = {
        check_pointer(unit, pointer),
        base,
        LLVMConstInt(type_i64(unit), object->extent, false),
        bytes,
        constant_i32(unit, CHECK_FLAGS(object->space, access, number, alignment_of(instruction))),
        check_site(unit, instruction, object_name(unit, object, name))};
    LLVMValueRef address = check_call(unit, "smelt_check_access", type_pointer(unit), arguments, 6, false);
    return LLVMBuildPointerCast(b, address, LLVMTypeOf(pointer), "");
}

static void check_operand(struct unit *unit, LLVMValueRef instruction, unsigned operand, LLVMValueRef bytes,
                          enum check_access access) {
    LLVMValueRef pointer = LLVMGetOperand(instruction, operand);
    struct object object = object_of(unit, pointer);
    if (object.visible) return;
    LLVMPositionBuilderBefore(unit->builder, instruction);
    LLVMSetOperand(instruction, operand, ask(unit, instruction, pointer, &object, bytes, access));
}

/* The numbers of a value that leaves the thread, the builder standing before that: only these are looked at,
 * as structures have gaps. function: the checker's, which takes a number and what is in `more`, up to the
 * first NULL. */
static void show(struct unit *unit, LLVMValueRef value, const LLVMValueRef more[2], const char *function) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    unsigned count = kind == LLVMVectorTypeKind ? LLVMGetVectorSize(type) : 1;
    LLVMTypeRef element = kind == LLVMVectorTypeKind ? LLVMGetElementType(type) : type;
    LLVMTypeKind scalar = LLVMGetTypeKind(element);
    if (LLVMIsConstant(value) || scalar == LLVMPointerTypeKind || scalar == LLVMStructTypeKind ||
        scalar == LLVMArrayTypeKind)
        return;
    uint64_t bytes = LLVMStoreSizeOfType(unit->layout, element);
    if (bytes > 8) return;
    LLVMTypeRef word =
        scalar == LLVMIntegerTypeKind ? element : LLVMIntTypeInContext(unit->context, (unsigned)(8 * bytes));
    for (unsigned i = 0; i < count; i++) {
        LLVMValueRef one = count > 1 ? LLVMBuildExtractElement(b, value, constant_i32(unit, i), "") : value;
        one = LLVMBuildZExtOrBitCast(b, LLVMBuildBitCast(b, one, word, ""), type_i64(unit), "");
        LLVMValueRef arguments[3] = {one, more[0], more[1]};
        check_call(unit, function, LLVMVoidTypeInContext(unit->context), arguments, 1 + !!more[0] + !!more[1],
                   false);
    }
}

static LLVMValueRef bytes_of(struct unit *unit, LLVMTypeRef type) {
    return LLVMConstInt(type_i64(unit), LLVMStoreSizeOfType(unit->layout, type), false);
}

static void check_store(struct unit *unit, LLVMValueRef store) {
    bool atomic = LLVMGetOrdering(store) != LLVMAtomicOrderingNotAtomic;
    struct object object = object_of(unit, LLVMGetOperand(store, 1));
    LLVMPositionBuilderBefore(unit->builder, store);
    LLVMValueRef more[2] = {check_site(unit, store, NULL)};
    if (object.space == CHECK_DEVICE) show(unit, LLVMGetOperand(store, 0), more, "smelt_check_stored");
    if (object.space == CHECK_ANYWHERE && !object.visible) {
        more[1] = check_pointer(unit, LLVMGetOperand(store, 1));
        show(unit, LLVMGetOperand(store, 0), more, "smelt_check_stored_at");
    }
    check_operand(unit, store, 1, bytes_of(unit, LLVMTypeOf(LLVMGetOperand(store, 0))),
                  atomic ? CHECK_ATOMIC : CHECK_WRITE);
}

static void check_load(struct unit *unit, LLVMValueRef load) {
    bool atomic = LLVMGetOrdering(load) != LLVMAtomicOrderingNotAtomic;
    check_operand(unit, load, 0, bytes_of(unit, LLVMTypeOf(load)), atomic ? CHECK_ATOMIC : CHECK_READ);
}

static LLVMValueRef wide(struct unit *unit, LLVMValueRef length) {
    return LLVMBuildZExtOrBitCast(unit->builder, length, type_i64(unit), "");
}

static void announce_barrier(struct unit *unit, LLVMValueRef call, bool of_simdgroup) {
    LLVMPositionBuilderBefore(unit->builder, call);
    LLVMValueRef arguments[3] = {LLVMGetOperand(call, 0), constant_i32(unit, of_simdgroup),
                                 check_site(unit, call, NULL)};
    check_call(unit, "smelt_check_barrier", LLVMVoidTypeInContext(unit->context), arguments, 3, false);
}

/* The builder stands before the call. */
static void announce_function(struct unit *unit, LLVMValueRef call) {
    LLVMValueRef site = check_site(unit, call, NULL);
    check_call(unit, "smelt_check_simdgroup", LLVMVoidTypeInContext(unit->context), &site, 1, false);
}

/* The operands that lanes give to others: the result is undefined where these are. The other operands are the
 * same in all lanes, or select a lane. */
static void shared_operands(enum intrinsic intrinsic, unsigned count, unsigned *first, unsigned *end) {
    *first = 0;
    *end = count;
    switch (intrinsic) {
    case INTRINSIC_SIMD_SHUFFLE_I32:
    case INTRINSIC_SIMD_SHUFFLE_I64:
        *end = 1;
        break;
    case INTRINSIC_SIMD_BALLOT:
    case INTRINSIC_SIMD_MATRIX_PRODUCT:
        break;
    default: /* reductions and scans: after the operation and the width */
        *first = 2;
        break;
    }
}

static void show_operands(struct unit *unit, LLVMValueRef call, enum intrinsic intrinsic) {
    unsigned first, end, count = LLVMGetNumArgOperands(call);
    shared_operands(intrinsic, count, &first, &end);
    for (unsigned i = 0; i < count; i++) {
        bool shared = i >= first && i < end;
        LLVMValueRef number[2] = {shared ? constant_i32(unit, i - first) : NULL};
        show(unit, LLVMGetOperand(call, i), number, shared ? "smelt_check_shared" : "smelt_check_passed");
    }
}

#define LITERAL \
    INTRINSIC_PREFIX "text(" /* what the source's string literals become (prelude/smelt_dialect.h) */

/* The condition as the source has it. */
static void plain_condition(const char *text, char plain[200]) {
    size_t length = 0;
    while (*text && length < 199) {
        if (strncmp(text, LITERAL "\"", sizeof LITERAL) != 0) {
            plain[length++] = *text++;
            continue;
        }
        const char *start = text += sizeof LITERAL - 1;
        for (text++; *text && *text != '"'; text++) text += *text == '\\' && text[1];
        text += *text == '"';
        for (; start < text && length < 199; start++) plain[length++] = *start;
        text += *text == ')';
    }
    plain[length] = 0;
}

/* The text of an assertion is a constant. */
static void check_assertion(struct unit *unit, LLVMValueRef call) {
    LLVMValueRef text = LLVMGetOperand(call, 0), value = NULL;
    size_t length = 0;
    while (LLVMIsAConstantExpr(text) || LLVMIsAAddrSpaceCastInst(text)) text = LLVMGetOperand(text, 0);
    if (LLVMIsAGlobalVariable(text)) value = LLVMGetInitializer(text);
    bool is_text = value && LLVMIsAConstantDataSequential(value) && LLVMIsConstantString(value);
    char condition[200];
    plain_condition(is_text ? LLVMGetAsString(value, &length) : "", condition);
    LLVMPositionBuilderBefore(unit->builder, call);
    LLVMValueRef site = check_site(unit, call, condition);
    check_call(unit, "smelt_check_assertion", LLVMVoidTypeInContext(unit->context), &site, 1, false);
    LLVMInstructionEraseFromParent(call);
}

static void check_fence(struct unit *unit, LLVMValueRef call) {
    LLVMPositionBuilderBefore(unit->builder, call);
    LLVMTypeRef type = LLVMInt32TypeInContext(unit->context);
    LLVMValueRef arguments[2] = {LLVMGetOperand(call, 0),
                                 LLVMBuildZExt(unit->builder, LLVMGetOperand(call, 1), type, "")};
    check_call(unit, "smelt_check_fence", LLVMVoidTypeInContext(unit->context), arguments, 2, false);
    LLVMInstructionEraseFromParent(call);
}

static void check_called(struct unit *unit, LLVMValueRef call) {
    const char *name = called_name(call);
    enum intrinsic intrinsic = intrinsic_of(call);
    if (intrinsic == INTRINSIC_ASSERTION) {
        check_assertion(unit, call);
        return;
    }
    if (intrinsic == INTRINSIC_CHECKED_FENCE) {
        check_fence(unit, call);
        return;
    }
    if (intrinsic == INTRINSIC_THREADGROUP_BARRIER || intrinsic == INTRINSIC_SIMDGROUP_BARRIER) {
        announce_barrier(unit, call, intrinsic == INTRINSIC_SIMDGROUP_BARRIER);
        if (intrinsic == INTRINSIC_SIMDGROUP_BARRIER) announce_function(unit, call);
        return;
    }
    if (intrinsic_is_of_simdgroup(intrinsic)) {
        LLVMPositionBuilderBefore(unit->builder, call);
        announce_function(unit, call);
        show_operands(unit, call, intrinsic);
        return;
    }
    bool copies = strncmp(name, "llvm.memcpy.", 12) == 0 || strncmp(name, "llvm.memmove.", 13) == 0;
    if (!copies && strncmp(name, "llvm.memset.", 12) != 0) return;
    LLVMPositionBuilderBefore(unit->builder, call);
    LLVMValueRef bytes = wide(unit, LLVMGetOperand(call, 2));
    if (copies) check_operand(unit, call, 1, bytes, CHECK_READ);
    check_operand(unit, call, 0, bytes, CHECK_WRITE);
}

static bool adds_floats(LLVMValueRef atomic) {
    LLVMAtomicRMWBinOp operation = LLVMGetAtomicRMWBinOp(atomic);
    return operation == LLVMAtomicRMWBinOpFAdd || operation == LLVMAtomicRMWBinOpFSub;
}

/* Whether the new value is a sum of floats, or its bits: a loop then adds floats by exchanges. */
static bool exchanges_float_sum(LLVMValueRef exchange) {
    LLVMValueRef value = LLVMGetOperand(exchange, 2);
    if (LLVMIsABitCastInst(value)) value = LLVMGetOperand(value, 0);
    LLVMOpcode opcode = LLVMIsAInstruction(value) ? LLVMGetInstructionOpcode(value) : 0;
    return opcode == LLVMFAdd || opcode == LLVMFSub;
}

/* An atomic operation that depends on the value before it. */
static void check_change(struct unit *unit, LLVMValueRef instruction, enum check_access access) {
    LLVMValueRef bytes = bytes_of(unit, LLVMTypeOf(LLVMGetOperand(instruction, 1)));
    struct object object = object_of(unit, LLVMGetOperand(instruction, 0));
    char name[200];
    check_operand(unit, instruction, 0, bytes, access);
    bool replaces =
        LLVMIsAAtomicRMWInst(instruction) && LLVMGetAtomicRMWBinOp(instruction) == LLVMAtomicRMWBinOpXchg;
    if (replaces && !LLVMGetFirstUse(instruction)) return;
    LLVMPositionBuilderBefore(unit->builder, instruction);
    LLVMValueRef arguments[3] = {check_pointer(unit, LLVMGetOperand(instruction, 0)), bytes,
                                 check_site(unit, instruction, object_name(unit, &object, name))};
    check_call(unit, "smelt_check_changed", LLVMVoidTypeInContext(unit->context), arguments, 3, false);
}

static void check_instruction(struct unit *unit, LLVMValueRef instruction) {
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMLoad:
        check_load(unit, instruction);
        break;
    case LLVMStore:
        check_store(unit, instruction);
        break;
    case LLVMAtomicRMW:
        LLVMPositionBuilderBefore(unit->builder, instruction);
        show(unit, LLVMGetOperand(instruction, 1), (LLVMValueRef[2]){check_site(unit, instruction, NULL)},
             "smelt_check_stored");
        check_change(unit, instruction, adds_floats(instruction) ? CHECK_ATOMIC_SUM : CHECK_ATOMIC);
        break;
    case LLVMAtomicCmpXchg:
        check_change(unit, instruction, exchanges_float_sum(instruction) ? CHECK_ATOMIC_SUM : CHECK_ATOMIC);
        break;
    case LLVMCall:
        check_called(unit, instruction);
        break;
    default:
        break;
    }
}

smelt_status pass_check_accesses(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
        FOR_EACH_BLOCK(block, f)
    FOR_EACH_INSTRUCTION(instruction, block) check_instruction(unit, instruction);
    return SMELT_OK;
}
