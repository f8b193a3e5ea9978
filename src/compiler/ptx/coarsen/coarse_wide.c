/* One access of up to 16 bytes for several neighbours. It claims to be aligned, which align.c proves, or has
 * tested at run time. */
#include "compiler/ptx/coarsen/coarse.h"

#define MOST_BYTES 16u

uint64_t coarse_wide_bytes(struct coarsening *c, LLVMValueRef access) {
    uint64_t all = coarse_access_bytes(c, access) * c->form.threads;
    return all < MOST_BYTES ? all : MOST_BYTES;
}

struct pieces {
    LLVMTypeRef own, scalar; /* of one thread's access, and of its elements */
    unsigned per_thread;     /* scalars */
    unsigned scalars;        /* of a piece */
    unsigned count, bytes;   /* of pieces; of one */
};

static struct pieces pieces_of(struct coarsening *c, LLVMTypeRef type) {
    bool vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
    struct pieces p = {.own = type,
                       .scalar = vector ? LLVMGetElementType(type) : type,
                       .per_thread = vector ? LLVMGetVectorSize(type) : 1};
    unsigned scalar_bytes = (unsigned)LLVMABISizeOfType(c->unit->layout, p.scalar);
    unsigned all = scalar_bytes * p.per_thread * c->form.threads;
    p.bytes = all < MOST_BYTES ? all : MOST_BYTES;
    p.scalars = p.bytes / scalar_bytes;
    p.count = all / p.bytes;
    return p;
}

static LLVMValueRef piece_address(struct coarsening *c, const struct pieces *p, LLVMValueRef address,
                                  unsigned piece) {
    LLVMValueRef offset = LLVMConstInt(type_i64(c->unit), (uint64_t)piece * p->bytes, false);
    LLVMTypeRef byte = LLVMInt8TypeInContext(c->unit->context);
    return piece ? LLVMBuildInBoundsGEP2(c->unit->builder, byte, address, &offset, 1, "") : address;
}

/* For align.c: the code has asked whether the address is a multiple. */
static void mark(struct coarsening *c, LLVMValueRef access) {
    if (!c->proved) return;
    unsigned kind = LLVMGetMDKindIDInContext(c->unit->context, PTX_ALIGNED, sizeof PTX_ALIGNED - 1);
    LLVMSetMetadata(access, kind,
                    LLVMMetadataAsValue(c->unit->context, LLVMMDNodeInContext2(c->unit->context, NULL, 0)));
}

void coarse_load_wide(struct coarsening *c, struct coarse_item *load, unsigned first, LLVMValueRef address) {
    LLVMBuilderRef b = c->unit->builder;
    struct pieces p = pieces_of(c, LLVMTypeOf(load->value));
    LLVMTypeRef type = LLVMVectorType(p.scalar, p.scalars);
    for (unsigned piece = 0, scalar = 0; piece < p.count; piece++) {
        LLVMValueRef vector = LLVMBuildLoad2(b, type, piece_address(c, &p, address, piece), "");
        LLVMSetAlignment(vector, p.bytes);
        mark(c, vector);
        for (unsigned i = 0; i < p.scalars; i++, scalar++) {
            LLVMValueRef *copy = &load->copies[first + scalar / p.per_thread];
            LLVMValueRef value = LLVMBuildExtractElement(b, vector, constant_i32(c->unit, i), "");
            if (p.own == p.scalar) {
                *copy = value;
                continue;
            }
            if (scalar % p.per_thread == 0) *copy = LLVMGetPoison(p.own);
            *copy = LLVMBuildInsertElement(b, *copy, value, constant_i32(c->unit, scalar % p.per_thread), "");
        }
    }
}

/* What thread number `t` stores. */
static LLVMValueRef stored(struct coarsening *c, LLVMValueRef store, unsigned t) {
    LLVMValueRef value = LLVMGetOperand(store, 0);
    const struct coarse_item *item = coarse_item_of(c, value);
    return item ? item->copies[t] : value;
}

void coarse_store_wide(struct coarsening *c, struct coarse_item *store, unsigned first) {
    LLVMBuilderRef b = c->unit->builder;
    LLVMValueRef own = LLVMGetOperand(store->value, 1);
    const struct coarse_item *item = coarse_item_of(c, own);
    LLVMValueRef address = item ? item->copies[first] : own;
    struct pieces p = pieces_of(c, LLVMTypeOf(LLVMGetOperand(store->value, 0)));
    for (unsigned piece = 0, scalar = 0; piece < p.count; piece++) {
        LLVMValueRef vector = LLVMGetPoison(LLVMVectorType(p.scalar, p.scalars));
        for (unsigned i = 0; i < p.scalars; i++, scalar++) {
            LLVMValueRef value = stored(c, store->value, first + scalar / p.per_thread);
            if (p.own != p.scalar)
                value = LLVMBuildExtractElement(b, value, constant_i32(c->unit, scalar % p.per_thread), "");
            vector = LLVMBuildInsertElement(b, vector, value, constant_i32(c->unit, i), "");
        }
        LLVMValueRef access = LLVMBuildStore(b, vector, piece_address(c, &p, address, piece));
        LLVMSetAlignment(access, p.bytes);
        mark(c, access);
    }
}
