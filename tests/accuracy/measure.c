#include "measure.h"

#include "../prelude/support.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const smelt_dtype measured_types[TYPES] = {SMELT_FLOAT32, SMELT_FLOAT16, SMELT_BFLOAT16};
const char *const mode_names[MODES] = {"safe", "relaxed", "fast"};

/* ---- The reference and comparisons of one chunk, on several threads if it is large. */
struct work {
    const struct rules *rules;
    const struct sweep *sweep;
    const struct arguments *arguments;
    double *expected;
    const void *got; /* NULL: compute `expected` */
    int64_t from, count;
    struct worst worst;
};
static void *do_work(void *argument) {
    struct work *work = argument;
    if (work->got) {
        compare_results(work->rules, work->arguments, work->expected, work->got, work->from, work->count,
                        &work->worst);
    } else {
        const double *places[3];
        for (int k = 0; k < 3; k++)
            places[k] = work->arguments->wide[k] ? work->arguments->wide[k] + work->from : NULL;
        work->rules->function->reference(work->rules->dtype, places, work->expected + work->from,
                                         work->count);
    }
    return NULL;
}
#define MAX_THREADS 16
static void share_work(struct work work, struct worst *worst) {
    struct work parts[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN), count = 1;
    if (work.sweep->size >= 1 << 20) count = cpus < 2 ? 2 : cpus > MAX_THREADS ? MAX_THREADS : cpus;
    for (int k = 0; k < count; k++) {
        parts[k] = work;
        parts[k].from = work.sweep->size * k / count;
        parts[k].count = work.sweep->size * (k + 1) / count - parts[k].from;
        if (worst) parts[k].worst = (struct worst){.error = worst->error, .over = worst->over};
        if (k && pthread_create(&threads[k], NULL, do_work, &parts[k])) abort();
    }
    do_work(&parts[0]);
    for (int k = 0; k < count; k++) {
        if (k) pthread_join(threads[k], NULL);
        if (worst) worst_join(worst, &parts[k].worst);
    }
}

/* ---- One group of functions of one type: the contents of a kernel. */
struct group {
    const struct engines *engines;
    struct sweep sweep;
    int first, count;
    struct program programs[MODES];
    struct arguments arguments;
    double *expected;
    struct measurements *measurements[64]; /* by function, from `first` on */
};

static struct rules rules_of(const struct group *group, int function, smelt_math_mode math, enum form form,
                             int engine, char *label, size_t size) {
    const struct function *f = &accuracy_functions[function];
    bool fast =
        f->operation ? math != SMELT_MATH_SAFE : form == FAST || (form == PLAIN && math == SMELT_MATH_FAST);
    snprintf(label, size, "%s, math mode %s, %s", form_prefix[form], mode_names[math],
             group->engines->name[engine]);
    return (struct rules){f, group->sweep.dtype, math, fast, label};
}

static void measure_column(struct group *group, int function, int math, enum form form, int engine,
                           smelt_array *results, struct worst *worst) {
    char label[96];
    struct rules rules = rules_of(group, function, (smelt_math_mode)math, form, engine, label, sizeof label);
    const void *got = program_result(&group->programs[math], results, function, form);
    share_work((struct work){.rules = &rules,
                             .sweep = &group->sweep,
                             .arguments = &group->arguments,
                             .expected = group->expected,
                             .got = got},
               worst);
}

/* The column of mode safe on the first engine that this one should equal. */
static enum form form_to_equal(const struct function *function, int math, enum form form) {
    if (function->operation) return PLAIN;
    return form != PLAIN ? form : math == SMELT_MATH_FAST ? FAST : PRECISE;
}

