#include "compiler/pipeline.h"
#include "base/text.h"
#include "compiler/budget.h"
#include "compiler/analysis/flow.h"

#include <string.h>

/* In default<O3>, LLVM joins neighbouring scalars of a thread to vectors regardless of the pass builder's
 * options, but not in functions with the attribute noimplicitfloat. */
static void set_joining(struct unit *unit, bool allowed) {
    unsigned kind = LLVMGetEnumAttributeKindForName("noimplicitfloat", 15);
    LLVMAttributeIndex function = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    if (allowed)
        LLVMRemoveEnumAttributeAtIndex(unit->entry, function, kind);
    else
        LLVMAddAttributeAtIndex(unit->entry, function, LLVMCreateEnumAttribute(unit->context, kind, 0));
}

/* Objects whose parts are set in loops (strides of a tensor, slots of a cooperative tensor) become registers
 * before default<O3>: it unrolls these loops in its middle, makes registers of the objects once, and leaves
 * those that other loops index in memory. Those of an attention kernel then filled three quarters of its IR.
 */
#define UNROLL_FIRST                                                                  \
    "function(loop(loop-rotate,loop-unroll-full),sroa<modify-cfg>,early-cse<memssa>," \
    "instcombine<no-verify-fixpoint>,simplifycfg)"

/* Instead of default<O3>, for long threads (budget.h): two runs of instcombine, which takes most of the time,
 * instead of eight. The thread was cleaned before. Loops of few rounds are unrolled and private arrays become
 * registers, so that public kernels of 30,000 to 90,000 instructions end with as much code as after
 * default<O3>. */
#define OPTIMISE_LONG                                                                            \
    "function(sroa<modify-cfg>,early-cse<memssa>,simplifycfg,loop-simplify,lcssa,"               \
    "loop-mssa(loop-rotate,licm),loop(indvars,loop-deletion,loop-unroll-full),sroa<modify-cfg>," \
    "gvn,sccp,instcombine<no-verify-fixpoint>,dse,adce,simplifycfg,infer-address-spaces,"        \
    "early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg)"

/* … without loops: earlier passes have cleaned the thread, and leave less to find. */
#define OPTIMISE_STRAIGHT \
    "function(gvn,instcombine<no-verify-fixpoint>,dse,adce,simplifycfg,infer-address-spaces)"

/* … with hundreds of loops: of LLVM's loop passes, only licm looks at them. */
#define OPTIMISE_ROW                                                                                         \
    "function(loop-simplify,lcssa,loop-mssa(licm),gvn,instcombine<no-verify-fixpoint>,dse,adce,simplifycfg," \
    "infer-address-spaces)"

static smelt_status optimise_long(struct unit *unit) {
    int loops;
    uint64_t open = 0;
    TRY(flow_count_loops(unit, &loops));
    if (unit->target->calls_runtime) TRY(unrolled_count_open(unit, &open));
    return run_passes(unit, !loops                   ? OPTIMISE_STRAIGHT
                            : open > MANY_OPEN_LOOPS ? OPTIMISE_ROW
                                                     : OPTIMISE_LONG);
}

static smelt_status optimise_thread(struct unit *unit) {
    TRY(budget_find_long(unit, &unit->long_thread));
    if (unit->long_thread) return optimise_long(unit);
    set_joining(unit, false);
    if (unit->target->unroll_first) TRY(run_passes(unit, UNROLL_FIRST));
    TRY(run_passes(unit,
                   "default<O3>,function(infer-address-spaces,instcombine<no-verify-fixpoint>,simplifycfg)"));
    set_joining(unit, true);
    return SMELT_OK;
}

/* Whether simdgroups compute alike can be seen only of values in registers. */
static smelt_status prepare_alike(struct unit *unit) {
    LLVMValueRef query = intrinsic_function(unit->module, INTRINSIC_ALIKE);
    return query && LLVMGetFirstUse(query) ? run_passes(unit, UNROLL_FIRST) : SMELT_OK;
}

static smelt_status drop_names(struct unit *unit) {
    if (!unit->drops_names) return SMELT_OK;
    unit_drop_names(unit);
    LLVMContextSetDiscardValueNames(unit->context, true);
    return SMELT_OK;
}

/* ---- The passes of all engines. */

static const struct pass of_bitcode[] = {PASS("contract", pass_contract),
                                         PASS(NULL, drop_names),
                                         PASS("specialise", pass_specialise),
                                         PASS("declare", pass_declare),
                                         PASS("assertions", pass_assertions),
                                         PASS("hints", pass_hints),
                                         LLVM_PASSES("globaldce"), /* other functions of the file */

                                         PASS("rolled", pass_rolled),
                                         PASS("outlined", pass_outlined),
                                         PASS("alignment", pass_alignment),
                                         PASS("bindings", pass_bindings),
                                         {0}};

