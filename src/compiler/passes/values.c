/* Integers that a launch passes in memory: sizes, strides, tiles.
 *
 * In code for all values, the pass lists the places of those that would make better code if they were
 * constants: divisors, limits of loops' counters, and strides of addresses in kernels with loops. The device
 * looks at them when it launches the code (device/cpu/values.c). In code for given values, the pass puts
 * these in the loads' place.
 *
 * Only integers at constant offsets of buffers count, and the first elements of arrays that a loop reads: the
 * sizes and strides of an array's dimensions. Code for given values unrolls such loops, if they have few
 * rounds then, and takes the elements as constants. An array may be shorter; what lies behind the buffer's
 * end is not read. Nothing writes constant memory while a kernel runs. A buffer in device memory counts if no
 * store of the kernel may reach it. In both cases the device compares the memory before the launch, and sees
 * that no buffer that the kernel writes overlaps it. Code whose bits may depend on how it is generated has no
 * such places.
 *
 * Requires: functions inlined, private objects in registers. Maintains: what the code does in launches with
 * these values. */
#include "compiler/analysis/base.h"
#include "compiler/bounds/bounds.h"
#include "compiler/analysis/flow.h"
#include "compiler/pass.h"
#include "compiler/quick.h"

#include <string.h>

#define CONSTANT_SPACE 6

/* Of vectors: as many elements. */
#define MOST_ELEMENTS 4

/* Elements of an array that a loop reads: arrays of more dimensions are rare. Three arrays and some sizes fit
 * in VALUES_MAX. */
#define ARRAY_ELEMENTS 6

/* ---- Loads. */

/* The bits of an integer, or of an element of a vector of integers, of 1, 2, 4 or 8 bytes; else 0. */
static unsigned integer_bits(LLVMTypeRef type, unsigned *count) {
    *count = 1;
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) {
        *count = LLVMGetVectorSize(type);
        type = LLVMGetElementType(type);
    }
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind || *count > MOST_ELEMENTS) return 0;
    unsigned bits = LLVMGetIntTypeWidth(type);
    return bits == 8 || bits == 16 || bits == 32 || bits == 64 ? bits : 0;
}

static bool is_bound(struct unit *unit, uint64_t buffer) {
    const struct image *image = &unit->result->image;
    for (int32_t i = 0; i < image->binding_count; i++)
        if (image->bindings[i].kind == BINDING_BUFFER && (uint64_t)image->bindings[i].index == buffer)
            return true;
    return false;
}

/* The buffers that the kernel's stores may reach. */
struct written {
    bool buffers[IMAGE_MAX_BINDINGS], any;
};

static void note_address(struct unit *unit, LLVMValueRef address, struct written *written) {
    while (LLVMIsAConstantExpr(address)) address = LLVMGetOperand(address, 0);
    if (LLVMGetPointerAddressSpace(LLVMTypeOf(address)) == THREADGROUP_SPACE) return;
    struct base base = base_of(unit, address);
    if (base.kind == BASE_BUFFER && base.buffer < IMAGE_MAX_BINDINGS)
        written->buffers[base.buffer] = true;
    else if (base.kind != BASE_PRIVATE && base.kind != BASE_CONSTANT)
        written->any = true;
}

/* Functions that are not inlined may write anywhere, intrinsics only through their operands. Those of
 * barriers and log lines are texts. */
static void note_call(struct unit *unit, LLVMValueRef call, struct written *written) {
    enum intrinsic_kind kind = intrinsic_traits(intrinsic_of(call))->kind;
    if (kind == OF_BARRIER || kind == OF_LOG || kind == OF_LAUNCH) return;
    written->any |= !intrinsic_called(call) && strncmp(called_name(call), "llvm.", 5) != 0;
    for (unsigned i = 0; i < LLVMGetNumArgOperands(call); i++) {
        LLVMValueRef operand = LLVMGetOperand(call, i);
        if (LLVMGetTypeKind(LLVMTypeOf(operand)) == LLVMPointerTypeKind) note_address(unit, operand, written);
    }
}

