/* Measures what a kernel becomes when its loops are unrolled as the source asks for, before LLVM optimises
 * all of that: of 256-bit arithmetic in limbs, a few thousand instructions become a hundred thousand, whose
 * optimisation takes 20 seconds. Loops are counted first. Only if that might be too much, they are unrolled
 * in a copy, which is then dropped.
 *
 * Requires: everything inlined, variables in registers. Maintains: everything. */
#include "compiler/budget.h"
#include "compiler/analysis/flow.h"
#include "compiler/fold.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

/* LLVM unrolls no loop to more than 16,384 instructions on request, of which it counts those that take a
 * place in code; and none to more than some 1,200 of its own accord. */
#define MOST_ON_REQUEST 32768
#define MOST_BY_ITSELF 1500
/* … unless the request is for all rounds or states a number: then LLVM does not look at the size, and takes
 * minutes for a hundred thousand rounds. Requests are dropped if they result in more than twice the
 * instructions that a thread may have (budget.c). */
#define MOST_FORCED 120000

/* ---- Counting rounds. */

/* A loop's variable. It starts at one of `starts` values: `start`, then each `apart` more than the one
 * before. It grows by `step` in each round. */
struct counter {
    LLVMValueRef phi, next;
    uint64_t start, step, starts, apart;
    int depth; /* how many counters of outer loops determine the starts */
};

#define MOST_STARTS 1024  /* each of them is counted from … */
#define MOST_FOLDS 131072 /* … for at most so many rounds in all */
#define DEEPEST_START 4   /* each level multiplies the time that counting takes */

static bool find_counter(const struct flow *flow, int loop, LLVMValueRef value, struct counter *c);
static uint64_t count_rounds(const struct flow *flow, int loop);

/* A start that is the counter of an outer loop plus a constant: for (j = i + 1; j < 16; j++). */
static bool find_outer_start(const struct flow *flow, int loop, LLVMValueRef value, struct counter *c) {
    struct counter outer;
    uint64_t more = 0;
    if (LLVMIsABinaryOperator(value) && LLVMGetInstructionOpcode(value) == LLVMAdd &&
        is_constant_integer(LLVMGetOperand(value, 1), &more))
        value = LLVMGetOperand(value, 0);
    for (loop = flow->loops[loop].parent; loop >= 0; loop = flow->loops[loop].parent)
        if (LLVMIsAPHINode(value) && find_counter(flow, loop, value, &outer)) break;
    if (loop < 0 || outer.depth == DEEPEST_START) return false;
    if (outer.starts > 1 && outer.apart != outer.step) return false;
    c->start = outer.start + more;
    c->starts = outer.starts - 1 + count_rounds(flow, loop);
    c->apart = outer.step;
    c->depth = outer.depth + 1;
    return c->starts <= MOST_STARTS;
}

static bool find_start(const struct flow *flow, int loop, LLVMValueRef value, struct counter *c) {
    c->starts = 1;
    c->apart = 0;
    c->depth = 0;
    return is_constant_integer(value, &c->start) || find_outer_start(flow, loop, value, c);
}

static bool find_counter(const struct flow *flow, int loop, LLVMValueRef value, struct counter *c) {
    LLVMValueRef add = LLVMIsAPHINode(value) ? NULL : value;
    c->phi = add ? LLVMGetOperand(add, 0) : value;
    LLVMBasicBlockRef header = flow->blocks[flow->loops[loop].header].block;
    if (!LLVMIsAPHINode(c->phi) || LLVMGetInstructionParent(c->phi) != header ||
        LLVMCountIncoming(c->phi) != 2 || LLVMGetTypeKind(LLVMTypeOf(c->phi)) != LLVMIntegerTypeKind)
        return false;
    unsigned inside = flow_block_within(flow, flow_index(flow, LLVMGetIncomingBlock(c->phi, 1)), loop);
    LLVMValueRef start = LLVMGetIncomingValue(c->phi, !inside);
    c->next = LLVMGetIncomingValue(c->phi, inside);
    if (LLVMGetIntTypeWidth(LLVMTypeOf(c->phi)) > 64 || !find_start(flow, loop, start, c) ||
        (add && add != c->next) || !LLVMIsAInstruction(c->next) ||
        LLVMGetInstructionOpcode(c->next) != LLVMAdd || LLVMGetOperand(c->next, 0) != c->phi ||
        !LLVMIsAConstantInt(LLVMGetOperand(c->next, 1)))
        return false;
    c->step = LLVMConstIntGetZExtValue(LLVMGetOperand(c->next, 1));
    return true;
}

