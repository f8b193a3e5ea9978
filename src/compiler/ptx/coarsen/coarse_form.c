/* Which form coarsened code takes. The load/store pipe of a multiprocessor takes one pass (*wavefront*) for
 * each line of 128 bytes that a request of a warp touches; the form with the fewest wavefronts per thread of
 * the kernel is chosen. Of equal ones, neighbours in x come first: they need the fewest requests. */
#include "compiler/ptx/coarsen/coarse.h"

#include <string.h>

#define LANES 32
#define LINE 128
#define WIDEST 16              /* bytes of one access */
#define MOST_INSTRUCTIONS 1600 /* of all threads together */
#define FEWEST_THREADS 64      /* of a block */
#define USUAL_THREADS 256
#define MUCH_ARITHMETIC 24 /* instructions of a thread of the kernel */

uint32_t coarse_threads(const struct coarse_form *form) {
    return form->threads * form->rounds;
}

static uint64_t product(const uint32_t size[3]) {
    return (uint64_t)size[0] * size[1] * size[2];
}

/* ---- Blocks. */

/* Blocks cover about what a group covers, so that what a group's threads read together stays together. */
static bool find_block(const struct coarsening *c, struct coarse_form *form) {
    const struct code_shape *shape = &c->unit->request->shape;
    int d = form->dimension;
    if (shape->coarse & COARSE_LINE) {
        form->block[0] = USUAL_THREADS;
        form->block[1] = form->block[2] = 1;
        return d == 0;
    }
    for (int i = 0; i < 3; i++) {
        if (!shape->size[i]) return false;
        form->block[i] = shape->size[i];
    }
    bool is_long = shape->coarse >> d & 1, whole = shape->size[d] % form->threads == 0;
    if (!is_long && !(form->neighbours && whole)) return false;
    if (form->neighbours) form->block[d] = (shape->size[d] + form->threads - 1) / form->threads;
    while (product(form->block) < USUAL_THREADS / 2) {
        int grown = is_long ? d : shape->coarse & 1 ? 0 : shape->coarse & 2 ? 1 : shape->coarse & 4 ? 2 : -1;
        if (grown < 0) break;
        form->block[grown] *= 2;
    }
    while (product(form->block) > USUAL_THREADS && form->block[0] > LANES && form->block[0] % 2 == 0)
        form->block[0] /= 2;
    /* Each lane accesses 16 bytes of its row: two lanes along y access a whole sector of 32 bytes. */
    while (form->neighbours && d == 1 && is_long && form->block[0] >= LANES && form->block[0] % 2 == 0) {
        form->block[0] /= 2;
        form->block[1] *= 2;
    }
    return product(form->block) >= FEWEST_THREADS && product(form->block) <= 1024;
}

/* ---- Costs. */

static bool is_global_access(LLVMValueRef i) {
    if (!LLVMIsALoadInst(i) && !LLVMIsAStoreInst(i)) return false;
    LLVMValueRef address = LLVMGetOperand(i, LLVMIsALoadInst(i) ? 0 : 1);
    return LLVMGetPointerAddressSpace(LLVMTypeOf(address)) == PTX_GLOBAL;
}

static LLVMValueRef address_of(LLVMValueRef access) {
    return LLVMGetOperand(access, LLVMIsALoadInst(access) ? 0 : 1);
}

static void forget_steps(struct coarsening *c) {
    for (int i = 0; i < c->count; i++)
        for (int d = 0; d < 3; d++) c->items[i].steps[d] = (struct step){STEP_NONE, 0};
}

/* The lines that a warp's request touches: `bytes` per lane, lanes `step` apart. */
static uint64_t lines_of(struct step step, uint64_t times, uint64_t bytes) {
    if (step.kind != STEP_KNOWN && step.kind != STEP_NEAR) return LANES;
    uint64_t apart = (uint64_t)(step.amount < 0 ? -step.amount : step.amount) * times;
    uint64_t span = apart < LINE ? (LANES - 1) * apart + bytes : LANES * LINE;
    uint64_t lines = (span + LINE - 1) / LINE;
    return lines > LANES ? LANES : lines;
}

/* Wavefronts of an access, for LANES × COARSE_NEIGHBOURS threads of the kernel. */
static uint64_t cost_of(struct coarsening *c, LLVMValueRef access, struct step between_lanes) {
    const struct coarse_form *form = &c->form;
    uint64_t bytes = coarse_access_bytes(c, access),
             times = form->neighbours && form->dimension == 0 ? form->threads : 1;
    uint64_t rounds = COARSE_NEIGHBOURS / form->threads;
    if (coarse_joins(c, access, form->dimension)) {
        uint64_t all = bytes * form->threads, wide = all < WIDEST ? all : WIDEST;
        return rounds * (all / wide) * lines_of(between_lanes, times, wide);
    }
    struct step step = coarse_step(c, address_of(access), form->dimension);
    bool alike = LLVMIsALoadInst(access) && step.kind == STEP_KNOWN && step.amount == 0;
    return rounds * (alike ? 1 : form->threads) * lines_of(between_lanes, times, bytes);
}

