/* Copies of matrices in bfloat, from which tensor cores read faster than from narrow elements with scales. A
 * launch can make them before the kernel begins, if the kernel only reads the matrix. So a tensor `expands`
 * if the code asks for the address of its copy (__smelt_ptx_expanded), and no address computed from those of
 * its elements and scales is written to, stored, or passed on.
 *
 * Requires: optimised code, not yet retargeted. Establishes: the image's `expands` and `expanded_tile`; no
 * such intrinsic is left. */
#include "abi/cuda_parameters.h"
#include "compiler/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

/* ---- What may be written. */

#define MOST_DERIVED 8192 /* values; more count as written */

/* Values computed from an address, each once. An open hash table finds them. */
struct derived {
    LLVMValueRef list[MOST_DERIVED], table[2 * MOST_DERIVED];
    int count;
    bool written;
};

static void add(struct derived *d, LLVMValueRef value) {
    size_t at = ((uintptr_t)value >> 4) * 0x9E3779B97F4A7C15u >> 32;
    for (;; at++) {
        LLVMValueRef *place = &d->table[at % (2 * MOST_DERIVED)];
        if (*place == value) return;
        if (*place) continue;
        if (d->count == MOST_DERIVED) {
            d->written = true;
            return;
        }
        d->list[d->count++] = *place = value;
        return;
    }
}

static bool starts_with(const char *name, const char *start) {
    return strncmp(name, start, strlen(start)) == 0;
}

/* Of the instructions that the prelude calls, only two write to device memory. */
static bool call_writes(LLVMValueRef call, LLVMValueRef value) {
    enum intrinsic intrinsic = intrinsic_of(call);
    const char *name = called_name(call);
    if (intrinsic == INTRINSIC_PTX) return strstr(name, "add_four") || strstr(name, "tensor_store");
    if (intrinsic != INTRINSIC_NONE) return intrinsic_traits(intrinsic)->purity == ORDERED;
    if (starts_with(name, "llvm.memcpy.") || starts_with(name, "llvm.memmove."))
        return LLVMGetOperand(call, 0) == value;
    return starts_with(name, "llvm.memset.") || !starts_with(name, "llvm.");
}

static void follow(struct derived *d, LLVMValueRef user, LLVMValueRef value) {
    if (LLVMIsALoadInst(user) || LLVMIsACmpInst(user)) return;
    bool writes = LLVMIsAStoreInst(user) || LLVMIsAAtomicRMWInst(user) || LLVMIsAAtomicCmpXchgInst(user) ||
                  !LLVMIsAInstruction(user) || LLVMIsATerminatorInst(user);
    if (LLVMIsACallInst(user)) writes = call_writes(user, value);
    d->written |= writes;
    if (LLVMGetTypeKind(LLVMTypeOf(user)) != LLVMVoidTypeKind) add(d, user);
}

static bool is_address_of(LLVMValueRef call, int32_t index) {
    uint64_t number;
    if (intrinsic_of(call) != INTRINSIC_BUFFER_ADDRESS) return false;
    return !is_constant_integer(LLVMGetOperand(call, 0), &number) || number == (uint64_t)index ||
           number == (uint64_t)index + TENSOR_SCALES;
}

static bool is_only_read(struct unit *unit, const struct tensor_binding *tensor) {
    struct derived *d = calloc(1, sizeof *d);
    if (!d) return false;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(call, block) {
        if (is_address_of(call, tensor->index)) add(d, call);
    }
    for (int i = 0; i < d->count && !d->written; i++)
        for (LLVMUseRef use = LLVMGetFirstUse(d->list[i]); use; use = LLVMGetNextUse(use))
            follow(d, LLVMGetUser(use), d->list[i]);
    bool written = d->written;
    free(d);
    return !written;
}

/* ---- Calls. */

static bool is_call_of(LLVMValueRef instruction, const char *name) {
    return intrinsic_of(instruction) == INTRINSIC_PTX &&
           strcmp(called_name(instruction) + strlen(intrinsic_traits(INTRINSIC_PTX)->name), name) == 0;
}

static struct tensor_binding *tensor_of(struct unit *unit, LLVMValueRef call) {
    struct image *image = &unit->result->image;
    uint64_t index;
    if (!is_constant_integer(LLVMGetOperand(call, 0), &index)) return NULL;
    for (int32_t i = 0; i < image->tensor_count; i++)
        if (image->tensors[i].index == (int32_t)index) return &image->tensors[i];
    return NULL;
}

/* Removes the calls that tell the size of tiles; the largest counts. */
static void read_tiles(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(call, block) {
        uint64_t elements;
        if (!is_call_of(call, "expanded_tile")) continue;
        if (is_constant_integer(LLVMGetOperand(call, 0), &elements) && elements <= UINT32_MAX &&
            elements > unit->result->image.expanded_tile)
            unit->result->image.expanded_tile = (uint32_t)elements;
        LLVMInstructionEraseFromParent(call);
    }
}

/* All that the code asks for, or none: a product reads copies of both operands or of neither. Tested code
 * reads the elements that its tests are about. */
static void find_expanding(struct unit *unit) {
    struct image *image = &unit->result->image;
    bool all = !unit->request->shape.tested && image->expanded_tile;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(call, block) {
        struct tensor_binding *tensor = all && is_call_of(call, "expanded") ? tensor_of(unit, call) : NULL;
        if (tensor && !tensor->expands) tensor->expands = all = is_only_read(unit, tensor);
    }
    for (int32_t i = 0; i < image->tensor_count && !all; i++) image->tensors[i].expands = false;
}

smelt_status pass_ptx_expanded(struct unit *unit) {
    read_tiles(unit);
    find_expanding(unit);
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(call, block) {
        if (!is_call_of(call, "expanded")) continue;
        const struct tensor_binding *tensor = tensor_of(unit, call);
        LLVMPositionBuilderBefore(unit->builder, call);
        LLVMValueRef address = LLVMConstNull(type_i64(unit));
        if (tensor && tensor->expands)
            address = ptx_parameter(unit, type_i64(unit), ptx_copy_offset(unit, tensor));
        LLVMReplaceAllUsesWith(call, address);
        LLVMInstructionEraseFromParent(call);
    }
    if (!count_expanded(&unit->result->image)) unit->result->image.expanded_tile = 0;
    return SMELT_OK;
}
