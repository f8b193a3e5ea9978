/* Questions about all threads of a launch. If the lanes' addresses are not a constant apart, a test takes a
 * comparison per row or per lane. Often the code shows between which two addresses those of all threads lie:
 * positions end with the grid; a condition, a minimum or a mask limits an index; a byte is at most 255. Where
 * these two follow from sizes of the launch and from constant memory, a function computes them:
 *
 *   i64 __smelt_questions(ptr group)   struct group_context; bit n: an access of question n may be outside
 *
 * The runtime calls it before the groups. `inside` is done only if the bit is set (launch_leaves). The
 * accesses of a block share a question.
 *
 * Ends are computed in 64 bits and hold modulo 2^width: a number between them differs from the value by a
 * multiple of 2^width. The ends of factors, of numbers that are extended and of indexes, and limits of 64
 * bits, must be in [0, 2^30), which the question tests, too: they then hold for the value itself. Products
 * are below 2^60, and no sum of MOST_PRODUCTS of them wraps around. */
#include "abi/entry_names.h"
#include "compiler/bounds/bounds.h"
#include "compiler/cpu/inside.h"

#include <llvm-c/DebugInfo.h>

#include <stddef.h>
#include <string.h>

enum { MOST_VALUES = 40, MOST_DEPTH = 10, MOST_PRODUCTS = 6, MOST_QUESTIONS = 64 };

/* Limits the time to compile: further accesses of a long kernel are tested in each thread. */
enum { MOST_ASKED = 256 };

#define MOST_NARROW ((1 << 30) - 1)

/* A value of the thread's code, and what the function computes for it; NULL: it cannot. */
struct known {
    LLVMValueRef value, copy;
    struct known *next;
};

struct questions {
    LLVMValueRef function, group, wrong; /* wrong: i1, a copy is not the value */
    struct known *known;
    LLVMValueRef answers[MOST_QUESTIONS]; /* i1 in the function */
    LLVMValueRef calls[MOST_QUESTIONS];   /* i1 in the thread's code */
    int count, block;                     /* the block of the last one */
    int asked;
    bool loads; /* constant memory */
};

/* i64, the same for all threads; NULL: not known. */
struct ends {
    LLVMValueRef low, high;
};

struct look {
    struct bounds *b;
    int block;
    int left, products;
    bool scattered;                   /* the lanes' values are not a constant apart */
    bool fails;                       /* a number is never narrow */
    LLVMValueRef narrow[MOST_VALUES]; /* i64: what must be in [0, 2^30) */
    int narrow_count;
};

static const struct ends not_known = {NULL, NULL};

static struct ends ends_of(struct look *l, LLVMValueRef value, int depth);

static LLVMBuilderRef builder_of(struct look *l) {
    return l->b->unit->builder;
}

static unsigned width_of(LLVMValueRef value) {
    return LLVMGetIntTypeWidth(LLVMTypeOf(value));
}

/* ---- The function, and values that it can compute. */

static LLVMValueRef copy_of(struct bounds *b, LLVMValueRef value, int depth);

static struct questions *begin_function(struct bounds *b) {
    struct unit *unit = b->unit;
    struct questions *q = arena_alloc(&b->arena, sizeof *q);
    if (!q) return NULL;
    LLVMTypeRef pointer = type_pointer(unit);
    *q = (struct questions){.block = -1};
    q->function =
        LLVMAddFunction(unit->module, QUESTIONS_NAME, LLVMFunctionType(type_i64(unit), &pointer, 1, false));
    q->group = LLVMGetParam(q->function, 0);
    q->wrong = LLVMConstInt(LLVMInt1TypeInContext(unit->context), 0, false);
    LLVMAppendBasicBlockInContext(unit->context, q->function, "");
    return q;
}

static void continue_function(struct bounds *b) {
    LLVMPositionBuilderAtEnd(b->unit->builder, LLVMGetEntryBasicBlock(b->questions->function));
    LLVMSetCurrentDebugLocation2(b->unit->builder, NULL);
}