static const struct pass of_thread[] = {
    PASS("initialisers-listed", pass_initialisers_listed),
    PASS("constants", pass_constants),
    PASS("wrap", pass_wrap),
    PASS("guard", pass_guard),
    /* Leave comes first: thrown-away loads are easiest to recognise before the optimiser rearranges them.
     * Small functions are simplified before they are inlined: inlining a single block does not split the
     * caller's block. In long kernels those splits are a quarter to a third of the whole compile (of an
     * attention kernel). */
    LLVM_PASSES("function(sroa<modify-cfg>,early-cse)"),
    PASS("leave", pass_leave),
    PASS("requests", pass_requests),
    PASS("simplified", pass_simplified),
    LLVM_PASSES("function(simplifycfg),always-inline,globaldce"),
    PASS("initialisers-evaluated", pass_initialisers_evaluated),
    LLVM_PASSES("globalopt,globaldce,function(sroa<modify-cfg>,early-cse)"),
    PASS("indexes", pass_indexes),
    PASS("leave-inlined", pass_leave),
    PASS("lines-noted", pass_lines_noted),
    LLVM_PASSES(CLEAN_FUNCTIONS),
    PASS("guarded-bindings", pass_guarded_bindings),
    PASS("values", pass_values),
    PASS("returns", pass_returns),
    PASS("staging", pass_staging),
    PASS("part", pass_part),
    PASS("hold", pass_hold),
    PASS("sink", pass_sink),
    PASS("depth", pass_depth),
    PASS("unrolled", pass_unrolled),
    PASS("invariant", pass_invariant),
    PASS("whole-index", pass_whole_index),
    PASS(NULL, prepare_alike),
    PASS("alike", pass_alike),
    PASS("landmarks", pass_landmarks),
    PASS("optimise", optimise_thread),
    PASS("landmarks-removed", pass_landmarks_removed),
    PASS("sink-optimised", pass_sink),
    PASS("join", pass_join),
    PASS("narrow-bound", pass_narrow_bound),
    PASS("null-alignment", pass_null_alignment),
    PASS("constants-used", pass_constants_used),
    PASS("used-bindings", pass_used_bindings),
    PASS("lines", pass_lines),
    PASS("thread-limits", pass_thread_limits),
    PASS("refuse", pass_refuse),
    PASS("indirect", pass_indirect),
    {0}};

static const struct pass to_engine[] = {PASS("bfloat", pass_bfloat), {0}};

/* ---- Running them. */

enum { LISTS = 6, LOWERING = 4 /* the first of the lists that lower */ };

static const struct pass *list_at(const struct engine_target *engine, int index) {
    const struct pass *const lists[LISTS] = {engine->begin,     of_bitcode,
                                             engine->uninlined, engine->thread ? engine->thread : of_thread,
                                             to_engine,         engine->lower};
    static const struct pass none[] = {{0}};
    return lists[index] ? lists[index] : none;
}

static bool is_end(const struct pass *pass) {
    return !pass->run && !pass->llvm;
}

/* Whether `name` is in a list separated by commas. */
static bool is_in_list(const char *name, const char *list) {
    size_t length = strlen(name);
    for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
        if (strncmp(list, name, length) == 0 && strchr(",", list[length])) return true;
    return false;
}

static smelt_status run_lists(struct unit *unit, int from, int to) {
    const struct compile_request *request = unit->request;
    for (int i = from; i < to; i++) {
        for (const struct pass *pass = list_at(unit->target, i); !is_end(pass) && !unit->stopped; pass++) {
            if (request->only && !(pass->name && is_in_list(pass->name, request->only))) continue;
            TRY(pass->run ? pass->run(unit) : run_passes(unit, pass->llvm));
            unit->stopped =
                request->output == COMPILE_AFTER && pass->name && strcmp(pass->name, request->after) == 0;
        }
    }
    return SMELT_OK;
}

smelt_status pipeline_optimise(struct unit *unit) {
    return run_lists(unit, 0, LOWERING);
}

smelt_status pipeline_lower(struct unit *unit) {
    return run_lists(unit, LOWERING, LISTS);
}

smelt_status pipeline_check(struct unit *unit) {
    const struct compile_request *request = unit->request;
    struct text names = {0};
    if (request->output != COMPILE_AFTER) return SMELT_OK;
    for (int i = 0; i < LISTS; i++) {
        for (const struct pass *pass = list_at(unit->target, i); !is_end(pass); pass++) {
            if (!pass->name) continue;
            if (strcmp(pass->name, request->after) == 0) {
                text_free(&names);
                return SMELT_OK;
            }
            text_addf(&names, "%s%s", names.length ? ", " : "", pass->name);
        }
    }
    smelt_status status = unit_fail(unit, SMELT_ERROR_INVALID_ARGUMENT, "pass '%s' is unknown; expected %s",
                                    request->after, text_string(&names));
    text_free(&names);
    return status;
}
