/* Finds tiles: loops in which each thread adds products to many sums. The factors of the products are a
 * column and a row of threadgroup memory:
 *
 *   for (k …) for (i …) for (j …) sum[i][j] += left[k][row + i] * right[k][column + j];
 *
 * In a gang of threads side by side, neighbouring sums of one row i, of one thread or of neighbouring
 * threads, form a vector: its elements of right[k] are loaded at once, and that of left[k] is broadcast.
 * If a loop has more of these vectors than fit the registers, it is written several times, each time for a
 * part of them (tiles_write.c).
 *
 * Requires: the analysis, or the gang's code. */
#include "compiler/simd/matrix/tiles.h"
#include "compiler/simd/analysis/spots.h"

#include <stdlib.h>
#include <string.h>

/* Fewer sums stay in registers as they are. */
#define LEAST_SUMS 8

struct sum {
    LLVMValueRef phi, result, factor, across;
    struct spot place; /* of `across` */
    unsigned links;    /* how a round adds to it: 1, and a bit for each product */
    int row, line;     /* numbers of the first sum with that factor, and of the first with that spot */
};

/* ---- One sum. */

static bool is_float(LLVMValueRef value) {
    return LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMFloatTypeKind;
}

static bool is_product(LLVMValueRef value) {
    return LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == LLVMFMul;
}

static bool is_fma(LLVMValueRef value) {
    return LLVMIsACallInst(value) && strcmp(called_name(value), "llvm.fma.f32") == 0;
}

LLVMValueRef tile_addend(LLVMValueRef value, LLVMValueRef factors[2]) {
    LLVMValueRef product = value;
    unsigned addend = 2;
    if (!LLVMIsAInstruction(value)) return NULL;
    if (!is_fma(value)) {
        if (LLVMGetInstructionOpcode(value) != LLVMFAdd) return NULL;
        addend = is_product(LLVMGetOperand(value, 1)) ? 0 : 1;
        product = LLVMGetOperand(value, 1 - addend);
        if (!is_product(product)) return NULL;
    }
    for (unsigned n = 0; n < 2; n++) factors[n] = LLVMGetOperand(product, n);
    return LLVMGetOperand(value, addend);
}

static bool has_one_use(LLVMValueRef value) {
    LLVMUseRef use = LLVMGetFirstUse(value);
    return use && !LLVMGetNextUse(use);
}

static bool is_used_in(LLVMValueRef value, LLVMBasicBlockRef block, LLVMValueRef but) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (user != but && LLVMGetInstructionParent(user) == block) return true;
    }
    return false;
}

static LLVMValueRef load_of(LLVMValueRef factor) {
    if (LLVMIsAFPExtInst(factor)) factor = LLVMGetOperand(factor, 0);
    return LLVMIsALoadInst(factor) ? factor : NULL;
}

/* factors: of the last product of a round. Returns struct sum's links, or 0: not a sum of products. */
static unsigned links_of(LLVMValueRef phi, LLVMBasicBlockRef block, LLVMValueRef result,
                         LLVMValueRef factors[2]) {
    LLVMValueRef others[2] = {NULL}, value = result;
    unsigned links = 1;
    if (!is_float(phi) || !has_one_use(phi) || is_used_in(result, block, phi)) return 0;
    while (value && value != phi) {
        bool alone = LLVMIsAInstruction(value) && !LLVMIsAPHINode(value) &&
                     LLVMGetInstructionParent(value) == block && (value == result || has_one_use(value));
        if (!alone || links > UINT32_MAX / 2) return 0;
        links = 2 * links + is_fma(value);
        value = tile_addend(value, value == result ? factors : others);
    }
    return value && links > 1 ? links : 0;
}

/* ---- The loop. */

static bool is_alone(LLVMValueRef i) {
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMLoad:
        return LLVMGetOrdering(i) == LLVMAtomicOrderingNotAtomic && !LLVMGetVolatile(i);
    case LLVMCall:
        return strncmp(called_name(i), "llvm.fma.", 9) == 0;
    case LLVMBr:
    case LLVMPHI:
    case LLVMGetElementPtr:
    case LLVMICmp:
    case LLVMSelect:
        return true;
    default:
        return LLVMIsABinaryOperator(i) || LLVMIsACastInst(i) || LLVMIsAUnaryOperator(i);
    }
}

