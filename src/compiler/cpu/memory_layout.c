/* Threadgroup variables become offsets into the group's memory, for both CPU engines.
 *
 * Requires: `group` (struct group_context *) is available in the whole function. Establishes: no instruction
 * uses a variable of the threadgroup address space; image.threadgroup_bytes, threadgroup_filled. */
#include "abi/cpu_context.h"
#include "compiler/pass.h"

#include <stddef.h>
#include <string.h>

struct placing {
    struct unit *unit;
    LLVMValueRef function, group;
};

static LLVMValueRef byte_address(struct placing *p, LLVMValueRef base, uint64_t offset) {
    LLVMValueRef index = LLVMConstInt(type_i64(p->unit), offset, false);
    return LLVMBuildGEP2(p->unit->builder, LLVMInt8TypeInContext(p->unit->context), base, &index, 1, "");
}

/* Constant within a group: loads may move and merge freely. */
static LLVMValueRef read_base(struct placing *p) {
    LLVMContextRef context = p->unit->context;
    LLVMValueRef address = byte_address(p, p->group, offsetof(struct group_context, threadgroup_memory));
    LLVMValueRef load = LLVMBuildLoad2(p->unit->builder, type_pointer(p->unit), address, "");
    LLVMSetMetadata(load, LLVMGetMDKindIDInContext(context, "invariant.load", 14),
                    LLVMMetadataAsValue(context, LLVMMDNodeInContext2(context, NULL, 0)));
    return load;
}

static bool mentions(LLVMValueRef value, LLVMValueRef global, int depth) {
    if (value == global) return true;
    if (!LLVMIsAConstantExpr(value) && !LLVMIsAConstantVector(value)) return false;
    if (depth > 8) return false;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (mentions(LLVMGetOperand(value, (unsigned)i), global, depth + 1)) return true;
    return false;
}

struct replacing {
    LLVMBuilderRef builder;
    LLVMValueRef global, replacement;
};

static LLVMValueRef constant_as_instruction(const struct replacing *r, LLVMValueRef constant);

static LLVMValueRef vector_as_instructions(const struct replacing *r, LLVMValueRef constant) {
    LLVMTypeRef index_type = LLVMInt64TypeInContext(LLVMGetTypeContext(LLVMTypeOf(constant)));
    LLVMValueRef vector = LLVMGetPoison(LLVMTypeOf(constant));
    for (int i = 0; vector && i < LLVMGetNumOperands(constant); i++) {
        LLVMValueRef lane = constant_as_instruction(r, LLVMGetOperand(constant, (unsigned)i));
        LLVMValueRef index = LLVMConstInt(index_type, (unsigned)i, false);
        vector = lane ? LLVMBuildInsertElement(r->builder, vector, lane, index, "") : NULL;
    }
    return vector;
}

/* Constants over a global become instructions, so that the global can be replaced. NULL: an unknown kind of
 * constant. */
static LLVMValueRef constant_as_instruction(const struct replacing *r, LLVMValueRef constant) {
    LLVMBuilderRef b = r->builder;
    if (constant == r->global) return r->replacement;
    if (!mentions(constant, r->global, 0)) return constant;
    if (LLVMIsAConstantVector(constant)) return vector_as_instructions(r, constant);
    LLVMValueRef operands[8];
    int count = LLVMGetNumOperands(constant);
    if (count > 8) return NULL;
    for (int i = 0; i < count; i++) {
        operands[i] = constant_as_instruction(r, LLVMGetOperand(constant, (unsigned)i));
        if (!operands[i]) return NULL;
    }
    LLVMOpcode opcode = LLVMGetConstOpcode(constant);
    if (opcode == LLVMGetElementPtr)
        return LLVMBuildGEP2(b, LLVMGetGEPSourceElementType(constant), operands[0], operands + 1,
                             (unsigned)count - 1, "");
    if (opcode == LLVMExtractElement) return LLVMBuildExtractElement(b, operands[0], operands[1], "");
    if (count == 1) return LLVMBuildCast(b, opcode, operands[0], LLVMTypeOf(constant), "");
    return count == 2 ? LLVMBuildBinOp(b, opcode, operands[0], operands[1], "") : NULL;
}

static smelt_status replace_variable(struct placing *p, LLVMValueRef global, uint64_t offset) {
    LLVMBuilderRef b = p->unit->builder;
    FOR_EACH_BLOCK(block, p->function)
    FOR_EACH_INSTRUCTION(instruction, block) {
        for (int o = 0; o < LLVMGetNumOperands(instruction); o++) {
            LLVMValueRef operand = LLVMGetOperand(instruction, (unsigned)o);
            if (!mentions(operand, global, 0)) continue;
            bool phi = LLVMIsAPHINode(instruction);
            LLVMValueRef place =
                phi ? LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(instruction, (unsigned)o))
                    : instruction;
            LLVMPositionBuilderBefore(b, place);
            LLVMValueRef base = read_base(p);
            LLVMValueRef address =
                LLVMBuildAddrSpaceCast(b, byte_address(p, base, offset), LLVMTypeOf(global), "");
            LLVMValueRef value = constant_as_instruction(&(struct replacing){b, global, address}, operand);
            if (!value)
                return unit_fail(p->unit, SMELT_ERROR_INTERNAL,
                                 "a constant expression over a threadgroup variable is not supported");
            LLVMSetOperand(instruction, (unsigned)o, value);
        }
    }
    return SMELT_OK;
}

static bool is_written_first(LLVMValueRef global) {
    const char *section = LLVMGetSection(global);
    return section && strcmp(section, WRITTEN_FIRST_SECTION) == 0;
}

/* Places the variables that are (or are not) written first after the `total` bytes placed so far. */
static smelt_status place_some(struct placing *p, bool written_first, uint64_t *total) {
    struct unit *unit = p->unit;
    for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g; g = LLVMGetNextGlobal(g)) {
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(g)) != THREADGROUP_SPACE || !LLVMGetFirstUse(g)) continue;
        if (is_written_first(g) != written_first) continue;
        uint64_t align = LLVMGetAlignment(g);
        if (align < 64) align = 64; /* vectors of the SIMD engine */
        *total = (*total + align - 1) / align * align;
        TRY(replace_variable(p, g, *total));
        *total += LLVMABISizeOfType(unit->layout, LLVMGlobalGetValueType(g));
    }
    return SMELT_OK;
}

smelt_status memory_place_variables(struct unit *unit, LLVMValueRef function, LLVMValueRef group) {
    struct placing p = {unit, function, group};
    uint64_t total = 0;
    TRY(place_some(&p, false, &total));
    unit->result->image.threadgroup_filled = total;
    TRY(place_some(&p, true, &total));
    unit->result->image.threadgroup_bytes = total;
    return SMELT_OK;
}

smelt_status memory_measure_private(struct unit *unit) {
    uint64_t total = 0;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (!LLVMIsAAllocaInst(instruction)) continue;
        uint64_t count = 1;
        if (!is_constant_integer(LLVMGetOperand(instruction, 0), &count))
            return unit_fail(unit, SMELT_ERROR_UNSUPPORTED, "a private array's size is not a constant");
        total += count * LLVMABISizeOfType(unit->layout, LLVMGetAllocatedType(instruction));
    }
    unit->result->image.private_bytes = total;
    if (total > unit->request->private_limit)
        return unit_fail(unit, SMELT_ERROR_LIMIT,
                         "the private arrays of a thread take %llu bytes; at most %llu are allowed",
                         (unsigned long long)total, (unsigned long long)unit->request->private_limit);
    return SMELT_OK;
}
