/* A second version of a kernel for rows that begin at multiples of 16 bytes.
 *
 * Whether an access may be joined with its neighbours often depends on sizes and strides that the launch
 * passes: element k of a row is at `row * stride + k`. Where multiples of 4, 8 or 16 bytes would follow if
 * some of these arguments were multiples of small powers of two, the code is there twice. One version runs
 * where they are, which is tested once; in it their low bits are masked, so that every analysis sees it.
 *
 * Which arguments are tested is an estimate: it decides about speed only. Requires: the retargeted module.
 * Maintains: what the code does. */
#include "compiler/analysis/flow.h"
#include "compiler/ptx/coarsen/sums.h"
#include "compiler/ptx/coarsen/twin.h"

#include "base/text.h"
#include <stdlib.h>
#include <string.h>

#define MOST_ARGUMENTS 8
#define MOST_ZEROS 9           /* of an argument that are asked for */
#define MOST_INSTRUCTIONS 6000 /* of a kernel that is copied */
#define MOST_ACCESSES 256      /* of a block */
#define DEPTH 24
#define MOST_STEPS 4000

struct argument {
    LLVMValueRef load;
    unsigned zeros;
};

struct wish {
    struct argument arguments[MOST_ARGUMENTS];
    int count;
    bool fails; /* it cannot be had by any argument */
};

struct search {
    struct unit *unit;
    struct wish all;
    LLVMValueRef phis[DEPTH]; /* being examined */
    int phi_count, steps;
    bool lenient; /* what follows from lanes does not count */
};

/* ---- Arguments. */

static bool is_invariant(struct unit *unit, LLVMValueRef load) {
    unsigned kind = LLVMGetMDKindIDInContext(unit->context, "invariant.load", 14);
    return LLVMIsALoadInst(load) && LLVMGetMetadata(load, kind);
}

/* A constant place in what the launch passed, which the code reads in any case. */
static bool is_argument(struct unit *unit, LLVMValueRef value) {
    LLVMValueRef parameter = LLVMGetParam(unit->entry, 0);
    if (!is_invariant(unit, value) || LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMIntegerTypeKind) return false;
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(value));
    if (width != 16 && width != 32 && width != 64) return false;
    LLVMValueRef address = LLVMGetOperand(value, 0);
    for (int depth = 0; depth < 8; depth++) {
        if (address == parameter) return true;
        if (LLVMIsAGetElementPtrInst(address) ? !LLVMIsAConstantInt(LLVMGetOperand(address, 1))
                                              : !LLVMIsAAddrSpaceCastInst(address))
            break;
        if (LLVMIsAGetElementPtrInst(address) && LLVMGetNumOperands(address) > 2) break;
        address = LLVMGetOperand(address, 0);
    }
    /* Behind a pointer: read at the start of the code only. */
    if (!is_invariant(unit, address) ||
        LLVMGetInstructionParent(value) != LLVMGetEntryBasicBlock(unit->entry))
        return false;
    for (LLVMValueRef place = LLVMGetOperand(address, 0);; place = LLVMGetOperand(place, 0)) {
        if (place == parameter) return true;
        if (!LLVMIsAGetElementPtrInst(place) || LLVMGetNumOperands(place) > 2 ||
            !LLVMIsAConstantInt(LLVMGetOperand(place, 1)))
            return false;
    }
}

static void want_argument(struct wish *wish, LLVMValueRef load, unsigned zeros) {
    for (int i = 0; i < wish->count; i++) {
        struct argument *a = &wish->arguments[i];
        if (a->load != load) continue;
        if (a->zeros < zeros) a->zeros = zeros;
        return;
    }
    if (wish->count == MOST_ARGUMENTS || zeros > MOST_ZEROS)
        wish->fails = true;
    else
        wish->arguments[wish->count++] = (struct argument){load, zeros};
}

/* ---- What must be a multiple for a value to be one. */

static void want(struct search *s, struct wish *wish, LLVMValueRef value, unsigned zeros, int depth);

static void want_phi(struct search *s, struct wish *wish, LLVMValueRef phi, unsigned zeros, int depth) {
    for (int i = 0; i < s->phi_count; i++)
        if (s->phis[i] == phi) return;
    if (s->phi_count == DEPTH) {
        wish->fails = true;
        return;
    }
    s->phis[s->phi_count++] = phi;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++)
        want(s, wish, LLVMGetIncomingValue(phi, i), zeros, depth);
    s->phi_count--;
}