static LLVMValueRef field(struct bounds *b, LLVMTypeRef type, LLVMValueRef base, size_t offset) {
    LLVMValueRef index = bounds_i64(b, offset);
    LLVMTypeRef i8 = LLVMInt8TypeInContext(b->unit->context);
    LLVMValueRef address = LLVMBuildGEP2(b->unit->builder, i8, base, &index, 1, "");
    return LLVMBuildLoad2(b->unit->builder, type, address, "");
}

static LLVMValueRef argument_address(struct bounds *b, uint64_t slot) {
    LLVMTypeRef pointer = type_pointer(b->unit);
    LLVMValueRef buffers = field(b, pointer, b->questions->group, offsetof(struct group_context, buffers));
    return field(b, pointer, buffers, slot * sizeof(void *));
}

static LLVMValueRef extent_of(struct bounds *b, enum intrinsic intrinsic, uint64_t slot) {
    return inside_extent(b->unit, b->questions->group, intrinsic, slot);
}

/* A size of the grid. */
static LLVMValueRef size_of(struct bounds *b, LLVMValueRef call) {
    static const struct {
        enum intrinsic intrinsic;
        size_t offset;
    } sizes[] = {{INTRINSIC_GRID_THREADS, offsetof(struct group_context, grid)},
                 {INTRINSIC_GRID_GROUPS, offsetof(struct group_context, groups)},
                 {INTRINSIC_DISPATCH_THREADGROUP_SIZE, offsetof(struct group_context, dispatch_size)}};
    uint64_t dimension;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (intrinsic_of(call) != sizes[i].intrinsic) continue;
        if (!is_constant_integer(LLVMGetOperand(call, 0), &dimension) || dimension > 2) return NULL;
        return field(b, LLVMTypeOf(call), b->questions->group, sizes[i].offset + 4 * (size_t)dimension);
    }
    return NULL;
}

/* A load of constant memory at a constant offset. The kernel need not execute it: `wrong` says whether such
 * memory is missing. If buffers may overlap, the kernel may write there after the question. */
static LLVMValueRef constant_of(struct bounds *b, LLVMValueRef load) {
    LLVMBuilderRef builder = b->unit->builder;
    struct place place = bounds_place(b->unit, LLVMGetOperand(load, 0));
    uint64_t slot, bytes = LLVMStoreSizeOfType(b->unit->layout, LLVMTypeOf(load));
    unsigned invariant = LLVMGetMDKindIDInContext(b->unit->context, "invariant.load", 14);
    if (!b->unit->request->shape.distinct || place.index ||
        intrinsic_of(place.root) != INTRINSIC_BUFFER_ADDRESS || place.constant < 0 ||
        place.constant > INT32_MAX || !LLVMGetMetadata(load, invariant) ||
        !is_constant_integer(LLVMGetOperand(place.root, 0), &slot))
        return NULL;
    LLVMValueRef argument = argument_address(b, slot);
    LLVMValueRef start = LLVMBuildPtrToInt(builder, argument, type_i64(b->unit), "");
    start = LLVMBuildSub(builder, start, extent_of(b, INTRINSIC_BUFFER_START, slot), "");
    LLVMValueRef end = LLVMBuildAdd(builder, start, bounds_i64(b, (uint64_t)place.constant + bytes), "");
    LLVMValueRef extent = extent_of(b, INTRINSIC_BUFFER_EXTENT, slot);
    LLVMValueRef there = LLVMBuildICmp(builder, LLVMIntULE, end, extent, "");
    LLVMValueRef missing = LLVMBuildNot(builder, there, "");
    b->questions->wrong = LLVMBuildOr(builder, b->questions->wrong, missing, "");
    /* The context is longer than any constant that is loaded. */
    LLVMValueRef offset =
        LLVMBuildSelect(builder, there, bounds_i64(b, (uint64_t)place.constant), bounds_i64(b, 0), "");
    LLVMValueRef base = LLVMBuildSelect(builder, there, argument, b->questions->group, "");
    LLVMTypeRef i8 = LLVMInt8TypeInContext(b->unit->context);
    LLVMValueRef copy =
        LLVMBuildLoad2(builder, LLVMTypeOf(load), LLVMBuildGEP2(builder, i8, base, &offset, 1, ""), "");
    LLVMSetAlignment(copy, 1);
    b->questions->loads = true;
    return copy;
}

