/* A kernel from its seed: its features, helper functions, variables, statements, final stores, and its
 * launch. */
#include "generate.h"
#include "generator.h"

#include <stdlib.h>

static const char header_start[] =
    "struct record {\n"
    "  uint a;\n"
    "  float b;\n"
    "  short c;\n"
    "  uint small[2];\n"
    "};\n"
    "// What of a float's bits is defined: not a NaN's sign and payload.\n"
    "inline uint bits_of(float x) { return isnan(x) ? 0x7fc00000u : as_type<uint>(x); }\n"
    "inline float number_of(float x) { return isnan(x) ? 1.5f : x; }\n"
    "inline float product_of(float a, float b, float c, float d, float e) {\n"
    "  simdgroup_float8x8 left, right, sum(e);\n"
    "  left.thread_elements()[0] = a; left.thread_elements()[1] = b;\n"
    "  right.thread_elements()[0] = c; right.thread_elements()[1] = d;\n"
    "  simdgroup_multiply_accumulate(sum, left, right, sum);\n"
    "  return sum.thread_elements()[0] - 3 * sum.thread_elements()[1];\n"
    "}\n";

/* The variables of every function, by type, with the feature they belong to. */
static const struct {
    enum type type;
    enum feature feature;
    const char *name, *value;
} standard_variables[] = {
    {UINT, FEATURE_INTEGER, "a", "$u"},   {UINT, FEATURE_INTEGER, "b", "$u"},
    {UINT, FEATURE_INTEGER, "c", "$u"},   {INT, FEATURE_INTEGER, "x", "$i"},
    {INT, FEATURE_INTEGER, "y", "$i"},    {FLOAT, FEATURE_REAL, "p", "$f"},
    {FLOAT, FEATURE_REAL, "q", "$f"},     {UCHAR, FEATURE_NARROW, "n1", "$c"},
    {SHORT, FEATURE_NARROW, "n2", "$s"},  {ULONG, FEATURE_WIDE, "l1", "$L"},
    {LONG, FEATURE_WIDE, "l2", "$l"},     {HALF, FEATURE_HALF_REAL, "h1", "$h"},
    {FLOAT2, FEATURE_VECTOR, "v2", "$2"}, {FLOAT3, FEATURE_VECTOR, "v3", "$3"},
    {FLOAT4, FEATURE_VECTOR, "v4", "$4"}, {UINT4, FEATURE_VECTOR, "w4", "$U"},
    {UCHAR4, FEATURE_VECTOR, "c4", "$C"}, {HALF4, FEATURE_VECTOR, "h4", "$H"},
};
enum { STANDARD_VARIABLES = sizeof standard_variables / sizeof *standard_variables };

static void declare_variables(struct generator *g) {
    char line[80];
    for (int v = 0; v < STANDARD_VARIABLES; v++) {
        if (!g->enabled[standard_variables[v].feature]) continue;
        snprintf(line, sizeof line, "%s %s = %s;", type_name(standard_variables[v].type),
                 standard_variables[v].name, standard_variables[v].value);
        g->budget = g->enabled[FEATURE_LARGE] ? 4 : 1;
        write_line(g, line);
        add_variable(g, standard_variables[v].type, standard_variables[v].name, true);
    }
}

static void declare_private(struct generator *g) {
    if (g->enabled[FEATURE_PRIVATE]) {
        write_line(g,
                   "uint p_u[8] = {$%, $%, 3u, 4u, a, 6u, b, $%}, p_n[2][3] = {{1u, a, 3u}, {b, 5u, $%}};");
        write_line(g, "float p_f[8] = {$~, p, q, $~};");
        write_line(g, "uchar p_c[16] = {1, 2, uchar(a), 4, 5, uchar(b)};");
        write_line(g, "short p_s[8] = {short(x), 2, short(y), -4};");
        write_line(g, "ulong p_l[4] = {a, ulong(b) << 33, 5, ~0ul};");
        write_line(
            g, "float4 p_v[4] = {float4(p), float4(q, p, $~, $~), float4($~), float4(1.0f, 2.0f, 3.0f, p)};");
    }
    if (g->enabled[FEATURE_STRUCTURE])
        write_line(g, "record one = {a, p, short(x), {b, 2u}}, records[4] = {one, {1u, q, 3, {a, 5u}}, one, "
                      "{b, $~, -3, {7u, a}}};");
}

static void write_helper(struct generator *g, enum type result) {
    g->variable_count = 0;
    g->in_kernel = false;
    g->divergence = 1;
    g->result = result;
    write_line(g, result == UINT ? "inline uint helper_u(uint r, uint s, int t) {"
                                 : "inline float helper_f(float r, float s, uint t) {");
    add_variable(g, result == UINT ? UINT : FLOAT, "r", true);
    add_variable(g, result == UINT ? UINT : FLOAT, "s", true);
    add_variable(g, result == UINT ? INT : UINT, "t", true);
    g->indent = 1;
    declare_variables(g);
    g->indent = 0;
    g->statements = g->enabled[FEATURE_LARGE] ? 8 : 2;
    write_block(g, false, 4);
    g->budget = 6;
    /* On one line, so that neither can be removed alone. */
    write_line(g, result == UINT ? "  return a ^ $u; }" : "  return p + $f; }");
    g->divergence = 0;
}