struct survey {
    struct step *between_lanes; /* by item: neighbours in x */
    uint64_t widest;            /* bytes of an access that is not alike for all threads */
    uint64_t bytes;             /* of all such accesses */
    int accesses, instructions;
    int operations; /* instructions of the hardware, roughly */
};

/* Of a division of floats or a square root, roughly. */
#define OPERATIONS_OF_DIVISION 12

static int operations_of(LLVMValueRef i) {
    bool divides = LLVMIsABinaryOperator(i) && LLVMGetInstructionOpcode(i) == LLVMFDiv;
    return divides || strcmp(called_name(i), "llvm.sqrt.f32") == 0 ? OPERATIONS_OF_DIVISION : 1;
}

/* The bytes that a thread accesses side by side: an access of a vector is one per element here, and a
 * thread's vector is as long as it is far to the next thread's. */
static uint64_t reach_of(struct step step, uint64_t bytes) {
    uint64_t apart = (uint64_t)(step.amount < 0 ? -step.amount : step.amount);
    bool vector = step.kind == STEP_KNOWN && apart > bytes && apart <= WIDEST && (apart & (apart - 1)) == 0;
    return vector ? apart : bytes;
}

static bool survey_kernel(struct coarsening *c, struct survey *s) {
    s->between_lanes = arena_alloc(&c->arena, (size_t)c->count * sizeof *s->between_lanes);
    if (!s->between_lanes) return false;
    c->form = (struct coarse_form){.threads = 1, .rounds = 1, .neighbours = true};
    forget_steps(c);
    for (int i = 0; i < c->count; i++) {
        LLVMValueRef value = c->items[i].value;
        if (!c->blocks[c->items[i].block].inside) continue;
        s->instructions++;
        s->operations += operations_of(value);
        if (!is_global_access(value)) continue;
        struct step step = coarse_step(c, address_of(value), 0);
        s->between_lanes[i] = step;
        bool alike = true;
        for (int d = 0; d < 3; d++) {
            struct step other = coarse_step(c, address_of(value), d);
            alike &= other.kind == STEP_KNOWN && other.amount == 0;
        }
        if (alike) continue;
        uint64_t bytes = reach_of(step, coarse_access_bytes(c, value));
        s->accesses++;
        s->bytes += bytes;
        if (bytes > s->widest) s->widest = bytes;
    }
    return true;
}

/* The cost of the form, which becomes c->form; UINT64_MAX: it does not exist. */
static uint64_t try_form(struct coarsening *c, const struct survey *s, const struct coarse_form *form) {
    c->form = *form;
    forget_steps(c);
    uint64_t cost = 0;
    int joined = 0;
    for (int i = 0; i < c->count; i++) {
        LLVMValueRef value = c->items[i].value;
        if (!c->blocks[c->items[i].block].inside || !is_global_access(value)) continue;
        joined += coarse_joins(c, value, form->dimension);
        cost += cost_of(c, value, s->between_lanes[i]);
    }
    return form->neighbours && !joined ? UINT64_MAX : cost;
}

/* Stores that are followed by none that the thread would do before it, and by no load. */
static void mark_wide(struct coarsening *c) {
    bool followed = false;
    for (int i = c->count - 1; i >= 0; i--) {
        struct coarse_item *item = &c->items[i];
        const struct coarse_block *block = &c->blocks[item->block];
        bool load = LLVMIsALoadInst(item->value) != NULL;
        if (!block->inside || (!load && !LLVMIsAStoreInst(item->value))) continue;
        bool joins = block->always && coarse_joins(c, item->value, c->form.dimension);
        item->wide = joins && (load ? item->first : !followed);
        followed |= load ? !item->first : !item->wide;
    }
}

/* Two rounds for code that has too little in flight otherwise, because it computes for long with the small
 * elements of one load of 16 bytes. The hardware's block is halved, so that it covers as many threads of the
 * kernel as before. */
static void choose_rounds(struct coarsening *c, const struct survey *s) {
    struct coarse_form *form = &c->form;
    const struct code_shape *shape = &c->unit->request->shape;
    bool is_long = shape->coarse >> form->dimension & 1;
    uint64_t loaded = 0;
    if (!form->neighbours || !is_long || form->threads < COARSE_NEIGHBOURS) return;
    if (s->instructions < MUCH_ARITHMETIC) return;
    if ((uint64_t)s->instructions * form->threads * COARSE_ROUNDS > MOST_INSTRUCTIONS) return;
    for (int i = 0; i < c->count; i++)
        if (c->items[i].wide && LLVMIsALoadInst(c->items[i].value))
            loaded += coarse_access_bytes(c, c->items[i].value) * form->threads;
    uint32_t *block = &form->block[form->dimension];
    if (!loaded || loaded > WIDEST || *block % COARSE_ROUNDS) return;
    if (product(form->block) / COARSE_ROUNDS < FEWEST_THREADS) return;
    if (form->dimension == 0 && *block / COARSE_ROUNDS < LANES) return;
    *block /= COARSE_ROUNDS;
    form->rounds = COARSE_ROUNDS;
}

