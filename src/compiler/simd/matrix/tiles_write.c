/* Writes tiles (tiles.h) as loops of vectors, one loop for each part of the vectors that fits the
 * registers: all rounds for the first part, then all rounds for the next. Each loop computes what its part
 * needs, so elements are loaded again for each part. The sums stay vectors in the loops around this one.
 *
 * Requires: a gang of threads side by side. Maintains: values; each sum is computed as before. */
#include "compiler/simd/matrix/tiles_writer.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

/* A value of the original loop, and its copy in the loop being written. */
struct copy {
    LLVMValueRef from, to;
};

struct vector {
    LLVMValueRef const *elements;
    LLVMValueRef vector;
    struct vector *next;
};

/* ---- Scalars of the loop being written. */

static struct copy *copy_of(struct tile_writer *w, LLVMValueRef from) {
    unsigned at = (unsigned)((uintptr_t)from >> 4) * 2654435761u & (w->size - 1);
    while (w->copies[at].from && w->copies[at].from != from) at = (at + 1) & (w->size - 1);
    return &w->copies[at];
}

static bool is_inside(const struct tile_writer *w, LLVMValueRef value) {
    return LLVMIsAInstruction(value) && LLVMGetInstructionParent(value) == w->tile->block;
}

static LLVMValueRef write_scalar(struct tile_writer *w, LLVMValueRef value) {
    if (!is_inside(w, value)) return value;
    struct copy *copy = copy_of(w, value);
    if (copy->from) return copy->to;
    LLVMValueRef clone = LLVMInstructionClone(value);
    for (int o = 0; o < LLVMGetNumOperands(value); o++) {
        LLVMValueRef operand = LLVMGetOperand(value, (unsigned)o);
        if (LLVMIsAInstruction(operand)) LLVMSetOperand(clone, (unsigned)o, write_scalar(w, operand));
    }
    LLVMInsertIntoBuilder(w->s->unit->builder, clone);
    *copy_of(w, value) = (struct copy){value, clone};
    return clone;
}

/* ---- Vectors. */

/* An operand of all elements. Factors are swapped if that makes one equal to the first element's factor. */
static LLVMValueRef *operands_of(struct tile_writer *w, LLVMValueRef const *elements, unsigned operand) {
    LLVMValueRef *operands = arena_alloc(&w->s->arena, (size_t)w->tile->width * sizeof(LLVMValueRef));
    bool product = LLVMIsACallInst(elements[0]) || LLVMGetInstructionOpcode(elements[0]) == LLVMFMul;
    for (int n = 0; operands && n < w->tile->width; n++) {
        unsigned own = operand;
        if (product && operand < 2 &&
            (LLVMGetOperand(elements[n], 0) == LLVMGetOperand(elements[0], 1) ||
             LLVMGetOperand(elements[n], 1) == LLVMGetOperand(elements[0], 0)))
            own = 1 - operand;
        operands[n] = LLVMGetOperand(elements[n], own);
    }
    return operands;
}

/* … the sums, or the products, of elements that are additions; for others than tile_addend's, the
 * operands. */
static LLVMValueRef *terms_of(struct tile_writer *w, LLVMValueRef const *elements, bool sums) {
    LLVMValueRef *terms = arena_alloc(&w->s->arena, (size_t)w->tile->width * sizeof(LLVMValueRef));
    for (int n = 0; terms && n < w->tile->width; n++) {
        LLVMValueRef factors[2], addend = tile_addend(elements[n], factors);
        unsigned product = !addend || LLVMGetOperand(elements[n], 0) == addend;
        terms[n] = LLVMGetOperand(elements[n], sums ? 1 - product : product);
    }
    return terms;
}

static bool are_alike(struct tile_writer *w, LLVMValueRef const *elements) {
    for (int n = 0; n < w->tile->width; n++)
        if (!is_inside(w, elements[n]) || LLVMIsAPHINode(elements[n]) ||
            LLVMGetInstructionOpcode(elements[n]) != LLVMGetInstructionOpcode(elements[0]) ||
            LLVMTypeOf(elements[n]) != LLVMTypeOf(elements[0]) ||
            (LLVMIsACallInst(elements[n]) && strcmp(called_name(elements[n]), "llvm.fma.f32") != 0))
            return false;
    return true;
}

static LLVMValueRef write_vector(struct tile_writer *w, LLVMValueRef const *elements);

