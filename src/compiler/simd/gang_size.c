/* Chooses how many threads form a gang, and how many of its lanes form a chunk: by the size of the code, by
 * the values that loops carry, which should fit the registers, and by what the analysis finds for each
 * choice.
 *
 * Requires: s->vector_bits and s->registers. Establishes: s->lanes, s->chunk_lanes and the analysis for them;
 * what edges.c may speculate on. */
#include "compiler/simd/matrix/tiles.h"

/* ---- Sizes. */

/* Simdgroup operations become a dozen instructions or more. */
static int count_instructions(struct simd *s) {
    int count = -(int)s->unit->test_instructions;
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(i, block) count += intrinsic_traits(intrinsic_of(i))->kind == OF_SIMDGROUP ? 12 : 1;
    return count;
}

/* Values that a thread carries around the loop of this header; without `integers` only others, as integers
 * are often uniform. */
static int carried_by(LLVMBasicBlockRef header, bool integers) {
    int count = 0;
    FOR_EACH_INSTRUCTION(phi, header) {
        if (!LLVMIsAPHINode(phi)) break;
        count += integers || LLVMGetTypeKind(LLVMTypeOf(phi)) != LLVMIntegerTypeKind;
    }
    return count;
}

/* … around the loop that has most of them. */
static int carried_values(LLVMValueRef entry, bool integers) {
    int most = 0;
    FOR_EACH_BLOCK(block, entry) {
        int count = carried_by(block, integers);
        if (count > most) most = count;
    }
    return most;
}

/* Whether the values that a gang of this many lanes carries around a loop leave four registers for others: a
 * sum in memory is loaded and stored by each multiply-add. One simdgroup is the smallest gang. */
static bool fits_registers(const struct simd *s, int lanes, int carried) {
    return lanes <= SIMDGROUP_LANES || carried * (lanes / (s->vector_bits / 32)) <= s->registers - 4;
}

/* Chosen so that code generation takes less than 60 ms: instructions of the thread times chunks of the gang.
 */
#define MAX_GANG_INSTRUCTIONS 2400
/* … of a whole group, whose estimate is more exact. With AVX2, a softmax of 256 to 1024 threads per row is
 * below it: its code takes 1.5 to 2.4 times as long to generate, and half to a quarter of the time to run.
 * A softmax of float4s is above: it would gain a tenth with long rows, but with short ones most threads are
 * idle, which only smaller gangs skip: they take a quarter of the time. */
#define MAX_WHOLE_GROUP_INSTRUCTIONS 3330

/* Whether sums must fit the registers: not if the loops that carry them are written in parts (parts.c). */
enum registers { REGISTERS_LIMIT, REGISTERS_IN_PARTS };

/* *has: whether this many threads can form one gang: its code is small, and its sums fit the registers where
 * they must. This estimate is lower than that of choose_lanes, which counts every instruction once per chunk.
 */
static smelt_status has_gang(struct simd *s, int threads, enum registers registers, bool *has) {
    struct whole_group group;
    TRY(simd_measure_whole_group(s, threads, s->chunk_lanes, &group));
    *has = group.instructions <= MAX_WHOLE_GROUP_INSTRUCTIONS &&
           (registers == REGISTERS_IN_PARTS || group.carried <= s->registers - 4);
    return SMELT_OK;
}

/* The whole group. Of a group that is larger than any gang: 256 or 128 threads, if they divide it, since a
 * barrier costs time for each gang. 0: neither suits. */
static smelt_status measured_lanes(struct simd *s, uint64_t threads, enum registers registers, int *lanes) {
    bool has = false;
    int most = threads < GANG_MAX_LANES ? (int)threads : GANG_MAX_LANES,
        least = threads > GANG_MAX_LANES ? 128 : most;
    *lanes = 0;
    for (int l = most; l >= least && !has; l /= 2) {
        if (threads % (uint64_t)l == 0) TRY(has_gang(s, l, registers, &has));
        if (has) *lanes = l;
    }
    return SMELT_OK;
}