static void write_start(struct generator *g) {
    if (g->dimensions == 1) {
        write_line(g, "uint i = thread_position_in_grid.x, threads = threads_per_grid.x; // fixed");
        write_line(g,
                   "uint size = threads_per_threadgroup.x, group = threadgroup_position_in_grid.x; // fixed");
    } else {
        write_line(g, "uint3 position = thread_position_in_grid, extent = threads_per_grid, full = "
                      "threads_per_threadgroup; // fixed");
        write_line(g, "uint i = (position.z * extent.y + position.y) * extent.x + position.x, threads = "
                      "extent.x * extent.y * extent.z; // fixed");
        write_line(g, "uint size = full.x * full.y * full.z, group = threadgroup_position_in_grid.x + "
                      "threadgroup_position_in_grid.y; // fixed");
    }
    write_line(g, "uint tid = thread_index_in_threadgroup, lane = thread_index_in_simdgroup; // fixed");
    write_line(
        g,
        "uint simdgroup = simdgroup_index_in_threadgroup, simdgroups = simdgroups_per_threadgroup; // fixed");
}

/* Every variable affects an output. */
static void write_end(struct generator *g) {
    static const struct {
        enum feature feature;
        const char *text;
    } lines[] = {
        {FEATURE_INTEGER, "$*u0 += a ^ b * 7u ^ c * 31u; $*i0 = x; $*i1 = y;"},
        {FEATURE_REAL, "$*f0 += p - q;"},
        {FEATURE_NARROW, "$*c1 = n1; $*s1 = n2;"},
        {FEATURE_WIDE, "$*L1 ^= l1 + ulong(l2) * 3ul;"},
        {FEATURE_HALF_REAL, "$*h2 = h1;"},
        {FEATURE_VECTOR, "$*f1 = v2.x - v2.y; $*f2 = v3.x + v3.y * v3.z; $*f3 = v4.x - v4.y + v4.z * v4.w;"},
        {FEATURE_VECTOR,
         "$*h3 = half(h4.x + h4.w); $*u1 = w4.x ^ w4.y * 3u ^ w4.z * 5u ^ w4.w * 7u ^ c4.x ^ c4.y ^ c4.w;"},
        {FEATURE_PRIVATE,
         "for (uint j = 0; j < 8u; j++) $*u2 = $*u2 * 5u + p_u[j] + p_c[j + 8u] + uint(p_s[j]);"},
        {FEATURE_PRIVATE, "for (uint j = 0; j < 4u; j++) $*f0 += p_f[j] + p_v[j].x;"},
        {FEATURE_STRUCTURE,
         "$*u3 += one.a + uint(records[1].c) + records[3].small[1] + bits_of(records[2].b);"},
    };
    for (unsigned n = 0; n < sizeof lines / sizeof *lines; n++)
        if (g->enabled[lines[n].feature]) write_line(g, lines[n].text);
}

/* ---- Launches */

static void launch_of_line(struct random *random, struct launch *launch) {
    static const int sizes[] = {1, 31, 32, 33, 64, 96, 128, 250, 256, 512, 1024, 256, 128, 64, 7};
    int size = sizes[random_below(random, sizeof sizes / sizeof *sizes)];
    int most = MAX_THREADS / size < 5 ? MAX_THREADS / size : 5;
    int groups = 1 + (int)random_below(random, (unsigned)most);
    int threads = size * groups;
    /* Ragged at the end, or smaller than one group. */
    if (random_chance(random, 50)) threads -= (int)random_below(random, (unsigned)(size < 70 ? size : 70));
    *launch = (struct launch){{threads, 1, 1}, {size, 1, 1}};
}

static void launch_of_box(struct random *random, struct launch *launch, int dimensions) {
    static const int plane[][3] = {{8, 8, 1},  {32, 4, 1}, {16, 16, 1}, {5, 7, 1},
                                   {64, 2, 1}, {1, 33, 1}, {32, 32, 1}};
    static const int box[][3] = {{4, 4, 4}, {8, 4, 2}, {3, 5, 2}, {32, 2, 2}, {1, 1, 32}, {2, 16, 4}};
    const int *size = dimensions == 2 ? plane[random_below(random, 7)] : box[random_below(random, 6)];
    int64_t threads;
    do {
        threads = 1;
        for (int d = 0; d < 3; d++) {
            bool flat = d >= dimensions;
            int64_t extent = flat ? 1 : size[d] * (1 + (int64_t)random_below(random, 3));
            if (!flat && random_chance(random, 40))
                extent -= (int64_t)random_below(random, (unsigned)size[d]);
            launch->grid[d] = extent;
            launch->group[d] = size[d];
            threads *= extent;
        }
    } while (threads > MAX_THREADS);
}