/* What may be assumed of all elements. */
static LLVMFastMathFlags common_flags(struct tile_writer *w, LLVMValueRef const *elements) {
    LLVMFastMathFlags flags = LLVMFastMathAll;
    for (int n = 0; n < w->tile->width; n++) flags &= LLVMGetFastMathFlags(elements[n]);
    return flags;
}

static LLVMValueRef write_operation(struct tile_writer *w, LLVMValueRef const *elements) {
    LLVMBuilderRef b = w->s->unit->builder;
    LLVMValueRef first = elements[0], operands[3], result;
    LLVMTypeRef type = tile_vector_type(w, first);
    LLVMOpcode opcode = LLVMGetInstructionOpcode(first);
    if (opcode == LLVMLoad) {
        result = LLVMBuildLoad2(b, type, write_scalar(w, LLVMGetOperand(first, 0)), "");
        LLVMSetAlignment(result, LLVMGetAlignment(first));
        return result;
    }
    unsigned count = opcode == LLVMFPExt ? 1 : opcode == LLVMCall ? 3 : 2;
    for (unsigned o = 0; o < count; o++) {
        LLVMValueRef const *own =
            opcode == LLVMFAdd ? terms_of(w, elements, o == 0) : operands_of(w, elements, o);
        if (!own) return NULL;
        operands[o] = write_vector(w, own);
        if (!operands[o]) return NULL;
    }
    LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(first));
    if (opcode == LLVMFPExt) return LLVMBuildCast(b, opcode, operands[0], type, "");
    if (opcode == LLVMCall) return simd_intrinsic(w->s, "llvm.fma", &type, 1, operands, 3);
    result = LLVMBuildBinOp(b, opcode, operands[0], operands[1], "");
    if (LLVMIsAInstruction(result)) LLVMSetFastMathFlags(result, common_flags(w, elements));
    return result;
}

static bool is_operation(LLVMValueRef value) {
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMFPExt:
    case LLVMCall:
    case LLVMFAdd:
    case LLVMFMul:
        return true;
    default:
        return false;
    }
}

/* The elements, of the original loop, as a vector of the loop being written. */
static LLVMValueRef write_vector(struct tile_writer *w, LLVMValueRef const *elements) {
    size_t bytes = (size_t)w->tile->width * sizeof *elements;
    for (struct vector *v = w->vectors; v; v = v->next)
        if (memcmp(v->elements, elements, bytes) == 0) return v->vector;
    LLVMValueRef vector = NULL;
    if (tile_are_equal(w, elements)) {
        vector = lanes_splat(w->s, write_scalar(w, elements[0]), w->tile->width);
    } else if (are_alike(w, elements) &&
               (is_operation(elements[0]) ||
                (LLVMIsALoadInst(elements[0]) &&
                 tile_are_neighbours(w, elements, w->tile->width, tile_size_of(w, elements[0]))))) {
        vector = write_operation(w, elements);
    } else {
        LLVMValueRef scalars[GANG_MAX_LANES];
        for (int n = 0; n < w->tile->width; n++) scalars[n] = write_scalar(w, elements[n]);
        vector = tile_gather(w, scalars);
    }
    struct vector *known = arena_alloc(&w->s->arena, sizeof *known);
    if (!known || !vector) return NULL;
    *known = (struct vector){elements, vector, w->vectors};
    w->vectors = known;
    return vector;
}

/* ---- Loops. */

static LLVMValueRef value_from(LLVMValueRef phi, LLVMBasicBlockRef block, bool from) {
    return LLVMGetIncomingValue(phi, (LLVMGetIncomingBlock(phi, 0) == block) == from ? 0 : 1);
}

static LLVMBasicBlockRef block_before(const struct tile *tile) {
    LLVMValueRef phi = LLVMGetFirstInstruction(tile->block);
    return LLVMGetIncomingBlock(phi, LLVMGetIncomingBlock(phi, 0) == tile->block ? 1 : 0);
}

static bool is_sum(LLVMValueRef phi) {
    return LLVMGetTypeKind(LLVMTypeOf(phi)) == LLVMFloatTypeKind;
}

static void add_scalar_phis(struct tile_writer *w, LLVMBasicBlockRef from) {
    FOR_EACH_INSTRUCTION(phi, w->tile->block) {
        if (!LLVMIsAPHINode(phi)) break;
        if (is_sum(phi)) continue;
        LLVMValueRef own = LLVMBuildPhi(w->s->unit->builder, LLVMTypeOf(phi), "");
        LLVMValueRef first = value_from(phi, w->tile->block, false);
        LLVMAddIncoming(own, &first, &from, 1);
        *copy_of(w, phi) = (struct copy){phi, own};
    }
}

