/* Reads __smelt_bindings, the constant table of the kernel's parameters, and __smelt_tensors, of those that
 * are tensors, into the image, and removes them. Once function constants are folded, __smelt_guards tells
 * which parameters exist. Finally, parameters that the code does not use need not be bound. */
#include "abi/check.h"
#include "compiler/pass.h"

#include <stdlib.h>

static int32_t field(LLVMValueRef record, unsigned index) {
    LLVMValueRef value = LLVMGetAggregateElement(record, index);
    return value && LLVMIsAConstantInt(value) ? (int32_t)LLVMConstIntGetSExtValue(value) : 0;
}

static int64_t field64(LLVMValueRef record, unsigned index) {
    LLVMValueRef value = LLVMGetAggregateElement(record, index);
    return value && LLVMIsAConstantInt(value) ? (int64_t)LLVMConstIntGetSExtValue(value) : 0;
}

static struct tensor_binding read_tensor(LLVMValueRef record) {
    struct tensor_binding tensor = {.parameter = field(record, 0),
                                    .index = field(record, 1),
                                    .rank = field(record, 2),
                                    .element = field(record, 3),
                                    .scales = field(record, 4),
                                    .most = field64(record, 6)};
    for (unsigned d = 0; d < SMELT_MAX_DIMENSIONS; d++) {
        tensor.extents[d] = field64(LLVMGetAggregateElement(record, 7), d);
        tensor.blocks[d] = field64(LLVMGetAggregateElement(record, 8), d);
    }
    return tensor;
}

/* Sources without tensors have no such table. */
static smelt_status read_tensors(struct unit *unit) {
    LLVMValueRef table = LLVMGetNamedGlobal(unit->module, TENSORS_NAME);
    LLVMValueRef values = table ? LLVMGetInitializer(table) : NULL;
    if (!values) return SMELT_OK;
    struct image *image = &unit->result->image;
    LLVMTypeRef type = LLVMGlobalGetValueType(table);
    if (LLVMGetTypeKind(type) != LLVMArrayTypeKind)
        return unit_fail(unit, SMELT_ERROR_INTERNAL, "the table of tensors is not an array");
    unsigned capacity = (unsigned)LLVMGetArrayLength2(type);
    image->tensors = calloc(capacity ? capacity : 1, sizeof *image->tensors);
    if (!image->tensors)
        return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %u tensors", capacity);
    for (unsigned i = 0; i < capacity; i++) {
        struct tensor_binding tensor = read_tensor(LLVMGetAggregateElement(values, i));
        if (tensor.rank) image->tensors[image->tensor_count++] = tensor;
    }
    LLVMSetLinkage(table, LLVMInternalLinkage);
    return SMELT_OK;
}

smelt_status pass_bindings(struct unit *unit) {
    LLVMValueRef table = LLVMGetNamedGlobal(unit->module, BINDINGS_NAME);
    LLVMValueRef values = table ? LLVMGetInitializer(table) : NULL;
    if (!values) return unit_fail(unit, SMELT_ERROR_INTERNAL, "the module has no table of bindings");
    struct image *image = &unit->result->image;
    unsigned capacity = (unsigned)LLVMGetArrayLength2(LLVMGlobalGetValueType(table));
    image->bindings = calloc(capacity ? capacity : 1, sizeof *image->bindings);
    if (!image->bindings)
        return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %u bindings", capacity);
    for (unsigned i = 0; i < capacity && image->binding_count < IMAGE_MAX_BINDINGS; i++) {
        LLVMValueRef record = LLVMGetAggregateElement(values, i);
        struct binding binding = {.kind = field(record, 0),
                                  .index = field(record, 1),
                                  .size = field(record, 2),
                                  .align = field(record, 3),
                                  .writable = field(record, 4),
                                  .type = field(record, 5)};
        if (binding.kind == 0) break;
        if (binding.kind == BINDING_ABSENT) continue;
        image->bindings[image->binding_count++] = binding;
    }
    TRY(read_tensors(unit));
    /* llvm.compiler.used keeps it and the entry; neither needs this any longer. */
    LLVMValueRef used = LLVMGetNamedGlobal(unit->module, "llvm.compiler.used");
    if (used) LLVMDeleteGlobal(used);
    LLVMSetLinkage(table, LLVMInternalLinkage);
    return SMELT_OK;
}