/* One block that leads to itself, is entered from one other, and only reads. */
static bool is_reading_loop(LLVMBasicBlockRef block) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block), first = LLVMGetFirstInstruction(block);
    if (!LLVMIsAPHINode(first) || LLVMCountIncoming(first) != 2 || !LLVMIsABranchInst(end) ||
        !LLVMIsConditional(end) || (LLVMGetSuccessor(end, 0) == block) == (LLVMGetSuccessor(end, 1) == block))
        return false;
    FOR_EACH_INSTRUCTION(i, block) {
        if (!is_alone(i)) return false;
    }
    return true;
}

/* Whether the sum's factor `across`, by number, is loaded from threadgroup memory. */
static bool set_across(struct simd *s, struct sum *sum, LLVMValueRef const factors[2], unsigned across) {
    LLVMValueRef load = load_of(factors[across]);
    if (!load) return false;
    LLVMValueRef address = LLVMGetOperand(load, 0);
    sum->factor = factors[1 - across];
    sum->across = factors[across];
    sum->place = spot_of(s, address, TILE_INDEXES);
    return LLVMGetPointerAddressSpace(LLVMTypeOf(address)) == THREADGROUP_SPACE;
}

/* Returns their number, 0 if the loop carries other floats. */
static int find_sums(struct simd *s, LLVMBasicBlockRef block, unsigned across, struct sum *sums) {
    int count = 0;
    FOR_EACH_INSTRUCTION(phi, block) {
        if (!LLVMIsAPHINode(phi)) break;
        LLVMValueRef factors[2], result = phi_incoming(phi, block);
        LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(phi));
        if (kind == LLVMIntegerTypeKind || kind == LLVMPointerTypeKind) continue;
        unsigned links = links_of(phi, block, result, factors);
        if (!links) return 0;
        sums[count] = (struct sum){.phi = phi, .result = result, .links = links};
        if (!set_across(s, &sums[count++], factors, across)) return 0;
    }
    return count;
}

/* ---- Vectors. */

static int by_place(const void *a, const void *b) {
    const struct sum *x = a, *y = b;
    if (x->row != y->row) return x->row - y->row;
    if (x->line != y->line) return x->line - y->line;
    return (x->place.bytes > y->place.bytes) - (x->place.bytes < y->place.bytes);
}

static void sort_sums(struct sum *sums, int count) {
    for (int n = 0; n < count; n++) {
        int row = 0, line = 0;
        while (sums[row].factor != sums[n].factor) row++;
        while (!spot_is_same(&sums[line].place, &sums[n].place)) line++;
        sums[n].row = row;
        sums[n].line = line;
    }
    qsort(sums, (size_t)count, sizeof *sums, by_place);
}

static bool are_neighbours(struct simd *s, const struct sum *a, const struct sum *b) {
    LLVMTypeRef type = LLVMTypeOf(load_of(a->across));
    return a->row == b->row && a->line == b->line && a->links == b->links &&
           LLVMTypeOf(load_of(b->across)) == type && LLVMTypeOf(a->across) == LLVMTypeOf(b->across) &&
           b->place.bytes - a->place.bytes == (int64_t)LLVMABISizeOfType(s->unit->layout, type);
}

/* The largest power of two that divides the length of each run of neighbours. */
static int common_width(struct simd *s, const struct sum *sums, int count, int width) {
    for (int from = 0, to; from < count; from = to) {
        to = from + 1;
        while (to < count && are_neighbours(s, &sums[to - 1], &sums[to])) to++;
        while ((to - from) % width) width /= 2;
    }
    return width;
}

static int column_of(const struct tile *tile, LLVMValueRef across) {
    for (int v = 0; v < tile->count; v++)
        if (tile->vectors[v].across == across) return tile->vectors[v].column;
    return tile->columns;
}

static bool add_vectors(struct simd *s, const struct sum *sums, int count, struct tile *tile) {
    int width = tile->width;
    LLVMValueRef *phis = arena_alloc(&s->arena, 2 * (size_t)count * sizeof(LLVMValueRef));
    tile->vectors = arena_alloc(&s->arena, (size_t)(count / width) * sizeof *tile->vectors);
    if (!phis || !tile->vectors) return false;
    for (int n = 0; n < count; n++) {
        phis[n] = sums[n].phi;
        phis[count + n] = sums[n].result;
        if (n % width) continue;
        tile->rows += n == 0 || sums[n].row != sums[n - 1].row;
        int column = column_of(tile, sums[n].across);
        if (column == tile->columns) tile->columns++;
        tile->vectors[tile->count++] = (struct tile_vector){.sums = phis + n,
                                                            .results = phis + count + n,
                                                            .across = sums[n].across,
                                                            .row = tile->rows - 1,
                                                            .column = column};
    }
    return true;
}