#define UNKNOWN (MOST_ON_REQUEST + 1) /* a number of rounds */

/* From the first start: the rounds until the comparison of the counter with a constant differs from `stays`,
 * MOST_ON_REQUEST at most. */
static uint64_t count_from(const struct counter *c, LLVMValueRef compare, bool stays) {
    uint64_t rounds = 1, value = c->start, limit = LLVMConstIntGetZExtValue(LLVMGetOperand(compare, 1));
    LLVMTypeRef type = LLVMTypeOf(c->phi);
    for (uint64_t holds; rounds < MOST_ON_REQUEST; rounds++, value += c->step)
        if (!fold_integers(compare, fold_cut(type, value), limit, &holds) || (bool)holds != stays) break;
    return rounds;
}

/* The most rounds until the condition differs from `stays`: MOST_ON_REQUEST at most, or UNKNOWN. */
static uint64_t count_while(const struct flow *flow, int loop, LLVMValueRef condition, bool stays, int depth);

/* … for two conditions that both hold while the loop goes on: x & y, or neither of x | y. */
static uint64_t count_both(const struct flow *flow, int loop, LLVMValueRef condition, bool stays, int depth) {
    bool selects = LLVMIsASelectInst(condition);
    LLVMValueRef x = LLVMGetOperand(condition, 0), y = LLVMGetOperand(condition, selects && !stays ? 2 : 1),
                 other = selects ? LLVMGetOperand(condition, stays ? 2 : 1) : NULL;
    LLVMOpcode joins = stays ? LLVMAnd : LLVMOr;
    uint64_t constant = stays;
    if (selects && (!is_constant_integer(other, &constant) || (constant & 1) == stays)) return UNKNOWN;
    if (!selects && LLVMGetInstructionOpcode(condition) != joins) return UNKNOWN;
    uint64_t a = count_while(flow, loop, x, stays, depth + 1),
             b = count_while(flow, loop, y, stays, depth + 1);
    return a < b ? a : b;
}

#define DEEPEST_CONDITION 4

static uint64_t count_while(const struct flow *flow, int loop, LLVMValueRef condition, bool stays,
                            int depth) {
    struct counter c;
    if (!LLVMIsAInstruction(condition) || depth > DEEPEST_CONDITION) return UNKNOWN;
    if (LLVMIsASelectInst(condition) || LLVMIsABinaryOperator(condition))
        return count_both(flow, loop, condition, stays, depth);
    if (!LLVMIsAICmpInst(condition) || !LLVMIsAInstruction(LLVMGetOperand(condition, 0)) ||
        !LLVMIsAConstantInt(LLVMGetOperand(condition, 1)) ||
        !find_counter(flow, loop, LLVMGetOperand(condition, 0), &c))
        return UNKNOWN;
    if (LLVMGetOperand(condition, 0) != c.phi) c.start += c.step;
    uint64_t most = 0, folds = 0;
    for (uint64_t i = 0; i < c.starts && most < MOST_ON_REQUEST; i++, c.start += c.apart) {
        uint64_t rounds = count_from(&c, condition, stays);
        if (rounds > most) most = rounds;
        folds += rounds;
        if (folds > MOST_FOLDS) return MOST_ON_REQUEST;
    }
    return most;
}

