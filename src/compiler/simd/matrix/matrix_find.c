/* Which values of the thread are halves of matrices whose chunks are rows (matrix.h): the products, and what
 * comes to them and goes on from them: loads and stores of whole matrices, sums that loops carry, and
 * arithmetic that is the same for each element. The borders are wherever a value has another use, or an
 * operand comes from elsewhere: there the code converts.
 *
 * Only blocks that all lanes execute take part: rows have no masks.
 *
 * Requires: the analysis, the layout of blocks. Establishes: value.matrix. */
#include "compiler/simd/matrix/matrix.h"
#include "compiler/simd/matrix/matrix_pairs.h"
#include "compiler/simd/matrix/matrix_sums.h"
#include "compiler/simd/analysis/spots.h"

#include <string.h>

static bool runs_for_all(struct simd *s, LLVMBasicBlockRef block) {
    return s->blocks[simd_place(s, block)].mask_of == 0;
}

static bool is_before(struct simd *s, LLVMValueRef a, LLVMValueRef b) {
    return value_of(s, a)->order < value_of(s, b)->order;
}

/* Results of other shapes have no chunks. */
static bool has_chunks(struct simd *s, LLVMValueRef i) {
    return value_of(s, i)->shape == SHAPE_VARYING && value_of(s, i)->piece < 0 && !private_is(s, i);
}

/* ---- Arithmetic. */

static bool is_elementwise_call(LLVMValueRef i) {
    static const char *const names[] = {"llvm.fma.",    "llvm.fabs.",    "llvm.sqrt.",    "llvm.minnum.",
                                        "llvm.maxnum.", "llvm.minimum.", "llvm.maximum.", "llvm.copysign.",
                                        "llvm.floor.",  "llvm.rint.",    "llvm.ldexp.",   "llvm.umin.",
                                        "llvm.umax.",   "llvm.smin.",    "llvm.smax.",    NULL};
    for (int n = 0; names[n]; n++)
        if (strncmp(called_name(i), names[n], strlen(names[n])) == 0) return true;
    return false;
}

static bool is_elementwise(LLVMValueRef i) {
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
    case LLVMLShr:
    case LLVMAShr:
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
    case LLVMFAdd:
    case LLVMFSub:
    case LLVMFMul:
    case LLVMFDiv:
    case LLVMFNeg:
    case LLVMICmp:
    case LLVMFCmp:
    case LLVMSelect:
    case LLVMFreeze:
    case LLVMTrunc:
    case LLVMZExt:
    case LLVMSExt:
    case LLVMFPTrunc:
    case LLVMFPExt:
    case LLVMBitCast:
        return true;
    case LLVMCall:
        return is_elementwise_call(i);
    default:
        return false;
    }
}

static bool flags_agree(LLVMValueRef a, LLVMValueRef b) {
    if (LLVMCanValueUseFastMathFlags(a) && LLVMGetFastMathFlags(a) != LLVMGetFastMathFlags(b)) return false;
    switch (LLVMGetInstructionOpcode(a)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
        return LLVMGetNUW(a) == LLVMGetNUW(b) && LLVMGetNSW(a) == LLVMGetNSW(b);
    case LLVMLShr:
    case LLVMAShr:
        return LLVMGetExact(a) == LLVMGetExact(b);
    case LLVMOr:
        return LLVMGetIsDisjoint(a) == LLVMGetIsDisjoint(b);
    case LLVMZExt:
        return LLVMGetNNeg(a) == LLVMGetNNeg(b);
    case LLVMICmp:
        return LLVMGetICmpPredicate(a) == LLVMGetICmpPredicate(b);
    case LLVMFCmp:
        return LLVMGetFCmpPredicate(a) == LLVMGetFCmpPredicate(b);
    case LLVMCall:
        return LLVMGetCalledValue(a) == LLVMGetCalledValue(b);
    default:
        return true;
    }
}