static bool is_extreme(LLVMValueRef call) {
    static const char *const names[] = {"llvm.umin.", "llvm.umax.", "llvm.smin.", "llvm.smax."};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(called_name(call), names[i], strlen(names[i])) == 0) return true;
    return false;
}

static bool never_traps(LLVMValueRef value) {
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMUDiv:
    case LLVMURem: {
        uint64_t divisor;
        return is_constant_integer(LLVMGetOperand(value, 1), &divisor) && divisor;
    }
    case LLVMSDiv:
    case LLVMSRem:
        return false;
    default:
        return LLVMIsABinaryOperator(value) || LLVMIsACastInst(value) || LLVMIsAICmpInst(value) ||
               LLVMIsASelectInst(value) || LLVMIsAFreezeInst(value) ||
               (LLVMIsACallInst(value) && is_extreme(value));
    }
}

/* Integers only, computed from integers. In the function, they are computed without the conditions that keep
 * them from being poison in the thread's code. */
static LLVMValueRef computed(struct bounds *b, LLVMValueRef value, int depth) {
    int count = LLVMIsACallInst(value) ? 2 : LLVMGetNumOperands(value);
    LLVMValueRef operands[3];
    if (count > 3 || !never_traps(value)) return NULL;
    for (int i = 0; i < count; i++) {
        operands[i] = copy_of(b, LLVMGetOperand(value, (unsigned)i), depth + 1);
        if (!operands[i]) return NULL;
    }
    LLVMValueRef copy = LLVMInstructionClone(value);
    for (int i = 0; i < count; i++) LLVMSetOperand(copy, (unsigned)i, operands[i]);
    LLVMInstructionSetDebugLoc(copy, NULL);
    LLVMInsertIntoBuilder(b->unit->builder, copy);
    return LLVMBuildFreeze(b->unit->builder, copy, "");
}

static LLVMValueRef copy_of(struct bounds *b, LLVMValueRef value, int depth) {
    LLVMTypeRef type = LLVMTypeOf(value);
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(type) > 64) return NULL;
    if (LLVMIsAConstantInt(value)) return value;
    if (!LLVMIsAInstruction(value) || depth > MOST_DEPTH) return NULL;
    for (struct known *k = b->questions->known; k; k = k->next)
        if (k->value == value) return k->copy;
    struct known *known = arena_alloc(&b->arena, sizeof *known);
    if (!known) return NULL;
    LLVMValueRef copy = LLVMIsALoadInst(value)   ? constant_of(b, value)
                        : LLVMIsACallInst(value) ? size_of(b, value)
                                                 : NULL;
    if (!copy && !LLVMIsALoadInst(value)) copy = computed(b, value, depth);
    *known = (struct known){value, copy, b->questions->known};
    b->questions->known = known;
    return copy;
}

/* ---- Ends. */

static struct ends both(LLVMValueRef value) {
    return (struct ends){value, value};
}

/* It must be in [0, 2^30). */
static void require_narrow(struct look *l, LLVMValueRef value) {
    if (!value) {
        l->fails = true;
    } else if (LLVMIsAConstantInt(value)) {
        int64_t number = LLVMConstIntGetSExtValue(value);
        l->fails |= number < 0 || number > MOST_NARROW;
    } else {
        for (int i = 0; i < l->narrow_count; i++)
            if (l->narrow[i] == value) return;
        l->fails |= l->narrow_count == MOST_VALUES;
        if (!l->fails) l->narrow[l->narrow_count++] = value;
    }
}

static void require_ends(struct look *l, struct ends e) {
    require_narrow(l, e.low);
    if (e.high != e.low) require_narrow(l, e.high);
}

/* i64: a number that is the same in the whole launch; NULL: it is not known to be. */
static LLVMValueRef shared(struct look *l, LLVMValueRef value, bool is_signed) {
    LLVMTypeRef type = type_i64(l->b->unit);
    LLVMValueRef copy = copy_of(l->b, value, 0);
    if (!copy) return NULL;
    if (width_of(value) == 64) {
        require_narrow(l, copy);
        return copy;
    }
    return is_signed ? LLVMBuildSExt(builder_of(l), copy, type, "")
                     : LLVMBuildZExt(builder_of(l), copy, type, "");
}