/* The rounds until a block's branch leaves the loop, or UNKNOWN. */
static uint64_t count_until_exit(const struct flow *flow, int loop, int block) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(flow->blocks[block].block);
    if (!LLVMIsABranchInst(end) || !LLVMIsConditional(end)) return UNKNOWN;
    bool stays[2];
    for (unsigned i = 0; i < 2; i++)
        stays[i] = flow_block_within(flow, flow_index(flow, LLVMGetSuccessor(end, i)), loop);
    return stays[0] == stays[1] ? UNKNOWN : count_while(flow, loop, LLVMGetCondition(end), stays[0], 0);
}

static uint64_t count_rounds(const struct flow *flow, int loop) {
    uint64_t rounds = UNKNOWN;
    const struct flow_loop *l = &flow->loops[loop];
    for (int block = l->header; block < flow->block_count; block++) {
        bool always = flow_block_within(flow, block, loop);
        for (int i = 0; i < l->latch_count; i++) always &= flow_dominates(flow, block, l->latches[i]);
        uint64_t here = always ? count_until_exit(flow, loop, block) : UNKNOWN;
        if (here < rounds) rounds = here;
    }
    return rounds;
}

/* ---- Counting instructions. */

/* A loop's requests, from the notes on its branches. */
struct requests {
    bool any;        /* to unroll it, … */
    bool unknown;    /* … also if its rounds are not known, … */
    bool only_known; /* … unless this is noted, too */
    bool all;        /* all rounds */
    uint64_t count;  /* so many */
};

static void read_note(LLVMValueRef note, struct requests *r) {
    static const char unroll[] = "llvm.loop.unroll.";
    LLVMValueRef words[4];
    if (!note || !LLVMIsAMDNode(note) || LLVMGetMDNodeNumOperands(note) > sizeof words / sizeof *words)
        return;
    words[0] = words[1] = NULL;
    LLVMGetMDNodeOperands(note, words);
    unsigned length;
    const char *text = words[0] && LLVMIsAMDString(words[0]) ? LLVMGetMDString(words[0], &length) : "";
    if (strncmp(text, unroll, sizeof unroll - 1) != 0) return;
    const char *what = text + sizeof unroll - 1;
    if (strcmp(what, "disable") == 0) return;
    if (strcmp(what, "runtime.disable") == 0) r->only_known = true;
    bool all = strcmp(what, "full") == 0;
    r->any = true;
    r->all |= all;
    r->unknown |= !all;
    if (strcmp(what, "count") == 0 && words[1]) is_constant_integer(words[1], &r->count);
}

static unsigned kind_of_notes(struct unit *unit) {
    return LLVMGetMDKindIDInContext(unit->context, "llvm.loop", 9);
}

static LLVMValueRef branch_back(const struct flow *flow, const struct flow_loop *loop, int latch) {
    return LLVMGetBasicBlockTerminator(flow->blocks[loop->latches[latch]].block);
}

static struct requests requests_of(struct unit *unit, const struct flow *flow, const struct flow_loop *loop) {
    struct requests r = {0};
    for (int i = 0; i < loop->latch_count; i++) {
        LLVMValueRef notes = LLVMGetMetadata(branch_back(flow, loop, i), kind_of_notes(unit)), note[16];
        unsigned count = notes ? LLVMGetMDNodeNumOperands(notes) : 0;
        if (count > sizeof note / sizeof *note) r.any = r.unknown = true;
        if (!count || count > sizeof note / sizeof *note) continue;
        LLVMGetMDNodeOperands(notes, note);
        for (unsigned n = 1; n < count; n++) read_note(note[n], &r); /* the first is the list itself */
    }
    r.unknown &= !r.only_known;
    return r;
}

/* Instructions, first without and then with the loops unrolled whose rounds only the run can tell: LLVM does
 * that last, in the copies that others have become. */
struct size {
    uint64_t known, all;
};

