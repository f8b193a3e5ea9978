/* Code for the values that launches give.
 *
 * Sizes, strides and tiles that a kernel reads from its arguments are the same in most launches. With them as
 * constants, divisions become multiplications, loops have a known number of rounds, and rows a known stride.
 * A code for all values lists where it reads such integers (compiler/passes/values.c). The launch looks at
 * them before it runs. The time that launches with the same values have spent is added up; when it reaches
 * the time that a compile takes, code for these values is compiled in the background. Launches whose values
 * are equal to it run it from then on. Both codes give the same bits.
 *
 * A code has few such sets of values, so that a kernel that is called with ever-changing sizes compiles no
 * more than that. Of sets without a compile, the one that was not used for longest makes room.
 *
 * When a new code is there, launches run it and the general code in turn, and are measured, so that both meet
 * the same caches and the same load. If it takes longer per thread than the general code, that one stays. */
#include "device/cpu/values.h"
#include "base/clock.h"
#include "base/setting.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SETS 4

/* The time a compile takes, estimated by the size of the general code: LLVM takes about 3 microseconds of a
 * 4 GHz processor per byte for the vector code of tiled products, and starting the compiler takes 10 ms. */
#define COMPILE_SECONDS 0.02
#define COMPILE_SECONDS_PER_BYTE 4e-6

/* The code may be in the disk cache, from an earlier process: it is looked up after this time, which is
 * longer than that takes; of so many sets at most, as each look-up keeps some memory. */
#define RECALL_SECONDS 0.002
#define MOST_RECALLS 16

/* Launches of each code that are measured, and how much longer the new one may take, since times vary. */
#define TRIALS 5
#define MOST_RATIO 1.05

/* Launches of very different sizes are not compared: after so many in a row, the comparison begins anew. */
#define MOST_MISSES (2 * TRIALS)

enum set_state {
    SET_EMPTY,
    SET_GATHERS,  /* launches run general code, and their times are added up */
    SET_COMPILES, /* in the background, or is looked up. From here on, the values do not change */
    SET_TRIED,    /* launches run both codes in turn, and are measured */
    SET_KNOWN,    /* launches run the new code */
    SET_GENERAL   /* launches run general code: the new one is slower, or its compile failed */
};

struct set {
    _Atomic(enum set_state) state;
    struct known_values values;
    const char *kernel;      /* its name; set with SET_COMPILES */
    const struct code *code; /* from SET_TRIED on */
    double seconds;          /* of launches of general code */
    uint64_t last;           /* number of the last launch */
    /* Of launches in SET_TRIED, of general and of new code. */
    double least[2];      /* seconds per thread */
    atomic_int trials[2]; /* launches measured */
    uint64_t threads;     /* of the first one */
    int misses;           /* launches since the last one with about as many */
    bool recalled;        /* the cache was asked; until its answer, `recalls`, too */
    bool recalls;
};

struct value_sets {
    struct executable *executable;
    const struct code *general;
    pthread_mutex_t lock; /* for everything of a set but its state; only tried */
    uint64_t launches;
    int recalls;
    struct set sets[MOST_SETS];
};

/* Whether launches look at values, and compile code for them at once. */
enum values_setting { VALUES_ON, VALUES_OFF, VALUES_ALWAYS };

static enum values_setting setting_of_values(void) {
    static struct setting setting = {"SMELT_VALUES", {"1", "0", "always"}, ATOMIC_FLAG_INIT};
    return (enum values_setting)setting_choice(&setting);
}

smelt_status cpu_value_sets_create(struct executable *executable, struct code *code) {
    const struct image *image = &code->head.image;
    bool applies = engine_traits(image->engine)->is_vector && image->value_count && !image->quick;
    if (!applies || code->head.values || !executable->source.hold) return SMELT_OK;
    struct value_sets *sets = calloc(1, sizeof *sets);
    if (!sets) return fail_out_of_memory(sizeof *sets);
    sets->executable = executable;
    sets->general = code;
    pthread_mutex_init(&sets->lock, NULL);
    code->sets = sets;
    return SMELT_OK;
}

void cpu_value_sets_free(struct value_sets *sets) {
    if (!sets) return;
    pthread_mutex_destroy(&sets->lock);
    free(sets);
}

/* ---- The values of a launch. */

/* Whether a buffer that one of the codes may write overlaps this one. */
static bool is_written(const struct launch *launch, const struct code *code,
                       const struct launch_buffer *buffer) {
    const struct image *image = &code->head.image;
    for (int i = 0; i < image->binding_count; i++) {
        const struct binding *binding = &image->bindings[i];
        if (binding->kind == BINDING_BUFFER && binding->writable && !binding->unwritten &&
            launch_buffers_overlap(&launch->buffers[binding->index], buffer))
            return true;
    }
    return false;
}

static bool may_look_at(const struct launch *launch, const struct launch_codes *codes,
                        const struct launch_buffer *buffer) {
    if (!buffer->memory) return true; /* bytes that nothing else reaches */
    return !(codes->full && is_written(launch, codes->full, buffer)) &&
           !(codes->edge && codes->edge != codes->full && is_written(launch, codes->edge, buffer));
}

