/* A gang's place: positions and sizes, addresses of arguments; barriers and returns.
 *
 * Positions in the threadgroup are affine where the group's size says so:
 *   one dimension      x = first + lane
 *   rows               a gang lies in one row, or takes whole rows of known length
 *   known sizes        rows divide the gang or the gang divides rows; or the gang is the whole group
 * and otherwise are divided out of the index in the group. */
#include "compiler/cpu/inside.h"
#include "compiler/analysis/phases.h"
#include "compiler/simd/simd.h"

#include <stddef.h>

#define GANG_FIELD(name) offsetof(struct gang_context, name)
#define GROUP_FIELD(name) offsetof(struct group_context, name)

/* ---- Fields. */

static LLVMValueRef read_field(struct simd *s, LLVMTypeRef type, LLVMValueRef base, size_t offset) {
    LLVMValueRef load = LLVMBuildLoad2(s->unit->builder, type, simd_field(s, base, offset), "");
    LLVMContextRef context = s->unit->context;
    LLVMSetMetadata(load, LLVMGetMDKindIDInContext(context, "invariant.load", 14),
                    LLVMMetadataAsValue(context, LLVMMDNodeInContext2(context, NULL, 0)));
    return load;
}

static LLVMValueRef read_u32(struct simd *s, LLVMValueRef base, size_t offset) {
    return read_field(s, type_i32(s->unit), base, offset);
}

LLVMValueRef gang_stop_flag(struct simd *s) {
    return read_field(s, type_pointer(s->unit), s->group, GROUP_FIELD(stop));
}

void gang_stop(struct simd *s) {
    simd_call_runtime(s, "smelt_runtime_gang_stop", LLVMVoidTypeInContext(s->unit->context), &s->context, 1);
}

/* ---- Positions. */

/* How the positions of a gang's lanes follow from the group's size. */
struct positions {
    int shape[3];
    bool from_zero[3]; /* lane 0 is at 0 */
};

static struct positions find_positions(struct simd *s) {
    const struct code_shape *code = s->code;
    struct positions p = {.shape = {SHAPE_VARYING, SHAPE_VARYING, SHAPE_VARYING}};
    int64_t offsets[3][GANG_MAX_LANES];
    int64_t x = code->size[0], y = code->size[1], z = code->size[2], lanes = s->lanes;
    if (code->size[1] == 1 && code->size[2] == 1) {
        p.shape[0] = shape_stride(s, 1);
        p.shape[1] = p.shape[2] = SHAPE_UNIFORM;
        p.from_zero[0] = x == lanes;
        p.from_zero[1] = p.from_zero[2] = true;
        return p;
    }
    if (code->rows) {
        bool within = !x || lanes <= SIMDGROUP_LANES;
        for (int64_t i = 0; i < lanes; i++) {
            offsets[0][i] = within ? i : i % x;
            offsets[1][i] = within ? 0 : i / x;
        }
        p.shape[0] = shape_intern(s, offsets[0]);
        p.shape[1] = shape_intern(s, offsets[1]);
        p.shape[2] = SHAPE_UNIFORM;
        p.from_zero[0] = !within;
        return p;
    }
    if (!x || !y || !z || code->masked) return p;
    bool whole = x * y * z == lanes;
    bool within_row = x % lanes == 0, rows = lanes % x == 0;
    int64_t row_count = rows ? lanes / x : 0;
    bool planes = rows && (y % row_count == 0 || row_count % y == 0);
    if (!whole && !within_row && !planes) return p;
    for (int64_t i = 0; i < lanes; i++) {
        offsets[0][i] = within_row ? i : i % x;
        offsets[1][i] = within_row ? 0 : i / x % y;
        offsets[2][i] = within_row ? 0 : i / (x * y);
    }
    for (int d = 0; d < 3; d++) p.shape[d] = shape_intern(s, offsets[d]);
    p.from_zero[0] = whole || rows;
    p.from_zero[1] = whole || y == 1 || (rows && row_count % y == 0);
    p.from_zero[2] = whole || z == 1;
    return p;
}

static LLVMValueRef lane_zero_position(struct simd *s, int dimension) {
    struct positions p = find_positions(s);
    if (p.from_zero[dimension]) return simd_i32(s, 0);
    return read_u32(s, s->context, GANG_FIELD(position) + 4 * (size_t)dimension);
}

/* ---- The intrinsics. */

