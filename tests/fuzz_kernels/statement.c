/* Control flow: blocks of statements, each on its own line, so that a case can be reduced by lines. Every
 * loop ends: the bound of its counter is on the loop's own line, and nothing else writes the counter. */
#include "generator.h"

#include <string.h>

#define MAX_NESTING 5
#define MAX_LOOPS 3

void write_line(struct generator *g, const char *text) {
    fprintf(g->out, "%*s", 2 * g->indent, "");
    write_template(g, text);
    fputc('\n', g->out);
}

/* A statement's line: its expressions may have this many more subexpressions. */
static void write_statement_line(struct generator *g, const char *text) {
    g->budget = (int)random_below(&g->random, 14) + 2;
    write_line(g, text);
}

static void write_statement(struct generator *g);

void write_block(struct generator *g, bool divergent, int most) {
    int variables = g->variable_count, count = 1 + (int)random_below(&g->random, (unsigned)most);
    g->indent++;
    g->nesting++;
    g->divergence += divergent;
    while (count-- > 0) write_statement(g);
    g->divergence -= divergent;
    g->nesting--;
    g->indent--;
    g->variable_count = variables;
}

static void write_declaration(struct generator *g) {
    static const enum type choices[] = {UINT, UINT, INT, FLOAT, FLOAT};
    char name[12], line[40];
    enum type type = choices[random_below(&g->random, 5)];
    snprintf(name, sizeof name, "t%d", g->next_name++);
    snprintf(line, sizeof line, "%s %s = $%c;", type_name(type), name, (char)type);
    write_statement_line(g, line);
    add_variable(g, type, name, true);
}

static void write_if(struct generator *g, bool uniform) {
    use(g, uniform ? FEATURE_IF_UNIFORM : FEATURE_IF);
    const char *condition = uniform ? "if ($W) {" : "if ($B) {";
    write_statement_line(g, condition);
    write_block(g, !uniform, 3);
    if (random_chance(&g->random, 20)) {
        write_statement_line(g, uniform ? "} else if ($W) {" : "} else if ($B) {");
        write_block(g, !uniform, 2);
    }
    if (random_chance(&g->random, 45)) {
        write_line(g, "} else {");
        write_block(g, !uniform, 3);
    }
    write_line(g, "}");
}

static void write_switch(struct generator *g) {
    use(g, FEATURE_SWITCH);
    struct loop here = {.is_switch = true, .outer = g->loop};
    unsigned cases = 2 + random_below(&g->random, 4), fallback = random_below(&g->random, cases + 2),
             value = 0;
    write_statement_line(g, random_chance(&g->random, 25)   ? "switch ($V & 7u) {"
                            : random_chance(&g->random, 30) ? "switch ($i % 5) {"
                                                            : "switch ($u & 7u) {");
    g->loop = &here;
    for (unsigned n = 0; n < cases; n++) {
        char line[60] = "default: {";
        value += 1 + random_below(&g->random, 2);
        if (n != fallback) snprintf(line, sizeof line, "case %u: {", value - 1);
        if (n != fallback && random_chance(&g->random, 15))
            snprintf(line, sizeof line, "case %u: case %u: {", value - 1, value + 20);
        write_line(g, line);
        write_block(g, true, 2);
        if (random_chance(&g->random, 60)) write_line(g, "  break;");
        write_line(g, "}");
    }
    g->loop = here.outer;
    write_line(g, "}");
}

/* A name for a loop's counter, which is a variable inside the loop. `as`: how expressions write it. */
static void name_counter(struct generator *g, char name[12]) {
    snprintf(name, 12, "k%d", g->next_name++);
}

static void add_counter(struct generator *g, const char *as, bool uniform) {
    struct variable *counter = (struct variable *)add_variable(g, UINT, as, false);
    counter->counter = true;
    counter->uniform = uniform;
}

/* A loop with its first and last line. Lanes may be missing in its conditions and its body. */
static void write_loop(struct generator *g, const char *start, const char *counter, bool uniform,
                       const char *end) {
    struct loop here = {.uniform = uniform, .outer = g->loop};
    int variables = g->variable_count;
    g->divergence += !uniform;
    write_statement_line(g, start);
    g->loop = &here;
    g->loops++;
    add_counter(g, counter, uniform);
    write_block(g, false, 4);
    g->loops--;
    g->loop = here.outer;
    g->variable_count = variables;
    write_statement_line(g, end);
    g->divergence -= !uniform;
}