/* False: the launch has others in other places, or may write them. */
static bool read_values(const struct launch *launch, const struct launch_codes *codes,
                        const struct image *image, struct known_values *values) {
    memset(values, 0, sizeof *values);
    for (uint32_t i = 0; i < image->value_count; i++) {
        const struct value_place *place = &image->values[i];
        const struct launch_buffer *buffer = &launch->buffers[place->buffer];
        size_t bytes = buffer->span ? buffer->span - buffer->before : buffer->bytes;
        bool lacks = bytes < place->bytes || bytes - place->bytes < place->offset;
        if (lacks && !place->may_lack) return false;
        bool again = i && image->values[i - 1].buffer == place->buffer;
        if (!again && !may_look_at(launch, codes, buffer)) return false;
        values->values[i].place = *place;
        if (lacks)
            values->values[i].place.may_lack = VALUE_LACKS;
        else
            memcpy(&values->values[i].value, launch_address(buffer) + place->offset, place->bytes);
    }
    values->count = image->value_count;
    return true;
}

static bool same_values(const struct known_values *a, const struct known_values *b) {
    return memcmp(a->values, b->values, a->count * sizeof *a->values) == 0;
}

/* The set with these values, if they no longer change; or NULL, and SET_EMPTY. */
static struct set *find_settled(struct value_sets *sets, const struct known_values *values,
                                enum set_state *state) {
    for (int i = 0; i < MOST_SETS; i++) {
        *state = atomic_load_explicit(&sets->sets[i].state, memory_order_acquire);
        if (*state >= SET_COMPILES && same_values(values, &sets->sets[i].values)) return &sets->sets[i];
    }
    *state = SET_EMPTY;
    return NULL;
}

static bool has_room(struct value_sets *sets) {
    for (int i = 0; i < MOST_SETS; i++)
        if (atomic_load_explicit(&sets->sets[i].state, memory_order_relaxed) < SET_COMPILES) return true;
    return false;
}

/* ---- Compiles. */

/* Whether the code is of the same kind as the general one, for the same groups, and not reduced by budgets.
 */
static bool is_as_good(const struct image *general, const struct image *known) {
    return known->engine == general->engine && known->joined == general->joined &&
           (!known->refusal || general->refusal) && (!known->reduced || general->reduced);
}

static void receive(void *context, struct code_head *code) {
    struct set *set = context;
    bool recalls = set->recalls, good = code && is_as_good(&code->general->image, &code->image);
    if (good) set->code = (const struct code *)code;
    if (good) log_line(SMELT_LOG_INFO, "kernel '%s' has code for its arguments' values", set->kernel);
    set->recalls = false;
    enum set_state without = recalls && !code ? SET_GATHERS : SET_GENERAL;
    atomic_store_explicit(&set->state, good ? SET_TRIED : without, memory_order_release);
}

static void compile(struct value_sets *sets, struct set *set, enum know_how how) {
    set->recalls = how == KNOW_FROM_CACHE;
    set->recalled |= set->recalls;
    set->kernel = sets->executable->name;
    atomic_store_explicit(&set->state, SET_COMPILES, memory_order_release);
    executable_know(sets->executable, &sets->general->head, &set->values, how, receive, set);
}

/* ---- Sets, with the lock held. */

/* The set that gathers these values: the one that has, or one that makes room; or NULL. */
static struct set *gathering(struct value_sets *sets, const struct known_values *values) {
    struct set *oldest = NULL;
    for (int i = 0; i < MOST_SETS; i++) {
        struct set *set = &sets->sets[i];
        enum set_state state = atomic_load_explicit(&set->state, memory_order_relaxed);
        if (state >= SET_COMPILES) continue;
        if (state == SET_GATHERS && same_values(values, &set->values)) return set;
        if (!oldest || set->last < oldest->last) oldest = set;
    }
    if (!oldest) return NULL;
    oldest->values = *values;
    oldest->seconds = 0;
    oldest->recalled = false;
    atomic_store_explicit(&oldest->state, SET_GATHERS, memory_order_relaxed);
    return oldest;
}

static void note_gathered(struct value_sets *sets, const struct known_values *values, double seconds) {
    struct set *set = gathering(sets, values);
    if (!set) return;
    set->last = ++sets->launches;
    set->seconds += seconds;
    double size = (double)sets->general->head.image.object_size;
    bool recall = !set->recalled && sets->recalls < MOST_RECALLS && set->seconds >= RECALL_SECONDS;
    if (set->seconds >= COMPILE_SECONDS + COMPILE_SECONDS_PER_BYTE * size)
        compile(sets, set, KNOW_BY_COMPILE);
    else if (recall) {
        sets->recalls++;
        compile(sets, set, KNOW_FROM_CACHE);
    }
}

static void begin_trials(struct set *set, uint64_t threads) {
    set->threads = threads;
    set->misses = 0;
    for (int i = 0; i < 2; i++) atomic_store(&set->trials[i], 0);
}

