/* Threadgroup memory: exchanges between threads across barriers, without races. Before a barrier each thread
 * writes its own slots; after it any thread reads; another barrier ends the exchange. Every line has the
 * number of its exchange, so that the reducer removes all lines or none.
 *
 * Slots are first written where all threads are present; a thread that has returned leaves its last value
 * there. */
#include "generator.h"

#include <string.h>

#define BARRIER "threadgroup_barrier(mem_flags::mem_threadgroup);"

/* Threadgroup arrays by type: slot_u …, and the feature that has variables of the type. */
static const enum type slot_types[] = {UINT, FLOAT, UCHAR, ULONG, FLOAT4};
static const enum feature slot_features[] = {FEATURE_INTEGER, FEATURE_REAL, FEATURE_NARROW, FEATURE_WIDE,
                                             FEATURE_VECTOR};
enum { SLOT_TYPES = sizeof slot_types / sizeof *slot_types };

static char letter(enum type type) {
    return type == ULONG ? 'l' : (char)type == '4' ? 'v' : (char)type;
}

void declare_slots(struct generator *g) {
    char line[200];
    for (int t = 0; t < SLOT_TYPES; t++) {
        enum type type = slot_types[t];
        if (!g->enabled[slot_features[t]] || (t > 0 && random_chance(&g->random, 60))) continue;
        g->slots |= 1u << t;
        snprintf(line, sizeof line, "threadgroup %s slot_%c[1024]; slot_%c[tid] = %s(%s); // fixed",
                 type_name(type), letter(type), letter(type), type_name(type),
                 type == FLOAT4 ? "float(i)" : "i");
        write_line(g, line);
    }
    if (g->enabled[FEATURE_THREADGROUP_ATOMIC])
        write_line(g, "threadgroup atomic_uint bins[16]; for (uint j = tid; j < 16u; j += size) "
                      "atomic_store_explicit(&bins[j], 0u, memory_order_relaxed); // fixed");
    write_line(g, BARRIER " // fixed");
}

/* A line of the exchange. In `text`, @ is replaced by the slots' letter and ~~ by the character of their
 * type. */
static void part(struct generator *g, int number, enum type type, const char *text) {
    char line[400], *to = line;
    for (const char *from = text; *from; from++) {
        if (*from == '@')
            *to++ = letter(type);
        else if (*from == '~' && from[1] == '~')
            *to++ = (char)type, from++;
        else
            *to++ = *from;
    }
    snprintf(to, 40, " // exchange %d", number);
    g->budget = 8;
    write_line(g, line);
}

static void between(struct generator *g) {
    while (random_chance(&g->random, 25)) {
        g->budget = 10;
        write_line(g, "$;");
    }
}

static void neighbours(struct generator *g, int number, enum type type) {
    static const char *const writes[] = {"slot_@[tid] = $~~;", "slot_@[tid] = $~~;",
                                         "if ($B) slot_@[tid] = $~~;", "slot_@[size - 1u - tid] = $~~;",
                                         "if ($B) slot_@[tid] = $~~; else slot_@[tid] += $~~;"};
    static const char *const reads[] = {"$!~~ = slot_@[$T];", "$!~~ += slot_@[$T];",
                                        "if ($B) $!~~ = slot_@[$T];", "$!~~ = slot_@[$T] - slot_@[$T];",
                                        "if (tid < size / 2u) $!~~ += slot_@[tid + size / 2u];"};
    part(g, number, type, writes[random_below(&g->random, 5)]);
    between(g);
    part(g, number, type, BARRIER);
    between(g);
    for (int n = 0; n < 2; n++) part(g, number, type, reads[random_below(&g->random, 5)]);
    if (!g->loops && random_chance(&g->random, 20))
        part(g, number, type, "for (uint j = 0; j < size; j += $[7`32`64]u) $!~~ = slot_@[j] - $!~~;");
    between(g);
}

static void tree(struct generator *g, int number, enum type type) {
    part(g, number, type, "slot_@[tid] = $~~;");
    part(g, number, type, BARRIER);
    if (random_chance(&g->random, 60)) {
        part(g, number, type,
             "for (uint s = 512u; s > 0u; s >>= 1) { if (tid < s && tid + s < size) slot_@[tid] += "
             "slot_@[tid + s]; " BARRIER " }");
        part(g, number, type, "$!~~ += slot_@[0];");
    } else {
        char line[300];
        snprintf(
            line, sizeof line,
            "for (uint s = 1u; s < size; s <<= 1) { %s v = %s(0); if (tid >= s) v = slot_@[tid - s]; " BARRIER
            " slot_@[tid] += v; " BARRIER " }",
            type_name(type), type_name(type));
        part(g, number, type, line);
        part(g, number, type, "$!~~ = slot_@[$T];");
    }
}

static void bins(struct generator *g, int number) {
    part(g, number, UINT,
         "for (uint j = tid; j < 16u; j += size) atomic_store_explicit(&bins[j], 0u, memory_order_relaxed);");
    part(g, number, UINT, BARRIER);
    part(g, number, UINT,
         "$[`if ($B) ]atomic_fetch_$[add`max`or`xor]_explicit(&bins[$u & 15u], $u, memory_order_relaxed);");
    part(g, number, UINT, BARRIER);
    part(g, number, UINT,
         "$!u += atomic_load_explicit(&bins[$[$u & 15u`3`tid & 15u]], memory_order_relaxed);");
}

/* A row reduction: each simdgroup's sum, then the sum of those. */
static void simdgroup_sums(struct generator *g, int number) {
    part(g, number, UINT,
         "{ uint sum = simd_$[sum`max](uint($u)); if (lane == 0u) slot_u[simdgroup] = sum; }");
    part(g, number, UINT, BARRIER);
    part(g, number, UINT, "for (uint j = 0; j < simdgroups; j++) $!u += slot_u[j];");
    part(g, number, UINT, "if (simdgroup == 0u) $!u = simd_sum(lane < simdgroups ? slot_u[lane] : 0u);");
}

void write_exchange(struct generator *g) {
    int number = ++g->next_exchange, t;
    do t = (int)random_below(&g->random, SLOT_TYPES);
    while (!(g->slots & 1u << t));
    enum type type = slot_types[t];
    use(g, FEATURE_BARRIER);
    if (g->loops) use(g, FEATURE_BARRIER_LOOP);
    unsigned kind = random_below(&g->random, 10);
    if (kind < 2 && g->enabled[FEATURE_TREE] && type != UCHAR && !g->loops) {
        use(g, FEATURE_TREE);
        tree(g, number, type);
    } else if (kind < 4 && g->enabled[FEATURE_THREADGROUP_ATOMIC]) {
        use(g, FEATURE_THREADGROUP_ATOMIC);
        bins(g, number);
    } else if (kind < 5 && allowed(g, FEATURE_SIMD_REDUCE) && allowed(g, FEATURE_SIMD_DIVERGENT)) {
        use(g, FEATURE_SIMD_REDUCE);
        simdgroup_sums(g, number);
    } else {
        neighbours(g, number, type);
    }
    part(g, number, type, BARRIER);
}