/* A gang runs as many rounds of a loop as the thread that needs most. If each round accesses memory lane by
 * lane, small gangs run fewer: in a sieve with AVX2, one simdgroup takes 1.4 ms, 256 threads 11.5. */
static smelt_status has_uneven_loops(struct simd *s, bool *uneven) {
    struct whole_group group;
    TRY(simd_measure_whole_group(s, SIMDGROUP_LANES, s->chunk_lanes, &group));
    *uneven = group.uneven;
    return SMELT_OK;
}

/* One simdgroup: always in quick code, whose size counts. With barriers and a known group size: the whole
 * group, or as many simdgroups as divide it, keep the code small and fit the registers. */
static smelt_status choose_lanes(struct simd *s, enum registers registers, int *chosen) {
    const struct code_shape *code = s->code;
    uint64_t threads = (uint64_t)code->size[0] * code->size[1] * code->size[2];
    bool uneven;
    *chosen = SIMDGROUP_LANES;
    if (s->unit->form != FORM_BEST || s->unit->result->image.quick || code->masked || !threads ||
        threads % SIMDGROUP_LANES || !intrinsic_in_function(s->entry, INTRINSIC_THREADGROUP_BARRIER))
        return SMELT_OK;
    TRY(has_uneven_loops(s, &uneven));
    if (uneven) return SMELT_OK;
    int measured;
    TRY(measured_lanes(s, threads, registers, &measured));
    if (measured) {
        *chosen = measured;
        return SMELT_OK;
    }
    int instructions = count_instructions(s), carried = carried_values(s->entry, false);
    for (int simdgroups = GANG_MAX_LANES / SIMDGROUP_LANES; simdgroups > 1; simdgroups--) {
        int lanes = simdgroups * SIMDGROUP_LANES;
        if (threads % (uint64_t)lanes == 0 &&
            instructions * (lanes / s->chunk_lanes) <= MAX_GANG_INSTRUCTIONS &&
            (registers == REGISTERS_IN_PARTS || fits_registers(s, lanes, carried))) {
            *chosen = lanes;
            break;
        }
    }
    return SMELT_OK;
}

static bool has_simdgroup_operations(LLVMValueRef entry) {
    FOR_EACH_BLOCK(block, entry)
    FOR_EACH_INSTRUCTION(i, block) {
        enum intrinsic_kind kind = intrinsic_traits(intrinsic_of(i))->kind;
        if (kind == OF_SIMDGROUP || kind == OF_TILE || LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i))
            return true;
    }
    return false;
}

#define TILE_VALUES 24 /* for 32 lanes: 48 registers of 512 bits, of which there are 32 */

/* For vectors within the thread: as many lanes as fill half of the registers with carried values; 0: use
 * vectors across lanes. */
static int lanes_in_thread(struct simd *s) {
    int carried = carried_values(s->entry, true), registers = s->registers;
    if (carried < TILE_VALUES || s->code->masked || has_simdgroup_operations(s->entry)) return 0;
    int room = registers / 2 * (s->vector_bits / 32), lanes = 4;
    while (lanes > 1 && carried * lanes > room + room / 8) lanes /= 2;
    return lanes;
}

/* ---- Choices, each with its analysis. */

static void set_lanes(struct simd *s, int lanes, int chunk_lanes) {
    int64_t zeros[GANG_MAX_LANES] = {0};
    s->lanes = lanes;
    s->chunk_lanes = chunk_lanes;
    s->chunk_count = lanes / chunk_lanes;
    s->first_chunk = 0;
    s->end_chunk = s->chunk_count;
    s->shape_count = 0;
    (void)shape_intern(s, zeros); /* SHAPE_UNIFORM */
}

static bool all_lanes_run_all(struct simd *s) {
    for (int place = 0; place < s->paths.block_count; place++)
        if (s->blocks[place].mask_of != 0 || s->paths.blocks[place].divergent) return false;
    return true;
}

/* With 256 bits, a tile takes half of the registers or more for one thread. If its loop can be written for
 * one thread after another (parts.c), more threads side by side still share vectors outside of it: where they
 * copy to threadgroup memory. */