/* All columns except those measured as a whole: they have the same bits, or are measured here. */
static void compare_columns(struct group *group, int function, smelt_array *results[MODES][ENGINES]) {
    const struct function *f = &accuracy_functions[function];
    struct measurements *m = group->measurements[function - group->first];
    for (int math = 0; math < MODES; math++)
        for (int engine = 0; engine < ENGINES; engine++)
            for (int form = 0; form < FORMS; form++) {
                enum form base = form_to_equal(f, math, (enum form)form);
                if (!results[math][engine] || (f->operation && form != PLAIN)) continue;
                if (math == 0 && engine == 0 && base == (enum form)form) continue;
                char label[96];
                struct rules rules = rules_of(group, function, (smelt_math_mode)math, (enum form)form, engine,
                                              label, sizeof label);
                const void *here =
                    program_result(&group->programs[math], results[math][engine], function, (enum form)form);
                const void *there = program_result(&group->programs[0], results[0][0], function, base);
                int64_t i = first_difference(&rules, &group->arguments, there, here, group->sweep.size);
                struct measurement *of = &m->of[math][engine][form];
                if (i >= 0) of->same = false;
                /* A GPU has fast forms of its own. */
                bool own = form == FAST && strncmp(group->engines->name[0], "cpu", 3) != 0;
                if (i >= 0 && math == SMELT_MATH_SAFE && !own)
                    failed("%s of %s (%s) differs from %son %s at %a: %a, not %a", f->name,
                           type_name(group->sweep.dtype), label, form_prefix[base], group->engines->name[0],
                           group->arguments.wide[0][i], number(group->sweep.dtype, here, i),
                           number(group->sweep.dtype, there, i));
                if (!of->same)
                    measure_column(group, function, math, (enum form)form, engine, results[math][engine],
                                   &of->worst);
            }
    m->compared += group->sweep.size;
}

/* In a sample, only the first engine runs modes other than safe. */
static bool is_measured(const struct group *group, int math, int engine, bool brief) {
    bool sampled = group->engines->sampled;
    if (math == SMELT_MATH_SAFE) return true;
    return !(sampled && engine) && (!brief || (math == SMELT_MATH_FAST && !sampled));
}

static void measure_chunk(struct group *group, int chunk) {
    const struct sweep *sweep = &group->sweep;
    bool compare = chunk >= sweep->chunks - sweep->compared;
    arguments_fill(&group->arguments, sweep, chunk);
    smelt_array *results[MODES][ENGINES] = {{NULL}};
    /* In a short run, the 16-bit types, which differ from float only in roundings, are left out of mode
     * relaxed, and of a part of fast. */
    bool brief = sweep->dtype != SMELT_FLOAT32 && sweep->size <= 1 << 17 && group->count > 1;
    for (int math = 0; math < (compare ? MODES : 1); math++)
        for (int engine = 0; engine < (compare ? ENGINES : 1); engine++)
            if (is_measured(group, math, engine, brief))
                results[math][engine] =
                    program_run(&group->programs[math], &group->arguments, group->engines->name[engine]);
    for (int function = group->first; results[0][0] && function < group->first + group->count; function++) {
        const struct function *f = &accuracy_functions[function];
        struct measurements *m = group->measurements[function - group->first];
        struct rules rules = {.function = f, .dtype = sweep->dtype};
        share_work(
            (struct work){
                .rules = &rules, .sweep = sweep, .arguments = &group->arguments, .expected = group->expected},
            NULL);
        for (int form = f->operation ? PLAIN : PRECISE; form <= (f->operation ? PLAIN : FAST); form++)
            measure_column(group, function, 0, (enum form)form, 0, results[0][0], &m->of[0][0][form].worst);
        if (compare) compare_columns(group, function, results);
        m->swept += sweep->size;
    }
    for (int math = 0; math < MODES; math++)
        for (int engine = 0; engine < ENGINES; engine++) smelt_array_release(results[math][engine]);
}