static void write_for(struct generator *g, bool same_trips) {
    static const char *const same[] = {
        "for (uint %s = 0; %s < $[3`4`5`7`2`1]u; %s++) {", "for (uint %s = 0; %s < ($V & 7u); %s++) {",
        "for (int %s = $#6.; %s >= 0; %s--) {", "for (uint %s = $V & 3u; %s < 9u; %s += 2u) {",
        "for (ushort %s = 0; %s < 4; %s++) {"};
    static const char *const varying[] = {"for (uint %s = 0; %s < ($u & 7u); %s++) {",
                                          "for (uint %s = $u & 3u; %s < 9u; %s += $[1`2`3]u) {",
                                          "for (int %s = int($u & 7u); %s >= 0; %s--) {",
                                          "for (uint %s = 0; %s < $u % 6u; %s++) {",
                                          "for (uint %s = 0; %s < 8u && $B; %s++) {",
                                          "for (int %s = min(int($i & 7), 5); %s > -1; %s--) {",
                                          "for (uchar %s = 0; %s < uchar($u & 7u); %s++) {"};
    char name[12], as[12], line[120];
    name_counter(g, name);
    /* In a uniform loop all threads stay together, unless this loop is left by some threads. */
    bool uniform = same_trips && !g->divergence && random_chance(&g->random, 70);
    const char *text = same_trips ? same[random_below(&g->random, 5)] : varying[random_below(&g->random, 7)];
    use(g, same_trips ? FEATURE_FOR : FEATURE_FOR_VARYING);
    /* Each %s is the name; other percent signs belong to the rule. */
    char *to = line;
    for (const char *from = text; *from; from++) {
        if (from[0] == '%' && from[1] == 's') {
            to = stpcpy(to, name);
            from++;
        } else {
            *to++ = *from;
        }
    }
    *to = 0;
    snprintf(as, sizeof as, strncmp(text, "for (uint", 9) == 0 ? "%s" : "uint(%s)", name);
    write_loop(g, line, as, uniform, "}");
}

static void write_while(struct generator *g) {
    char name[12], line[80];
    name_counter(g, name);
    use(g, FEATURE_WHILE);
    snprintf(line, sizeof line, "uint %s = 0;", name);
    write_line(g, line);
    bool endless = g->enabled[FEATURE_BREAK] && random_chance(&g->random, 25);
    snprintf(line, sizeof line,
             endless                         ? "for (;;) { if (%s++ >= 6u || $B) break; {"
             : random_chance(&g->random, 50) ? "while (%s++ < 7u && $B) {"
                                             : "while ($B && %s++ < 7u) {",
             name);
    write_loop(g, line, name, false, endless ? "}}" : "}");
}

static void write_do(struct generator *g) {
    char name[12], line[80];
    name_counter(g, name);
    use(g, FEATURE_DO);
    snprintf(line, sizeof line, "uint %s = 0;", name);
    write_line(g, line);
    bool uniform = !g->divergence && random_chance(&g->random, 30);
    snprintf(line, sizeof line, uniform ? "} while (%s++ < ($V & 3u));" : "} while (%s++ < 5u && $B);", name);
    write_loop(g, "do {", name, uniform, line);
}

/* break or continue; under a condition that differs by thread only where threads need not stay together. */
static void write_leave(struct generator *g, bool is_break) {
    struct loop *target = g->loop;
    while (!is_break && target && target->is_switch) target = target->outer;
    if (!target || (target->uniform && g->divergence)) {
        write_statement_line(g, "$;");
        return;
    }
    use(g, is_break ? FEATURE_BREAK : FEATURE_CONTINUE);
    const char *condition = target->uniform ? "if ($W) " : "if ($B) ";
    char line[40];
    if (random_chance(&g->random, 70)) {
        snprintf(line, sizeof line, "%s%s;", condition, is_break ? "break" : "continue");
        write_statement_line(g, line);
        return;
    }
    snprintf(line, sizeof line, "%s{", condition);
    write_statement_line(g, line);
    write_block(g, !target->uniform, 2);
    write_line(g, is_break ? "  break;" : "  continue;");
    write_line(g, "}");
}