static void end_scalar_phis(struct tile_writer *w) {
    FOR_EACH_INSTRUCTION(phi, w->tile->block) {
        if (!LLVMIsAPHINode(phi)) break;
        if (is_sum(phi)) continue;
        LLVMValueRef own = copy_of(w, phi)->to;
        LLVMValueRef next = write_scalar(w, value_from(phi, w->tile->block, true));
        LLVMAddIncoming(own, &next, &w->loop, 1);
    }
}

struct part {
    int row, column, rows, columns;
};

static bool is_in(const struct tile_vector *v, const struct part *part) {
    return v->row >= part->row && v->row < part->row + part->rows && v->column >= part->column &&
           v->column < part->column + part->columns;
}

/* The loop of one part, without its end; `from` leads to it. Returns false if the part is empty. */
static bool write_loop(struct tile_writer *w, const struct part *part, LLVMBasicBlockRef from,
                       LLVMValueRef *first) {
    const struct tile *tile = w->tile;
    LLVMBuilderRef b = w->s->unit->builder;
    bool some = false;
    for (int v = 0; v < tile->count; v++) some |= is_in(&tile->vectors[v], part);
    if (!some) return false;
    memset(w->copies, 0, w->size * sizeof *w->copies);
    w->vectors = NULL;
    w->loop = LLVMInsertBasicBlockInContext(w->s->unit->context, tile->block, "part");
    LLVMPositionBuilderAtEnd(b, w->loop);
    add_scalar_phis(w, from);
    struct vector *phis = NULL;
    for (int v = 0; v < tile->count; v++) {
        struct vector *known = arena_alloc(&w->s->arena, 2 * sizeof *known);
        if (!is_in(&tile->vectors[v], part) || !known) continue;
        LLVMValueRef phi = LLVMBuildPhi(b, tile_vector_type(w, tile->vectors[v].sums[0]), "");
        LLVMAddIncoming(phi, &first[v], &from, 1);
        known[0] = (struct vector){tile->vectors[v].sums, phi, w->vectors};
        known[1] = (struct vector){tile->vectors[v].sums, phi, phis};
        w->vectors = &known[0];
        phis = &known[1];
    }
    for (int v = 0; v < tile->count; v++)
        if (is_in(&tile->vectors[v], part))
            tile->vectors[v].written = write_vector(w, tile->vectors[v].results);
    for (int v = tile->count - 1; v >= 0; v--) {
        if (!is_in(&tile->vectors[v], part) || !phis) continue;
        LLVMAddIncoming(phis->vector, &tile->vectors[v].written, &w->loop, 1);
        phis = phis->next;
    }
    end_scalar_phis(w);
    return true;
}

/* The branch to another round or to the tile's block. */
static void end_loop(struct tile_writer *w) {
    LLVMBuilderRef b = w->s->unit->builder;
    LLVMValueRef end = LLVMGetBasicBlockTerminator(w->tile->block);
    bool again_first = LLVMGetSuccessor(end, 0) == w->tile->block;
    LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(end));
    LLVMValueRef condition = write_scalar(w, LLVMGetCondition(end));
    LLVMBuildCondBr(b, condition, again_first ? w->loop : w->tile->block,
                    again_first ? w->tile->block : w->loop);
}

static void lead_to(LLVMBasicBlockRef from, LLVMBasicBlockRef old, LLVMBasicBlockRef new) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(from);
    for (unsigned n = 0; n < LLVMGetNumSuccessors(end); n++)
        if (LLVMGetSuccessor(end, n) == old) LLVMSetSuccessor(end, n, new);
}

static void write_loops(struct tile_writer *w, LLVMValueRef *first) {
    const struct tile *tile = w->tile;
    LLVMBasicBlockRef from = block_before(tile);
    int rows = tile->rows, columns = tile->columns;
    (void)tile_choose(w->s, tile, &rows, &columns);
    for (int column = 0; column < tile->columns; column += columns)
        for (int row = 0; row < tile->rows; row += rows) {
            const struct part part = {row, column, rows, columns};
            if (!write_loop(w, &part, from, first)) continue;
            end_loop(w);
            lead_to(from, tile->block, w->loop);
            from = w->loop;
        }
}

/* ---- The block of the old loop, where the new ones end. */