/* What threads far apart in memory, or in the grid, gain by running together is less than what they lose by
 * being fewer. */
static bool loop_gains(struct coarsening *c) {
    if (!c->form.neighbours) return false;
    for (int i = 0; i < c->count; i++) {
        LLVMValueRef access = c->items[i].value;
        if (c->items[i].block != c->loop || (!LLVMIsALoadInst(access) && !LLVMIsAStoreInst(access))) continue;
        LLVMValueRef address = LLVMGetOperand(access, LLVMIsALoadInst(access) ? 0 : 1);
        struct step step = coarse_step(c, address, c->form.dimension);
        bool alike = LLVMIsALoadInst(access) && step.kind == STEP_KNOWN && step.amount == 0;
        if (!c->items[i].wide && !alike) return false;
    }
    return true;
}

/* Whether most accesses stay apart whatever the form, as in a window of bytes whose columns are cut to the
 * image. A thread then has several windows in flight, which takes registers, and its lanes, further apart,
 * touch more lines. (Sobel took 153 us with eight threads each, 124 with one. Of wider elements, more are in
 * flight: nine planes of floats took 103 us with four threads each, 117 with one.) */
#define WINDOW 8 /* accesses, and those per access that is joined */
#define NARROW 2 /* bytes */

static bool is_narrow_window(struct coarsening *c, const struct survey *s) {
    int joined = 0;
    if (c->loop >= 0 || s->accesses <= WINDOW || s->widest > NARROW) return false;
    for (int d = 0; d < 3; d++) {
        c->form = (struct coarse_form){.threads = 2, .rounds = 1, .neighbours = true, .dimension = d};
        forget_steps(c);
        for (int i = 0; i < c->count; i++) {
            LLVMValueRef value = c->items[i].value;
            if (c->blocks[c->items[i].block].inside && is_global_access(value))
                joined += coarse_joins(c, value, d);
        }
    }
    return s->accesses > joined * WINDOW;
}

/* What an H200 computes in the time in which it moves a byte. */
#define OPERATIONS_PER_BYTE 7

/* Threads a block apart gain what more loads in flight gain, which is nothing if they compute for longer than
 * their accesses take. (A shift of hue with eight threads each took 1.3 of the time of one.) */
static bool computes_for_long(const struct survey *s) {
    return (uint64_t)s->operations > 2 * OPERATIONS_PER_BYTE * s->bytes;
}

void coarse_choose(struct coarsening *c) {
    const struct code_shape *shape = &c->unit->request->shape;
    struct survey s = {.widest = 0};
    struct coarse_form best = {.threads = 0};
    uint64_t least = UINT64_MAX;
    if (!survey_kernel(c, &s)) return;
    uint32_t threads = s.widest ? (uint32_t)(WIDEST / (s.widest < 2 ? 2 : s.widest)) : 0;
    while (threads > 1 && (uint64_t)s.instructions * threads > MOST_INSTRUCTIONS) threads /= 2;
    if (threads < 2) {
        c->form = best;
        c->because = !s.accesses      ? "threads access no memory of their own"
                     : s.widest >= 16 ? "threads access 16 bytes each at once"
                                      : "threads have too much code";
        return;
    }
    if (is_narrow_window(c, &s)) {
        c->form = best;
        c->because = "most of its accesses would stay apart";
        return;
    }
    for (int k = 0; k < 6; k++) {
        static const struct {
            bool neighbours;
            int dimension;
        } order[6] = {{true, 0}, {false, 0}, {false, 1}, {true, 1}, {true, 2}, {false, 2}};
        struct coarse_form form = {.threads = threads,
                                   .rounds = 1,
                                   .neighbours = order[k].neighbours,
                                   .dimension = order[k].dimension};
        if (form.neighbours && (!shape->aligned || !shape->small)) continue;
        if (!find_block(c, &form)) continue;
        uint64_t cost = try_form(c, &s, &form);
        if (cost >= least) continue;
        least = cost;
        best = form;
    }
    c->form = best;
    if (!best.threads) {
        c->because = "the grid has too few threadgroups in each dimension";
        return;
    }
    if (!best.neighbours && computes_for_long(&s)) {
        c->form.threads = 0;
        c->because = "threads compute for longer than their accesses take";
        return;
    }
    forget_steps(c);
    mark_wide(c);
    if (c->loop < 0)
        choose_rounds(c, &s);
    else if (!loop_gains(c))
        c->form.threads = 0, c->because = "threads run loops";
}