/* An operand of one half must have one counterpart in the other: rows have elements of both. */
static bool matrix_halves_agree(LLVMValueRef first, LLVMValueRef second) {
    int count = LLVMGetNumOperands(first);
    if (!is_elementwise(first) || LLVMGetInstructionOpcode(first) != LLVMGetInstructionOpcode(second) ||
        LLVMTypeOf(first) != LLVMTypeOf(second) || count != LLVMGetNumOperands(second) ||
        !flags_agree(first, second))
        return false;
    for (int n = 0; n < count; n++) {
        LLVMValueRef a = LLVMGetOperand(first, (unsigned)n), b = LLVMGetOperand(second, (unsigned)n);
        if (LLVMTypeOf(a) != LLVMTypeOf(b)) return false;
        for (int m = 0; m < n; m++)
            if ((LLVMGetOperand(first, (unsigned)m) == a) != (LLVMGetOperand(second, (unsigned)m) == b))
                return false;
    }
    return true;
}

/* ---- Memory. */

/* The first elements of all lanes are where rows of memory are rows, or columns, of a matrix. `step`: from a
 * lane's first element to its second. */
static bool is_matrix_in_memory(struct simd *s, const int64_t *offsets, int64_t size, int64_t step,
                                bool *transposed) {
    bool rows = step == size, columns = true;
    for (int lane = 0; lane < s->lanes; lane++) {
        const int64_t *own = offsets + lane / SIMDGROUP_LANES * SIMDGROUP_LANES;
        int row = matrix_row(lane % SIMDGROUP_LANES), pair = matrix_pair(lane % SIMDGROUP_LANES);
        rows &= offsets[lane] == own[matrix_lane(row, 0)] + 2 * pair * size;
        columns &= offsets[lane] == own[0] + row * size + 2 * pair * step;
    }
    *transposed = !rows;
    return rows || columns;
}

static LLVMValueRef address_of(LLVMValueRef access) {
    return LLVMGetOperand(access, LLVMIsALoadInst(access) ? 0 : 1);
}

/* Between the halves nothing writes to memory, nor reads it if they do. */
static bool can_move_together(LLVMValueRef first, LLVMValueRef second) {
    bool stores = LLVMIsAStoreInst(first) != NULL;
    for (LLVMValueRef i = LLVMGetNextInstruction(first); i != second; i = LLVMGetNextInstruction(i)) {
        if (!i) return false;
        if (LLVMIsALoadInst(i) ? stores || LLVMGetOrdering(i) != LLVMAtomicOrderingNotAtomic
                               : LLVMIsAStoreInst(i) || LLVMIsAAtomicRMWInst(i) ||
                                     LLVMIsAAtomicCmpXchgInst(i) || LLVMIsAFenceInst(i))
            return false;
        if (LLVMIsACallInst(i) && !is_elementwise_call(i) && strncmp(called_name(i), "llvm.dbg.", 9) != 0)
            return false;
    }
    return true;
}

static bool is_plain_access(LLVMValueRef i) {
    return LLVMGetOrdering(i) == LLVMAtomicOrderingNotAtomic && !LLVMGetVolatile(i);
}

/* Fills in what is known of the place in memory. */
static bool find_memory(struct simd *s, struct matrix *matrix) {
    LLVMValueRef first = matrix->halves[0], second = matrix->halves[1], address = address_of(first);
    LLVMTypeRef type = LLVMIsALoadInst(first) ? LLVMTypeOf(first) : LLVMTypeOf(LLVMGetOperand(first, 0));
    int64_t size = (int64_t)LLVMABISizeOfType(s->unit->layout, type), step;
    int shape = shape_of(s, address);
    bool ordered = is_before(s, first, second);
    if (!is_plain_access(first) || !is_plain_access(second) || shape < 0 || private_is(s, address) ||
        (size != 2 && size != 4) || !spot_distance(s, address, address_of(second), &step) ||
        !can_move_together(ordered ? first : second, ordered ? second : first))
        return false;
    matrix->offsets = shape_offsets(s, shape);
    matrix->place = ordered == (LLVMIsALoadInst(first) != NULL) ? first : second;
    matrix->bytes = matrix->place == first ? 0 : -step;
    return is_matrix_in_memory(s, matrix->offsets, size, step, &matrix->transposed);
}

/* ---- Finding. */

