#include "kernels/matmul/forms.h"

#include <math.h>

#define FORMS 8
#define MOST_PARTS_GIVEN 64

/* The time for 16 bits, in waves of tiles, one on each multiprocessor. Forms of 128 threads run in
 * best.metal; fitted to times of bfloat16 products on an H200: 512³, 1024³, 2048³, 1024 × 4096 × 1024, and 64
 * to 512 rows times 4096². Forms of 256 threads run in best_warpgroups.metal; fitted to times of 2048³,
 * 4096³, 8192³, and 512 and 1024 rows times 4096², on an H200 (29 November 2026). */
struct half_cost {
    double launch; /* microseconds */
    double wave;   /* microseconds, without the stages */
    double stage;  /* microseconds per STAGE_DEPTH elements of K */
};

/* The time of best_tiles.metal, for floats, on a multiprocessor, which runs up to `resident` threadgroups at
 * once. Fitted to the times that `smelt tune matmul` printed for 34 products on an H200 (28 November 2026):
 * 64 to 4096 rows and columns, 64 to 16384 elements of K. */
struct float_cost {
    double latency; /* microseconds per TILE_DEPTH elements of K, however few simdgroups run */
    double work;    /* microseconds per TILE_DEPTH elements of K and simdgroup of a scheduler */
    double end;     /* microseconds that do not depend on K */
    int64_t resident;
};

/* The time of the launch that adds the parts of K. */
struct sum_cost {
    double launch; /* microseconds */
    double byte;   /* microseconds per byte of the parts */
};

struct entry {
    int64_t rows, columns, threads;
    union {
        struct half_cost half;
        struct float_cost single;
    } cost;
};

static const struct entry half_forms[FORMS] = {
    {64, 64, 128, {{0, 2.2, 0.215}}},  {64, 128, 128, {{0, 1.9, 0.33}}},
    {128, 64, 128, {{0, 1.9, 0.33}}},  {128, 128, 128, {{0, 3.8, 0.37}}},
    {64, 256, 128, {{0, 5.8, 0.41}}},  {128, 256, 256, {{4, 0.8, 0.64}}},
    {256, 128, 256, {{4, 0.8, 0.64}}}, {128, 128, 256, {{3.3, 0.8, 0.345}}},
};
/* The last entries are empty. */
static const struct entry float_forms[FORMS] = {
    {128, 128, 128, {.single = {0.69, 0.81, 2.6, 2}}}, {64, 64, 64, {.single = {0.41, 0.40, 0.05, 6}}},
    {64, 64, 128, {.single = {0.28, 0.26, 0.01, 6}}},  {64, 64, 32, {.single = {0.65, 0.76, 0.25, 8}}},
    {64, 128, 64, {.single = {0.62, 0.75, 0.5, 5}}},   {128, 64, 64, {.single = {0.62, 0.77, 0.2, 5}}},
};

const char *matmul_type(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT32 ? "float" : dtype == SMELT_FLOAT16 ? "half" : "bfloat";
}

static const struct entry *forms_of(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT32 ? float_forms : half_forms;
}

static int64_t pieces(int64_t size, int64_t of) {
    return (size + of - 1) / of;
}

static struct matmul_form form_of(const struct entry *entry, int64_t parts) {
    return (struct matmul_form){entry->rows, entry->columns, entry->threads, parts};
}

bool matmul_form_at(smelt_dtype dtype, int index, struct matmul_form *form) {
    const struct entry *forms = forms_of(dtype);
    if (index < 0 || index >= FORMS || !forms[index].rows) return false;
    *form = form_of(&forms[index], 1);
    return true;
}

bool matmul_form_exists(smelt_dtype dtype, const struct matmul_form *form) {
    struct matmul_form known;
    for (int i = 0; matmul_form_at(dtype, i, &known); i++)
        if (known.rows == form->rows && known.columns == form->columns && known.threads == form->threads)
            return form->parts >= 1 && form->parts <= MOST_PARTS_GIVEN;
    return false;
}

/* ---- Parts of K. */

#define TILE_DEPTH 8   /* BK of best_tiles.metal */
#define STAGE_DEPTH 64 /* what the tensor cores' stages hold */

int64_t matmul_form_depth(smelt_dtype dtype, int64_t k, struct matmul_form *form) {
    int64_t multiple = dtype == SMELT_FLOAT32 ? TILE_DEPTH : STAGE_DEPTH;
    int64_t depth = k ? pieces(pieces(k, form->parts), multiple) * multiple : multiple;
    form->parts = k ? pieces(k, depth) : 1;
    return depth;
}