/* ---- Vectors have the same bits as scalars, component by component. */
static void check_vectors(struct group *group, int width) {
    const struct sweep *sweep = &group->sweep;
    struct program program = program_new(sweep, group->first, group->count, width, SMELT_MATH_SAFE);
    arguments_fill(&group->arguments, sweep, sweep->chunks - 1);
    smelt_array *scalars = program_run(&group->programs[0], &group->arguments, group->engines->name[0]);
    smelt_array *vectors = program_run(&program, &group->arguments, group->engines->name[0]);
    for (int function = group->first; scalars && vectors && function < group->first + group->count;
         function++)
        for (int form = PRECISE; form <= FAST; form++) {
            if (!program_has(&program, function, (enum form)form)) continue;
            struct rules rules = {.function = &accuracy_functions[function], .dtype = sweep->dtype};
            const void *here = program_result(&program, vectors, function, (enum form)form);
            const void *there = program_result(&group->programs[0], scalars, function, (enum form)form);
            int64_t i = first_difference(&rules, &group->arguments, there, here, VECTOR_POINTS);
            if (i >= 0)
                failed("%s%s of %s%d: component %lld differs from the scalar function at %a: %a, not %a",
                       form_prefix[form], rules.function->name, type_name(sweep->dtype), width,
                       (long long)(i % width), group->arguments.wide[0][i], number(sweep->dtype, here, i),
                       number(sweep->dtype, there, i));
        }
    smelt_array_release(scalars);
    smelt_array_release(vectors);
    program_free(&program);
}

/* A column with the same bits as another has its figures. */
static void fill_in(const struct group *group) {
    for (int k = 0; k < group->count; k++) {
        struct measurements *m = group->measurements[k];
        for (int math = 0; math < MODES; math++)
            for (int engine = 0; engine < ENGINES; engine++)
                for (int form = 0; form < FORMS; form++) {
                    enum form base =
                        form_to_equal(&accuracy_functions[group->first + k], math, (enum form)form);
                    if (m->of[math][engine][form].same)
                        m->of[math][engine][form].worst = m->of[0][0][base].worst;
                }
    }
}

static void measure_group(const struct engines *engines, int type, enum density density, int first, int count,
                          struct measurements (*measurements)[TYPES]) {
    struct group group = {.engines = engines,
                          .sweep =
                              sweep_of(measured_types[type], accuracy_functions[first].arguments, density),
                          .first = first,
                          .count = count};
    group.arguments = arguments_new(&group.sweep);
    group.expected = malloc((size_t)group.sweep.size * sizeof(double));
    if (!group.expected || count > (int)(sizeof group.measurements / sizeof group.measurements[0])) abort();
    for (int k = 0; k < count; k++) {
        group.measurements[k] = &measurements[first + k][type];
        for (int column = 0; column < MODES * ENGINES * FORMS; column++)
            (&group.measurements[k]->of[0][0][0])[column].same = true;
    }
    for (int math = 0; math < MODES; math++)
        group.programs[math] = program_new(&group.sweep, first, count, 0, (smelt_math_mode)math);
    for (int chunk = 0; chunk < group.sweep.chunks; chunk++) measure_chunk(&group, chunk);
    /* In a short run, all widths of float, and one of each other type, since types differ only in the scalar.
     * In a sample, one width of one type. */
    bool vectors = !engines->sampled || (first / 32 % 2 ? type > 0 : type == 0);
    for (int width = 2; vectors && width <= 4; width++)
        if (density || (type == 0 && !engines->sampled) || width == (type ? type + 1 : 4))
            check_vectors(&group, width);
    fill_in(&group);
    for (int math = 0; math < MODES; math++) program_free(&group.programs[math]);
    arguments_free(&group.arguments);
    free(group.expected);
}

void measure_all(const struct engines *engines, enum density density, const char *only,
                 struct measurements (*measurements)[TYPES]) {
    for (int type = 0; type < TYPES; type++)
        for (int first = 0, count; first < accuracy_function_count; first += count) {
            count = 1;
            while (!density && !only && first + count < accuracy_function_count && count < 32 &&
                   accuracy_functions[first + count].arguments == accuracy_functions[first].arguments)
                count++;
            if (only && strcmp(only, accuracy_functions[first].name) != 0) continue;
            if (engines->sampled && type && type != 1 + first / 64 % 2) continue; /* one 16-bit type */
            if (density)
                fprintf(stderr, "%s %s\n", type_name(measured_types[type]), accuracy_functions[first].name);
            measure_group(engines, type, density, first, count, measurements);
        }
}