static bool is_used_outside(const struct tile_writer *w, LLVMValueRef value) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use))
        if (!is_inside(w, LLVMGetUser(use))) return true;
    return false;
}

static bool is_result(const struct tile_writer *w, LLVMValueRef value) {
    for (int v = 0; v < w->tile->count; v++)
        for (int n = 0; n < w->tile->width; n++)
            if (w->tile->vectors[v].results[n] == value) return true;
    return false;
}

/* Copies, in the last loop, of the old loop's other values that are used outside. */
static void write_others(struct tile_writer *w) {
    LLVMPositionBuilderBefore(w->s->unit->builder, LLVMGetBasicBlockTerminator(w->loop));
    FOR_EACH_INSTRUCTION(i, w->tile->block) {
        if (LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMVoidTypeKind && !is_result(w, i) && is_used_outside(w, i))
            (void)write_scalar(w, i);
    }
}

static int count_instructions(LLVMBasicBlockRef block) {
    int count = 0;
    FOR_EACH_INSTRUCTION(i, block) count++;
    return count;
}

static void replace_loop(struct tile_writer *w) {
    const struct tile *tile = w->tile;
    LLVMBuilderRef b = w->s->unit->builder;
    int count = count_instructions(tile->block), sums = tile->count * tile->width, n = 0;
    LLVMValueRef *old = arena_alloc(&w->s->arena, (size_t)count * sizeof *old);
    LLVMValueRef *scalars = arena_alloc(&w->s->arena, (size_t)sums * sizeof *scalars);
    LLVMValueRef end = LLVMGetBasicBlockTerminator(tile->block);
    if (!old || !scalars) return;
    LLVMBasicBlockRef after = LLVMGetSuccessor(end, LLVMGetSuccessor(end, 0) == tile->block ? 1 : 0);
    FOR_EACH_INSTRUCTION(i, tile->block) old[n++] = i;
    LLVMPositionBuilderAtEnd(b, tile->block);
    for (n = 0; n < sums; n++)
        scalars[n] = LLVMBuildExtractElement(b, tile->vectors[n / tile->width].written,
                                             tile_number(w, n % tile->width), "");
    LLVMBuildBr(b, after);
    LLVMInstructionEraseFromParent(end);
    tile_carry_on(w);
    for (n = 0; n < sums; n++)
        LLVMReplaceAllUsesWith(tile->vectors[n / tile->width].results[n % tile->width], scalars[n]);
    tile_carry_apart(w);
    for (n = 0; n < count - 1; n++) {
        struct copy *copy = copy_of(w, old[n]);
        LLVMReplaceAllUsesWith(old[n], copy->from ? copy->to : LLVMGetPoison(LLVMTypeOf(old[n])));
    }
    for (n = 0; n < count - 1; n++) LLVMInstructionEraseFromParent(old[n]);
    tile_carry_end(w, scalars);
}

static void write_tile(struct simd *s, const struct tile *tile) {
    struct tile_writer w = {.s = s, .tile = tile, .size = 64};
    while (w.size < 2 * (unsigned)count_instructions(tile->block)) w.size *= 2;
    w.copies = arena_alloc(&s->arena, w.size * sizeof *w.copies);
    LLVMValueRef *first = arena_alloc(&s->arena, (size_t)tile->count * sizeof *first);
    LLVMValueRef *sums = arena_alloc(&s->arena, (size_t)(tile->count * tile->width) * sizeof *sums);
    if (!w.copies || !first || !sums) return;
    for (int v = 0; v < tile->count; v++) {
        LLVMValueRef *own = sums + (ptrdiff_t)v * tile->width;
        for (int n = 0; n < tile->width; n++)
            own[n] = value_from(tile->vectors[v].sums[n], tile->block, false);
        first[v] = tile_carry_in(&w, own, block_before(tile));
    }
    write_loops(&w, first);
    write_others(&w);
    replace_loop(&w);
    LLVMSetCurrentDebugLocation2(s->unit->builder, NULL);
}

smelt_status tiles_write(struct simd *s) {
    LLVMBasicBlockRef next;
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(s->gang); block; block = next) {
        struct tile tile;
        next = LLVMGetNextBasicBlock(block);
        if (tile_find(s, block, s->vector_bits / 32, &tile)) write_tile(s, &tile);
        if (s->arena.failed)
            return unit_fail(s->unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for the gang's tiles");
    }
    return SMELT_OK;
}
