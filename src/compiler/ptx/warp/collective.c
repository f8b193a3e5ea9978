/* Reductions and scans over the lanes of a warp.
 *
 * Reductions combine lanes as device/cpu/simdgroup.c does, in a tree of neighbours, so that sums of floats
 * have the same bits. Every step doubles the lanes whose result a lane holds, adding that of the neighbouring
 * group; if lanes may be off, any active lane of that group provides it. Scans take steps of doubling
 * distance: for floats, they round in another order than the CPU engines, which add lane by lane. */
#include "compiler/combine.h"
#include "compiler/ptx/warp/warp.h"

#include <math.h>

static bool is_word(LLVMValueRef value) {
    return LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMIntegerTypeKind &&
           LLVMGetIntTypeWidth(LLVMTypeOf(value)) == 32;
}

/* `a` belongs to lower lanes than `b`. */
static LLVMValueRef combine(struct ptx_operation *o, enum simd_operation operation, LLVMValueRef a,
                            LLVMValueRef b) {
    return simdgroup_combine(o->unit->builder, operation, a, b);
}

/* The first lane's result of an exclusive scan. */
static LLVMValueRef identity(enum simd_operation operation, LLVMTypeRef type) {
    switch (operation) {
    case SIMD_PRODUCT:
        return LLVMGetTypeKind(type) == LLVMFloatTypeKind ? LLVMConstReal(type, 1)
                                                          : LLVMConstInt(type, 1, false);
    case SIMD_MIN_FLOAT:
        return LLVMConstReal(type, INFINITY);
    case SIMD_MAX_FLOAT:
        return LLVMConstReal(type, -INFINITY);
    case SIMD_MIN_SIGNED:
    case SIMD_MAX_SIGNED: {
        unsigned long long lowest = 1ull << (LLVMGetIntTypeWidth(type) - 1);
        return LLVMConstInt(type, operation == SIMD_MIN_SIGNED ? lowest - 1 : lowest, false);
    }
    case SIMD_MIN_UNSIGNED:
    case SIMD_AND:
        return LLVMConstAllOnes(type);
    default:
        return LLVMConstNull(type);
    }
}

/* ---- Reductions by one instruction. */

static const char *const instructions[] = {
    [SIMD_SUM] = "llvm.nvvm.redux.sync.add",
    [SIMD_MIN_SIGNED] = "llvm.nvvm.redux.sync.min",
    [SIMD_MAX_SIGNED] = "llvm.nvvm.redux.sync.max",
    [SIMD_MIN_UNSIGNED] = "llvm.nvvm.redux.sync.umin",
    [SIMD_MAX_UNSIGNED] = "llvm.nvvm.redux.sync.umax",
    [SIMD_AND] = "llvm.nvvm.redux.sync.and",
    [SIMD_OR] = "llvm.nvvm.redux.sync.or",
    [SIMD_XOR] = "llvm.nvvm.redux.sync.xor",
};

/* NULL: there is no such instruction. */
static LLVMValueRef reduce_word(struct ptx_operation *o, enum simd_operation operation, LLVMValueRef word) {
    if ((size_t)operation >= sizeof instructions / sizeof *instructions || !instructions[operation])
        return NULL;
    LLVMValueRef arguments[2] = {word, o->lanes.mask};
    return ptx_intrinsic(o->unit, instructions[operation], arguments, 2);
}

static LLVMValueRef reduce_bits(struct ptx_operation *o, enum simd_operation operation, LLVMValueRef value) {
    LLVMBuilderRef b = o->unit->builder;
    LLVMTypeRef word = type_i32(o->unit), wide = type_i64(o->unit);
    LLVMValueRef half = LLVMConstInt(wide, 32, false);
    LLVMValueRef low = reduce_word(o, operation, LLVMBuildTrunc(b, value, word, ""));
    LLVMValueRef high =
        reduce_word(o, operation, LLVMBuildTrunc(b, LLVMBuildLShr(b, value, half, ""), word, ""));
    high = LLVMBuildShl(b, LLVMBuildZExt(b, high, wide, ""), half, "");
    return LLVMBuildOr(b, high, LLVMBuildZExt(b, low, wide, ""), "");
}

