/* One compile: LLVM and its errors, the stages from clang's bitcode to machine code, the entry point of the
 * library. */
#include "compiler/budget.h"
#include "compiler/escape.h"
#include "compiler/pipeline.h"
#include "compiler/quick.h"

#include <llvm-c/IRReader.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t llvm_once = PTHREAD_ONCE_INIT;

/* Reads the stack size of a function, spilled registers included, from a warning that pass_codegen requests.
 */
static void count_frame(struct unit *unit, LLVMDiagnosticInfoRef info) {
    char *text = LLVMGetDiagInfoDescription(info);
    const char *at = strstr(text, "stack frame size (");
    if (at) unit->frame_bytes += strtoull(at + strlen("stack frame size ("), NULL, 10);
    LLVMDisposeMessage(text);
}

/* Without a handler, LLVM ends the process after an error reported to the context. */
static void on_diagnostic(LLVMDiagnosticInfoRef info, void *context) {
    struct unit *unit = context;
    if (LLVMGetDiagInfoSeverity(info) == LLVMDSWarning) count_frame(unit, info);
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || unit->diagnosed) return;
    char *text = LLVMGetDiagInfoDescription(info);
    unit->diagnosed = unit_fail(unit, SMELT_ERROR_COMPILE, "%s", text);
    LLVMDisposeMessage(text);
}

static void start_llvm(void) {
    escape_install();
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    const char *arguments[] = {
        "smelt",
        /* On x86 the default address space contains all others; infer-address-spaces does not assume this by
         * itself. */
        "-assume-default-is-flat-addrspace",
        /* Addresses in threadgroup memory are computed in 32 bits (compiler/ptx/retarget.c has the same
           layout). */
        "-nvptx-short-ptr",
        /* default<O3> enables the vectorisers regardless of the pass builder's options. */
        "-vectorize-loops=false", "-scalarize-load-store", "-unroll-full-max-count=16",
        /* A round of vector code has enough work; unrolled, it takes long to compile. */
        "-sink-common-insts=false",
        /* Where some threads access four neighbours and the last one accesses what is left, LLVM would join
         * the last access of both, which then is not a neighbour of the others. */
        "-experimental-debug-variable-locations=false",
        /* Code has lines, but no variables to follow. The pass that does so in the other form looks at every
         * register of every block, and takes a third of the time of code with thousands of blocks. */
        "-combiner-tokenfactor-inline-limit=32",
        /* Of blocks with hundreds of stores, LLVM would join each one's predecessors to a list of up to
         * 2,048, again and again. */
        "-dag-maps-huge-region=400",
        /* Schedulers order each access after those before it that may meet it. Past this number in a block
         * they keep fewer of these; LLVM's own 1,000 took a second for 96 private numbers in 4 vectors each.
         */
        "-capture-tracking-max-uses-to-explore=600",
        /* A private array of 8 x 8 elements has more than the default of 100 uses. Past that, LLVM assumes
         * that a barrier reads it, and stores the sums in each round of the loop around the barrier. */
        "-grow-region-complexity-budget=1500",
        /* The edges between blocks that the register allocator looks at for each live range that it splits.
         * With LLVM's own 10,000, a loop over 500 values of a thread in four vectors each took 26 seconds
         * instead of 3. No kernel of tests/ml and bench/kernels gets other code. */
        "-cgpp-huge-func=64",
        /* CodeGenPrepare starts a function again from its first block whenever it changed a branch, in
         * functions below this number of blocks: by default 10,000. */
    };
    LLVMParseCommandLineOptions((int)(sizeof arguments / sizeof *arguments), arguments, NULL);
}

/* Names of instructions and blocks are for people who read the IR: without them, optimising takes a tenth
 * less. LLVM reads text only if it may keep names. */
static bool drops_names(struct unit *unit) {
    static const char bitcode[] = {'B', 'C'};
    const struct compile_request *request = unit->request;
    bool binary =
        request->bitcode_size >= sizeof bitcode && memcmp(request->bitcode, bitcode, sizeof bitcode) == 0;
    return binary && request->output == COMPILE_OBJECT && !unit->target->tells_names;
}

/* Whether pass_contract may find sums of products of vectors, by the symbols of bitcode: it recognises
 * temporaries by their names. */