static void find_written(struct unit *unit, struct written *written) {
    *written = (struct written){.any = false};
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
        if (opcode == LLVMStore)
            note_address(unit, LLVMGetOperand(instruction, 1), written);
        else if (opcode == LLVMAtomicRMW || opcode == LLVMAtomicCmpXchg)
            note_address(unit, LLVMGetOperand(instruction, 0), written);
        else if (opcode == LLVMCall)
            note_call(unit, instruction, written);
    }
}

/* For the device: buffers that the kernel could write by their types, but does not. */
static void note_unwritten(struct unit *unit, const struct written *written) {
    struct image *image = &unit->result->image;
    for (int32_t i = 0; i < image->binding_count; i++) {
        struct binding *binding = &image->bindings[i];
        if (binding->kind == BINDING_BUFFER && !written->any && !written->buffers[binding->index])
            binding->unwritten = true;
    }
}

/* Whether it loads integers from a buffer that nothing writes, and where `place`, the load's, begins. */
static bool is_unwritten(struct unit *unit, const struct written *written, LLVMValueRef load,
                         const struct place *place, uint64_t *buffer) {
    if (intrinsic_of(place->root) != INTRINSIC_BUFFER_ADDRESS || place->constant > INT32_MAX ||
        !is_constant_integer(LLVMGetOperand(place->root, 0), buffer))
        return false;
    bool constant = LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(load, 0))) == CONSTANT_SPACE;
    if (*buffer >= IMAGE_MAX_BINDINGS || written->buffers[*buffer] || (written->any && !constant))
        return false;
    return is_bound(unit, *buffer);
}

/* The bits of the integers that it loads, or 0. */
static unsigned loaded_bits(LLVMValueRef load, unsigned *count) {
    if (!LLVMIsALoadInst(load) || LLVMGetVolatile(load) ||
        LLVMGetOrdering(load) != LLVMAtomicOrderingNotAtomic)
        return 0;
    return integer_bits(LLVMTypeOf(load), count);
}

/* Whether it loads integers that the launch can look at, and where. */
static bool is_candidate(struct unit *unit, const struct written *written, LLVMValueRef load,
                         struct value_place *first, unsigned *count) {
    uint64_t buffer;
    unsigned bits = loaded_bits(load, count);
    if (!bits) return false;
    struct place place = bounds_place(unit, LLVMGetOperand(load, 0));
    if (place.index || place.constant < 0 || !is_unwritten(unit, written, load, &place, &buffer))
        return false;
    *first = (struct value_place){(uint32_t)buffer, (uint32_t)place.constant, bits / 8, 0};
    return true;
}

static bool same_place(const struct value_place *a, const struct value_place *b) {
    return a->buffer == b->buffer && a->offset == b->offset && a->bytes == b->bytes;
}

static const struct known_value *known(struct unit *unit, const struct value_place *place) {
    const struct known_values *values = &unit->request->values;
    for (uint32_t i = 0; i < values->count; i++)
        if (same_place(&values->values[i].place, place)) return &values->values[i];
    return NULL;
}

/* Whether the launch looks at it. */
static bool is_listed(struct unit *unit, const struct value_place *place) {
    const struct image *image = &unit->result->image;
    for (uint32_t i = 0; i < image->value_count; i++)
        if (same_place(&image->values[i], place)) return true;
    return known(unit, place) != NULL;
}

/* ---- Loads of arrays' elements in loops. */

#define MOST_STEPS 24

/* Whether it is computed from loops' counters, constants and listed values alone. */
static bool is_of_loops(struct unit *unit, const struct written *written, LLVMValueRef index) {
    LLVMValueRef steps[MOST_STEPS] = {index};
    int count = 1;
    for (int i = 0; i < count; i++) {
        struct value_place place;
        unsigned elements;
        LLVMValueRef value = steps[i];
        if (is_candidate(unit, written, value, &place, &elements)) {
            if (!is_listed(unit, &place)) return false;
            continue;
        }
        if (!LLVMIsAPHINode(value) && !LLVMIsABinaryOperator(value) && !LLVMIsACastInst(value) &&
            !LLVMIsAFreezeInst(value))
            return false;
        bool phi = LLVMIsAPHINode(value) != NULL;
        unsigned operands = phi ? LLVMCountIncoming(value) : (unsigned)LLVMGetNumOperands(value);
        for (unsigned o = 0; o < operands; o++) {
            LLVMValueRef operand = phi ? LLVMGetIncomingValue(value, o) : LLVMGetOperand(value, o);
            int known = 0;
            while (known < count && steps[known] != operand) known++;
            if (LLVMIsAConstant(operand) || known < count) continue;
            if (count == MOST_STEPS) return false;
            steps[count++] = operand;
        }
    }
    return true;
}