/* Floats as signed integers in the same order, and back. */
static LLVMValueRef as_ordered(struct ptx_operation *o, LLVMValueRef bits) {
    LLVMBuilderRef b = o->unit->builder;
    LLVMValueRef sign = LLVMBuildAShr(b, bits, constant_i32(o->unit, 31), "");
    return LLVMBuildXor(b, bits, LLVMBuildAnd(b, sign, constant_i32(o->unit, 0x7fffffffu), ""), "");
}

/* Of several zeros, the last lane's is the result: the sign depends on whether the highest lane with a zero
 * has a negative one. The lanes vote only if the result, which is the same in all of them, is a zero. */
static LLVMValueRef replace_zero(struct ptx_operation *o, LLVMValueRef result, LLVMValueRef bits) {
#define BEGIN                                                                                             \
    "{\n.reg .pred p;\n.reg .b32 z, n, t;\nmov.b32 $0, $1;\nshl.b32 z, $1, 1;\nsetp.ne.b32 p, z, 0;\n"    \
    "@p bra not_zero_${:uid};\nshl.b32 z, $2, 1;\nsetp.eq.b32 p, z, 0;\nvote.sync.ballot.b32 z, p, $3;\n" \
    "setp.eq.b32 p, $2, 0x80000000;\nvote.sync.ballot.b32 n, p, $3;\n"
#define END "xor.b32 z, z, n;\nsetp.gt.u32 p, z, n;\nselp.b32 $0, 0, 0x80000000, p;\nnot_zero_${:uid}:\n}"
/* Exchanges bits of a vote, as ptx_metal_vote does. */
#define EXCHANGE(vote, lower, distance)                                                                    \
    "shr.b32 t, " vote ", " distance ";\nxor.b32 t, t, " vote ";\nand.b32 t, t, " lower ";\nxor.b32 " vote \
    ", " vote ", t;\nshl.b32 t, t, " distance ";\nxor.b32 " vote ", " vote ", t;\n"
#define ORDER(vote) EXCHANGE(vote, "0x00CC00CC", "6") EXCHANGE(vote, "0x0C0C0C0C", "2")
    static const char plain[] = BEGIN END, ordered[] = BEGIN ORDER("z") ORDER("n") END;
    const char *text = ptx_lanes_ordered(o->unit) ? ordered : plain;
    LLVMValueRef arguments[] = {result, bits, o->lanes.mask};
    /* "=&": $0 is written before $2 and $3 are read. */
    LLVMValueRef call = build_assembly(o->unit, text, "=&r,r,r,r", type_i32(o->unit), arguments, 3, false);
    unsigned convergent = LLVMGetEnumAttributeKindForName("convergent", 10);
    LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(o->unit->context, convergent, 0));
    if (o->lanes.mask == constant_i32(o->unit, UINT32_MAX)) {
        LLVMMetadataRef node = LLVMMDNodeInContext2(o->unit->context, NULL, 0);
        LLVMSetMetadata(call, LLVMGetMDKindIDInContext(o->unit->context, PTX_SAME, sizeof PTX_SAME - 1),
                        LLVMMetadataAsValue(o->unit->context, node));
    }
    return call;
}

/* The minimum or maximum of floats as that of integers. A NaN becomes a value that loses against any number,
 * and is a NaN again if nothing beats it. The sign of a zero must be determined. */
