/* Simdgroup operations of the scalar engine: which lanes perform one together, and its result.
 *
 * When every lane of a simdgroup waits or is done, the lanes that stand earliest in the program form the
 * active set: positions are compared from the outermost loop inwards, and within one loop its iteration
 * count. Lanes that took the other side of a branch, or left a loop, stand later and are waited for: control
 * flow reconverges as soon as it can, as on the hardware and in the SIMD engine.
 *
 * What a lane does on its way out of a loop, from where nothing leads back, belongs behind the loop in the
 * compiler's eyes: lanes that leave in different rounds perform such an operation together. */
#include "check/check.h"
#include "device/cpu/scalar.h"

#include <math.h>
#include <string.h>

static int compare_places(const struct thread *a, const struct thread *b, const struct site *sites) {
    const struct site *p = &sites[a->site], *q = &sites[b->site];
    for (int d = 0;; d++) {
        if (p->position[d] != q->position[d]) return p->position[d] < q->position[d] ? -1 : 1;
        if (d == p->depth || d == q->depth) return 0;
        uint32_t i = a->context.iterations[d], j = b->context.iterations[d];
        if (i != j) return i < j ? -1 : 1;
    }
}

static uint64_t identity(enum simd_type type, unsigned operation) {
    float real = 0;
    switch (operation & ~(unsigned)SIMD_EXCLUSIVE) {
    case SIMD_PRODUCT:
        if (type != SIMD_F32) return 1;
        real = 1;
        break;
    case SIMD_MIN_FLOAT:
        real = INFINITY;
        break;
    case SIMD_MAX_FLOAT:
        real = -INFINITY;
        break;
    case SIMD_MIN_SIGNED:
        return type == SIMD_I64 ? (uint64_t)INT64_MAX : (uint32_t)INT32_MAX;
    case SIMD_MAX_SIGNED:
        return type == SIMD_I64 ? (uint64_t)INT64_MIN : (uint32_t)INT32_MIN;
    case SIMD_MIN_UNSIGNED:
    case SIMD_AND:
        return type == SIMD_I64 ? UINT64_MAX : UINT32_MAX;
    default:
        return 0;
    }
    uint32_t bits;
    memcpy(&bits, &real, sizeof bits);
    return bits;
}

static float as_float(uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float real;
    memcpy(&real, &low, sizeof real);
    return real;
}

static uint64_t combine_floats(unsigned operation, float a, float b) {
    float result = 0;
    switch (operation) {
    case SIMD_SUM:
        result = a + b;
        break;
    case SIMD_PRODUCT:
        result = a * b;
        break;
    case SIMD_MIN_FLOAT:
        result = fminf(a, b);
        break;
    case SIMD_MAX_FLOAT:
        result = fmaxf(a, b);
        break;
    default:
        break;
    }
    uint32_t bits;
    memcpy(&bits, &result, sizeof bits);
    return bits;
}

static uint64_t combine(enum simd_type type, unsigned operation, uint64_t a, uint64_t b) {
    if (type == SIMD_F32) return combine_floats(operation, as_float(a), as_float(b));
    bool wide = type == SIMD_I64;
    int64_t p = wide ? (int64_t)a : (int32_t)a, q = wide ? (int64_t)b : (int32_t)b;
    switch (operation) {
    case SIMD_SUM:
        return a + b;
    case SIMD_PRODUCT:
        return a * b;
    case SIMD_MIN_SIGNED:
        return p < q ? a : b;
    case SIMD_MAX_SIGNED:
        return p > q ? a : b;
    case SIMD_MIN_UNSIGNED:
        return (wide ? a < b : (uint32_t)a < (uint32_t)b) ? a : b;
    case SIMD_MAX_UNSIGNED:
        return (wide ? a > b : (uint32_t)a > (uint32_t)b) ? a : b;
    case SIMD_AND:
        return a & b;
    case SIMD_OR:
        return a | b;
    case SIMD_XOR:
        return a ^ b;
    default:
        return 0;
    }
}

/* The lanes of one operation: threads by lane, NULL where the lane is not active. */
struct lanes {
    struct thread *thread[SIMDGROUP_LANES];
};

static void shuffle(const struct lanes *lanes) {
    uint64_t values[SIMDGROUP_LANES];
    for (int i = 0; i < SIMDGROUP_LANES; i++) values[i] = lanes->thread[i] ? lanes->thread[i]->value : 0;
    for (int i = 0; i < SIMDGROUP_LANES; i++) {
        struct thread *thread = lanes->thread[i];
        /* From a lane that is not there, or not active, comes the lane's own value. */
        if (thread && thread->argument < SIMDGROUP_LANES && lanes->thread[thread->argument])
            thread->value = values[thread->argument];
    }
}

static void ballot(const struct lanes *lanes) {
    uint64_t mask = 0;
    for (int i = 0; i < SIMDGROUP_LANES; i++)
        if (lanes->thread[i] && (lanes->thread[i]->value & 1)) mask |= UINT64_C(1) << i;
    for (int i = 0; i < SIMDGROUP_LANES; i++)
        if (lanes->thread[i]) lanes->thread[i]->value = mask;
}

/* A sum over lanes first to last as a tree: pairs, then pairs of pairs, which is what vector code does too.
 */
static uint64_t reduce_range(const struct lanes *lanes, int first, int last, enum simd_type type,
                             unsigned operation, bool *any) {
    if (last - first == 1) {
        *any = lanes->thread[first] != NULL;
        return *any ? lanes->thread[first]->value : 0;
    }
    bool left, right;
    int middle = (first + last) / 2;
    uint64_t a = reduce_range(lanes, first, middle, type, operation, &left);
    uint64_t b = reduce_range(lanes, middle, last, type, operation, &right);
    *any = left || right;
    return left && right ? combine(type, operation, a, b) : left ? a : b;
}