static bool has_tile_in_parts(struct simd *s) {
    int before;
    for (int place = 0; place < s->paths.block_count; place++)
        if (carried_by(s->blocks[place].original, true) >= TILE_VALUES &&
            simd_part_chunks(s, place, &before) < s->chunk_count)
            return true;
    return false;
}

/* Most lanes of a gang whose lanes all have threads: as the shape says or, for a known size, the largest
 * power of two up to GANG_MAX_LANES that divides it. */
static int most_lanes(const struct code_shape *code) {
    uint64_t threads = (uint64_t)code->size[0] * code->size[1] * code->size[2];
    int lanes = GANG_MAX_LANES;
    if (!threads) return (int)code->multiple;
    while (threads % (uint64_t)lanes) lanes /= 2;
    return lanes;
}

/* Products of a gang's tile: the time of code generation grows with their number. */
#define MOST_PRODUCTS 256

static int count_products(LLVMBasicBlockRef block) {
    int count = 0;
    FOR_EACH_INSTRUCTION(i, block)
    count += LLVMGetInstructionOpcode(i) == LLVMFMul || LLVMGetInstructionOpcode(i) == LLVMCall;
    return count;
}

/* Threads side by side whose tiles become vectors (tiles.h): at least eight, which fill a vector. With
 * more, more threads share the loads of a row, and fewer gangs wait at barriers. 0: the code has no such
 * tiles. */
static int lanes_of_tiles(struct simd *s) {
    if (s->vector_bits == 128 || s->code->masked || has_simdgroup_operations(s->entry)) return 0;
    FOR_EACH_BLOCK(block, s->entry) {
        struct tile tile;
        if (!tile_find(s, block, GANG_MAX_LANES, &tile)) continue;
        int lanes = SIMDGROUP_LANES, products = count_products(block);
        while (lanes > LANES_IN_PARTS && (lanes > most_lanes(s->code) || lanes * products > MOST_PRODUCTS))
            lanes /= 2;
        return lanes;
    }
    return 0;
}

static bool has_tile(struct simd *s) {
    for (int place = 0; place < s->paths.block_count; place++)
        if (tile_suits(s, s->blocks[place].original)) return true;
    return false;
}

/* In the thread: a few threads side by side, each lane's values as scalars, which LLVM joins to vectors along
 * the thread's own rows. For threads that keep more values than the registers hold for 32 lanes; only if no
 * lane ever waits for another. */
static smelt_status try_in_thread(struct simd *s, bool *done) {
    int lanes = lanes_of_tiles(s);
    *done = false;
    if (lanes) {
        set_lanes(s, lanes, 1);
        TRY(simd_analyse_entry(s));
        *done = !s->refused && all_lanes_run_all(s) && has_tile(s);
        if (*done || s->refused) return SMELT_OK;
    }
    lanes = lanes_in_thread(s);
    if (!lanes) return SMELT_OK;
    if (s->vector_bits == 256 && lanes < LANES_IN_PARTS) {
        set_lanes(s, LANES_IN_PARTS, 1);
        TRY(simd_analyse_entry(s));
        *done = !s->refused && all_lanes_run_all(s) && has_tile_in_parts(s);
        if (*done || s->refused) return SMELT_OK;
    }
    set_lanes(s, lanes, 1);
    TRY(simd_analyse_entry(s));
    *done = !s->refused && all_lanes_run_all(s);
    return SMELT_OK;
}

/* Without barriers, one simdgroup suffices. If all lanes run everything, several simdgroups share what is
 * computed once per gang. */
#define MAX_SHARED_INSTRUCTIONS 600

/* If a loop carries at least this many values, gangs that are inside the kernel's guards get code of their
 * own (edges.c). Short kernels always do, if loops in that code need no masks of their own. */
#define GUARDED_VALUES 8
#define MAX_EDGE_INSTRUCTIONS 1500

int simd_count_accesses(struct simd *s) {
    int count = 0;
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(i, block) count += LLVMIsALoadInst(i) || LLVMIsAStoreInst(i);
    return count;
}