static bool has_vector_sums(const struct compile_request *request) {
    static const char *const sums[] = {"8__vectorpl", "8__vectorpL", "8__vectormi", "8__vectormI"};
    if (!memmem(request->bitcode, request->bitcode_size, "8__vectorml", 11)) return false;
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        if (memmem(request->bitcode, request->bitcode_size, sums[i], 11)) return true;
    return false;
}

/* Messages of tests have the names of private arrays, which are names of instructions. */
static bool reads_names(struct unit *unit) {
    return !drops_names(unit) || unit->request->shape.tested || has_vector_sums(unit->request);
}

/* Names that only the first passes need go afterwards. */
static void take_names(struct unit *unit) {
    if (unit->request->shape.tested) unit_keep_private_names(unit);
    unit->drops_names = drops_names(unit) && reads_names(unit);
}

static void take_module(struct unit *unit, LLVMModuleRef module) {
    unit->module = module;
    unit->layout = LLVMGetModuleDataLayout(module);
    unit->entry = LLVMGetNamedFunction(module, ENTRY_NAME);
}

static smelt_status read_bitcode(struct unit *unit) {
    LLVMContextSetDiscardValueNames(unit->context, !reads_names(unit));
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(
        unit->request->bitcode, unit->request->bitcode_size, "kernel");
    char *message = NULL;
    /* Takes ownership of the buffer; reads LLVM text as well. */
    if (LLVMParseIRInContext(unit->context, buffer, &unit->module, &message)) {
        smelt_status status =
            unit_fail(unit, SMELT_ERROR_INTERNAL, "clang's output is not bitcode that LLVM 19 can read: %.*s",
                      (int)strcspn(message, "\n"), message);
        LLVMDisposeMessage(message);
        return status;
    }
    take_module(unit, unit->module);
    take_names(unit);
    return unit->entry
               ? SMELT_OK
               : unit_fail(
                     unit, SMELT_ERROR_INTERNAL,
                     "clang's output is not bitcode that LLVM 19 can read: it has no function " ENTRY_NAME);
}

static smelt_status print_module(struct unit *unit) {
    char *text = LLVMPrintModuleToString(unit->module);
    unit->result->text = strdup(text);
    LLVMDisposeMessage(text);
    return unit->result->text ? SMELT_OK
                              : unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for the module's text");
}

/* From one thread's IR to the engine's IR. */
static smelt_status lower(struct unit *unit) {
    unit->result->image.engine = unit->engine;
    return pipeline_lower(unit);
}

static smelt_status optimise_all(struct unit *unit) {
    TRY(read_bitcode(unit));
    TRY(pipeline_optimise(unit));
    unit->result->image.has_barrier = intrinsic_in_function(unit->entry, INTRINSIC_THREADGROUP_BARRIER);
    return unit_verify(unit);
}

/* Records it in the progress, also after a failure such as a refusal of the SIMD engine. */
static smelt_status stage(struct unit *unit, enum compile_stage_kind kind,
                          smelt_status (*work)(struct unit *unit)) {
    struct compile_progress *progress = unit->request->progress;
    compile_stage_begin(progress, kind);
    smelt_status status = work(unit);
    compile_stage_end(progress, progress && unit->module ? budget_count_all(unit->module) : 0);
    return status;
}

/* A GPU's code that is too large because loops were unrolled on request is compiled again without that. */
static smelt_status choose_rolled(struct unit *unit) {
    uint64_t blocks;
    if (unit->target->calls_runtime || !unit->unrolls) return SMELT_OK;
    return budget_check(unit, BUDGET_GPU, budget_count(unit->entry, &blocks));
}

static void take_other_engine(struct unit *unit) {
    unit->engine = unit->target->instead;
    unit->target = engine_target(unit->engine);
}

/* Code of a thread that is too large for vectors in any form: the scalar engine lowers it as it is. */
static smelt_status choose_instead(struct unit *unit) {
    enum compile_output output = unit->request->output;
    if (!unit->target->may_refuse || (output != COMPILE_OBJECT && output != COMPILE_ASM)) return SMELT_OK;
    smelt_status status = budget_check_thread(unit);
    if (status == SMELT_OK || (unit->smaller && unit->unrolls)) return status;
    unit->smaller = unit->refused = false;
    unit->result->image.refusal = strdup(unit->result->message);
    take_other_engine(unit);
    return SMELT_OK;
}

