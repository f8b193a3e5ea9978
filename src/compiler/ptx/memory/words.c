/* Neighbouring loads of 1 or 2 bytes from device memory that are not known to be aligned to words become
 * loads of the aligned words around them, whose bytes are then shifted into place.
 *
 * Blocks of quantised weights have 17, 18 or 34 bytes. Lanes load theirs by bytes or halfs, and each of these
 * loads takes as many passes of the memory as a load of a word.
 *
 * Each word that is loaded contains a byte that the kernel loads, and a word never lies across two pages, so
 * the access is valid. Its other bytes are not used.
 *
 * Requires: the module lowered, loads joined where they are aligned. */
#include "compiler/ptx/memory/align.h"
#include "compiler/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

#define WORD 4
#define MOST_LOADS 128 /* of a block that wait to be joined */
#define MOST_WORDS 16  /* of a run */
#define FEWEST_BYTES 6 /* of a run */
#define FEWEST_LOADS 3 /* of a kernel: fewer gain nothing */
#define MARK "smelt.words"

struct narrow_load {
    LLVMValueRef load, base;
    int64_t offset;   /* from the base */
    int bytes, order; /* `order`: among those that wait */
};

struct words {
    struct unit *unit;
    struct narrow_load loads[MOST_LOADS];
    int count;
    int joined; /* runs */
};

/* ---- Which loads. */

/* The pointer without constant offsets, which are added to *offset, modulo 2^64. */
static LLVMValueRef base_of(struct unit *unit, LLVMValueRef pointer, int64_t *offset) {
    while (LLVMIsAGetElementPtrInst(pointer) && LLVMGetNumOperands(pointer) == 2 &&
           LLVMIsAConstantInt(LLVMGetOperand(pointer, 1))) {
        uint64_t size = LLVMABISizeOfType(unit->layout, LLVMGetGEPSourceElementType(pointer));
        uint64_t index = (uint64_t)LLVMConstIntGetSExtValue(LLVMGetOperand(pointer, 1));
        *offset = (int64_t)((uint64_t)*offset + index * size);
        pointer = LLVMGetOperand(pointer, 0);
    }
    return pointer;
}

static bool is_plain_type(LLVMTypeRef type) {
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (kind == LLVMVectorTypeKind) kind = LLVMGetTypeKind(LLVMGetElementType(type));
    return kind == LLVMIntegerTypeKind || kind == LLVMHalfTypeKind || kind == LLVMFloatTypeKind;
}

static bool find_load(struct words *w, LLVMValueRef i, struct narrow_load *out) {
    if (!LLVMIsALoadInst(i) || LLVMGetVolatile(i) || LLVMGetOrdering(i) != LLVMAtomicOrderingNotAtomic)
        return false;
    LLVMValueRef pointer = LLVMGetOperand(i, 0);
    LLVMTypeRef type = LLVMTypeOf(i);
    if (LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) != PTX_GLOBAL || !is_plain_type(type)) return false;
    uint64_t bits = LLVMSizeOfTypeInBits(w->unit->layout, type);
    if (bits != 8 && bits != 16) return false;
    *out = (struct narrow_load){.load = i, .bytes = (int)bits / 8};
    out->base = base_of(w->unit, pointer, &out->offset);
    return true;
}

/* Whether later loads of device memory may not be moved to before the instruction. */
static bool may_write(LLVMValueRef i) {
    if (LLVMIsAStoreInst(i) || LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i) ||
        LLVMIsAFenceInst(i)) {
        bool store = LLVMIsAStoreInst(i) != NULL;
        return !store || LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(i, 1))) != PTX_SHARED;
    }
    if (!LLVMIsACallInst(i)) return false;
    LLVMValueRef callee = LLVMGetCalledValue(i);
    if (ptx_is_convergent(i)) return true;
    unsigned kind = LLVMGetEnumAttributeKindForName("memory", 6);
    LLVMAttributeRef memory =
        LLVMGetCallSiteEnumAttribute(i, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, kind);
    if (!memory && LLVMIsAFunction(callee))
        memory = LLVMGetEnumAttributeAtIndex(callee, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, kind);
    if (memory) return LLVMGetEnumAttributeValue(memory) & 0x2a; /* any bit of a write */
    return !LLVMIsAInlineAsm(callee) || LLVMGetInlineAsmHasSideEffects(callee);
}