/* Instructions of a simdgroup. */
static int simdgroup_size(struct simd *s) {
    return count_instructions(s) * (SIMDGROUP_LANES / (s->vector_bits / 32));
}

bool simd_is_short(struct simd *s) {
    return simdgroup_size(s) <= MAX_SHARED_INSTRUCTIONS;
}

/* Threads that sample: pixel, row and channel are quotients of the thread's number by sizes, and what is
 * loaded there says where to load next. Where lanes share the quotients, all of that is uniform, and the
 * samples are neighbours. That is worth code of its own behind guards in longer threads, too. */
#define MOST_SAMPLING_INSTRUCTIONS 400
#define FEWEST_SAMPLES 4

bool simd_may_sample(struct simd *s) {
    int instructions = 0, quotients = 0, loads = 0;
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        instructions++;
        quotients += LLVMGetInstructionOpcode(i) == LLVMUDiv && !LLVMIsConstant(LLVMGetOperand(i, 1));
        loads += LLVMIsALoadInst(i) != NULL;
    }
    return quotients > 0 && loads >= FEWEST_SAMPLES && instructions <= MOST_SAMPLING_INSTRUCTIONS &&
           !intrinsic_in_function(s->entry, INTRINSIC_THREADGROUP_BARRIER);
}

static void find_edges_that_matter(struct simd *s) {
    int carried = carried_values(s->entry, false), size = simdgroup_size(s);
    s->guards_matter = carried >= GUARDED_VALUES || simd_is_short(s) || simd_may_sample(s);
    s->edges_matter =
        size <= MAX_EDGE_INSTRUCTIONS && !intrinsic_in_function(s->entry, INTRINSIC_THREADGROUP_BARRIER);
    s->parting_matters = s->edges_matter;
}

/* Loops of threads at an edge, which access fewer elements than the others, do not matter. */
static bool loops_need_no_masks(struct simd *s) {
    for (int place = 0; place < s->paths.block_count; place++)
        if (s->paths.blocks[place].loop >= 0 && s->paths.blocks[place].divergent && !edges_is_aside(s, place))
            return false;
    return true;
}

/* *done: whether the code of gangs inside the kernel's guards suits. Ends with the analysis of the general
 * code. */
static smelt_status try_guarded(struct simd *s, bool (*suits)(struct simd *s), bool *done) {
    s->speculating = true;
    TRY(simd_analyse_entry(s));
    *done = !s->refused && suits(s);
    s->speculating = false;
    return s->refused ? SMELT_OK : simd_analyse_entry(s);
}

static bool is_unknown(struct simd *s, LLVMValueRef i) {
    bool load = LLVMIsALoadInst(i) != NULL;
    if (!load && !LLVMIsAStoreInst(i)) return false;
    LLVMValueRef address = LLVMGetOperand(i, load ? 0 : 1);
    return shape_of(s, address) == SHAPE_VARYING && !piece_is(s, address) && !private_is(s, address);
}

int simd_count_unknown(struct simd *s) {
    int count = 0;
    FOR_EACH_BLOCK(block, s->entry)
    FOR_EACH_INSTRUCTION(i, block) count += is_unknown(s, i);
    return count;
}

/* Guarded kernels get two versions. With few accesses, a large gang gains little by that. An access whose
 * addresses are known only at run time becomes several blocks, which count as this many instructions. */
#define FEW_ACCESSES 6
#define MAX_GUARDED_INSTRUCTIONS 300
#define UNKNOWN_INSTRUCTIONS 16

static int guarded_lanes(struct simd *s, int lanes, int chunk_lanes) {
    int instructions = count_instructions(s) + UNKNOWN_INSTRUCTIONS * simd_count_unknown(s);
    if (carried_values(s->entry, false) > 0 || simd_count_accesses(s) >= FEW_ACCESSES) return lanes;
    while (lanes > SIMDGROUP_LANES && instructions * (lanes / chunk_lanes) > MAX_GUARDED_INSTRUCTIONS)
        lanes /= 2;
    return lanes;
}