/* One of the factors, whichever can. */
static void want_product(struct search *s, struct wish *wish, LLVMValueRef product, unsigned zeros,
                         int depth) {
    for (unsigned i = 0; i < 2; i++) {
        unsigned other = ptx_known_zeros(s->unit, LLVMGetOperand(product, 1 - i));
        struct wish tried = *wish;
        bool lenient = s->lenient;
        s->lenient = false;
        want(s, &tried, LLVMGetOperand(product, i), zeros > other ? zeros - other : 0, depth);
        s->lenient = lenient;
        if (tried.fails) continue;
        *wish = tried;
        return;
    }
    if (!s->lenient) wish->fails = true;
}

static void want_element(struct search *s, struct wish *wish, LLVMValueRef gep, unsigned zeros, int depth) {
    LLVMTargetDataRef layout = s->unit->layout;
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    want(s, wish, LLVMGetOperand(gep, 0), zeros, depth);
    for (unsigned i = 1; i < (unsigned)LLVMGetNumOperands(gep); i++) {
        LLVMValueRef index = LLVMGetOperand(gep, i);
        if (i > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            unsigned member = (unsigned)LLVMConstIntGetZExtValue(index);
            uint64_t offset = LLVMOffsetOfElement(layout, type, member);
            if (offset & ((1u << zeros) - 1) && !s->lenient) wish->fails = true;
            type = LLVMStructGetTypeAtIndex(type, member);
            continue;
        }
        if (i > 1) type = LLVMGetElementType(type);
        uint64_t step = LLVMABISizeOfType(layout, type);
        unsigned of_step = step ? (unsigned)__builtin_ctzll(step) : zeros;
        if (of_step < zeros) want(s, wish, index, zeros - of_step, depth);
    }
}

static void want_operation(struct search *s, struct wish *wish, LLVMValueRef value, unsigned zeros,
                           int depth) {
    LLVMValueRef second = LLVMGetNumOperands(value) > 1 ? LLVMGetOperand(value, 1) : NULL;
    uint64_t number = 0;
    bool constant = second && is_constant_integer(second, &number);
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMOr:
        want(s, wish, LLVMGetOperand(value, 0), zeros, depth);
        want(s, wish, second, zeros, depth);
        return;
    case LLVMMul:
        want_product(s, wish, value, zeros, depth);
        return;
    case LLVMShl:
        if (!constant) break;
        want(s, wish, LLVMGetOperand(value, 0), zeros > number ? zeros - (unsigned)number : 0, depth);
        return;
    case LLVMLShr:
    case LLVMAShr:
        if (!constant || number > MOST_ZEROS) break;
        want(s, wish, LLVMGetOperand(value, 0), zeros + (unsigned)number, depth);
        return;
    case LLVMZExt:
    case LLVMSExt:
    case LLVMTrunc:
    case LLVMFreeze:
    case LLVMAddrSpaceCast:
        want(s, wish, LLVMGetOperand(value, 0), zeros, depth);
        return;
    case LLVMSelect:
        want(s, wish, second, zeros, depth);
        want(s, wish, LLVMGetOperand(value, 2), zeros, depth);
        return;
    case LLVMGetElementPtr:
        want_element(s, wish, value, zeros, depth);
        return;
    case LLVMPHI:
        want_phi(s, wish, value, zeros, depth);
        return;
    default:
        break;
    }
    if (!s->lenient) wish->fails = true;
}

static void want(struct search *s, struct wish *wish, LLVMValueRef value, unsigned zeros, int depth) {
    if (wish->fails || !zeros || ptx_known_zeros(s->unit, value) >= zeros) return;
    if (is_argument(s->unit, value))
        want_argument(wish, value, zeros);
    else if (depth && LLVMIsAInstruction(value) && ++s->steps < MOST_STEPS)
        want_operation(s, wish, value, zeros, depth - 1);
    else if (!s->lenient || depth == 0)
        wish->fails = true;
}

/* Whether arguments can make the address a multiple, which it is not known to be; they are then wanted. */
static bool want_address(struct search *s, LLVMValueRef address, unsigned zeros) {
    struct wish wish = s->all;
    s->phi_count = 0;
    want(s, &wish, address, zeros, DEPTH);
    if (wish.fails) return false;
    bool more = wish.count > s->all.count;
    for (int i = 0; i < s->all.count; i++) more |= wish.arguments[i].zeros > s->all.arguments[i].zeros;
    if (!more) return false;
    s->all = wish;
    return true;
}