/* ---- One run of bytes side by side. */

struct run {
    struct narrow_load *loads;
    int count;
    int64_t start;
    int bytes;
};

/* The most bytes that may lie before the run in its first word. */
static int most_before(const struct words *w, const struct run *r) {
    LLVMValueRef base = r->loads[0].base;
    unsigned zeros = ptx_known_zeros(w->unit, base);
    if (zeros > 2) zeros = 2;
    if (r->start & 1) zeros = 0;
    if (r->start & 2 && zeros > 1) zeros = 1;
    for (int i = 0; i < r->count; i++) {
        unsigned aligned = LLVMGetAlignment(r->loads[i].load);
        if (!((r->loads[i].offset - r->start) & 1) && aligned >= 2 && zeros < 1) zeros = 1;
    }
    return WORD - (1 << zeros);
}

static int words_of(int before, int bytes) {
    return (before + bytes + WORD - 1) / WORD;
}

static LLVMValueRef i64_of(const struct words *w, int64_t number) {
    return LLVMConstInt(type_i64(w->unit), (uint64_t)number, true);
}

/* An integer of the run's `bytes` bytes from its byte `at` on. `chunks`: the run, by 4 bytes. */
static LLVMValueRef part_of(struct words *w, LLVMValueRef *chunks, int at, int bytes) {
    struct unit *unit = w->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef type = LLVMIntTypeInContext(unit->context, 8 * (unsigned)bytes);
    LLVMValueRef word = chunks[at / WORD];
    int shift = at % WORD;
    if (shift + bytes > WORD) {
        LLVMValueRef three[3] = {chunks[at / WORD + 1], word, constant_i32(unit, 8 * (uint32_t)shift)};
        word = build_intrinsic(unit, "llvm.fshr", type_i32(unit), three, 3);
    } else if (shift) {
        word = LLVMBuildLShr(b, word, constant_i32(unit, 8 * (uint32_t)shift), "");
    }
    return LLVMBuildTrunc(b, word, type, "");
}

/* The run may end in the word before its last one, which may then be on a page that does not exist: it is not
 * loaded, and what is in its place is not used. */
static LLVMValueRef load_last(struct words *w, const struct run *r, LLVMValueRef low, LLVMValueRef load,
                              int count) {
    LLVMBuilderRef b = w->unit->builder;
    int most =
        WORD * (count - 1) - r->bytes; /* bytes before the run in its first word, if the last is not needed */
    if (most < 0) return load;
    LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(load));
    LLVMValueRef before = LLVMBuildAnd(b, low, constant_i32(w->unit, WORD - 1), "");
    LLVMValueRef reaches = LLVMBuildICmp(b, LLVMIntUGT, before, constant_i32(w->unit, (uint32_t)most), "");
    LLVMValueRef value = wide_load_if(w->unit, load, reaches);
    LLVMInstructionEraseFromParent(load);
    return value;
}

static unsigned mark_of(struct unit *unit) {
    return LLVMGetMDKindIDInContext(unit->context, MARK, sizeof MARK - 1);
}

bool ptx_hides_words(struct unit *unit, LLVMValueRef instruction) {
    return LLVMIsACallInst(instruction) && LLVMGetMetadata(instruction, mark_of(unit));
}

/* LLVM would otherwise give values computed from the address a loop counter each. */
static LLVMValueRef hide(struct unit *unit, LLVMValueRef address) {
    LLVMValueRef call = ptx_assembly(unit, "mov.b64 $0, $1;", "=l,l", type_i64(unit), &address, 1, false);
    LLVMMetadataRef empty = LLVMMDNodeInContext2(unit->context, NULL, 0);
    LLVMSetMetadata(call, mark_of(unit), LLVMMetadataAsValue(unit->context, empty));
    return call;
}