/* Code that computes only with narrow numbers gets more lanes per chunk: that of gangs inside the kernel's
 * guards, if it has guards. */
static smelt_status widen_chunks(struct simd *s, bool guarded) {
    if (!simd_may_be_narrow(s)) return SMELT_OK;
    s->speculating = guarded;
    if (guarded) TRY(simd_analyse_entry(s));
    int chunk_lanes = simd_narrow_lanes(s);
    s->speculating = false;
    if (chunk_lanes > s->chunk_lanes && s->lanes % chunk_lanes == 0) set_lanes(s, s->lanes, chunk_lanes);
    return simd_analyse_entry(s);
}

static smelt_status try_many(struct simd *s, bool *done) {
    int chunk_lanes = s->vector_bits / 32, lanes = most_lanes(s->code);
    int instructions = count_instructions(s), carried = carried_values(s->entry, false);
    *done = false;
    while (lanes > SIMDGROUP_LANES && (instructions * (lanes / chunk_lanes) > MAX_SHARED_INSTRUCTIONS ||
                                       !fits_registers(s, lanes, carried)))
        lanes /= 2;
    if (s->unit->form != FORM_BEST || lanes <= SIMDGROUP_LANES || s->code->masked ||
        intrinsic_in_function(s->entry, INTRINSIC_THREADGROUP_BARRIER))
        return SMELT_OK;
    set_lanes(s, lanes, chunk_lanes);
    TRY(simd_analyse_entry(s));
    if (s->refused) return SMELT_OK;
    if (edges_have_guard(s)) {
        int fewer = guarded_lanes(s, lanes, chunk_lanes);
        if (fewer <= SIMDGROUP_LANES) return SMELT_OK;
        if (fewer < lanes) {
            set_lanes(s, fewer, chunk_lanes);
            TRY(simd_analyse_entry(s));
        }
        TRY(try_guarded(s, all_lanes_run_all, done));
        return *done && !s->refused ? widen_chunks(s, true) : SMELT_OK;
    }
    *done = all_lanes_run_all(s) && !speculation_needs_small_gangs(s);
    return *done ? widen_chunks(s, false) : SMELT_OK;
}

/* Whether each innermost loop that carries more than the registers hold is written in parts. Others do not
 * matter: their sums are in memory during the loops inside. */
static bool fits_in_parts(struct simd *s) {
    for (int loop = 0; loop < s->paths.loop_count; loop++) {
        int place = s->paths.loops[loop].header, before;
        bool innermost = true;
        for (int other = 0; other < s->paths.loop_count; other++)
            innermost &= s->paths.loops[other].parent != loop;
        if (innermost && carried_by(s->blocks[place].original, false) * s->chunk_count > s->registers - 4 &&
            simd_part_chunks(s, place, &before) == s->chunk_count)
            return false;
    }
    return true;
}

/* Ends with the analysis for the lanes chosen. */
static smelt_status analyse_across(struct simd *s) {
    int lanes, most;
    s->chunk_lanes = s->vector_bits / 32;
    TRY(choose_lanes(s, REGISTERS_IN_PARTS, &most));
    TRY(choose_lanes(s, REGISTERS_LIMIT, &lanes));
    if (most > lanes) {
        set_lanes(s, most, s->chunk_lanes);
        TRY(simd_analyse_entry(s));
        if (s->refused || fits_in_parts(s)) return SMELT_OK;
    }
    set_lanes(s, lanes, s->chunk_lanes);
    return simd_analyse_entry(s);
}

smelt_status simd_choose_gang(struct simd *s) {
    bool done;
    find_edges_that_matter(s);
    TRY(try_in_thread(s, &done));
    if (done || s->refused) return SMELT_OK;
    TRY(try_many(s, &done));
    if (done || s->refused) return SMELT_OK;
    TRY(analyse_across(s));
    if (s->refused || carried_values(s->entry, false) >= GUARDED_VALUES || !edges_have_guard(s))
        return SMELT_OK;
    TRY(try_guarded(s, loops_need_no_masks, &done));
    s->guards_matter = done;
    s->parting_matters &= done;
    return SMELT_OK;
}