/* A copy, if the optimised code may be lowered again: its vector code may be too large, or need quick code.
 * Else NULL. */
static LLVMModuleRef keep_optimised(struct unit *unit) {
    enum compile_output output = unit->request->output;
    bool may = unit->target->may_refuse && (output == COMPILE_OBJECT || output == COMPILE_ASM);
    may &= unit->request->effort != COMPILE_BEST || budget_is_near(unit);
    return may ? LLVMCloneModule(unit->module) : NULL;
}

static smelt_status lower_again(struct unit *unit, LLVMModuleRef optimised) {
    LLVMDisposeModule(unit->module);
    take_module(unit, optimised);
    unit->smaller = unit->refused = false;
    unit->test_instructions = 0;
    return stage(unit, unit->target->stage, lower);
}

static void note_refusal(struct unit *unit) {
    if (!unit->result->image.refusal) unit->result->image.refusal = strdup(unit->result->message);
}

/* Vector code that turns out too large is written again in the plain form, and then as scalar code, from the
 * same optimised code: the plain form has another only if the source asks to unroll loops (compile_for).
 * Large quick code becomes scalar code at once. */
static smelt_status lower_within_budgets(struct unit *unit) {
    struct image *image = &unit->result->image;
    LLVMModuleRef kept = keep_optimised(unit);
    smelt_status status = stage(unit, unit->target->stage, lower);
    if (kept && unit->smaller && !unit->unrolls) {
        unit->form = FORM_PLAIN;
        note_refusal(unit);
        status = lower_again(unit, LLVMCloneModule(kept));
    }
    bool has_best = kept && status == SMELT_OK && quick_suits_gang(unit, kept);
    if (has_best) {
        image->quick = true;
        status = lower_again(unit, LLVMCloneModule(kept));
    }
    if (kept && unit->refused) {
        take_other_engine(unit);
        free(image->refusal);
        image->refusal = NULL;
        image->quick = has_best; /* where all vector code is refused, the best code is the same */
        note_refusal(unit);
        status = lower_again(unit, kept);
        kept = NULL;
    } else if (kept && status == SMELT_OK && quick_is_too_large(unit, kept)) {
        take_other_engine(unit);
        status = lower_again(unit, kept);
        kept = NULL;
    }
    if (kept) LLVMDisposeModule(kept);
    return status;
}

/* In the text of --why. */
static smelt_status report_reduced(struct unit *unit) {
    char *before = unit->result->text, *after = NULL;
    if (!unit->result->image.reduced) return SMELT_OK;
    if (asprintf(&after, "it is large: %s\n%s", unit->result->image.reduced, before ? before : "") < 0)
        return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for a report");
    unit->result->text = after;
    free(before);
    return SMELT_OK;
}

static smelt_status run(struct unit *unit) {
    enum compile_output output = unit->request->output;
    TRY(pipeline_check(unit));
    TRY(stage(unit, COMPILE_STAGE_OPTIMISE, optimise_all));
    if (output == COMPILE_IR || unit->stopped) return print_module(unit);
    if (output == COMPILE_CONSTANTS) return SMELT_OK;
    TRY(choose_rolled(unit));
    TRY(choose_instead(unit));
    unit->result->image.quick = quick_applies(unit);
    if (quick_needs_other_engine(unit)) take_other_engine(unit);
    TRY(lower_within_budgets(unit));
    if (output == COMPILE_WHY) TRY(report_reduced(unit));
    if (unit->stopped) return print_module(unit);
    if (!unit->target->generate || output == COMPILE_WHY) return SMELT_OK;
    TRY(unit_verify(unit));
    return output == COMPILE_SIMD ? SMELT_OK : stage(unit, COMPILE_STAGE_CODE, unit->target->generate);
}

/* *whole: LLVM's objects may still be used. If LLVM crashes on vector code, the scalar engine's code may
 * compile. */