static void load_run(struct words *w, const struct run *r, int before) {
    struct unit *unit = w->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef byte = LLVMInt8TypeInContext(unit->context);
    LLVMTypeRef pointer = LLVMPointerTypeInContext(unit->context, PTX_GLOBAL);
    LLVMValueRef loaded[MOST_WORDS + 1], chunks[MOST_WORDS + 1], offset;
    int count = words_of(before, r->bytes), chunk_count = (r->bytes + WORD - 1) / WORD;
    const struct narrow_load *earliest = r->loads;
    for (int i = 1; i < r->count; i++)
        if (r->loads[i].order < earliest->order) earliest = &r->loads[i];
    LLVMPositionBuilderBefore(b, earliest->load);
    offset = i64_of(w, r->start);
    LLVMValueRef start = LLVMBuildGEP2(b, byte, r->loads[0].base, &offset, 1, "");
    LLVMValueRef number = LLVMBuildPtrToInt(b, start, type_i64(unit), ""),
                 mask = i64_of(w, ~(int64_t)(WORD - 1));
    number = hide(unit, number);
    LLVMValueRef first = LLVMBuildIntToPtr(b, LLVMBuildAnd(b, number, mask, ""), pointer, "");
    LLVMValueRef low = LLVMBuildTrunc(b, number, type_i32(unit), "");
    LLVMValueRef bits = LLVMBuildShl(b, low, constant_i32(unit, 3), "");
    bits = LLVMBuildAnd(b, bits, constant_i32(unit, 24), "");
    for (int i = 0; i < count; i++) {
        offset = i64_of(w, (int64_t)i * WORD);
        loaded[i] = LLVMBuildLoad2(b, type_i32(unit), LLVMBuildGEP2(b, byte, first, &offset, 1, ""), "");
        LLVMSetAlignment(loaded[i], WORD);
    }
    loaded[count - 1] = load_last(w, r, low, loaded[count - 1], count);
    for (int i = 0; i < chunk_count; i++) {
        LLVMValueRef three[3] = {i + 1 < count ? loaded[i + 1] : loaded[i], loaded[i], bits};
        chunks[i] = build_intrinsic(unit, "llvm.fshr", type_i32(unit), three, 3);
    }
    for (int i = 0; i < r->count; i++) {
        const struct narrow_load *l = &r->loads[i];
        LLVMValueRef part = part_of(w, chunks, (int)(l->offset - r->start), l->bytes);
        LLVMReplaceAllUsesWith(l->load, LLVMBuildBitCast(b, part, LLVMTypeOf(l->load), ""));
    }
    for (int i = 0; i < r->count; i++) LLVMInstructionEraseFromParent(r->loads[i].load);
    w->joined++;
}

/* ---- Runs among the loads that wait. */

static int compare_loads(const void *a, const void *b) {
    const struct narrow_load *p = a, *q = b;
    if (p->base != q->base) return p->base < q->base ? -1 : 1;
    if (p->offset != q->offset) return p->offset < q->offset ? -1 : 1;
    return p->bytes - q->bytes;
}

static void join_run(struct words *w, struct run *r, int distinct) {
    int before = most_before(w, r);
    /* Words are shifted, too, so one load less gains nothing. */
    if (r->bytes < FEWEST_BYTES || words_of(before, r->bytes) + 1 >= distinct) return;
    load_run(w, r, before);
}

static void join_waiting(struct words *w) {
    qsort(w->loads, (size_t)w->count, sizeof *w->loads, compare_loads);
    for (int i = 0; i < w->count;) {
        struct run r = {&w->loads[i], 1, w->loads[i].offset, w->loads[i].bytes};
        int distinct = 1;
        for (i++; i < w->count; i++) {
            const struct narrow_load *next = &w->loads[i], *last = next - 1;
            uint64_t at = (uint64_t)next->offset - (uint64_t)r.start;
            if (next->base != last->base || at > (uint64_t)r.bytes) break;
            int end = (int)at + next->bytes;
            if (end > (MOST_WORDS - 1) * WORD) break;
            distinct += next->offset != last->offset || next->bytes != last->bytes;
            if (end > r.bytes) r.bytes = end;
            r.count++;
        }
        join_run(w, &r, distinct);
    }
    w->count = 0;
}