static const struct {
    enum intrinsic intrinsic;
    size_t offset; /* of three uint32_t in the group's context */
} group_fields[] = {
    {INTRINSIC_THREADGROUP_POSITION, GROUP_FIELD(position)},
    {INTRINSIC_THREADGROUP_SIZE, GROUP_FIELD(size)},
    {INTRINSIC_DISPATCH_THREADGROUP_SIZE, GROUP_FIELD(dispatch_size)},
    {INTRINSIC_GRID_THREADS, GROUP_FIELD(grid)},
    {INTRINSIC_GRID_GROUPS, GROUP_FIELD(groups)},
};
#define GROUP_FIELD_COUNT (sizeof group_fields / sizeof *group_fields)

/* Every lane's number divided by 32, or its remainder. */
static int simdgroup_offsets(struct simd *s, bool lane) {
    int64_t offsets[GANG_MAX_LANES];
    for (int i = 0; i < s->lanes; i++) offsets[i] = lane ? i % SIMDGROUP_LANES : i / SIMDGROUP_LANES;
    return shape_intern(s, offsets);
}

static bool dimension_of(struct simd *s, LLVMValueRef call, uint64_t *dimension) {
    if (is_constant_integer(LLVMGetOperand(call, 0), dimension) && *dimension < 3) return true;
    simd_refuse(s, call, "it reads a position in a dimension that is not a constant");
    return false;
}

int context_shape(struct simd *s, LLVMValueRef call, enum intrinsic intrinsic) {
    uint64_t d;
    if (intrinsic == INTRINSIC_POSITION_IN_THREADGROUP || intrinsic == INTRINSIC_THREAD_POSITION) {
        if (!dimension_of(s, call, &d)) return SHAPE_VARYING;
        return find_positions(s).shape[d];
    }
    if (intrinsic == INTRINSIC_THREAD_INDEX) return shape_stride(s, 1);
    if (intrinsic == INTRINSIC_LANE) return simdgroup_offsets(s, true);
    if (intrinsic == INTRINSIC_SIMDGROUP) return simdgroup_offsets(s, false);
    return SHAPE_UNIFORM;
}

static void emit_position(struct simd *s, LLVMValueRef call, int dimension, bool in_grid) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef position = lane_zero_position(s, dimension);
    if (in_grid) {
        size_t offset = 4 * (size_t)dimension;
        LLVMValueRef groups = read_u32(s, s->group, GROUP_FIELD(position) + offset);
        LLVMValueRef size = read_u32(s, s->group, GROUP_FIELD(dispatch_size) + offset);
        position = LLVMBuildAdd(b, LLVMBuildMul(b, groups, size, ""), position, "");
    }
    scalar_set(s, call, position);
}

/* ---- Positions the size tells nothing of. */

static LLVMValueRef call_number(struct simd *s, enum intrinsic intrinsic, int argument) {
    LLVMTypeRef i32 = type_i32(s->unit);
    LLVMTypeRef type = LLVMFunctionType(i32, &i32, argument < 0 ? 0 : 1, false);
    LLVMValueRef function = intrinsic_declare(s->unit->module, intrinsic, type);
    LLVMValueRef value = simd_i32(s, argument);
    return LLVMBuildCall2(s->unit->builder, type, function, &value, argument < 0 ? 0 : 1, "");
}

static LLVMValueRef computed_position(struct simd *s, int dimension) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef index = call_number(s, INTRINSIC_THREAD_INDEX, -1);
    LLVMValueRef x = call_number(s, INTRINSIC_THREADGROUP_SIZE, 0);
    if (dimension == 0) return LLVMBuildURem(b, index, x, "");
    LLVMValueRef row = LLVMBuildUDiv(b, index, x, "");
    LLVMValueRef y = call_number(s, INTRINSIC_THREADGROUP_SIZE, 1);
    return dimension == 1 ? LLVMBuildURem(b, row, y, "") : LLVMBuildUDiv(b, row, y, "");
}

void context_expand_positions(struct simd *s) {
    LLVMBuilderRef b = s->unit->builder;
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(call, block) {
        enum intrinsic intrinsic = intrinsic_of(call);
        uint64_t d;
        bool in_grid = intrinsic == INTRINSIC_THREAD_POSITION;
        if (!in_grid && intrinsic != INTRINSIC_POSITION_IN_THREADGROUP) continue;
        if (!dimension_of(s, call, &d) || find_positions(s).shape[d] != SHAPE_VARYING) continue;
        LLVMPositionBuilderBefore(b, call);
        LLVMValueRef position = computed_position(s, (int)d);
        if (in_grid) {
            LLVMValueRef groups = call_number(s, INTRINSIC_THREADGROUP_POSITION, (int)d);
            LLVMValueRef size = call_number(s, INTRINSIC_DISPATCH_THREADGROUP_SIZE, (int)d);
            position = LLVMBuildAdd(b, LLVMBuildMul(b, groups, size, ""), position, "");
        }
        LLVMReplaceAllUsesWith(call, position);
        LLVMInstructionEraseFromParent(call);
    }
}