static void reduce(const struct lanes *lanes, uint32_t code) {
    enum simd_type type = SIMD_CODE_TYPE(code);
    int width = (int)SIMD_CODE_WIDTH(code);
    for (int first = 0; first < SIMDGROUP_LANES; first += width) {
        bool any;
        uint64_t result = reduce_range(lanes, first, first + width, type, SIMD_CODE_OPERATION(code), &any);
        for (int i = first; i < first + width; i++)
            if (lanes->thread[i]) lanes->thread[i]->value = result;
    }
}

static void scan(const struct lanes *lanes, uint32_t code) {
    enum simd_type type = SIMD_CODE_TYPE(code);
    unsigned operation = SIMD_CODE_OPERATION(code);
    bool exclusive = (operation & SIMD_EXCLUSIVE) != 0;
    int width = (int)SIMD_CODE_WIDTH(code);
    operation &= ~(unsigned)SIMD_EXCLUSIVE;
    for (int first = 0; first < SIMDGROUP_LANES; first += width) {
        uint64_t total = identity(type, operation);
        bool any = false;
        for (int i = first; i < first + width; i++) {
            struct thread *thread = lanes->thread[i];
            if (!thread) continue;
            uint64_t next = any ? combine(type, operation, total, thread->value) : thread->value;
            thread->value = exclusive ? total : next;
            total = next;
            any = true;
        }
    }
}

/* One element of each lane of a product of 8×8 matrices: compiler/simd/matrix/matrix.c. A value is the
 * address of four floats: the lane's two elements of A's row, its element of B, what is added. */
static void matrix_product(const struct lanes *lanes) {
    float operands[SIMDGROUP_LANES][4] = {{0}};
    for (int i = 0; i < SIMDGROUP_LANES; i++)
        if (lanes->thread[i])
            memcpy(operands[i], (const void *)(uintptr_t)lanes->thread[i]->value, sizeof operands[i]);
    for (int i = 0; i < SIMDGROUP_LANES; i++) {
        if (!lanes->thread[i]) continue;
        float sum = operands[i][3];
        for (int k = 0; k < 8; k++) {
            int left = SIMD_MATRIX_LEFT_LANE(i, k), right = SIMD_MATRIX_RIGHT_LANE(i, k);
            sum = fmaf(operands[left][k % 2], operands[right][2], sum);
        }
        lanes->thread[i]->value = 0;
        memcpy(&lanes->thread[i]->value, &sum, sizeof sum);
    }
}

static enum check_scan scan_of(uint32_t code) {
    if (SIMD_CODE_KIND(code) != SIMD_SCAN) return CHECK_NO_SCAN;
    return SIMD_CODE_OPERATION(code) & SIMD_EXCLUSIVE ? CHECK_SCAN_EXCLUSIVE : CHECK_SCAN_INCLUSIVE;
}

static enum check_lanes_function function_of(uint32_t code) {
    switch (SIMD_CODE_KIND(code)) {
    case SIMD_SHUFFLE:
        return CHECK_LANES_SHUFFLE;
    case SIMD_REDUCE:
    case SIMD_SCAN:
        return CHECK_LANES_COLLECTIVE;
    case SIMD_MATRIX:
        return CHECK_LANES_PRODUCT;
    case SIMD_BARRIER:
        return CHECK_LANES_BARRIER;
    case SIMD_BALLOT:
        break;
    }
    return CHECK_LANES_VOTE;
}

/* Those of `lanes` perform it. */
static void tell(struct check *check, const struct lanes *lanes, const struct thread *threads, int first,
                 int last, uint32_t code) {
    struct check_lanes told = {.function = function_of(code),
                               .scan = scan_of(code),
                               .first = (uint32_t)first,
                               .width = SIMDGROUP_LANES};
    if (told.function == CHECK_LANES_COLLECTIVE) told.width = SIMD_CODE_WIDTH(code);
    for (int i = first; i < last; i++) {
        int lane = i - first;
        told.exist |= UINT32_C(1) << lane;
        told.left |= (uint32_t)(threads[i].state == THREAD_DONE && threads[i].context.returned) << lane;
        told.active |= (uint32_t)(lanes->thread[lane] != NULL) << lane;
        told.sources[lane] = threads[i].argument;
    }
    check_simdgroup(check, &told);
}

bool simdgroup_step(struct thread *threads, int first, int last, const struct site *sites,
                    struct check *check) {
    struct thread *earliest = NULL;
    for (int i = first; i < last; i++) {
        struct thread *thread = &threads[i];
        if (thread->state != THREAD_AT_SIMD) continue;
        if (!earliest || compare_places(thread, earliest, sites) < 0) earliest = thread;
    }
    if (!earliest) return false;
    struct lanes lanes = {{NULL}};
    for (int i = first; i < last; i++) {
        struct thread *thread = &threads[i];
        if (thread->state != THREAD_AT_SIMD || compare_places(thread, earliest, sites) != 0) continue;
        lanes.thread[thread->context.lane] = thread;
        thread->state = THREAD_READY;
    }
    if (check) tell(check, &lanes, threads, first, last, earliest->code);
    switch (SIMD_CODE_KIND(earliest->code)) {
    case SIMD_SHUFFLE:
        shuffle(&lanes);
        break;
    case SIMD_BALLOT:
        ballot(&lanes);
        break;
    case SIMD_REDUCE:
        reduce(&lanes, earliest->code);
        break;
    case SIMD_SCAN:
        scan(&lanes, earliest->code);
        break;
    case SIMD_MATRIX:
        matrix_product(&lanes);
        break;
    case SIMD_BARRIER:
        break;
    }
    return true;
}