static struct ends of_sum(struct look *l, LLVMValueRef value, bool subtracts, int depth) {
    struct ends x = ends_of(l, LLVMGetOperand(value, 0), depth + 1),
                y = ends_of(l, LLVMGetOperand(value, 1), depth + 1), r = not_known;
    LLVMBuilderRef b = builder_of(l);
    bool one = x.low == x.high && y.low == y.high;
    LLVMValueRef least = subtracts ? y.high : y.low, most = subtracts ? y.low : y.high;
    if (x.low && least)
        r.low = subtracts ? LLVMBuildSub(b, x.low, least, "") : LLVMBuildAdd(b, x.low, least, "");
    if (one) return both(r.low);
    if (x.high && most)
        r.high = subtracts ? LLVMBuildSub(b, x.high, most, "") : LLVMBuildAdd(b, x.high, most, "");
    return r;
}

static struct ends of_product(struct look *l, struct ends x, struct ends y) {
    LLVMBuilderRef b = builder_of(l);
    if (!x.low || !x.high || !y.low || !y.high || ++l->products > MOST_PRODUCTS) return not_known;
    bool x_shared = x.low == x.high, y_shared = y.low == y.high;
    /* Lanes are a constant apart in a row times a constant. */
    l->scattered |= !(x_shared && y_shared) && !(x_shared && LLVMIsAConstantInt(x.low)) &&
                    !(y_shared && LLVMIsAConstantInt(y.low));
    require_ends(l, x);
    require_ends(l, y);
    struct ends r = {.low = LLVMBuildMul(b, x.low, y.low, "")};
    r.high = x_shared && y_shared ? r.low : LLVMBuildMul(b, x.high, y.high, "");
    return r;
}

static struct ends of_shift(struct look *l, LLVMValueRef value, int depth) {
    uint64_t count;
    if (!is_constant_integer(LLVMGetOperand(value, 1), &count) || count > 29) return not_known;
    return of_product(l, ends_of(l, LLVMGetOperand(value, 0), depth + 1),
                      both(bounds_i64(l->b, UINT64_C(1) << count)));
}

/* ---- Values with limits. */

/* bounds_range may build code for loops' counters, and so moves the builder. */
static struct value_range range_here(struct look *l, LLVMValueRef value) {
    struct value_range r = bounds_range(l->b, l->block, value);
    continue_function(l->b);
    return r;
}

/* Of a number that the code only limits by constants: as a signed one. */
static struct ends of_range(struct look *l, LLVMValueRef value) {
    struct value_range r = range_here(l, value);
    struct ends e = not_known;
    if (r.low > INT32_MIN) e.low = bounds_i64(l->b, (uint64_t)r.low);
    if (r.high < INT32_MAX) e.high = bounds_i64(l->b, (uint64_t)r.high);
    return e;
}

static LLVMValueRef extreme(struct look *l, bool least, LLVMValueRef x, LLVMValueRef y) {
    LLVMValueRef operands[2] = {x, y};
    return build_intrinsic(l->b->unit, least ? "llvm.smin" : "llvm.smax", type_i64(l->b->unit), operands, 2);
}

/* … as a signed number, which the ends of sums are not. */
static struct ends signed_ends(struct look *l, LLVMValueRef value, int depth) {
    const char *name = LLVMIsACallInst(value) ? called_name(value) : "";
    LLVMValueRef copy = depth < MOST_DEPTH ? shared(l, value, true) : NULL;
    if (copy) return both(copy);
    bool least = strncmp(name, "llvm.smin.", 10) == 0;
    if ((!least && strncmp(name, "llvm.smax.", 10) != 0) || --l->left < 0) return of_range(l, value);
    struct ends x = signed_ends(l, LLVMGetOperand(value, 0), depth + 1),
                y = signed_ends(l, LLVMGetOperand(value, 1), depth + 1);
    /* One operand alone limits the result on one side. */
    LLVMValueRef low = x.low && y.low ? extreme(l, least, x.low, y.low) : x.low ? x.low : y.low;
    LLVMValueRef high = x.high && y.high ? extreme(l, least, x.high, y.high) : x.high ? x.high : y.high;
    return (struct ends){least && !(x.low && y.low) ? NULL : low,
                         !least && !(x.high && y.high) ? NULL : high};
}

