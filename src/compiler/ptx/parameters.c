/* The kernel's one parameter (abi/cuda_parameters.h): its layout, and the buffers whose contents it holds. */
#include "abi/cuda_parameters.h"
#include "compiler/ptx/ptx.h"

#include <stddef.h>

static bool has_slot(const struct binding *binding) {
    return binding->kind == BINDING_BUFFER || binding->kind == BINDING_THREADGROUP;
}

static uint64_t count_slots(const struct image *image) {
    uint64_t count = 0;
    for (int32_t i = 0; i < image->binding_count; i++) count += has_slot(&image->bindings[i]);
    return count;
}

/* The number of an argument's slot; -1: it has none. */
static int64_t slot_of(const struct image *image, int kind, int64_t index) {
    int64_t slot = 0;
    for (int32_t i = 0; i < image->binding_count; i++) {
        const struct binding *binding = &image->bindings[i];
        if (!has_slot(binding)) continue;
        if (binding->kind == kind && binding->index == index) return slot;
        slot++;
    }
    return -1;
}

int64_t ptx_slot_offset(const struct image *image, int kind, int64_t index) {
    int64_t slot = slot_of(image, kind, index);
    return slot < 0 ? -1
                    : (int64_t)offsetof(struct cuda_parameters, slots) + slot * (int64_t)sizeof(uint64_t);
}

static uint64_t extents_begin(const struct image *image) {
    return offsetof(struct cuda_parameters, slots) + count_slots(image) * sizeof(uint64_t);
}

int64_t ptx_extent_offset(const struct image *image, int kind, int64_t index) {
    int64_t slot = slot_of(image, kind, index);
    return slot < 0 ? -1 : (int64_t)extents_begin(image) + slot * (int64_t)sizeof(struct cuda_extent);
}

static uint64_t copies_begin(const struct unit *unit) {
    const struct image *image = &unit->result->image;
    uint64_t offset = extents_begin(image);
    if (unit->request->shape.tested) offset += count_slots(image) * sizeof(struct cuda_extent);
    return offset;
}

uint64_t ptx_copy_offset(const struct unit *unit, const struct tensor_binding *tensor) {
    uint64_t offset = copies_begin(unit);
    for (const struct tensor_binding *t = unit->result->image.tensors; t != tensor; t++)
        if (t->expands) offset += sizeof(uint64_t);
    return offset;
}

/* Where the contents of inlined buffers begin. */
static uint64_t contents_begin(const struct unit *unit) {
    uint64_t offset = copies_begin(unit) + count_expanded(&unit->result->image) * sizeof(uint64_t);
    return (offset + 15) / 16 * 16;
}

static int64_t inlined_offset(const struct unit *unit, int64_t index) {
    const struct image *image = &unit->result->image;
    uint64_t offset = contents_begin(unit);
    for (int32_t i = 0; i < image->binding_count; i++) {
        const struct binding *binding = &image->bindings[i];
        if (binding->kind == BINDING_BUFFER && binding->index == index && binding->inlined)
            return (int64_t)offset;
        offset += (uint64_t)binding->inlined;
    }
    return -1;
}

static bool has_constant_indexes(LLVMValueRef address) {
    for (int i = 1; i < LLVMGetNumOperands(address); i++)
        if (!LLVMIsAConstantInt(LLVMGetOperand(address, (unsigned)i))) return false;
    return true;
}

bool ptx_is_in_parameter(const struct unit *unit, LLVMValueRef address, bool constant) {
    while (LLVMIsAGetElementPtrInst(address) || LLVMIsAAddrSpaceCastInst(address)) {
        if (constant && !has_constant_indexes(address)) return false;
        address = LLVMGetOperand(address, 0);
    }
    return address == LLVMGetParam(unit->entry, 0);
}

uint64_t ptx_parameter_bytes(const struct unit *unit) {
    const struct image *image = &unit->result->image;
    uint64_t offset = contents_begin(unit);
    for (int32_t i = 0; i < image->binding_count; i++) offset += (uint64_t)image->bindings[i].inlined;
    return offset;
}

/* ---- Loads from the parameter. */

static void mark_invariant(struct unit *unit, LLVMValueRef load) {
    LLVMSetMetadata(load, LLVMGetMDKindIDInContext(unit->context, "invariant.load", 14),
                    LLVMMetadataAsValue(unit->context, LLVMMDNodeInContext2(unit->context, NULL, 0)));
}

void ptx_mark_aligned(struct unit *unit, LLVMValueRef load) {
    LLVMMetadataRef bytes = LLVMValueAsMetadata(LLVMConstInt(type_i64(unit), BUFFER_ALIGNMENT, false));
    LLVMSetMetadata(load, LLVMGetMDKindIDInContext(unit->context, "align", 5),
                    LLVMMetadataAsValue(unit->context, LLVMMDNodeInContext2(unit->context, &bytes, 1)));
}

static LLVMValueRef place_in_parameter(struct unit *unit, uint64_t offset) {
    LLVMValueRef index = LLVMConstInt(type_i64(unit), offset, false);
    return LLVMBuildInBoundsGEP2(unit->builder, LLVMInt8TypeInContext(unit->context),
                                 LLVMGetParam(unit->entry, 0), &index, 1, "");
}

LLVMValueRef ptx_parameter(struct unit *unit, LLVMTypeRef type, uint64_t offset) {
    LLVMValueRef load = LLVMBuildLoad2(unit->builder, type, place_in_parameter(unit, offset), "");
    mark_invariant(unit, load);
    return load;
}