static void remove_tensor(struct image *image, int32_t parameter) {
    int32_t kept = 0;
    for (int32_t i = 0; i < image->tensor_count; i++)
        if (image->tensors[i].parameter != parameter) image->tensors[kept++] = image->tensors[i];
    image->tensor_count = kept;
}

smelt_status pass_guarded_bindings(struct unit *unit) {
    LLVMValueRef table = LLVMGetNamedGlobal(unit->module, GUARDS_NAME);
    if (!table) return SMELT_OK;
    LLVMValueRef values = LLVMGetInitializer(table);
    struct image *image = &unit->result->image;
    for (int32_t i = 0; values && i < image->binding_count; i++) {
        LLVMValueRef guard = LLVMGetAggregateElement(values, (unsigned)i);
        bool absent = guard && LLVMIsAConstantInt(guard) && LLVMConstIntGetZExtValue(guard) == 0;
        if (!absent || image->bindings[i].kind == BINDING_ATTRIBUTE) continue;
        image->bindings[i].kind = BINDING_ABSENT;
        remove_tensor(image, i);
    }
    LLVMSetLinkage(table, LLVMInternalLinkage);
    return SMELT_OK;
}

/* Whether the code takes the address of this binding. */
static bool is_addressed(struct unit *unit, const struct binding *binding) {
    enum intrinsic address =
        binding->kind == BINDING_BUFFER ? INTRINSIC_BUFFER_ADDRESS : INTRINSIC_THREADGROUP_ADDRESS;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(call, block) {
        uint64_t index;
        if (intrinsic_of(call) == address &&
            (!is_constant_integer(LLVMGetOperand(call, 0), &index) || index == (uint64_t)binding->index))
            return true;
    }
    return false;
}

/* The launch may lack the buffer: none of its values may be looked at. */
static void remove_values(struct image *image, int32_t index) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < image->value_count; i++)
        if (image->values[i].buffer != (uint32_t)index) image->values[kept++] = image->values[i];
    image->value_count = kept;
}

smelt_status pass_used_bindings(struct unit *unit) {
    struct image *image = &unit->result->image;
    /* The checker then says which arguments are not used. */
    if (unit->request->shape.also & CHECK_ALSO_ADVICE) return SMELT_OK;
    for (int32_t i = 0; i < image->binding_count; i++) {
        struct binding *binding = &image->bindings[i];
        bool memory = binding->kind == BINDING_BUFFER || binding->kind == BINDING_THREADGROUP;
        if (!memory || is_addressed(unit, binding)) continue;
        if (binding->kind == BINDING_BUFFER) remove_values(image, binding->index);
        binding->kind = BINDING_ABSENT;
    }
    return SMELT_OK;
}

static smelt_status read_required(struct unit *unit, LLVMValueRef call) {
    for (unsigned d = 0; d < 3; d++) {
        uint64_t count;
        if (!is_constant_integer(LLVMGetOperand(call, d), &count) || count == 0)
            return unit_fail(
                unit, SMELT_ERROR_UNSUPPORTED,
                "an argument of required_threads_per_threadgroup is not a constant of at least 1");
        unit->result->image.required_threads[d] = (uint32_t)count;
    }
    LLVMInstructionEraseFromParent(call);
    return SMELT_OK;
}

/* The call stays until the engine lowers the code: the number of instructions determines a gang's size. */
static smelt_status read_most(struct unit *unit, LLVMValueRef call) {
    uint64_t count;
    if (!is_constant_integer(LLVMGetOperand(call, 0), &count) || count > UINT32_MAX)
        return unit_fail(unit, SMELT_ERROR_UNSUPPORTED,
                         "the argument of max_total_threads_per_threadgroup is not a constant below 2^32");
    unit->result->image.max_threads = (uint32_t)count;
    return SMELT_OK;
}

smelt_status pass_thread_limits(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(call, block) {
        enum intrinsic intrinsic = intrinsic_of(call);
        if (intrinsic == INTRINSIC_REQUIRED_THREADS) TRY(read_required(unit, call));
        if (intrinsic == INTRINSIC_MAX_THREADS) TRY(read_most(unit, call));
    }
    return SMELT_OK;
}