/* Below the number of threads or groups in a dimension, from `offset` of the context on. */
static struct ends of_position(struct look *l, LLVMValueRef call, size_t offset) {
    uint64_t dimension;
    if (!is_constant_integer(LLVMGetOperand(call, 0), &dimension) || dimension > 2) return not_known;
    LLVMValueRef count =
        field(l->b, LLVMTypeOf(call), l->b->questions->group, offset + 4 * (size_t)dimension);
    count = LLVMBuildZExt(builder_of(l), count, type_i64(l->b->unit), "");
    int64_t low = range_here(l, call).low;
    return (struct ends){bounds_i64(l->b, low > 0 ? (uint64_t)low : 0),
                         LLVMBuildSub(builder_of(l), count, bounds_i64(l->b, 1), "")};
}

/* Whether a gang may lie in several rows of the dimension. */
static bool has_rows(struct look *l, LLVMValueRef call) {
    uint64_t dimension;
    return !is_constant_integer(LLVMGetOperand(call, 0), &dimension) || dimension > 2 ||
           (dimension && l->b->unit->request->shape.size[dimension] != 1);
}

static struct ends of_call(struct look *l, LLVMValueRef call, int depth) {
    switch (intrinsic_of(call)) {
    case INTRINSIC_THREAD_POSITION:
        l->scattered |= has_rows(l, call);
        return of_position(l, call, offsetof(struct group_context, grid));
    case INTRINSIC_THREADGROUP_POSITION:
        return of_position(l, call, offsetof(struct group_context, groups));
    case INTRINSIC_POSITION_IN_THREADGROUP:
        l->scattered |= has_rows(l, call);
        return of_range(l, call);
    case INTRINSIC_LANE:
    case INTRINSIC_THREAD_INDEX:
        return of_range(l, call);
    default:
        break;
    }
    l->scattered = true;
    for (unsigned i = 0; i < 2 && strncmp(called_name(call), "llvm.umin.", 10) == 0; i++) {
        LLVMValueRef limit = shared(l, LLVMGetOperand(call, i), false);
        if (limit) return (struct ends){bounds_i64(l->b, 0), limit};
    }
    return signed_ends(l, call, depth);
}

/* What conditions say: the value is below a number that all threads share. */
static bool find_limit(struct look *l, LLVMValueRef value, struct ends *e) {
    for (const struct fact *f = bounds_facts(l->b, l->block, value); f; f = bounds_next_fact(f)) {
        bool is_signed = f->predicate == LLVMIntSLT || f->predicate == LLVMIntSLE,
             strict = f->predicate == LLVMIntSLT || f->predicate == LLVMIntULT;
        if (!strict && f->predicate != LLVMIntSLE && f->predicate != LLVMIntULE) continue;
        struct value_range r = range_here(l, value);
        if (is_signed && r.low < 0) continue;
        LLVMValueRef limit = shared(l, f->other, is_signed);
        if (!limit) continue;
        e->low = bounds_i64(l->b, r.low < 0 ? 0 : (uint64_t)r.low);
        e->high = strict ? LLVMBuildSub(builder_of(l), limit, bounds_i64(l->b, 1), "") : limit;
        return true;
    }
    return false;
}

static struct ends of_instruction(struct look *l, LLVMValueRef value, int depth) {
    struct ends e;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAdd:
        return of_sum(l, value, false, depth);
    case LLVMSub:
        return of_sum(l, value, true, depth);
    case LLVMOr:
        if (LLVMGetIsDisjoint(value)) return of_sum(l, value, false, depth);
        break;
    case LLVMMul:
        e = ends_of(l, LLVMGetOperand(value, 0), depth + 1);
        return of_product(l, e, ends_of(l, LLVMGetOperand(value, 1), depth + 1));
    case LLVMShl:
        return of_shift(l, value, depth);
    case LLVMZExt:
    case LLVMSExt:
        if (width_of(LLVMGetOperand(value, 0)) != 32) break;
        e = ends_of(l, LLVMGetOperand(value, 0), depth + 1);
        require_ends(l, e);
        return e;
    case LLVMTrunc:
        return ends_of(l, LLVMGetOperand(value, 0), depth + 1);
    case LLVMCall:
        return of_call(l, value, depth);
    default:
        break;
    }
    l->scattered = true;
    return of_range(l, value);
}