/* Fewer than 128 threads: a full group and, mostly, part of another. */
static void launch_of_few(struct random *random, struct launch *launch, int dimensions) {
    static const int sizes[][3] = {{32, 1, 1}, {33, 1, 1}, {64, 1, 1}, {7, 1, 1},
                                   {8, 4, 1},  {5, 7, 1},  {4, 4, 2}};
    const int *size = sizes[dimensions == 1 ? random_below(random, 4) : 4 + random_below(random, 3)];
    for (int d = 0; d < 3; d++) {
        launch->group[d] = size[d];
        launch->grid[d] = d ? size[d] : size[d] + (int64_t)random_below(random, (unsigned)size[d]);
    }
}

static void start_text(struct generator *g, size_t *size, char **text) {
    g->out = open_memstream(text, size);
    if (!g->out) abort();
}

struct kernel_case generate(uint64_t seed, const bool without[FEATURE_COUNT],
                            unsigned counts[FEATURE_COUNT]) {
    struct kernel_case kernel = {.seed = seed};
    struct generator g = {
        .random = {seed * 2654435761u + 12345}, .ways = {seed * 2654435761u + 999}, .counts = counts};
    size_t size;
    for (int f = 0; f < FEATURE_COUNT; f++) {
        counts[f] = 0;
        /* Not drawn separately, so that kernels of earlier seeds stay the same. */
        g.enabled[f] = f == FEATURE_SIMD_FLOAT_SCAN ? g.enabled[FEATURE_SIMD_FLOAT] && !without[f]
                       : f == FEATURE_FAST          ? g.enabled[FEATURE_MATH] && !without[f]
                       : f == FEATURE_LEAVE_BARRIER ? g.enabled[FEATURE_RETURN] && !without[f]
                       : f == FEATURE_LARGE
                           ? !without[f]
                           : random_chance(&g.random, without[FEATURE_LARGE] ? 25 : 70) && !without[f];
    }
    g.enabled[FEATURE_INTEGER] = g.enabled[FEATURE_REAL] = true;
    g.dimensions = g.enabled[FEATURE_THREE_DIMENSIONS] && random_chance(&g.random, 15) ? 3
                   : g.enabled[FEATURE_TWO_DIMENSIONS] && random_chance(&g.random, 25) ? 2
                                                                                       : 1;
    if (g.dimensions > 1) use(&g, g.dimensions == 2 ? FEATURE_TWO_DIMENSIONS : FEATURE_THREE_DIMENSIONS);
    for (int o = 0; o < 7; o++)
        g.layout[o] = random_chance(&g.random, 50) ? INTERLEAVED : (int)random_below(&g.random, LAYOUTS);

    start_text(&g, &size, &kernel.header);
    fputs(header_start, g.out);
    if (g.enabled[FEATURE_HELPER]) {
        write_helper(&g, UINT);
        write_helper(&g, FLOAT);
        g.helpers = 2;
    }
    fclose(g.out);

    start_text(&g, &size, &kernel.body);
    g.in_kernel = true;
    g.variable_count = 0;
    g.returned = false;
    write_start(&g);
    bool arrays = g.enabled[FEATURE_PRIVATE], structures = g.enabled[FEATURE_STRUCTURE];
    g.enabled[FEATURE_PRIVATE] = g.enabled[FEATURE_STRUCTURE] = false; /* not yet declared */
    declare_variables(&g);
    g.enabled[FEATURE_PRIVATE] = arrays;
    g.enabled[FEATURE_STRUCTURE] = structures;
    declare_private(&g);
    if (g.enabled[FEATURE_BARRIER]) declare_slots(&g);
    g.statements = 10 + (int)random_below(&g.random, 30);
    if (g.enabled[FEATURE_LARGE])
        use(&g, FEATURE_LARGE);
    else
        g.statements = 1 + g.statements / 5;
    g.indent = -1;
    while (g.statements > 0) write_block(&g, false, 3);
    g.indent = 0;
    write_end(&g);
    fclose(g.out);

    kernel.data = (enum data_kind)random_below(&g.random, DATA_KINDS);
    kernel.launch_count = g.enabled[FEATURE_LARGE] ? 3 : 1;
    for (int l = 0; l < kernel.launch_count; l++) {
        if (!g.enabled[FEATURE_LARGE])
            launch_of_few(&g.random, &kernel.launches[l], g.dimensions);
        else if (g.dimensions == 1)
            launch_of_line(&g.random, &kernel.launches[l]);
        else
            launch_of_box(&g.random, &kernel.launches[l], g.dimensions);
    }
    return kernel;
}
