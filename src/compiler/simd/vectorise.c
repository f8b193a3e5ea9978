/* The SIMD engine's vectoriser: from the optimised entry of one thread to the code of a gang.
 *
 * Requires: the optimised entry, bfloat arithmetic lowered, as prepare.c leaves it. Establishes: the entry
 * takes a pointer to a struct gang_context; image.lanes, stack_bytes. Refuses what it cannot do:
 * unit->refused. */
#include "compiler/budget.h"
#include "compiler/simd/matrix/matrix.h"
#include "compiler/simd/matrix/tiles.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

/* ---- The end. */

static smelt_status finish(struct simd *s) {
    struct unit *unit = s->unit;
    LLVMMetadataRef subprogram = LLVMGetSubprogram(s->entry);
    LLVMDeleteFunction(s->entry);
    LLVMSetValueName2(s->gang, ENTRY_NAME, strlen(ENTRY_NAME));
    if (subprogram) LLVMSetSubprogram(s->gang, subprogram);
    unit->entry = s->gang;
    return memory_place_variables(unit, s->gang, s->group);
}

static void measure_stack(struct simd *s) {
    uint64_t bytes = 0;
    FOR_EACH_BLOCK(block, s->gang)
    FOR_EACH_INSTRUCTION(i, block) {
        if (LLVMIsAAllocaInst(i)) bytes += LLVMABISizeOfType(s->unit->layout, LLVMGetAllocatedType(i)) + 64;
    }
    s->unit->result->image.stack_bytes = bytes;
    s->unit->result->image.lanes = (uint32_t)s->lanes;
}

/* Slots become registers, and what chunks have in common is computed once. The thread's code was optimised
 * before. */
#define CLEAN_UP "globaldce,function(mem2reg,early-cse<memssa>,simplifycfg)"
/* After a gang's lanes became scalars side by side: neighbours become vectors. */
#define JOIN_NEIGHBOURS                                                                                   \
    "function(sroa,instcombine<no-verify-fixpoint>,loop-mssa(licm),slp-vectorizer,instcombine<no-verify-" \
    "fixpoint>,early-cse)"

/* Writes the speculating code before other code, which is there already and more general. */
static smelt_status write_speculating(struct simd *s) {
    s->general = s->blocks[0].head;
    s->speculating = true;
    TRY(simd_analyse_entry(s));
    return s->refused ? SMELT_OK : simd_emit(s);
}

/* Below this number, an access under a mask may branch (access.c): the time of code generation grows with the
 * square of the number of branches. */
#define MANY_ACCESSES 512

/* Above this number, accesses to addresses that only the run can tell gather at once: five blocks for each,
 * which look whether the lanes are neighbours after all, take seconds to compile. */
#define MANY_UNKNOWN 300

static smelt_status vectorise(struct simd *s) {
    struct unit *unit = s->unit;
    TRY(budget_check_thread(unit));
    int bits = simd_vector_bits(unit->request->cpu, unit->request->features);
    s->registers = bits == 512 ? 32 : 16;
    s->multiplies_bfloats = simd_multiplies_bfloats(unit->request->cpu, unit->request->features);
    s->multiplies_blocks = simd_multiplies_blocks(unit->request->cpu, unit->request->features);
    s->vector_bits = bits == 512 && !s->code->masked && simd_matrix_pays(s->entry) ? 256 : bits;
    TRY(simd_choose_gang(s));
    if (s->refused) return SMELT_OK;
    if (unit->request->output == COMPILE_SIMD) report_shapes(s);
    if (unit->request->output == COMPILE_WHY) report_control_flow(s);
    bool speculate = unit->form == FORM_BEST && s->chunk_lanes > 1 && speculation_pays(s);
    bool is_short = simd_is_short(s);
    bool quotients = speculate && (is_short || simd_may_sample(s)) && speculation_pays_behind_guards(s);
    s->brief = unit->result->image.quick && s->chunk_lanes > 1;
    s->many_accesses = s->brief || simd_count_accesses(s) * s->chunk_count > MANY_ACCESSES;
    s->many_unknown = s->brief || simd_count_unknown(s) * s->chunk_count > MANY_UNKNOWN;
    TRY(simd_emit(s));
    s->behind_guards = quotients && !is_short; /* short code has all three versions */
    if (speculate && !s->refused) TRY(write_speculating(s));
    s->behind_guards = quotients;
    if (quotients && is_short && !s->refused) TRY(write_speculating(s));
    if (s->refused) return SMELT_OK;
    TRY(simd_begin_slots(s));
    TRY(finish(s));
    /* Chunks of one lane are joined to vectors only below. */
    if (s->chunk_lanes > 1) TRY(simd_check_size(s, BUDGET_WRITTEN));
    TRY(unit_verify(unit));
    TRY(run_passes(unit, CLEAN_UP));
    if (s->code->tested) simd_keep_tests_apart(s);
    if (s->chunk_lanes == 1) {
        TRY(tiles_write(s));
        TRY(cpu_run_passes(unit, JOIN_NEIGHBOURS));
    }
    TRY(simd_check_size(s, BUDGET_GANG));
    measure_stack(s);
    if (unit->request->output == COMPILE_WHY) report_why(s);
    return SMELT_OK;
}

#define TABLE_SIZE 4096

smelt_status simd_run(struct unit *unit, smelt_status (*work)(struct simd *s)) {
    struct code_shape shape = unit->request->shape;
    shape.by_rows = unit->result->image.by_rows;
    if (shape.by_rows) {
        shape.masked = shape.rows = 1;
        memset(shape.size, 0, sizeof shape.size); /* gangs do not follow from it */
    }
    struct simd s = {.unit = unit, .entry = unit->entry, .code = &shape, .table_size = TABLE_SIZE};
    s.table = arena_alloc(&s.arena, TABLE_SIZE * sizeof *s.table);
    smelt_status status =
        s.table ? work(&s) : unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for the analysis");
    if (status == SMELT_OK && s.refused) {
        unit->refused = true;
        status = SMELT_ERROR_UNSUPPORTED;
    }
    arena_free(&s.arena);
    return status;
}

smelt_status pass_simd_gang(struct unit *unit) {
    return simd_run(unit, vectorise);
}
