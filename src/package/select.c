#include "package/select.h"
#include "package/features.h"

#include <string.h>

int package_target_here(const struct package *package, struct text *why) {
    struct text here = {0};
    int best = -1, most = -1;
    features_allowed(&here);
    for (int i = 0; i < package->target_count; i++) {
        const struct package_target *target = &package->targets[i];
        char missing[64];
        if (target->kind != PACKAGE_TARGET_CPU) continue;
        if (features_missing(target->features, text_string(&here), missing)) {
            text_addf(why, "%s'%s' needs %s, which this machine has not", why->length ? "; " : "",
                      target->name, missing);
        } else if (features_count(target->features) > most) {
            best = i;
            most = features_count(target->features);
        }
    }
    text_free(&here);
    return best;
}

static bool one_dimensional(const struct code_shape *shape) {
    return shape->size[1] == 1 && shape->size[2] == 1;
}

/* Groups of one dimension, of whole simdgroups. */
static bool whole_line(const struct code_shape *shape) {
    return !shape->masked && !shape->size[0] && one_dimensional(shape);
}

bool shape_serves(const struct code_shape *made, const struct code_shape *wanted) {
    if (made->engine != wanted->engine) return false;
    if (wanted->polled && !made->polled) return false;
    if (made->small && !wanted->small) return false;
    if (wanted->masked && !made->masked) return false;
    bool rows = wanted->rows || whole_line(wanted) || (wanted->size[0] && wanted->size[0] % 32 == 0);
    if (made->rows && !rows) return false;
    uint32_t multiple = wanted->multiple  ? wanted->multiple
                        : wanted->size[0] ? wanted->size[0]
                        : !wanted->masked ? 32
                                          : 0;
    if (made->multiple && (!multiple || multiple % made->multiple || !one_dimensional(wanted))) return false;
    for (int d = 0; d < 3; d++)
        if (made->size[d] && made->size[d] != wanted->size[d]) return false;
    return true;
}

bool shape_serves_well(const struct code_shape *made, const struct code_shape *wanted) {
    struct code_shape same = *made;
    same.polled = wanted->polled;
    if (!shape_serves(made, wanted) || made->small != wanted->small) return false;
    if (whole_line(wanted) && (whole_line(made) || made->rows)) return true;
    return memcmp(&same, wanted, sizeof same) == 0;
}

/* Of two codes that serve, the one made for more of what is known is the faster. */
static int score(const struct package_code *code, const struct code_shape *wanted) {
    const struct code_shape *made = &code->shape;
    bool exact = made->size[0] && made->size[1] && made->size[2];
    return 1000 * shape_serves_well(made, wanted) + 500 * exact + 256 * !made->masked + (int)made->multiple +
           32 * (made->rows || one_dimensional(made)) + 16 * (made->small != 0) +
           8 * (made->polled == wanted->polled);
}

const struct package_code *package_find_code(const struct package_entry *entry, int target,
                                             const struct code_shape *wanted) {
    const struct package_code *best = NULL;
    for (int i = 0; i < entry->code_count; i++) {
        const struct package_code *code = &entry->codes[i];
        /* The scalar engine's code runs every launch, whatever it was made instead of. */
        bool scalar = code->engine == ENGINE_SCALAR;
        if ((int)code->target != target || !(scalar || shape_serves(&code->shape, wanted))) continue;
        if (!best || score(code, wanted) > score(best, wanted)) best = code;
    }
    return best;
}