static struct ends ends_of(struct look *l, LLVMValueRef value, int depth) {
    struct ends e;
    unsigned width = width_of(value);
    if (LLVMIsAConstantInt(value)) return both(bounds_i64(l->b, (uint64_t)LLVMConstIntGetSExtValue(value)));
    if (--l->left < 0 || depth > MOST_DEPTH || width > 64 || width < 8) return not_known;
    if (!LLVMIsAInstruction(value)) return not_known;
    LLVMValueRef own = shared(l, value, true);
    if (own) return both(own);
    if (!find_limit(l, value, &e)) return of_instruction(l, value, depth);
    /* Only for `scattered`: the ends are those of the condition. */
    int narrow_count = l->narrow_count, products = l->products;
    bool fails = l->fails;
    (void)of_instruction(l, value, depth);
    l->narrow_count = narrow_count;
    l->products = products;
    l->fails = fails;
    return e;
}

/* ---- Addresses. */

/* The root, and where the address lies from there in bytes. NULL: not known. */
static LLVMValueRef root_of(struct look *l, LLVMValueRef address, struct ends *offset) {
    LLVMBuilderRef b = builder_of(l);
    struct unit *unit = l->b->unit;
    *offset = both(bounds_i64(l->b, 0));
    for (; bounds_is_step(address); address = LLVMGetOperand(address, 0)) {
        if (!LLVMIsAGetElementPtrInst(address)) {
            if (LLVMIsAConstantExpr(address) && LLVMGetConstOpcode(address) == LLVMGetElementPtr) return NULL;
            continue;
        }
        if (LLVMGetNumOperands(address) != 2) return NULL;
        LLVMValueRef index = LLVMGetOperand(address, 1);
        int64_t bytes = (int64_t)LLVMABISizeOfType(unit->layout, LLVMGetGEPSourceElementType(address));
        struct ends e = ends_of(l, index, 0);
        if (!e.low || !e.high || bytes > INT32_MAX) return NULL;
        if (!LLVMIsAConstantInt(index)) require_ends(l, e);
        LLVMValueRef scale = bounds_i64(l->b, (uint64_t)bytes);
        offset->low = LLVMBuildAdd(b, offset->low, LLVMBuildMul(b, e.low, scale, ""), "");
        offset->high = LLVMBuildAdd(b, offset->high, LLVMBuildMul(b, e.high, scale, ""), "");
    }
    return address;
}

static LLVMValueRef either(struct bounds *b, LLVMValueRef x, LLVMValueRef y) {
    return LLVMBuildOr(b->unit->builder, x, y, "");
}

/* i1: one of the numbers is not narrow. */
static LLVMValueRef any_is_wide(struct look *l) {
    LLVMValueRef bits = bounds_i64(l->b, 0);
    for (int i = 0; i < l->narrow_count; i++) bits = either(l->b, bits, l->narrow[i]);
    return LLVMBuildICmp(builder_of(l), LLVMIntUGT, bits, bounds_i64(l->b, MOST_NARROW), "");
}

/* i1: the bytes from `first` to before `last`, counted from the root, are not all inside the object. Both are
 * small numbers. NULL: the object is another one than the root. */