static LLVMValueRef thread_index(struct simd *s) {
    const uint32_t *size = s->code->size;
    bool whole = (uint64_t)size[0] * size[1] * size[2] == (uint64_t)s->lanes;
    return whole ? simd_i32(s, 0) : read_u32(s, s->context, GANG_FIELD(first));
}

static void emit_address(struct simd *s, LLVMValueRef call, bool threadgroup) {
    LLVMTypeRef pointer = type_pointer(s->unit);
    uint64_t slot = 0;
    if (!is_constant_integer(LLVMGetOperand(call, 0), &slot) ||
        slot >= (threadgroup ? CPU_MAX_THREADGROUP_SLOTS : CPU_MAX_SLOTS)) {
        simd_refuse(s, call, "the index of an argument is not a constant");
        return;
    }
    LLVMValueRef table = threadgroup ? NULL : read_field(s, pointer, s->group, GROUP_FIELD(buffers));
    scalar_set(s, call,
               threadgroup
                   ? read_field(s, pointer, s->group, GROUP_FIELD(threadgroup_slots) + slot * sizeof(void *))
                   : read_field(s, pointer, table, slot * sizeof(void *)));
}

/* ---- Barriers and returns. */

static void emit_barrier(struct simd *s, LLVMValueRef call) {
    const uint32_t *size = s->code->size;
    bool alone = !s->code->masked && (uint64_t)size[0] * size[1] * size[2] == (uint64_t)s->lanes;
    /* A gang that is the whole group has met when control arrives here. */
    if (alone) return;
    LLVMValueRef arguments[3] = {s->context, LLVMGetOperand(call, 1), LLVMGetOperand(call, 2)};
    simd_call_runtime(s, "smelt_runtime_gang_barrier", LLVMVoidTypeInContext(s->unit->context), arguments, 3);
}

/* In control flow that may differ between lanes: analyse.c has replaced the barrier by this question. All
 * lanes that reach it get the same answer, so the branch on it is uniform. */
static void emit_arrival(struct simd *s, LLVMValueRef call) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef arguments[4] = {s->context, LLVMGetOperand(call, 0), LLVMGetOperand(call, 1),
                                 lanes_in_memory(s, s->blocks[s->current].mask)};
    LLVMValueRef passes = simd_call_runtime(s, "smelt_runtime_gang_arrive", type_i32(s->unit), arguments, 4);
    scalar_set(s, call, LLVMBuildICmp(b, LLVMIntNE, passes, simd_i32(s, 0), ""));
}

void context_mark_returned(struct simd *s, LLVMValueRef const *masks) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef lanes = lanes_in_memory(s, masks);
    for (int w = 0; w < (s->lanes + 31) / 32; w++) {
        LLVMValueRef word = simd_field(s, s->context, GANG_FIELD(returned) + 4 * (size_t)w);
        LLVMValueRef before = LLVMBuildLoad2(b, type_i32(s->unit), word, "");
        LLVMValueRef more = LLVMBuildLoad2(b, type_i32(s->unit), simd_field(s, lanes, 4 * (size_t)w), "");
        LLVMBuildStore(b, LLVMBuildOr(b, before, more, ""), word);
    }
}

static void emit_launch_answer(struct simd *s, LLVMValueRef call) {
    LLVMBuilderRef b = s->unit->builder;
    uint64_t number = 0;
    (void)is_constant_integer(LLVMGetOperand(call, 0), &number);
    LLVMValueRef answers = read_field(s, type_i64(s->unit), s->group, GROUP_FIELD(answers)),
                 bit = LLVMConstInt(type_i64(s->unit), UINT64_C(1) << number, false),
                 none = LLVMConstInt(type_i64(s->unit), 0, false);
    scalar_set(s, call, LLVMBuildICmp(b, LLVMIntNE, LLVMBuildAnd(b, answers, bit, ""), none, ""));
}

static bool emit_field(struct simd *s, LLVMValueRef call, enum intrinsic intrinsic) {
    uint64_t d;
    for (size_t i = 0; i < GROUP_FIELD_COUNT; i++) {
        if (intrinsic != group_fields[i].intrinsic) continue;
        if (dimension_of(s, call, &d))
            scalar_set(s, call, read_u32(s, s->group, group_fields[i].offset + 4 * d));
        return true;
    }
    return false;
}