/* ---- Parts of a tile. */

/* Quarters of a cycle per round: two multiply-adds and two loads per cycle, and a little more than four
 * cycles until a sum can be added to again. Each loop costs a little more. */
static int cost(int rows, int columns) {
    int vectors = rows * columns, loads = rows + columns, work = 2 * (vectors > loads ? vectors : loads);
    return (work < 18 ? 18 : work) + 3;
}

static int parts_of(int count, int most) {
    return (count + most - 1) / most;
}

/* The cost of all parts, each of at most so many rows and columns. */
static int cost_of_parts(const struct tile *tile, int rows, int columns) {
    int sum = 0;
    for (int row = 0; row < tile->rows; row += rows)
        for (int column = 0; column < tile->columns; column += columns)
            sum += cost(tile->rows - row < rows ? tile->rows - row : rows,
                        tile->columns - column < columns ? tile->columns - column : columns);
    return sum;
}

int tile_choose(const struct simd *s, const struct tile *tile, int *rows, int *columns) {
    int registers = s->registers, best = 0;
    for (int c = 1; c <= tile->columns; c++)
        for (int r = 1; r <= tile->rows; r++) {
            bool even = parts_of(tile->rows, parts_of(tile->rows, r)) == r &&
                        parts_of(tile->columns, parts_of(tile->columns, c)) == c;
            if (!even || (r * c + c + 1 > registers && r * c > 1)) continue;
            int own = cost_of_parts(tile, r, c);
            if (best && own >= best) continue;
            best = own;
            *rows = r;
            *columns = c;
        }
    return best;
}

/* ---- Tiles. */

/* Finds the tile in which factor `across` of each product, 0 or 1, is the row's element. */
static bool find_along(struct simd *s, LLVMBasicBlockRef block, unsigned across, int width, struct sum *sums,
                       struct tile *tile) {
    int count = find_sums(s, block, across, sums);
    *tile = (struct tile){.block = block};
    if (count < LEAST_SUMS) return false;
    sort_sums(sums, count);
    tile->width = common_width(s, sums, count, width);
    return tile->width > 1 && add_vectors(s, sums, count, tile);
}

static bool is_better(const struct simd *s, const struct tile *a, const struct tile *b) {
    int rows, columns;
    if (!b->width || a->width != b->width) return a->width > b->width;
    return tile_choose(s, a, &rows, &columns) < tile_choose(s, b, &rows, &columns);
}

bool tile_find(struct simd *s, LLVMBasicBlockRef block, int width, struct tile *tile) {
    int count = 0;
    if (!is_reading_loop(block)) return false;
    FOR_EACH_INSTRUCTION(phi, block) {
        if (!LLVMIsAPHINode(phi)) break;
        count++;
    }
    if (count < LEAST_SUMS) return false;
    struct sum *sums = arena_alloc(&s->arena, (size_t)count * sizeof *sums);
    *tile = (struct tile){.block = block};
    for (unsigned across = 0; sums && across < 2; across++) {
        struct tile own;
        if (find_along(s, block, across, width, sums, &own) && is_better(s, &own, tile)) *tile = own;
    }
    return tile->width > 0;
}

#define LEAST_WIDTH 4

/* Whether the row of each thread continues that of the thread before it. */
static bool goes_on(struct simd *s, const struct tile *tile) {
    LLVMValueRef load = load_of(tile->vectors[0].across);
    int shape = shape_of(s, LLVMGetOperand(load, 0));
    int64_t bytes = tile->width * (int64_t)LLVMABISizeOfType(s->unit->layout, LLVMTypeOf(load));
    return shape > 0 && shape == shape_stride(s, bytes);
}

bool tile_suits(struct simd *s, LLVMBasicBlockRef block) {
    struct tile tile;
    if (s->unit->form != FORM_BEST || s->code->masked) return false;
    if (s->code->polled && (!is_reading_loop(block) || !simd_has_few_rounds(block))) return false;
    return tile_find(s, block, GANG_MAX_LANES, &tile) && (tile.width >= LEAST_WIDTH || goes_on(s, &tile));
}
