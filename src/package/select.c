#include "package/select.h"
#include "frontend/gpu_target.h"
#include "package/features.h"

#include <string.h>

static int target_of_gpu(const struct package *package, const char *device, struct text *why) {
    int best = -1, most = -1, rank;
    for (int i = 0; i < package->target_count; i++) {
        const struct package_target *target = &package->targets[i];
        if (target->kind != PACKAGE_TARGET_CUDA) continue;
        if (!gpu_target_runs(target->processor, device, &rank)) {
            text_addf(why, "%s'%s' does not run on %s", why->length ? "; " : "", target->name, device);
        } else if (rank > most) {
            best = i;
            most = rank;
        }
    }
    return best;
}

static int target_of_cpu(const struct package *package, struct text *why) {
    struct text here = {0};
    int best = -1, most = -1;
    features_allowed(&here);
    for (int i = 0; i < package->target_count; i++) {
        const struct package_target *target = &package->targets[i];
        char missing[64];
        if (target->kind != PACKAGE_TARGET_CPU) continue;
        if (features_missing(target->features, text_string(&here), missing)) {
            text_addf(why, "%s'%s' needs %s, which this machine lacks", why->length ? "; " : "", target->name,
                      missing);
        } else if (features_count(target->features) > most) {
            best = i;
            most = features_count(target->features);
        }
    }
    text_free(&here);
    return best;
}

int package_target_here(const struct package *package, const char *device, struct text *why) {
    return device ? target_of_gpu(package, device, why) : target_of_cpu(package, why);
}

/* ---- Shapes. */

static bool one_dimensional(const struct code_shape *shape) {
    return shape->size[1] == 1 && shape->size[2] == 1;
}

/* Groups of one dimension, of whole simdgroups. */
static bool whole_line(const struct code_shape *shape) {
    return !shape->masked && !shape->size[0] && one_dimensional(shape);
}

static bool same_size(const struct code_shape *made, const struct code_shape *wanted) {
    for (int d = 0; d < 3; d++)
        if (made->size[d] && made->size[d] != wanted->size[d]) return false;
    return true;
}

/* Polled code reads the address of a flag, and folded code takes its grid apart: a launch provides for either
 * only if it needs it. Contents that the code reads from its parameters must be there and fit; the launch
 * uploads all others. */
static bool serves_on_gpu(const struct code_shape *made, const struct code_shape *wanted) {
    if (made->polled != wanted->polled || made->folded != wanted->folded) return false;
    if (made->small && !wanted->small) return false;
    if (made->aligned && !wanted->aligned) return false;
    if (made->distinct && !wanted->distinct) return false;
    if (made->coarse & ~wanted->coarse) return false;
    if (wanted->masked && !made->masked) return false;
    uint32_t threads = wanted->size[0] * wanted->size[1] * wanted->size[2];
    if (!made->size[0] && (threads ? threads : wanted->most_threads) > made->most_threads) return false;
    for (int i = 0; i < SHAPE_MAX_INLINED; i++)
        if (made->inlined[i] && (!wanted->inlined[i] || wanted->inlined[i] > made->inlined[i])) return false;
    return same_size(made, wanted);
}

/* Masks of one dimension cost a comparison, others a division. */
static bool serves_well_on_gpu(const struct code_shape *made, const struct code_shape *wanted) {
    struct code_shape same = *made;
    if (one_dimensional(made)) same.masked = wanted->masked;
    if (made->coarse) return serves_on_gpu(made, wanted);
    return serves_on_gpu(made, wanted) && memcmp(&same, wanted, sizeof same) == 0;
}

bool shape_serves(const struct code_shape *made, const struct code_shape *wanted) {
    if (made->engine != wanted->engine) return false;
    if (engine_traits(made->engine)->is_gpu) return serves_on_gpu(made, wanted);
    if (wanted->polled && !made->polled) return false;
    if (wanted->tested && !made->tested) return false;
    if (made->distinct && !wanted->distinct) return false;
    if (made->small && !wanted->small) return false;
    if (wanted->masked && !made->masked) return false;
    if (made->joined && !wanted->joined) return false;
    bool rows = wanted->rows || whole_line(wanted) || (wanted->size[0] && wanted->size[0] % 32 == 0);
    if (made->rows && !rows) return false;
    uint32_t multiple = wanted->multiple  ? wanted->multiple
                        : wanted->size[0] ? wanted->size[0]
                        : !wanted->masked ? 32
                                          : 0;
    if (made->multiple && (!multiple || multiple % made->multiple)) return false;
    bool placed = one_dimensional(wanted) || (wanted->rows && made->size[0] == wanted->size[0]);
    if (made->multiple && !placed) return false;
    return same_size(made, wanted);
}

bool shape_serves_well(const struct code_shape *made, const struct code_shape *wanted) {
    if (engine_traits(made->engine)->is_gpu) return serves_well_on_gpu(made, wanted);
    struct code_shape same = *made;
    same.polled = wanted->polled;
    same.tested = wanted->tested;
    same.distinct = wanted->distinct;
    same.by_rows = wanted->by_rows; /* at the edges of planes only */
    if (!shape_serves(made, wanted) || made->small != wanted->small) return false;
    if (whole_line(wanted) && (whole_line(made) || made->rows)) return true;
    if (wanted->rows && made->rows) return true;
    return memcmp(&same, wanted, sizeof same) == 0;
}

/* Inlined bytes save the most: a copy per launch. */
static int score_on_gpu(const struct code_shape *made, const struct code_shape *wanted) {
    int inlined = 0;
    bool exact = made->size[0] && made->size[1] && made->size[2];
    for (int i = 0; i < SHAPE_MAX_INLINED; i++) inlined += made->inlined[i] != 0;
    return 4000 * shape_serves_well(made, wanted) + 50 * inlined + 20 * exact + 10 * one_dimensional(made) +
           15 * (made->aligned != 0) + 5 * (made->most_threads <= 256) + 4 * !made->masked +
           2 * (made->small != 0);
}

/* Of two codes that serve, the one for more known properties is faster. */
static int score(const struct package_code *code, const struct code_shape *wanted) {
    const struct code_shape *made = &code->shape;
    if (engine_traits(made->engine)->is_gpu) return score_on_gpu(made, wanted);
    bool exact = made->size[0] && made->size[1] && made->size[2];
    return 1000 * shape_serves_well(made, wanted) + 500 * exact + 256 * !made->masked + (int)made->multiple +
           32 * (made->rows || one_dimensional(made)) + 16 * (made->small != 0) +
           8 * (made->polled == wanted->polled) + 4 * (made->by_rows == wanted->by_rows);
}

bool package_has_coarse(const struct package_entry *entry, int target) {
    for (int i = 0; i < entry->code_count; i++)
        if ((int)entry->codes[i].target == target && entry->codes[i].shape.coarse) return true;
    return false;
}

const struct package_code *package_find_code(const struct package_entry *entry, int target,
                                             const struct code_shape *wanted) {
    const struct package_code *best = NULL;
    for (int i = 0; i < entry->code_count; i++) {
        const struct package_code *code = &entry->codes[i];
        if ((int)code->target != target) continue;
        if (!image_serves_all(code->engine, &code->shape) && !shape_serves(&code->shape, wanted)) continue;
        if (!best || score(code, wanted) > score(best, wanted)) best = code;
    }
    return best;
}