/* Whether it loads an element of an array of integers that the launch can look at, whose number is the same
 * in all threads; and where the array begins, as far as the address tells: an index may start below 0. */
static bool is_element(struct unit *unit, const struct written *written, LLVMValueRef load,
                       struct value_place *first) {
    uint64_t buffer;
    unsigned count, bits = loaded_bits(load, &count);
    if (!bits || count > 1) return false;
    struct place place = bounds_place(unit, LLVMGetOperand(load, 0));
    int64_t bytes = bits / 8, begin = place.constant;
    if (!place.index || place.scale != bytes || !is_unwritten(unit, written, load, &place, &buffer) ||
        !is_of_loops(unit, written, place.index))
        return false;
    if (begin < 0) begin = (begin % bytes + bytes) % bytes;
    *first = (struct value_place){(uint32_t)buffer, (uint32_t)begin, (uint32_t)bytes, 1};
    return true;
}

static struct value_place element_place(const struct value_place *first, unsigned element) {
    struct value_place place = *first;
    place.offset += element * place.bytes;
    return place;
}

/* ---- What a value is good for. */

#define MOST_VISITS 200

struct search {
    struct {
        LLVMValueRef value;
        bool scaled; /* it is a product with something that is not constant */
    } visited[MOST_VISITS];
    int count;
    bool loops; /* the kernel has some */
};

static void visit(struct search *search, LLVMValueRef value, bool scaled) {
    for (int i = 0; i < search->count; i++) {
        if (search->visited[i].value == value && (search->visited[i].scaled || !scaled)) return;
    }
    if (search->count == MOST_VISITS) return;
    search->visited[search->count].value = value;
    search->visited[search->count++].scaled = scaled;
}

/* Whether it is computed from a phi in a few steps: a loop's counter, most often. */
static bool is_counter(LLVMValueRef value, int depth) {
    if (LLVMIsAPHINode(value)) return true;
    if (depth == 3 || (!LLVMIsABinaryOperator(value) && !LLVMIsACastInst(value))) return false;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (is_counter(LLVMGetOperand(value, (unsigned)i), depth + 1)) return true;
    return false;
}

/* Whether the user is better with a constant. If not, its own users are looked at. */
static bool pays_in(struct search *search, LLVMValueRef value, LLVMValueRef user, bool scaled) {
    LLVMValueRef second = LLVMGetNumOperands(user) > 1 ? LLVMGetOperand(user, 1) : NULL;
    switch (LLVMGetInstructionOpcode(user)) {
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMURem:
    case LLVMSRem:
        if (second == value) return true;
        visit(search, user, scaled);
        return false;
    case LLVMICmp: {
        /* The limit of a counter, or the start of one that counts down. */
        LLVMValueRef other = second == value ? LLVMGetOperand(user, 0) : second;
        return is_counter(LLVMIsAConstant(other) ? value : other, 0);
    }
    case LLVMGetElementPtr:
        return scaled && search->loops;
    case LLVMMul:
        scaled |= !LLVMIsAConstant(second == value ? LLVMGetOperand(user, 0) : second);
        visit(search, user, scaled);
        return false;
    case LLVMCall:
        if (strncmp(called_name(user), "llvm.", 5) != 0) return false;
        visit(search, user, scaled);
        return false;
    case LLVMSelect:
    case LLVMPHI:
    case LLVMFreeze:
    case LLVMExtractElement:
        visit(search, user, scaled);
        return false;
    default:
        if (LLVMIsABinaryOperator(user) || LLVMIsATruncInst(user) || LLVMIsASExtInst(user) ||
            LLVMIsAZExtInst(user))
            visit(search, user, scaled);
        return false;
    }
}