static struct size times(struct size size, uint64_t rounds) {
    return (struct size){size.known * rounds, size.all * rounds};
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* At most what a loop becomes; LLVM may find rounds that are not known here. */
static struct size bound(struct unit *unit, const struct flow *flow, int loop, struct size size) {
    uint64_t rounds = count_rounds(flow, loop);
    bool requested = requests_of(unit, flow, &flow->loops[loop]).any;
    uint64_t most = requested ? MOST_ON_REQUEST : MOST_BY_ITSELF;
    if (rounds >= MOST_ON_REQUEST) return (struct size){size.known, larger(size.all, most)};
    if (size.known * rounds <= most) return times(size, rounds);
    /* LLVM unrolls longer loops on request only, and only in part. */
    return requested ? (struct size){larger(size.known, most), larger(size.all, most)} : size;
}

/* Loops whose rounds are not known are unrolled on request, too: to eight rounds at once, unless that is too
 * long, next to the loop of the rounds that remain. A known number of rounds that is too long is unrolled in
 * part. */
#define ROUNDS_AT_ONCE 8

static struct size repeat(struct unit *unit, const struct flow *flow, int loop, struct size size) {
    uint64_t known = count_rounds(flow, loop), rounds = known < ROUNDS_AT_ONCE ? known : ROUNDS_AT_ONCE;
    if (!requests_of(unit, flow, &flow->loops[loop]).unknown) return size;
    while (rounds > 1 && size.all * rounds > MOST_ON_REQUEST) rounds /= 2;
    return rounds > 1 ? times(size, rounds + (known >= MOST_ON_REQUEST)) : size;
}

/* Instead of all rounds: up to 16,384 instructions, if LLVM finds the number of rounds after all. */
static void bound_request(struct unit *unit, LLVMValueRef branch) {
    static const char *const words[] = {"llvm.loop.unroll.enable", "llvm.loop.unroll.runtime.disable"};
    LLVMContextRef context = unit->context;
    LLVMMetadataRef list[3] = {LLVMTemporaryMDNode(context, NULL, 0)};
    for (int i = 0; i < 2; i++) {
        LLVMMetadataRef text = LLVMMDStringInContext2(context, words[i], strlen(words[i]));
        list[i + 1] = LLVMMDNodeInContext2(context, &text, 1);
    }
    LLVMMetadataRef node = LLVMMDNodeInContext2(context, list, 3);
    LLVMMetadataReplaceAllUsesWith(list[0], node);
    LLVMSetMetadata(branch, kind_of_notes(unit), LLVMMetadataAsValue(context, node));
}

/* What a loop becomes as the source asks. Requests for far too much are dropped. */
static struct size limit(struct unit *unit, const struct flow *flow, int loop, struct size size) {
    const struct flow_loop *l = &flow->loops[loop];
    struct requests r = requests_of(unit, flow, l);
    if (!r.any) return size;
    uint64_t known = count_rounds(flow, loop), rounds = known == UNKNOWN || r.count ? r.count : known;
    bool fits = size.all * rounds <= MOST_FORCED;
    if (!fits) unit->refused_unrolling = larger(unit->refused_unrolling, size.all * rounds);
    for (int i = 0; i < l->latch_count; i++) {
        LLVMValueRef branch = branch_back(flow, l, i);
        if (!fits)
            LLVMSetMetadata(branch, kind_of_notes(unit), NULL);
        else if (r.all && known == UNKNOWN)
            bound_request(unit, branch);
    }
    return fits && rounds ? times(size, rounds) : size;
}

/* The instructions of the function, where each loop has the size that `grown` gives for its own. */
static smelt_status add_loops(struct unit *unit, LLVMValueRef function,
                              struct size (*grown)(struct unit *, const struct flow *, int, struct size),
                              uint64_t *size) {
    struct arena arena = {0};
    struct flow flow;
    smelt_status status = flow_find(unit, function, &arena, &flow);
    struct size *sizes =
        status == SMELT_OK ? arena_alloc(&arena, ((size_t)flow.loop_count + 1) * sizeof *sizes) : NULL;
    *size = UINT64_MAX;
    if (sizes) {
        for (int i = 0; i < flow.block_count; i++) /* sizes[0] is the function's own */
            FOR_EACH_INSTRUCTION(instruction, flow.blocks[i].block) {
                sizes[flow.blocks[i].loop + 1].known++;
                sizes[flow.blocks[i].loop + 1].all++;
            }
        for (int loop = flow.loop_count - 1; loop >= 0; loop--) {
            struct size *outer = &sizes[flow.loops[loop].parent + 1];
            struct size inner = grown(unit, &flow, loop, sizes[loop + 1]);
            *outer = (struct size){outer->known + inner.known, outer->all + inner.all};
        }
        *size = sizes[0].all;
    }
    arena_free(&arena);
    return status;
}

static smelt_status measure(struct unit *unit, uint64_t *size) {
    LLVMModuleRef module = unit->module;
    LLVMValueRef entry = unit->entry;
    unit->module = LLVMCloneModule(module);
    smelt_status status = run_passes(unit, "function(loop(loop-rotate,indvars,loop-unroll-full))");
    unit->entry = LLVMGetNamedFunction(unit->module, ENTRY_NAME);
    if (status == SMELT_OK) status = add_loops(unit, unit->entry, repeat, size);
    LLVMDisposeModule(unit->module);
    unit->module = module;
    unit->entry = entry;
    return status;
}

smelt_status unrolled_count_open(struct unit *unit, uint64_t *loops) {
    struct arena arena = {0};
    struct flow flow;
    smelt_status status = flow_find(unit, unit->entry, &arena, &flow);
    *loops = 0;
    for (int loop = 0; status == SMELT_OK && loop < flow.loop_count; loop++)
        *loops += count_rounds(&flow, loop) >= MOST_ON_REQUEST;
    arena_free(&arena);
    return status;
}

smelt_status pass_requests(struct unit *unit) {
    uint64_t size;
    unit->refused_unrolling = 0;
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f && unit->unrolls; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f)) TRY(add_loops(unit, f, limit, &size));
    if (!unit->refused_unrolling) return SMELT_OK;
    return budget_reduce(unit, "a loop is not unrolled on request", "instructions after unrolling",
                         unit->refused_unrolling, MOST_FORCED);
}