/* ---- Accesses that would gain. */

struct access {
    LLVMValueRef load;
    struct address_sum sum;
    int64_t bytes;
};

static bool is_narrow_load(struct unit *unit, LLVMValueRef i) {
    return LLVMIsALoadInst(i) && !LLVMGetVolatile(i) && LLVMGetOrdering(i) == LLVMAtomicOrderingNotAtomic &&
           !is_invariant(unit, i) &&
           LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(i, 0))) == PTX_GLOBAL &&
           LLVMABISizeOfType(unit->layout, LLVMTypeOf(i)) <= 8;
}

/* The run of neighbours that begins with this access, in bytes; 0: another comes before it. */
static int64_t run_from(const struct access *all, int count, int first) {
    int64_t bytes = all[first].bytes;
    for (int turn = 0; turn < 16; turn++) {
        bool longer = false;
        for (int i = 0; i < count; i++) {
            if (all[i].bytes != all[first].bytes || !ptx_differ_by_number(&all[first].sum, &all[i].sum))
                continue;
            int64_t apart = all[i].sum.number - all[first].sum.number;
            if (apart == -all[i].bytes) return 0;
            if (apart == bytes) bytes += all[i].bytes, longer = true;
        }
        if (!longer || bytes >= 16) break;
    }
    return bytes;
}

static void look_at_loads(struct search *s, LLVMBasicBlockRef block, struct access *all) {
    int count = 0;
    FOR_EACH_INSTRUCTION(i, block) {
        if (!is_narrow_load(s->unit, i) || count == MOST_ACCESSES) continue;
        struct access *a = &all[count++];
        *a = (struct access){.load = i, .bytes = (int64_t)LLVMABISizeOfType(s->unit->layout, LLVMTypeOf(i))};
        ptx_add_to_sum(s->unit, &a->sum, LLVMGetOperand(i, 0), 1, DEPTH);
    }
    for (int i = 0; i < count; i++) {
        int64_t run = run_from(all, count, i);
        for (unsigned zeros = 4; run && 1 << zeros > all[i].bytes; zeros--) {
            if (run < 1 << zeros) continue;
            LLVMValueRef address = LLVMGetOperand(all[i].load, 0);
            if (ptx_known_zeros(s->unit, address) >= zeros || want_address(s, address, zeros)) break;
        }
    }
}

/* Matrices whose rows begin at multiples of 16 bytes are loaded by 4 bytes and more (matrix_load.c). */
static void look_at_matrices(struct search *s, LLVMBasicBlockRef block) {
    FOR_EACH_INSTRUCTION(product, block) {
        if (intrinsic_of(product) != INTRINSIC_SIMD_MATRIX_PRODUCT) continue;
        for (unsigned o = 0; o < 3; o++) {
            LLVMValueRef value = LLVMGetOperand(product, o);
            for (int depth = 0; depth < 4 && LLVMIsAInstruction(value) && !LLVMIsALoadInst(value); depth++) {
                if (!LLVMIsACastInst(value) && LLVMGetInstructionOpcode(value) != LLVMShl) break;
                value = LLVMGetOperand(value, 0);
            }
            if (!LLVMIsALoadInst(value) || !is_narrow_load(s->unit, value)) continue;
            s->lenient = true;
            (void)want_address(s, LLVMGetOperand(value, 0), 4);
            s->lenient = false;
        }
    }
}

/* ---- The two versions. */

/* LLVM does not see through it, so that the masks of the version stay. */
static LLVMValueRef hidden(struct unit *unit, LLVMValueRef value) {
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(value));
    return ptx_assembly(unit,
                        width == 64   ? "mov.b64 $0, $1;"
                        : width == 32 ? "mov.b32 $0, $1;"
                                      : "mov.b16 $0, $1;",
                        width == 64   ? "=l,l"
                        : width == 32 ? "=r,r"
                                      : "=h,h",
                        LLVMTypeOf(value), &value, 1, false);
}