static smelt_status run_guarded(struct unit *unit, bool *whole) {
    struct escape escape;
    *whole = sigsetjmp(escape.place, 1) == 0;
    if (*whole) escape_begin(&escape);
    smelt_status status =
        *whole ? run(unit)
               : unit_fail(unit, SMELT_ERROR_COMPILE, "LLVM cannot generate code for it: %s", escape.reason);
    escape_end(&escape);
    unit->refused |= !*whole && unit->target->may_refuse;
    return status;
}

/* Uses a new LLVM context. *refused: the SIMD engine does not support the kernel; the message has the reason.
 */
static smelt_status compile_form(enum code_form form, const char *because, enum engine engine,
                                 const struct compile_request *request, struct compile_result *result,
                                 bool *refused, bool *smaller) {
    struct unit unit = {.form = form,
                        .because = because,
                        .request = request,
                        .result = result,
                        .engine = engine,
                        .target = engine_target(engine),
                        .context = LLVMContextCreate()};
    unit.builder = LLVMCreateBuilderInContext(unit.context);
    LLVMContextSetDiagnosticHandler(unit.context, on_diagnostic, &unit);
    bool whole;
    smelt_status status = run_guarded(&unit, &whole);
    *refused = unit.refused;
    *smaller = unit.smaller;
    if (!whole) return status;
    LLVMDisposeBuilder(unit.builder);
    if (unit.module) LLVMDisposeModule(unit.module);
    LLVMContextDispose(unit.context);
    return status != SMELT_OK ? status : unit.diagnosed;
}

/* A failed attempt leaves nothing. */
static void begin_again(struct compile_result *result) {
    free(result->image.bindings);
    free(result->image.refusal);
    free(result->image.reduced);
    free(result->image.tensors);
    free(result->image.sites);
    free(result->text);
    free(result->constants);
    *result = (struct compile_result){0};
}

/* *form: the first to try; the last that was tried. */
static smelt_status compile_for(enum engine engine, const struct compile_request *request,
                                struct compile_result *result, enum code_form *form, bool *refused) {
    bool smaller;
    char because[sizeof result->message];
    smelt_status status = compile_form(*form, NULL, engine, request, result, refused, &smaller);
    if (!smaller) return status;
    snprintf(because, sizeof because, "%s", result->message);
    begin_again(result);
    *form = FORM_PLAIN;
    status = compile_form(FORM_PLAIN, because, engine, request, result, refused, &smaller);
    if (status == SMELT_OK && !result->image.refusal) result->image.refusal = strdup(because);
    return status;
}

/* Compiles what the SIMD engine refuses for the scalar engine; the image has the reason. What was too large
 * in its best form is not tried in that form again. */
static smelt_status compile_instead(const struct compile_request *request, struct compile_result *result,
                                    enum code_form form) {
    char *refusal = strdup(result->message);
    begin_again(result);
    smelt_status status = SMELT_OK;
    if (request->output == COMPILE_SIMD || request->output == COMPILE_WHY) {
        size_t size = strlen(refusal ? refusal : "") + 64;
        result->text = malloc(size);
        if (result->text)
            snprintf(result->text, size, "; the simd engine refuses this kernel: %s\n", refusal);
    } else {
        bool refused;
        status = compile_for(ENGINE_SCALAR, request, result, &form, &refused);
    }
    if (status == SMELT_OK)
        result->image.refusal = refusal;
    else
        free(refusal);
    return status;
}

static smelt_status compile(const struct compile_request *request, struct compile_result *result) {
    pthread_once(&llvm_once, start_llvm);
    *result = (struct compile_result){0};
    bool refused;
    enum code_form form = FORM_BEST;
    smelt_status status = compile_for((enum engine)request->shape.engine, request, result, &form, &refused);
    return refused && request->output != COMPILE_AFTER ? compile_instead(request, result, form) : status;
}

static int vector_bits(const char *cpu) {
    return simd_vector_bits(cpu, NULL);
}

SMELT_API const struct compiler *smelt_compiler(void);

const struct compiler *smelt_compiler(void) {
    static char version[32];
    static struct compiler compiler = {.interface = COMPILER_INTERFACE,
                                       .llvm_version = version,
                                       .vector_bits = vector_bits,
                                       .compile = compile};
    unsigned major, minor, patch;
    LLVMGetVersion(&major, &minor, &patch);
    snprintf(version, sizeof version, "%u.%u.%u", major, minor, patch);
    return &compiler;
}