static bool pays(LLVMValueRef load, bool loops) {
    struct search search = {.loops = loops};
    visit(&search, load, false);
    for (int i = 0; i < search.count; i++) {
        LLVMValueRef value = search.visited[i].value;
        for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
            LLVMValueRef user = LLVMGetUser(use);
            if (LLVMIsAInstruction(user) && pays_in(&search, value, user, search.visited[i].scaled))
                return true;
        }
    }
    return false;
}

/* ---- Code for all values. */

static void list(struct image *image, const struct value_place *place) {
    for (uint32_t i = 0; i < image->value_count; i++) {
        if (!same_place(&image->values[i], place)) continue;
        image->values[i].may_lack &= place->may_lack;
        return;
    }
    if (image->value_count < VALUES_MAX) image->values[image->value_count++] = *place;
}

static void list_all(struct image *image, const struct value_place *first, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        struct value_place place = element_place(first, i);
        list(image, &place);
    }
}

static smelt_status list_values(struct unit *unit) {
    int loops;
    struct image *image = &unit->result->image;
    struct written written;
    image->value_count = 0;
    if (!quick_gives_same_bits(unit)) return SMELT_OK;
    find_written(unit, &written);
    TRY(flow_count_loops(unit, &loops));
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(load, block) {
        struct value_place first;
        unsigned count;
        if (is_candidate(unit, &written, load, &first, &count) && pays(load, loops > 0))
            list_all(image, &first, count);
    }
    /* Afterwards, for the room that is left. */
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(load, block) {
        struct value_place first;
        if (loops && is_element(unit, &written, load, &first) && pays(load, true))
            list_all(image, &first, ARRAY_ELEMENTS);
    }
    if (image->value_count) note_unwritten(unit, &written);
    return SMELT_OK;
}

/* ---- Code for given values. */

/* The constant that the load gives, or NULL. */
static LLVMValueRef constant_of(struct unit *unit, const struct written *written, LLVMValueRef load) {
    struct value_place first;
    unsigned count;
    LLVMValueRef elements[MOST_ELEMENTS];
    LLVMTypeRef type = LLVMTypeOf(load);
    if (!is_candidate(unit, written, load, &first, &count)) return NULL;
    bool vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
    for (unsigned i = 0; i < count; i++) {
        struct value_place place = element_place(&first, i);
        const struct known_value *value = known(unit, &place);
        if (!value || value->place.may_lack == VALUE_LACKS) return NULL;
        elements[i] = LLVMConstInt(vector ? LLVMGetElementType(type) : type, value->value, false);
    }
    return vector ? LLVMConstVector(elements, count) : elements[0];
}

static bool put_constants(struct unit *unit, const struct written *written) {
    bool any = false;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(load, block) {
        LLVMValueRef constant = constant_of(unit, written, load);
        if (!constant) continue;
        LLVMReplaceAllUsesWith(load, constant);
        LLVMInstructionEraseFromParent(load);
        any = true;
    }
    return any;
}

static bool has_elements(struct unit *unit, const struct written *written) {
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(load, block) {
        struct value_place first;
        if (is_element(unit, written, load, &first) && known(unit, &first)) return true;
    }
    return false;
}

/* Loops that read the elements of listed arrays, with constants as limits. Others of so few rounds would be
 * unrolled later. */
#define UNROLL_FEW                                                                   \
    "function(loop-simplify,lcssa,loop(loop-rotate,indvars),"                        \
    "loop-unroll<O3;no-partial;no-peeling;no-runtime;upperbound;full-unroll-max=6>," \
    "early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg)"

static smelt_status put_values(struct unit *unit) {
    struct written written;
    find_written(unit, &written);
    if (put_constants(unit, &written)) TRY(run_passes(unit, CLEAN_FUNCTIONS));
    if (!has_elements(unit, &written)) return SMELT_OK;
    TRY(run_passes(unit, UNROLL_FEW));
    return put_constants(unit, &written) ? run_passes(unit, CLEAN_FUNCTIONS) : SMELT_OK;
}

smelt_status pass_values(struct unit *unit) {
    if (!unit->target->knows_values) return SMELT_OK;
    return unit->request->values.count ? put_values(unit) : list_values(unit);
}
