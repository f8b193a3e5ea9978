#include "device/gpu_shape.h"
#include "base/setting.h"

#include <pthread.h>
#include <string.h>

/* Fewer threads than this do not fill a large GPU as it is: 132 multiprocessors of 2048. */
#define COARSE_THREADS (UINT64_C(1) << 18)
/* Blocks that cover several groups are wasted at the edge of a grid with fewer. */
#define COARSE_GROUPS 32

enum coarse_setting { COARSE_LARGE, COARSE_NEVER, COARSE_ALWAYS };

static pthread_once_t settings_once = PTHREAD_ONCE_INIT;
static enum coarse_setting coarse_setting;
static bool any_buffers; /* code for buffers that may begin anywhere and overlap, whether they do or not */

static void read_settings(void) {
    static struct setting buffers = {
        .variable = "SMELT_GPU_BUFFERS", .words = {"seen", "any"}, .warned = ATOMIC_FLAG_INIT};
    static struct setting setting = {
        .variable = "SMELT_GPU_COARSE", .words = {"large", "never", "always"}, .warned = ATOMIC_FLAG_INIT};
    coarse_setting = (enum coarse_setting)setting_choice(&setting);
    any_buffers = setting_choice(&buffers) != 0;
}

static uint32_t coarse_of(const struct launch *launch, const struct code_shape *shape) {
    const uint32_t *grid = launch->grid;
    uint32_t coarse = 0;
    bool line = grid[1] == 1 && grid[2] == 1, always = coarse_setting == COARSE_ALWAYS;
    if (coarse_setting == COARSE_NEVER || shape->folded || (!shape->size[0] && !line)) return 0;
    if (!always && (uint64_t)grid[0] * grid[1] * grid[2] < COARSE_THREADS) return 0;
    for (int d = 0; d < 3; d++) {
        if (grid[d] >= INT32_MAX - 1023u) return 0;
        if (always ? grid[d] > 1 : launch->groups[d] >= COARSE_GROUPS) coarse |= 1u << d;
    }
    return line ? COARSE_LINE | 1 : coarse;
}

void gpu_shape(const struct launch *launch, bool barrier_hint, struct code_shape *shape) {
    const uint32_t *size = launch->group_size;
    uint32_t threads = size[0] * size[1] * size[2];
    bool line = size[1] == 1 && size[2] == 1;
    (void)barrier_hint; /* of the text: other kernels' barriers are there, too */
    (void)pthread_once(&settings_once, read_settings);
    *shape = (struct code_shape){.engine = ENGINE_PTX,
                                 .polled = launch->timeout > 0,
                                 .small = !launch->large,
                                 .aligned = !launch->unaligned && !any_buffers,
                                 .distinct = !launch->overlapping && !any_buffers};
    for (int d = 0; d < 3; d++) {
        if (launch->grid[d] % size[d]) shape->masked = 1;
        if (launch->grid[d] >= INT32_MAX - 1023u) shape->small = 0;
        if (launch->groups[d] > (d ? GPU_MOST_BLOCKS : GPU_MOST_BLOCKS_X)) shape->folded = 1;
    }
    if (launch->tested) {
        /* Indices and addresses may be anything, and each access keeps its own line of the source. */
        shape->tested = shape->polled = 1;
        shape->small = shape->aligned = shape->distinct = 0;
    } else {
        memcpy(shape->inlined, launch->inlined, sizeof shape->inlined);
    }
    if (threads % 32 == 0) {
        memcpy(shape->size, size, sizeof shape->size);
    } else {
        for (int d = 1; d < 3; d++) shape->size[d] = line;
        shape->most_threads = 32;
        while (shape->most_threads < threads) shape->most_threads *= 2;
    }
    shape->coarse = launch->tested ? 0 : coarse_of(launch, shape);
}