static LLVMValueRef reduce_extreme(struct ptx_operation *o, enum simd_operation operation,
                                   LLVMValueRef value) {
    LLVMBuilderRef b = o->unit->builder;
    bool least = operation == SIMD_MIN_FLOAT;
    LLVMValueRef bits = LLVMBuildBitCast(b, value, type_i32(o->unit), "");
    LLVMValueRef loser = constant_i32(o->unit, least ? 0x7fffffffu : 0x80000000u);
    LLVMValueRef is_nan = LLVMBuildFCmp(b, LLVMRealUNO, value, value, "");
    LLVMValueRef key = LLVMBuildSelect(b, is_nan, loser, as_ordered(o, bits), "");
    key = reduce_word(o, least ? SIMD_MIN_SIGNED : SIMD_MAX_SIGNED, key);
    LLVMValueRef result = as_ordered(o, key);
    result = replace_zero(o, result, bits);
    return LLVMBuildBitCast(b, result, LLVMTypeOf(value), "");
}

/* ---- Reductions by shuffles. */

/* The number of the highest set bit, or one greater than any lane's. */
static LLVMValueRef highest(struct ptx_operation *o, LLVMValueRef bits) {
    LLVMValueRef arguments[2] = {bits, LLVMConstNull(LLVMInt1TypeInContext(o->unit->context))};
    LLVMValueRef above = build_intrinsic(o->unit, "llvm.ctlz", type_i32(o->unit), arguments, 2);
    return LLVMBuildSub(o->unit->builder, constant_i32(o->unit, 31), above, "");
}

/* The value of the neighbouring group of `distance` lanes; *any: i1, whether one of its lanes is active, or
 * NULL. */
static LLVMValueRef take_neighbour(struct ptx_operation *o, LLVMValueRef value, unsigned distance,
                                   LLVMValueRef *any) {
    LLVMBuilderRef b = o->unit->builder;
    LLVMValueRef other = LLVMBuildXor(b, o->lane, constant_i32(o->unit, distance), "");
    *any = NULL;
    if (!o->lanes.active) return ptx_take(o, value, other);
    LLVMValueRef first = LLVMBuildAnd(b, other, constant_i32(o->unit, ~(distance - 1)), "");
    LLVMValueRef group = LLVMBuildLShr(b, o->lanes.active, first, "");
    group = LLVMBuildAnd(b, group, constant_i32(o->unit, (1u << distance) - 1), "");
    *any = LLVMBuildICmp(b, LLVMIntNE, group, constant_i32(o->unit, 0), "");
    return ptx_take(o, value, LLVMBuildAdd(b, first, highest(o, group), ""));
}

static LLVMValueRef reduce_tree(struct ptx_operation *o, enum simd_operation operation, unsigned width,
                                LLVMValueRef value) {
    LLVMBuilderRef b = o->unit->builder;
    bool ordered = operation == SIMD_MIN_FLOAT || operation == SIMD_MAX_FLOAT;
    for (unsigned distance = 1; distance < width; distance *= 2) {
        LLVMValueRef any, other = take_neighbour(o, value, distance, &any), lower = value, upper = other;
        if (ordered) {
            LLVMValueRef bit = LLVMBuildAnd(b, o->lane, constant_i32(o->unit, distance), "");
            LLVMValueRef is_upper = LLVMBuildICmp(b, LLVMIntNE, bit, constant_i32(o->unit, 0), "");
            lower = LLVMBuildSelect(b, is_upper, other, value, "");
            upper = LLVMBuildSelect(b, is_upper, value, other, "");
        }
        LLVMValueRef both = combine(o, operation, lower, upper);
        value = any ? LLVMBuildSelect(b, any, both, value, "") : both;
    }
    return value;
}

LLVMValueRef ptx_reduce(struct ptx_operation *o, enum simd_operation operation, unsigned width,
                        LLVMValueRef value) {
    LLVMValueRef result = NULL;
    if (width == SIMDGROUP_LANES) {
        if (is_word(value)) result = reduce_word(o, operation, value);
        if (operation == SIMD_MIN_FLOAT || operation == SIMD_MAX_FLOAT)
            result = reduce_extreme(o, operation, value);
        if (!is_word(value) && (operation == SIMD_AND || operation == SIMD_OR || operation == SIMD_XOR))
            result = reduce_bits(o, operation, value);
    }
    return result ? result : reduce_tree(o, operation, width, value);
}