static int64_t tiles_of(const struct entry *entry, const struct matmul_sizes *sizes) {
    return pieces(sizes->m, entry->rows) * pieces(sizes->n, entry->columns) * sizes->products;
}

/* ---- The choice: the form and the parts that take the least time by the estimates above. */

#define MULTIPROCESSORS 132 /* of an H200 */
#define SCHEDULERS 4        /* of a multiprocessor */
#define SIMDGROUP 32

/* Whether each part has at least `least_depth` elements of K, and the launch at most `most_groups`
 * threadgroups. One part is always allowed. */
static bool allows_parts(const struct entry *entry, const struct matmul_sizes *sizes, int64_t parts,
                         int64_t least_depth, int64_t most_groups) {
    return parts == 1 || (sizes->k / parts >= least_depth && tiles_of(entry, sizes) <= most_groups / parts);
}

/* 0 if there is one part, which is the result. */
static double time_of_sum(const struct sum_cost *cost, const struct matmul_sizes *sizes, int64_t parts) {
    double bytes = 4.0 * (double)(parts * sizes->products) * (double)sizes->m * (double)sizes->n;
    return parts == 1 ? 0 : cost->launch + cost->byte * bytes;
}

/* ---- Floats. */

#define FLOAT_PART 128   /* the fewest elements of K in a part */
#define MANY_GROUPS 1024 /* enough to occupy a large GPU */
static const struct sum_cost float_sum = {4, 8e-7};

/* Microseconds that a multiprocessor takes for `groups` threadgroups at once. */
static double time_of_round(const struct entry *entry, int64_t groups, int64_t steps) {
    const struct float_cost *cost = &entry->cost.single;
    if (!groups) return 0;
    double work = cost->work * (double)pieces(groups * (entry->threads / SIMDGROUP), SCHEDULERS);
    double step = cbrt(cost->latency * cost->latency * cost->latency + work * work * work);
    return (double)steps * step + cost->end;
}

static double float_time(const struct entry *entry, const struct matmul_sizes *sizes, int64_t parts) {
    int64_t steps = pieces(pieces(sizes->k, parts), TILE_DEPTH), resident = entry->cost.single.resident;
    int64_t groups = pieces(tiles_of(entry, sizes) * parts, MULTIPROCESSORS), rounds = groups / resident;
    return (double)rounds * time_of_round(entry, resident, steps) +
           time_of_round(entry, groups % resident, steps) + time_of_sum(&float_sum, sizes, parts);
}

static struct matmul_form choose_float(const struct matmul_sizes *sizes) {
    static const int64_t part_counts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256};
    struct matmul_form best = {0};
    double least = INFINITY;
    for (int i = 0; float_forms[i].rows; i++)
        for (int p = 0; p < (int)(sizeof part_counts / sizeof *part_counts); p++) {
            if (!allows_parts(&float_forms[i], sizes, part_counts[p], FLOAT_PART, MANY_GROUPS)) break;
            double time = float_time(&float_forms[i], sizes, part_counts[p]);
            if (time >= least) continue;
            least = time;
            best = form_of(&float_forms[i], part_counts[p]);
        }
    return best;
}

/* ---- 16 bits. */

#define MOST_PARTS 16
#define LEAST_STAGES 4 /* in a part */
static const struct sum_cost half_sum = {3, 1.4e-7};

static double half_time(const struct entry *entry, const struct matmul_sizes *sizes, int64_t parts) {
    int64_t waves = pieces(tiles_of(entry, sizes) * parts, MULTIPROCESSORS);
    int64_t stages = pieces(pieces(sizes->k, STAGE_DEPTH), parts);
    double time = entry->cost.half.launch +
                  (double)waves * (entry->cost.half.wave + (double)stages * entry->cost.half.stage);
    return time + time_of_sum(&half_sum, sizes, parts);
}

static struct matmul_form choose_half(const struct matmul_sizes *sizes) {
    struct matmul_form best = {0};
    double least = INFINITY;
    for (int i = 0; i < FORMS; i++)
        for (int64_t parts = 1; parts <= MOST_PARTS; parts++) {
            if (!allows_parts(&half_forms[i], sizes, parts, LEAST_STAGES * STAGE_DEPTH, INT64_MAX)) break;
            /* Parts were slower in best_warpgroups.metal than in best.metal. */
            if (parts > 1 && half_forms[i].threads == 256) break;
            double time = half_time(&half_forms[i], sizes, parts);
            if (time >= least) continue;
            least = time;
            best = form_of(&half_forms[i], parts);
        }
    return best;
}

struct matmul_form matmul_form_choose(smelt_dtype dtype, const struct matmul_sizes *sizes) {
    return dtype == SMELT_FLOAT32 ? choose_float(sizes) : choose_half(sizes);
}