smelt_status pass_unrolled(struct unit *unit) {
    uint64_t size, open;
    TRY(pass_requests(unit));
    if (unit->form != FORM_BEST || !unit->target->calls_runtime) return SMELT_OK;
    TRY(unrolled_count_open(unit, &open));
    if (open > MANY_OPEN_LOOPS) return SMELT_OK; /* the optimiser unrolls no loops then */
    TRY(add_loops(unit, unit->entry, bound, &size));
    if (budget_fits_unrolled(unit, size)) return SMELT_OK;
    TRY(measure(unit, &size));
    return budget_check_unrolled(unit, size);
}

bool unrolled_ends(struct unit *unit, LLVMValueRef function) {
    struct arena arena = {0};
    struct flow flow;
    bool ends = flow_find(unit, function, &arena, &flow) == SMELT_OK && !flow.irreducible;
    uint64_t *rounds = ends ? arena_alloc(&arena, ((size_t)flow.loop_count + 1) * sizeof *rounds) : NULL;
    ends = rounds;
    if (rounds) rounds[0] = 1; /* of the function's body; those of its loops follow, outer loops first */
    for (int loop = 0; ends && loop < flow.loop_count; loop++) {
        rounds[loop + 1] = rounds[flow.loops[loop].parent + 1] * count_rounds(&flow, loop);
        ends = rounds[loop + 1] < MOST_ON_REQUEST;
    }
    arena_free(&arena);
    return ends;
}