static struct matrix *add_matrix(struct simd *s, enum matrix_kind kind, LLVMValueRef first,
                                 LLVMValueRef second) {
    struct matrix *matrix = arena_alloc(&s->arena, sizeof *matrix), **last = &s->matrices;
    if (!matrix) return NULL;
    *matrix = (struct matrix){.kind = kind, .halves = {first, second}};
    while (*last) last = &(*last)->next;
    *last = matrix;
    value_of(s, first)->matrix = value_of(s, second)->matrix = matrix;
    return matrix;
}

static void remove_matrix(struct simd *s, struct matrix *matrix) {
    for (int h = 0; h < 2; h++) value_of(s, matrix->halves[h])->matrix = NULL;
    for (struct matrix **at = &s->matrices; *at; at = &(*at)->next)
        if (*at == matrix) {
            *at = matrix->next;
            return;
        }
}

static bool is_of_all_paths(struct simd *s, LLVMValueRef phi) {
    if (s->paths.blocks[simd_place(s, LLVMGetInstructionParent(phi))].join) return false;
    for (unsigned n = 0; n < LLVMCountIncoming(phi); n++) {
        LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi, n);
        if (!runs_for_all(s, from) || s->paths.blocks[simd_place(s, from)].divergent) return false;
    }
    return true;
}

/* Keeps the values as a matrix if they can be one. */
static void want_matrix(struct simd *s, LLVMValueRef first, LLVMValueRef second) {
    if (!LLVMIsAInstruction(first) || !LLVMIsAInstruction(second) || first == second) return;
    LLVMBasicBlockRef block = LLVMGetInstructionParent(first);
    if (matrix_of(s, first) || matrix_of(s, second) || block != LLVMGetInstructionParent(second) ||
        !runs_for_all(s, block) || LLVMTypeOf(first) != LLVMTypeOf(second) || !has_chunks(s, first) ||
        !has_chunks(s, second))
        return;
    if (LLVMIsAPHINode(first) && LLVMIsAPHINode(second)) {
        if (is_of_all_paths(s, first)) (void)add_matrix(s, MATRIX_PHI, first, second);
    } else if (LLVMIsALoadInst(first) && LLVMIsALoadInst(second)) {
        struct matrix *load = add_matrix(s, MATRIX_LOAD, first, second);
        if (load && !find_memory(s, load)) remove_matrix(s, load);
    } else if (matrix_halves_agree(first, second)) {
        (void)add_matrix(s, MATRIX_ARITHMETIC, first, second);
    }
}

static void want_operands(struct simd *s, const struct matrix *matrix, int first_operand) {
    for (int n = first_operand; n < LLVMGetNumOperands(matrix->halves[0]); n++)
        want_matrix(s, LLVMGetOperand(matrix->halves[0], (unsigned)n),
                    LLVMGetOperand(matrix->halves[1], (unsigned)n));
}

/* The operands of a matrix, which may become matrices, too. */
static void want_sources(struct simd *s, const struct matrix *matrix) {
    LLVMValueRef first = matrix->halves[0], second = matrix->halves[1];
    switch (matrix->kind) {
    case MATRIX_PRODUCT:
        want_matrix(s, LLVMGetOperand(first, 0), LLVMGetOperand(first, 1));
        for (unsigned n = 2; n < 4; n++) want_matrix(s, LLVMGetOperand(first, n), LLVMGetOperand(second, n));
        return;
    case MATRIX_PHI:
        for (unsigned n = 0; n < LLVMCountIncoming(first); n++) {
            LLVMValueRef value = phi_incoming(second, LLVMGetIncomingBlock(first, n));
            if (value) want_matrix(s, LLVMGetIncomingValue(first, n), value);
        }
        return;
    case MATRIX_STORE:
        want_matrix(s, LLVMGetOperand(first, 0), LLVMGetOperand(second, 0));
        return;
    case MATRIX_ARITHMETIC:
        want_operands(s, matrix, 0);
        return;
    case MATRIX_LOAD:
        return;
    }
}

#define CHAIN_DEPTH 4