static void write_return(struct generator *g) {
    use(g, FEATURE_RETURN);
    write_statement_line(g, "if ($B) {");
    write_block(g, true, 2);
    if (!g->in_kernel) {
        write_statement_line(g, g->result == UINT ? "  return $u;" : "  return $f;");
    } else {
        write_statement_line(g, g->enabled[FEATURE_STORE] ? "  $^u = $u;" : "  $!u = $u;");
        write_line(g, "  return;");
        g->returned = true;
    }
    write_line(g, "}");
}

/* Some threads return while others go on to a barrier; simdgroup functions on the way are performed by them
 * alone. */
static void leave_past_barriers(struct generator *g) {
    static const char *const starts[] = {"if ($B) {", "if ($B || $B) {", "if (lane % 4u == ($u & 7u)) {"};
    struct random random = g->random;
    g->random = g->ways;
    if (random_chance(&g->random, 12)) {
        use(g, FEATURE_LEAVE_BARRIER);
        write_statement_line(g, starts[random_below(&g->random, 3)]);
        g->divergence++;
        for (unsigned n = 1 + random_below(&g->random, 2); n; n--) write_statement_line(g, "  $^u = $u;");
        if (allowed(g, FEATURE_SIMD_REDUCE))
            write_statement_line(g, "  $^u += simd_$[sum`max`xor](uint($u));");
        g->divergence--;
        write_line(g, "  return;");
        write_line(g, "}");
        g->returned = true;
    }
    g->ways = g->random;
    g->random = random;
}

/* A kind of statement, with its weight; 0 if it is not allowed here. */
struct way {
    void (*write)(struct generator *g);
    unsigned weight;
};

static void write_plain(struct generator *g) {
    write_statement_line(g, "$;");
}
static void write_if_varying(struct generator *g) {
    write_if(g, false);
}
static void write_if_uniform(struct generator *g) {
    write_if(g, true);
}
static void write_for_same(struct generator *g) {
    write_for(g, true);
}
static void write_for_varying(struct generator *g) {
    write_for(g, false);
}
static void write_break(struct generator *g) {
    write_leave(g, true);
}
static void write_continue(struct generator *g) {
    write_leave(g, false);
}

static void write_statement(struct generator *g) {
    const bool *on = g->enabled;
    bool deeper = g->nesting < MAX_NESTING && g->statements > 0, looping = deeper && g->loops < MAX_LOOPS;
    bool barrier =
        on[FEATURE_BARRIER] && g->in_kernel && !g->divergence && (!g->loops || on[FEATURE_BARRIER_LOOP]);
    if (barrier && on[FEATURE_LEAVE_BARRIER] && on[FEATURE_STORE]) leave_past_barriers(g);
    const struct way ways[] = {
        {write_plain, 45},
        {write_declaration, g->variable_count < MAX_VARIABLES / 2 ? 4 : 0},
        {write_if_varying, deeper && on[FEATURE_IF] ? 12 : 0},
        {write_if_uniform, deeper && on[FEATURE_IF_UNIFORM] ? 4 : 0},
        {write_switch, deeper && on[FEATURE_SWITCH] ? 5 : 0},
        {write_for_same, looping && on[FEATURE_FOR] ? 7 : 0},
        {write_for_varying, looping && on[FEATURE_FOR_VARYING] ? 7 : 0},
        {write_while, looping && on[FEATURE_WHILE] ? 4 : 0},
        {write_do, looping && on[FEATURE_DO] ? 4 : 0},
        {write_break, g->loop && on[FEATURE_BREAK] ? 6 : 0},
        {write_continue, g->loops && on[FEATURE_CONTINUE] ? 5 : 0},
        {write_return, deeper && on[FEATURE_RETURN] ? 2 : 0},
        {write_exchange, barrier ? 12 : 0},
    };
    enum { WAYS = sizeof ways / sizeof *ways };
    unsigned total = 0, way = 0;
    for (int n = 0; n < WAYS; n++) total += ways[n].weight;
    unsigned at = random_below(&g->random, total);
    while (at >= ways[way].weight) at -= ways[way++].weight;
    g->statements--;
    ways[way].write(g);
}
