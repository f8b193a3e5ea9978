#include "kernels/matmul/forms.h"

#define FORMS 7
#define MOST_PARTS_GIVEN 64

/* The time of best.metal, for 16 bits, per wave of threadgroups, one on each multiprocessor. Fitted to times
 * of bfloat16 products on an H200: 512³, 1024³, 2048³, 1024 × 4096 × 1024, and 64 to 512 rows times 4096². */
struct cost {
    double wave;  /* microseconds, without the stages */
    double stage; /* microseconds per STAGE_DEPTH elements of K */
};

struct entry {
    int64_t rows, columns, threads;
    struct cost cost;
};

static const struct entry half_forms[FORMS] = {
    {64, 64, 128, {2.2, 0.215}},  {64, 128, 128, {1.9, 0.33}}, {128, 64, 128, {1.9, 0.33}},
    {128, 128, 128, {3.8, 0.37}}, {64, 256, 128, {5.8, 0.41}}, {128, 256, 256, {10, 0.62}},
    {256, 128, 256, {10, 0.62}},
};
/* Of best_tiles.metal; their times are not estimated. The last entry is empty. */
static const struct entry float_forms[FORMS] = {
    {128, 128, 128, {0, 0}}, {64, 64, 64, {0, 0}},  {64, 64, 128, {0, 0}},
    {64, 64, 32, {0, 0}},    {64, 128, 64, {0, 0}}, {128, 64, 64, {0, 0}},
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

/* ---- Floats. */

#define FEW_TILES 256    /* fewer large tiles would leave multiprocessors idle */
#define LEAST_PART 256   /* elements of K in a part */
#define MANY_GROUPS 1024 /* enough to occupy a large GPU */

static struct matmul_form choose_float(const struct matmul_sizes *sizes) {
    const struct entry *large = &float_forms[0], *small = &float_forms[1];
    if (tiles_of(large, sizes) >= FEW_TILES) return form_of(large, 1);
    int64_t wanted = MANY_GROUPS / tiles_of(small, sizes), most = sizes->k / LEAST_PART;
    int64_t parts = wanted < most ? wanted : most;
    return form_of(small, parts > 1 ? parts : 1);
}

/* ---- 16 bits. */

#define MULTIPROCESSORS 132 /* of an H200 */
#define MOST_PARTS 16
#define LEAST_STAGES 4       /* in a part */
#define SUM_TIME 2.0         /* microseconds for the launch that adds the parts */
#define SUM_BYTE_TIME 1.4e-7 /* microseconds for each of their bytes */

static double time_of(const struct entry *entry, const struct matmul_sizes *sizes, int64_t parts) {
    int64_t waves = pieces(tiles_of(entry, sizes) * parts, MULTIPROCESSORS);
    int64_t stages = pieces(pieces(sizes->k, STAGE_DEPTH), parts);
    double time = (double)waves * (entry->cost.wave + (double)stages * entry->cost.stage);
    if (parts == 1) return time;
    double bytes = 4.0 * (double)(parts * sizes->products) * (double)sizes->m * (double)sizes->n;
    return time + SUM_TIME + bytes * SUM_BYTE_TIME;
}

static struct matmul_form choose_half(const struct matmul_sizes *sizes) {
    const struct entry *best = &half_forms[0];
    int64_t best_parts = 1, most = sizes->k / (LEAST_STAGES * STAGE_DEPTH);
    double least = time_of(best, sizes, 1);
    for (int i = 0; i < FORMS; i++)
        for (int64_t parts = 1; parts == 1 || (parts <= most && parts <= MOST_PARTS); parts++) {
            double time = time_of(&half_forms[i], sizes, parts);
            if (time >= least) continue;
            least = time;
            best = &half_forms[i];
            best_parts = parts;
        }
    return form_of(best, best_parts);
}

struct matmul_form matmul_form_choose(smelt_dtype dtype, const struct matmul_sizes *sizes) {
    return dtype == SMELT_FLOAT32 ? choose_float(sizes) : choose_half(sizes);
}