/* The values are a matrix, or are computed from one element by element. */
static bool comes_from_matrix(struct simd *s, LLVMValueRef first, LLVMValueRef second, int depth) {
    if (matrix_of_halves(s, first, second)) return true;
    if (!depth || !LLVMIsAInstruction(first) || !LLVMIsAInstruction(second) ||
        !matrix_halves_agree(first, second))
        return false;
    for (int n = 0; n < LLVMGetNumOperands(first); n++)
        if (comes_from_matrix(s, LLVMGetOperand(first, (unsigned)n), LLVMGetOperand(second, (unsigned)n),
                              depth - 1))
            return true;
    return false;
}

static LLVMValueRef next_store(LLVMValueRef store) {
    LLVMValueRef i = LLVMGetNextInstruction(store);
    while (i && !LLVMIsAStoreInst(i)) i = LLVMGetNextInstruction(i);
    return i;
}

static void add_store(struct simd *s, LLVMValueRef first, LLVMValueRef second) {
    LLVMValueRef values[2] = {LLVMGetOperand(first, 0), LLVMGetOperand(second, 0)};
    if (LLVMTypeOf(values[0]) != LLVMTypeOf(values[1]) ||
        !comes_from_matrix(s, values[0], values[1], CHAIN_DEPTH))
        return;
    struct matrix *store = add_matrix(s, MATRIX_STORE, first, second);
    if (store && (!find_memory(s, store) || store->transposed)) remove_matrix(s, store);
}

static void find_stores(struct simd *s, LLVMBasicBlockRef block) {
    FOR_EACH_INSTRUCTION(first, block) {
        LLVMValueRef second = LLVMIsAStoreInst(first) ? next_store(first) : NULL;
        if (!second || matrix_of(s, first)) continue;
        add_store(s, first, second);
        if (!matrix_of(s, first)) add_store(s, second, first);
    }
}

/* A load from threadgroup memory, in the product's block, or converted from one. */
static bool is_staged(LLVMValueRef product, unsigned operand) {
    LLVMValueRef value = LLVMGetOperand(product, operand);
    while (LLVMIsAInstruction(value) && is_elementwise(value) && matrix_is_conversion(value))
        value = LLVMGetOperand(value, 0);
    return LLVMIsALoadInst(value) && LLVMGetInstructionParent(value) == LLVMGetInstructionParent(product) &&
           LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(value, 0))) == THREADGROUP_SPACE;
}

bool simd_matrix_pays(LLVMValueRef entry) {
    FOR_EACH_BLOCK(block, entry)
    FOR_EACH_INSTRUCTION(call, block) {
        if (intrinsic_of(call) != INTRINSIC_SIMD_MATRIX_PRODUCT) continue;
        if (is_staged(call, 0) && is_staged(call, 2)) return true;
    }
    return false;
}

static bool find_products(struct simd *s) {
    FOR_EACH_BLOCK(block, s->entry) {
        if (!runs_for_all(s, block)) continue;
        FOR_EACH_INSTRUCTION(call, block) {
            if (intrinsic_of(call) != INTRINSIC_SIMD_MATRIX_PRODUCT || matrix_of(s, call)) continue;
            LLVMValueRef second = matrix_second_half(call);
            if (second) (void)add_matrix(s, MATRIX_PRODUCT, call, second);
        }
    }
    return s->matrices != NULL;
}

static LLVMValueRef earlier(struct simd *s, const struct matrix *matrix) {
    return matrix->halves[is_before(s, matrix->halves[1], matrix->halves[0])];
}

static LLVMValueRef later(struct simd *s, const struct matrix *matrix) {
    return matrix->halves[is_before(s, matrix->halves[0], matrix->halves[1])];
}

/* ---- Order. A use in lanes' order needs both halves, and an operand in lanes' order is converted where the
 * first half is. */

/* Whether the user's operands `operand` take it as the half it is. */
static bool takes_rows(struct simd *s, LLVMValueRef user, LLVMValueRef half, const struct matrix *matrix) {
    const struct matrix *own = matrix_of(s, user);
    if (!own) return false;
    if (own->kind == MATRIX_PRODUCT || own->kind == MATRIX_PHI) return true; /* written when all is there */
    for (int n = 0; n < LLVMGetNumOperands(user); n++)
        if (LLVMGetOperand(user, (unsigned)n) == half &&
            (LLVMGetOperand(own->halves[0], (unsigned)n) != matrix->halves[0] ||
             LLVMGetOperand(own->halves[1], (unsigned)n) != matrix->halves[1]))
            return false;
    return true;
}