static bool is_comparable(struct set *set, uint64_t threads) {
    if (set->threads && threads >= set->threads / 2 && threads / 2 <= set->threads) {
        set->misses = 0;
        return true;
    }
    if (set->threads && ++set->misses < MOST_MISSES) return false;
    begin_trials(set, threads);
    return true;
}

static void note_trial(struct value_sets *sets, struct set *set, bool known, uint64_t threads,
                       double seconds) {
    if (!is_comparable(set, threads)) return;
    double per_thread = seconds / (double)threads;
    int trials = atomic_load(&set->trials[known]);
    if (!trials || per_thread < set->least[known]) set->least[known] = per_thread;
    atomic_store(&set->trials[known], trials + 1);
    if (atomic_load(&set->trials[0]) < TRIALS || atomic_load(&set->trials[1]) < TRIALS) return;
    bool faster = set->least[1] <= MOST_RATIO * set->least[0];
    if (!faster)
        log_line(SMELT_LOG_INFO,
                 "kernel '%s' goes on with general code: code for its arguments' values is slower",
                 sets->executable->name);
    atomic_store_explicit(&set->state, faster ? SET_KNOWN : SET_GENERAL, memory_order_release);
}

/* ---- Launches. */

/* SMELT_VALUES=always. */
static struct set *know_now(struct value_sets *sets, const struct known_values *values,
                            enum set_state *state) {
    struct set *set = find_settled(sets, values, state);
    if (set) return set;
    pthread_mutex_lock(&sets->lock);
    set = find_settled(sets, values, state);
    if (!set) set = gathering(sets, values);
    if (set && atomic_load(&set->state) == SET_GATHERS) compile(sets, set, KNOW_NOW);
    pthread_mutex_unlock(&sets->lock);
    if (set) *state = atomic_load_explicit(&set->state, memory_order_acquire);
    return set;
}

/* Of a set in SET_TRIED: whether it is the new code's turn. */
static bool takes_turn(struct set *set) {
    return atomic_load(&set->trials[1]) <= atomic_load(&set->trials[0]);
}

/* The code for the launch's values in the place of `code`, if there is one; notes what cpu_values_end needs.
 * One code of a launch is tried at a time: that for the edge waits for the other one. */
static const struct code *replace(const struct launch *launch, const struct launch_codes *codes,
                                  const struct code *code, enum values_setting setting,
                                  struct values_note *note, int which) {
    struct value_sets *sets = code->sets;
    struct known_values *values = &note->of[which].values;
    enum set_state state;
    if (!read_values(launch, codes, &code->head.image, values)) return code;
    struct set *set =
        setting == VALUES_ALWAYS ? know_now(sets, values, &state) : find_settled(sets, values, &state);
    if (setting == VALUES_ALWAYS) return state == SET_TRIED ? set->code : code;
    bool tried = state == SET_TRIED && !(which && note->of[0].tried);
    bool known = state == SET_KNOWN || (tried && takes_turn(set));
    if (set ? tried : has_room(sets)) {
        note->of[which].sets = sets;
        note->of[which].tried = tried;
        note->of[which].known = known;
        note->timed = true;
    }
    return known ? set->code : code;
}

/* Returns all threads. Groups at the edge, which run another code, may be few. */
static uint64_t note_shares(const struct launch *launch, struct values_note *note) {
    uint64_t threads = 1, full = 1;
    for (int d = 0; d < 3; d++) {
        threads *= launch->grid[d];
        full *= launch->grid[d] / launch->group_size[d] * launch->group_size[d];
    }
    note->of[0].share = (double)full / (double)threads;
    note->of[1].share = 1 - note->of[0].share;
    return threads;
}

void cpu_values_begin(const struct launch *launch, struct launch_codes *codes, struct values_note *note) {
    enum values_setting setting = setting_of_values();
    struct launch_codes general = *codes;
    note->of[0].sets = note->of[1].sets = NULL;
    note->of[0].tried = false;
    note->timed = false;
    if (setting == VALUES_OFF) return;
    if (general.full && general.full->sets)
        codes->full = replace(launch, &general, general.full, setting, note, 0);
    if (general.edge && general.edge == general.full)
        codes->edge = codes->full; /* scalar code; it has no sets */
    else if (general.edge && general.edge->sets)
        codes->edge = replace(launch, &general, general.edge, setting, note, 1);
    if (!note->timed) return;
    note->threads = note_shares(launch, note);
    note->start = clock_nanoseconds();
}

/* A launch whose lock another thread holds is not noted, so that a process forked in between never waits. */
void cpu_values_end(struct values_note *note) {
    double seconds = 1e-9 * (double)(clock_nanoseconds() - note->start);
    for (int i = 0; i < 2; i++) {
        struct value_sets *sets = note->of[i].sets;
        if (!sets || pthread_mutex_trylock(&sets->lock) != 0) continue;
        enum set_state state;
        const struct known_values *values = &note->of[i].values;
        struct set *set = find_settled(sets, values, &state);
        if (!set)
            note_gathered(sets, values, note->of[i].share * seconds);
        else if (state == SET_TRIED && note->of[i].tried)
            note_trial(sets, set, note->of[i].known, note->threads, seconds);
        pthread_mutex_unlock(&sets->lock);
    }
}