bool emit_context(struct simd *s, LLVMValueRef call, enum intrinsic intrinsic) {
    LLVMBuilderRef b = s->unit->builder;
    uint64_t d;
    if (emit_field(s, call, intrinsic)) return true;
    if (intrinsic == INTRINSIC_POSITION_IN_THREADGROUP) {
        if (dimension_of(s, call, &d)) emit_position(s, call, (int)d, false);
    } else if (intrinsic == INTRINSIC_THREAD_POSITION) {
        if (dimension_of(s, call, &d)) emit_position(s, call, (int)d, true);
    } else if (intrinsic == INTRINSIC_THREAD_INDEX) {
        scalar_set(s, call, thread_index(s));
    } else if (intrinsic == INTRINSIC_LANE) {
        scalar_set(s, call,
                   s->lanes >= SIMDGROUP_LANES
                       ? simd_i32(s, 0)
                       : LLVMBuildAnd(b, thread_index(s), simd_i32(s, SIMDGROUP_LANES - 1), ""));
    } else if (intrinsic == INTRINSIC_SIMDGROUP) {
        scalar_set(s, call, LLVMBuildLShr(b, thread_index(s), simd_i32(s, 5), ""));
    } else if (intrinsic == INTRINSIC_SIMDGROUP_COUNT) {
        scalar_set(s, call, read_u32(s, s->group, GROUP_FIELD(simdgroup_count)));
    } else if (intrinsic == INTRINSIC_BUFFER_ADDRESS) {
        emit_address(s, call, false);
    } else if (intrinsic == INTRINSIC_THREADGROUP_ADDRESS) {
        emit_address(s, call, true);
    } else if (intrinsic == INTRINSIC_THREADGROUP_BARRIER) {
        emit_barrier(s, call);
    } else if (intrinsic == INTRINSIC_BARRIER_PASSES) {
        emit_arrival(s, call);
    } else if (inside_is_extent(intrinsic)) {
        uint64_t slot = 0;
        (void)is_constant_integer(LLVMGetOperand(call, 0), &slot);
        scalar_set(s, call, inside_extent(s->unit, s->group, intrinsic, slot));
    } else if (intrinsic == INTRINSIC_LAUNCH_LEAVES) {
        emit_launch_answer(s, call);
    } else if (intrinsic == INTRINSIC_LEAVES) {
        emit_leaves(s, call);
    } else if (intrinsic == INTRINSIC_NEVER) {
        scalar_set(s, call, LLVMConstNull(simd_i1(s)));
    } else if (intrinsic == INTRINSIC_LOG) {
        emit_log(s, call);
    } else if (intrinsic == INTRINSIC_TILE_MEMORY) {
        scalar_set(s, call,
                   simd_call_runtime(s, "smelt_runtime_gang_tile_memory", LLVMTypeOf(call), &s->context, 1));
    } else if (intrinsic == INTRINSIC_TILE_PRODUCT) {
        emit_tile(s, call);
    } else if (intrinsic == INTRINSIC_THREAD_RETURN) {
        /* Otherwise the edge that leads here has marked it. */
        if (!s->blocks[s->current].returns || s->current == 0)
            context_mark_returned(s, s->blocks[s->current].mask);
    } else {
        return intrinsic == INTRINSIC_MAX_THREADS; /* after pass_thread_limits has read it */
    }
    return true;
}

void gang_start(struct simd *s) {
    LLVMBuilderRef b = s->unit->builder;
    s->group = read_field(s, type_pointer(s->unit), s->context, GANG_FIELD(group));
    s->extents = s->code->tested ? inside_table(s->unit, s->group) : NULL;
    s->entry_mask = arena_alloc(&s->arena, (size_t)s->chunk_count * sizeof *s->entry_mask);
    if (!s->code->masked || !s->entry_mask) return;
    LLVMValueRef count = chunk_splat(s, read_u32(s, s->context, GANG_FIELD(count)));
    for (int c = 0; c < s->chunk_count; c++) {
        int64_t lanes[GANG_MAX_LANES];
        for (int i = 0; i < s->chunk_lanes; i++) lanes[i] = (int64_t)c * s->chunk_lanes + i;
        LLVMValueRef own = lanes_constant(s, type_i32(s->unit), lanes, s->chunk_lanes);
        s->entry_mask[c] = LLVMBuildICmp(b, LLVMIntULT, own, count, "here");
    }
}