/* ---- Inlined buffers. The parameter can only be loaded from; its address cannot be used otherwise. */

static bool only_loaded(LLVMValueRef pointer) {
    for (LLVMUseRef use = LLVMGetFirstUse(pointer); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMIsALoadInst(user)) {
            if (LLVMGetVolatile(user) || LLVMGetOrdering(user) != LLVMAtomicOrderingNotAtomic) return false;
        } else if (LLVMIsAAddrSpaceCastInst(user) ||
                   (LLVMIsAGetElementPtrInst(user) && LLVMGetOperand(user, 0) == pointer)) {
            if (!only_loaded(user)) return false;
        } else {
            return false;
        }
    }
    return true;
}

/* Rebuilds everything based on `old` on `now`, in the parameter's address space. */
static void move_uses(struct unit *unit, LLVMValueRef old, LLVMValueRef now) {
    LLVMBuilderRef b = unit->builder;
    LLVMUseRef use;
    while ((use = LLVMGetFirstUse(old))) {
        LLVMValueRef user = LLVMGetUser(use);
        LLVMPositionBuilderBefore(b, user);
        if (LLVMIsALoadInst(user)) {
            LLVMValueRef load = LLVMBuildLoad2(b, LLVMTypeOf(user), now, "");
            LLVMSetAlignment(load, LLVMGetAlignment(user));
            mark_invariant(unit, load);
            LLVMReplaceAllUsesWith(user, load);
        } else if (LLVMIsAAddrSpaceCastInst(user)) {
            move_uses(unit, user, now);
        } else {
            LLVMValueRef indexes[16];
            unsigned count = LLVMGetNumIndices(user);
            for (unsigned i = 0; i < count && i < 16; i++) indexes[i] = LLVMGetOperand(user, i + 1);
            LLVMValueRef address =
                LLVMBuildGEP2(b, LLVMGetGEPSourceElementType(user), now, indexes, count, "");
            move_uses(unit, user, address);
        }
        LLVMInstructionEraseFromParent(user);
    }
}

static struct binding *wanted_inline(struct unit *unit, LLVMValueRef call) {
    struct image *image = &unit->result->image;
    uint64_t index;
    if (intrinsic_of(call) != INTRINSIC_BUFFER_ADDRESS) return NULL;
    if (!is_constant_integer(LLVMGetOperand(call, 0), &index) || index >= SHAPE_MAX_INLINED) return NULL;
    if (!unit->request->shape.inlined[index]) return NULL;
    for (int32_t i = 0; i < image->binding_count; i++)
        if (image->bindings[i].kind == BINDING_BUFFER && image->bindings[i].index == (int32_t)index)
            return &image->bindings[i];
    return NULL;
}

/* Whether a call takes the address of a buffer that is known only at run time. */
static bool has_unknown_index(struct unit *unit) {
    uint64_t index;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(call, block) {
        if (intrinsic_of(call) == INTRINSIC_BUFFER_ADDRESS &&
            !is_constant_integer(LLVMGetOperand(call, 0), &index))
            return true;
    }
    return false;
}

/* Every call for a buffer's address must agree. */
static void decide(struct unit *unit) {
    if (has_unknown_index(unit)) return;
    for (int pass = 0; pass < 2; pass++) FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(call, block) {
        struct binding *binding = wanted_inline(unit, call);
        if (!binding) continue;
        uint32_t bytes = inlined_bytes(unit->request->shape.inlined[binding->index]);
        bool good = only_loaded(call);
        if (pass == 0 && good && !binding->writable && !binding->inlined &&
            ptx_parameter_bytes(unit) + bytes <= CUDA_PARAMETER_LIMIT)
            binding->inlined = (int32_t)bytes;
        if (pass == 1 && !good) binding->inlined = 0;
    }
}

/* The next buffer whose uses must move; moving them removes instructions, so the search starts again each
 * time. */
static LLVMValueRef find_inlined(struct unit *unit, struct binding **binding) {
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(call, block) {
        *binding = wanted_inline(unit, call);
        if (*binding && (*binding)->inlined) return call;
    }
    return NULL;
}

/* Loads from the parameter need no condition: LLVM then takes those of `y >= 0 && y < height` out of their
 * branches. */
static void declare_readable(struct unit *unit) {
    unsigned readable = LLVMGetEnumAttributeKindForName("dereferenceable", 15),
             align = LLVMGetEnumAttributeKindForName("align", 5);
    uint64_t bytes = ptx_parameter_bytes(unit);
    LLVMAddAttributeAtIndex(unit->entry, 1, LLVMCreateEnumAttribute(unit->context, readable, bytes));
    LLVMAddAttributeAtIndex(unit->entry, 1, LLVMCreateEnumAttribute(unit->context, align, 16));
}

smelt_status pass_ptx_inline(struct unit *unit) {
    struct binding *binding;
    LLVMValueRef call;
    decide(unit);
    while ((call = find_inlined(unit, &binding))) {
        LLVMPositionBuilderBefore(unit->builder, call);
        uint64_t offset = (uint64_t)inlined_offset(unit, binding->index);
        move_uses(unit, call, place_in_parameter(unit, offset));
        LLVMInstructionEraseFromParent(call);
    }
    declare_readable(unit);
    if (ptx_parameter_bytes(unit) <= CUDA_PARAMETER_LIMIT) return SMELT_OK;
    return unit_fail(unit, SMELT_ERROR_LIMIT,
                     "the kernel's arguments take %llu bytes; a GPU allows at most %d",
                     (unsigned long long)ptx_parameter_bytes(unit), CUDA_PARAMETER_LIMIT);
}