/* The bytes that the indices after the first add up to; false: some are not constant. */
static bool constant_part(struct unit *unit, LLVMValueRef gep, int64_t *bytes) {
    LLVMTypeRef type = LLVMGetGEPSourceElementType(gep);
    *bytes = 0;
    for (unsigned i = 2; i < (unsigned)LLVMGetNumOperands(gep); i++) {
        LLVMValueRef index = LLVMGetOperand(gep, i);
        if (!LLVMIsAConstantInt(index)) return false;
        if (LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            unsigned element = (unsigned)LLVMConstIntGetZExtValue(index);
            *bytes += (int64_t)LLVMOffsetOfElement(unit->layout, type, element);
            type = LLVMStructGetTypeAtIndex(type, element);
        } else {
            type = LLVMGetElementType(type);
            uint64_t size = LLVMABISizeOfType(unit->layout, type);
            *bytes = (int64_t)((uint64_t)*bytes + (uint64_t)LLVMConstIntGetSExtValue(index) * size);
        }
    }
    return true;
}

/* The load's address becomes that of the whole struct or array, plus a constant. */
static void split_member(struct unit *unit, LLVMValueRef load) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef gep = LLVMGetOperand(load, 0), index;
    int64_t bytes;
    if (!LLVMIsAGetElementPtrInst(gep) || LLVMGetNumOperands(gep) < 3 || !constant_part(unit, gep, &bytes))
        return;
    LLVMPositionBuilderBefore(b, gep);
    index = LLVMGetOperand(gep, 1);
    LLVMValueRef whole =
        LLVMBuildGEP2(b, LLVMGetGEPSourceElementType(gep), LLVMGetOperand(gep, 0), &index, 1, "");
    index = LLVMConstInt(type_i64(unit), (uint64_t)bytes, true);
    LLVMValueRef member = LLVMBuildGEP2(b, LLVMInt8TypeInContext(unit->context), whole, &index, 1, "");
    LLVMReplaceAllUsesWith(gep, member);
    LLVMInstructionEraseFromParent(gep);
}

static int count_narrow(struct words *w) {
    int count = 0;
    struct narrow_load load;
    FOR_EACH_BLOCK(block, w->unit->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        count += find_load(w, i, &load);
    }
    return count;
}

static void look_at_block(struct words *w, LLVMBasicBlockRef block) {
    FOR_EACH_INSTRUCTION(i, block) {
        struct narrow_load load;
        if (find_load(w, i, &load)) {
            if (w->count == MOST_LOADS) join_waiting(w);
            load.order = w->count;
            w->loads[w->count++] = load;
        } else if (may_write(i)) {
            join_waiting(w);
        }
    }
    join_waiting(w);
}

smelt_status pass_ptx_words(struct unit *unit) {
    struct words *w = calloc(1, sizeof *w);
    if (!w) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for loads");
    w->unit = unit;
    smelt_status status = SMELT_OK;
    /* Elements of aligned vectors, of which LLVM may have made loads of their own, are joined first. */
    if (count_narrow(w) >= FEWEST_LOADS) status = ptx_join_narrow(unit);
    if (status == SMELT_OK && count_narrow(w) >= FEWEST_LOADS) {
        /* So that neighbours have the same base, and differ in constants alone. */
        FOR_EACH_BLOCK(block, unit->entry)
        FOR_EACH_INSTRUCTION(i, block) {
            struct narrow_load load;
            if (find_load(w, i, &load)) split_member(unit, i);
        }
        status = ptx_run_passes(unit, "function(separate-const-offset-from-gep,early-cse)");
        FOR_EACH_BLOCK(block, unit->entry) {
            if (status == SMELT_OK) look_at_block(w, block);
        }
        if (status == SMELT_OK && w->joined)
            status = ptx_run_passes(unit, "function(early-cse,instcombine<no-verify-fixpoint>,adce)");
        if (status == SMELT_OK && w->joined)
            status = ptx_note(unit, "unaligned neighbours are loaded as the words around them: %d group%s",
                              w->joined, w->joined == 1 ? "" : "s");
    }
    free(w);
    return status;
}