/* ---- Scans. */

/* The lanes of the thread's own group below its own, as bits. */
static LLVMValueRef lanes_below(struct ptx_operation *o, unsigned width) {
    LLVMBuilderRef b = o->unit->builder;
    LLVMValueRef ones = constant_i32(o->unit, 0xffffffffu);
    LLVMValueRef first = LLVMBuildAnd(b, o->lane, constant_i32(o->unit, ~(width - 1)), "");
    LLVMValueRef from = LLVMBuildShl(b, ones, first, ""), here = LLVMBuildShl(b, ones, o->lane, "");
    LLVMValueRef below = LLVMBuildAnd(b, from, LLVMBuildNot(b, here, ""), "");
    return LLVMBuildAnd(b, below, o->lanes.active, "");
}

static LLVMValueRef is_lane(struct ptx_operation *o, LLVMValueRef index) {
    return LLVMBuildICmp(o->unit->builder, LLVMIntULT, index, constant_i32(o->unit, SIMDGROUP_LANES), "");
}

/* Each lane knows the last lane that it has not combined yet; that lane's own link leads further. */
static LLVMValueRef scan_linked(struct ptx_operation *o, enum simd_operation operation, unsigned width,
                                LLVMValueRef before, LLVMValueRef value) {
    LLVMBuilderRef b = o->unit->builder;
    for (unsigned distance = 1; distance < width; distance *= 2) {
        LLVMValueRef exists = is_lane(o, before), other = ptx_take(o, value, before);
        LLVMValueRef beyond = ptx_take(o, before, before);
        value = LLVMBuildSelect(b, exists, combine(o, operation, other, value), value, "");
        before = LLVMBuildSelect(b, exists, beyond, before, "");
    }
    return value;
}

static LLVMValueRef scan_neighbours(struct ptx_operation *o, enum simd_operation operation, unsigned width,
                                    LLVMValueRef value) {
    LLVMBuilderRef b = o->unit->builder;
    LLVMValueRef place = LLVMBuildAnd(b, o->lane, constant_i32(o->unit, width - 1), "");
    for (unsigned distance = 1; distance < width; distance *= 2) {
        LLVMValueRef from = LLVMBuildSub(b, o->lane, constant_i32(o->unit, distance), "");
        LLVMValueRef other = ptx_take(o, value, from);
        LLVMValueRef exists = LLVMBuildICmp(b, LLVMIntUGE, place, constant_i32(o->unit, distance), "");
        value = LLVMBuildSelect(b, exists, combine(o, operation, other, value), value, "");
    }
    return value;
}

LLVMValueRef ptx_scan(struct ptx_operation *o, enum simd_operation operation, bool exclusive, unsigned width,
                      LLVMValueRef value) {
    LLVMBuilderRef b = o->unit->builder;
    LLVMValueRef before, exists;
    if (!o->lanes.active || o->lanes.from_first) {
        before = LLVMBuildSub(b, o->lane, constant_i32(o->unit, 1), "");
        LLVMValueRef place = LLVMBuildAnd(b, o->lane, constant_i32(o->unit, width - 1), "");
        exists = LLVMBuildICmp(b, LLVMIntNE, place, constant_i32(o->unit, 0), "");
        value = scan_neighbours(o, operation, width, value);
    } else {
        before = highest(o, lanes_below(o, width));
        exists = is_lane(o, before);
        value = scan_linked(o, operation, width, before, value);
    }
    if (!exclusive) return value;
    return LLVMBuildSelect(b, exists, ptx_take(o, value, before), identity(operation, LLVMTypeOf(value)), "");
}