/* The same load, at the builder's place. */
static LLVMValueRef read_again(struct unit *unit, LLVMValueRef value) {
    if (!LLVMIsAInstruction(value)) return value;
    LLVMValueRef address = read_again(unit, LLVMGetOperand(value, 0));
    LLVMValueRef copy = LLVMInstructionClone(value);
    LLVMSetOperand(copy, 0, address);
    LLVMInsertIntoBuilder(unit->builder, copy);
    return copy;
}

static LLVMValueRef build_test(struct search *s, struct twin *twin) {
    struct unit *unit = s->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef rest = NULL;
    LLVMPositionBuilderAtEnd(b, twin->choice);
    for (int i = 0; i < s->all.count; i++) {
        LLVMValueRef value = hidden(unit, read_again(unit, s->all.arguments[i].load));
        value = LLVMBuildIntCast2(b, value, type_i32(unit), false, "");
        value = LLVMBuildAnd(b, value, constant_i32(unit, (1u << s->all.arguments[i].zeros) - 1), "");
        rest = rest ? LLVMBuildOr(b, rest, value, "") : value;
    }
    return LLVMBuildICmp(b, LLVMIntEQ, rest, constant_i32(unit, 0), "multiples");
}

static void mask_argument(struct unit *unit, LLVMValueRef load, unsigned zeros) {
    LLVMTypeRef type = LLVMTypeOf(load);
    LLVMPositionBuilderBefore(unit->builder, LLVMGetNextInstruction(load));
    LLVMValueRef masked =
        LLVMBuildAnd(unit->builder, load, LLVMConstInt(type, ~UINT64_C(0) << zeros, true), "multiple");
    LLVMReplaceAllUsesWith(load, masked);
    LLVMSetOperand(masked, 0, load);
}

static smelt_status report(struct search *s) {
    struct text list = {0};
    for (int i = 0; i < s->all.count; i++)
        text_addf(&list, "%s%u", i ? ", " : "", 1u << s->all.arguments[i].zeros);
    smelt_status status = ptx_note(
        s->unit,
        "a version of the code for arguments that are multiples of %s: neighbours are loaded at once",
        list.failed ? "" : text_string(&list));
    text_free(&list);
    return status;
}

static smelt_status build(struct search *s) {
    struct twin twin;
    smelt_status status = ptx_twin_build(s->unit, &twin);
    if (status == SMELT_OK) {
        LLVMValueRef test = build_test(s, &twin);
        for (int i = 0; i < s->all.count; i++)
            mask_argument(s->unit, ptx_twin_value(&twin, s->all.arguments[i].load),
                          s->all.arguments[i].zeros);
        ptx_twin_choose(&twin, test);
        status = report(s);
    }
    ptx_twin_free(&twin);
    return status;
}

/* ---- The pass. */

/* Whether the kernel is small enough and its threads meet: other kernels are coarsened. If so, *products: it
 * has products of matrices. */
static bool is_wanted(struct unit *unit, bool *products) {
    int count = 0;
    bool meets = false;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        enum intrinsic_kind kind = intrinsic_traits(intrinsic_of(instruction))->kind;
        meets |= kind == OF_SIMDGROUP || kind == OF_BARRIER;
        *products |= intrinsic_of(instruction) == INTRINSIC_SIMD_MATRIX_PRODUCT;
        if (++count > MOST_INSTRUCTIONS) return false;
    }
    return meets;
}

smelt_status pass_ptx_strides(struct unit *unit) {
    bool products = false;
    if (!unit->request->shape.aligned || !is_wanted(unit, &products)) return SMELT_OK;
    struct search s = {.unit = unit};
    struct arena arena = {0};
    struct flow flow;
    smelt_status status = flow_find(unit, unit->entry, &arena, &flow);
    struct access *accesses = arena_alloc(&arena, MOST_ACCESSES * sizeof *accesses);
    if (status == SMELT_OK && !accesses)
        status = unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for the loads of a loop");
    /* In kernels with products, only loops count. Attention has few loads outside loops, and two versions of
     * it took 1.08 times as long on an H200. */
    for (int i = 0; status == SMELT_OK && i < flow.block_count; i++) {
        if (products && flow.blocks[i].loop < 0) continue;
        look_at_loads(&s, flow.blocks[i].block, accesses);
        look_at_matrices(&s, flow.blocks[i].block);
    }
    arena_free(&arena);
    return status == SMELT_OK && s.all.count ? build(&s) : status;
}