static bool is_used_early(struct simd *s, const struct matrix *matrix) {
    LLVMBasicBlockRef block = LLVMGetInstructionParent(matrix->halves[0]);
    if (matrix->kind != MATRIX_ARITHMETIC) return false;
    for (int h = 0; h < 2; h++)
        for (LLVMUseRef use = LLVMGetFirstUse(matrix->halves[h]); use; use = LLVMGetNextUse(use)) {
            LLVMValueRef user = LLVMGetUser(use);
            if (LLVMIsAPHINode(user) || LLVMGetInstructionParent(user) != block) continue;
            if (takes_rows(s, user, matrix->halves[h], matrix)) continue;
            const struct matrix *own = matrix_of(s, user);
            LLVMValueRef at = own && own->kind == MATRIX_ARITHMETIC ? earlier(s, own) : user;
            if (!is_before(s, later(s, matrix), at)) return true;
        }
    return false;
}

static bool is_uniform(struct simd *s, LLVMValueRef value) {
    return shape_of(s, value) == SHAPE_UNIFORM;
}

/* Finds out whether an operand is in lanes' order; false: one is not there yet. */
static bool check_operands(struct simd *s, struct matrix *matrix) {
    LLVMValueRef first = matrix->halves[0], second = matrix->halves[1];
    matrix->mixed = false;
    if (matrix->kind != MATRIX_ARITHMETIC) return true;
    for (int n = 0; n < LLVMGetNumOperands(first); n++) {
        LLVMValueRef a = LLVMGetOperand(first, (unsigned)n), b = LLVMGetOperand(second, (unsigned)n);
        if ((a == b && is_uniform(s, a)) || matrix_of_halves(s, a, b)) continue;
        matrix->mixed = true;
        for (int h = 0; h < 2; h++) {
            LLVMValueRef operand = h ? b : a, at = earlier(s, matrix);
            if (LLVMIsAInstruction(operand) &&
                LLVMGetInstructionParent(operand) == LLVMGetInstructionParent(at) &&
                !is_before(s, operand, at))
                return false;
        }
    }
    return true;
}

static bool remove_impossible(struct simd *s) {
    bool removed = false;
    for (struct matrix *matrix = s->matrices, *next; matrix; matrix = next) {
        next = matrix->next;
        if (check_operands(s, matrix) && !is_used_early(s, matrix)) continue;
        remove_matrix(s, matrix);
        removed = true;
    }
    return removed;
}

static void count_use(struct simd *s, const struct matrix *product, bool right) {
    LLVMValueRef halves[2];
    matrix_operand(product, right, halves);
    struct matrix *matrix = matrix_of_halves(s, halves[0], halves[1]);
    if (!matrix) return;
    matrix->left = ++matrix->uses;
    matrix->far |= LLVMGetInstructionParent(halves[0]) != LLVMGetInstructionParent(product->halves[0]);
}

void matrix_find(struct simd *s) {
    s->matrices = NULL;
    if (s->vector_bits != 256 || s->chunk_lanes != MATRIX_SIZE || s->lanes % SIMDGROUP_LANES ||
        s->code->masked || !find_products(s))
        return;
    int order = 0;
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(i, block) value_of(s, i)->order = order++;
    struct matrix *last = NULL;
    for (struct matrix *matrix = s->matrices; matrix; matrix = matrix->next) want_sources(s, last = matrix);
    FOR_EACH_BLOCK(block, s->entry) {
        if (runs_for_all(s, block)) find_stores(s, block);
    }
    for (struct matrix *matrix = last->next; matrix; matrix = matrix->next) want_sources(s, matrix);
    while (remove_impossible(s)) continue;
    for (struct matrix *matrix = s->matrices; matrix; matrix = matrix->next) {
        if (matrix->kind != MATRIX_PRODUCT) continue;
        matrix_find_pairs(s, matrix);
        for (int right = 0; right < 2; right++) count_use(s, matrix, right);
    }
    matrix_find_sums(s);
}