static LLVMValueRef reaches_out(struct bounds *b, LLVMValueRef root, const struct array_object *object,
                                LLVMValueRef first, LLVMValueRef last) {
    LLVMBuilderRef builder = b->unit->builder;
    LLVMValueRef extent = object->extent;
    uint64_t slot;
    if (object->kind == ACCESS_BUFFER) {
        if (intrinsic_of(root) != INTRINSIC_BUFFER_ADDRESS ||
            !is_constant_integer(LLVMGetOperand(root, 0), &slot) || slot != object->slot)
            return NULL;
        LLVMValueRef start = LLVMBuildPtrToInt(builder, argument_address(b, slot), type_i64(b->unit), "");
        start = LLVMBuildSub(builder, start, extent_of(b, INTRINSIC_BUFFER_START, slot), "");
        first = LLVMBuildAdd(builder, first, start, "");
        last = LLVMBuildAdd(builder, last, start, "");
        extent = extent_of(b, INTRINSIC_BUFFER_EXTENT, slot);
    } else if (root != object->variable || !LLVMIsAConstantInt(extent)) {
        return NULL;
    }
    LLVMValueRef before = LLVMBuildICmp(builder, LLVMIntSLT, first, bounds_i64(b, 0), "");
    return either(b, before, LLVMBuildICmp(builder, LLVMIntSGT, last, extent, ""));
}

/* The question of the block; more than MOST_QUESTIONS share the last one. */
static int question_of(struct bounds *b, int block) {
    struct questions *q = b->questions;
    if (q->count && (q->block == block || q->count == MOST_QUESTIONS)) return q->count - 1;
    LLVMTypeRef i1 = LLVMInt1TypeInContext(b->unit->context);
    LLVMValueRef number = constant_i32(b->unit, (uint32_t)q->count);
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(b->unit->entry);
    LLVMValueRef first = LLVMGetFirstInstruction(entry);
    while (LLVMIsAAllocaInst(first)) first = LLVMGetNextInstruction(first);
    LLVMPositionBuilderBefore(b->unit->builder, first);
    q->block = block;
    q->answers[q->count] = LLVMConstInt(i1, 0, false);
    q->calls[q->count] = bounds_intrinsic(b, INTRINSIC_LAUNCH_LEAVES, i1, &number, 1);
    continue_function(b);
    return q->count++;
}

LLVMValueRef bounds_launch_ask(struct bounds *b, int block, LLVMValueRef address, int64_t low, uint64_t bytes,
                               const struct array_object *object) {
    struct look l = {.b = b, .block = block, .left = MOST_VALUES};
    LLVMBuilderRef builder = b->unit->builder;
    struct ends offset;
    if (b->flow.irreducible || (object->kind != ACCESS_BUFFER && object->kind != ACCESS_VARIABLE))
        return NULL;
    if (!b->questions) b->questions = begin_function(b);
    if (!b->questions || b->questions->asked >= MOST_ASKED) return NULL;
    b->questions->asked++;
    continue_function(b);
    LLVMValueRef root = root_of(&l, address, &offset);
    /* With another question of the block, a simple one costs nothing. */
    bool has_question = b->questions->count && b->questions->block == block;
    if (!root || l.fails || (!l.scattered && !has_question)) return NULL;
    LLVMValueRef first = LLVMBuildAdd(builder, offset.low, bounds_i64(b, (uint64_t)low), "");
    LLVMValueRef last = LLVMBuildAdd(builder, offset.high, bounds_i64(b, (uint64_t)low + bytes), "");
    LLVMValueRef out = reaches_out(b, root, object, first, last);
    if (!out) return NULL;
    out = either(b, out, any_is_wide(&l));
    int question = question_of(b, block);
    b->questions->answers[question] = either(b, b->questions->answers[question], out);
    return b->questions->calls[question];
}

void bounds_launch_end(struct bounds *b) {
    struct questions *q = b->questions;
    if (!q) return;
    if (!q->count) {
        LLVMDeleteFunction(q->function);
        return;
    }
    b->unit->result->image.distinct |= q->loads;
    continue_function(b);
    LLVMBuilderRef builder = b->unit->builder;
    LLVMTypeRef i64 = type_i64(b->unit);
    LLVMValueRef answers = LLVMBuildSExt(builder, q->wrong, i64, "");
    for (int i = 0; i < q->count; i++) {
        LLVMValueRef bit = LLVMBuildZExt(builder, q->answers[i], i64, "");
        bit = LLVMBuildShl(builder, bit, bounds_i64(b, (uint64_t)i), "");
        answers = either(b, answers, bit);
    }
    LLVMBuildRet(builder, answers);
}
