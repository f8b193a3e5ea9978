/* Writes the contents of a line: selects one of the rules (rules.c) for a type, and expands its text. */
#include "rules.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *const feature_names[FEATURE_COUNT] = {
#define NAME(upper, lower, meaning) #lower,
    FEATURE_TABLE(NAME)
#undef NAME
};
const char *const feature_meanings[FEATURE_COUNT] = {
#define MEANING(upper, lower, meaning) meaning,
    FEATURE_TABLE(MEANING)
#undef MEANING
};

/* The expressions used when no other is allowed. */
static const struct {
    enum type type;
    const char *name, *plain;
} types[] = {{BOOL, "bool", "true"},
             {UCHAR, "uchar", "uchar(200)"},
             {SHORT, "short", "short(-3)"},
             {INT, "int", "-7"},
             {UINT, "uint", "11u"},
             {LONG, "long", "long(-13)"},
             {ULONG, "ulong", "ulong(17)"},
             {HALF, "half", "half(1.5f)"},
             {FLOAT, "float", "2.5f"},
             {FLOAT2, "float2", "float2(1.0f, -2.0f)"},
             {FLOAT3, "float3", "float3(0.5f)"},
             {FLOAT4, "float4", "float4(0.25f)"},
             {UINT4, "uint4", "uint4(9u)"},
             {UCHAR4, "uchar4", "uchar4(uchar(5))"},
             {HALF4, "half4", "half4(half(0.5f))"},
             {UNIFORM_UINT, "uint", "6u"},
             {UNIFORM_BOOL, "bool", "true"},
             {INDEX, "uint", "(i & 4095u)"},
             {SLOT, "uint", "tid"},
             {STATEMENT, "", ";"}};

static int type_number(enum type type) {
    int n = 0;
    while (types[n].type != type) n++;
    return n;
}

const char *type_name(enum type type) {
    return types[type_number(type)].name;
}

void use(struct generator *g, enum feature feature) {
    g->counts[feature]++;
}

static bool among_lanes(enum feature feature) {
    return (feature >= FEATURE_SIMD_REDUCE && feature <= FEATURE_QUAD) || feature == FEATURE_SIMD_FLOAT_SCAN;
}

bool allowed(const struct generator *g, enum feature feature) {
    if (!g->enabled[feature]) return false;
    return !among_lanes(feature) || g->enabled[FEATURE_SIMD_DIVERGENT] || (!g->divergence && !g->returned);
}

static bool is_linear(int layout) {
    return layout == INTERLEAVED || layout == WIDE_INDEX || layout == SIGNED_INDEX;
}

/* The plain outputs, in the order of generator.layout. */
static const char output_types[] = "uifhscL";

static int layout_of(const struct generator *g, char type) {
    return g->layout[strchr(output_types, type) - output_types];
}

static bool fits_place(const struct generator *g, enum place place) {
    switch (place) {
    case ANYWHERE:
        return true;
    case WITH_HELPERS:
        return g->in_kernel && g->helpers;
    case INTERLEAVED_F:
        return g->in_kernel && is_linear(layout_of(g, 'f'));
    case INTERLEAVED_U:
        return g->in_kernel && is_linear(layout_of(g, 'u'));
    case INTERLEAVED_C:
        return g->in_kernel && is_linear(layout_of(g, 'c'));
    default:
        return g->in_kernel;
    }
}

static bool is_leaf(const char *text) {
    for (const char *p = text; (p = strchr(p, '$')); p++)
        if (!strchr("!^#%~k[<>", p[1])) return false;
    return true;
}

/* The rules of one type; even the whole table has fewer. */
#define MAX_RULES 1000

static const struct rule *choose_rule(struct generator *g, enum type type, bool leaves) {
    const struct rule *candidates[MAX_RULES];
    unsigned total = 0;
    int count = 0;
    for (const struct rule *rule = rules; rule < rules + rule_count; rule++) {
        if (rule->type != type || !allowed(g, rule->feature) || !fits_place(g, rule->place)) continue;
        if (leaves && !is_leaf(rule->text)) continue;
        if (count == MAX_RULES) abort();
        candidates[count++] = rule;
        total += (unsigned)rule->weight;
    }
    if (!count) return NULL;
    unsigned at = random_below(&g->random, total);
    int n = 0;
    while (at >= (unsigned)candidates[n]->weight) at -= (unsigned)candidates[n++]->weight;
    return candidates[n];
}

/* ---- Variables */

const struct variable *add_variable(struct generator *g, enum type type, const char *name, bool writable) {
    if (g->variable_count == MAX_VARIABLES) return &g->variables[0];
    struct variable *variable = &g->variables[g->variable_count++];
    *variable = (struct variable){.type = type, .writable = writable};
    snprintf(variable->name, sizeof variable->name, "%s", name);
    return variable;
}

enum choice { ANY_VARIABLE, WRITABLE, COUNTER, SAME_IN_GROUP };

static const char *choose_variable(struct generator *g, enum type type, enum choice choice) {
    int fitting[MAX_VARIABLES], count = 0;
    for (int i = 0; i < g->variable_count; i++) {
        const struct variable *v = &g->variables[i];
        bool fits = choice == ANY_VARIABLE ? true
                    : choice == WRITABLE   ? v->writable
                    : choice == COUNTER    ? v->counter
                                           : v->uniform;
        if (v->type == type && fits) fitting[count++] = i;
    }
    if (!count) return NULL;
    return g->variables[fitting[random_below(&g->random, (unsigned)count)]].name;
}

/* ---- Templates */

static void write_integer(struct generator *g) {
    static const uint32_t edges[] = {
        0,  1,   2,   3,     5,          7,          15,         31,         32,         33,  63,
        64, 255, 256, 65535, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe, 0xfffffff0, 100, 1000};
    unsigned edge = random_below(&g->random, sizeof edges / sizeof *edges);
    uint32_t value = random_chance(&g->random, 15) ? (uint32_t)random_word(&g->random) : edges[edge];
    fprintf(g->out, "%" PRIu32 "u", value);
}

static void write_real(struct generator *g) {
    static const char *const reals[] = {"0.0f", "1.0f",   "-1.0f",  "0.5f",  "2.0f",   "-3.25f",    "0.1f",
                                        "7.0f", "100.0f", "-0.75f", "1e-3f", "255.5f", "3.1415927f"};
    fputs(reals[random_below(&g->random, sizeof reals / sizeof *reals)], g->out);
}

static void write_own_element(struct generator *g, char type, char element) {
    static const char *const layouts[LAYOUTS][2] = {
        {"i * 4u + ", ""},
        {"", " * threads + i"},
        {"threads * 4u - 1u - i * 4u - ", ""},
        {"(i * 7919u + 13u) % threads * 4u + ", ""},
        {"size_t(i) * 4 + ", ""},
        {"int(i) * 4 + int(", ")"},
    };
    int layout = layout_of(g, type);
    /* Names must differ by more than case: a ulong output is out_l. */
    fprintf(g->out, "out_%c[%s", type == 'L' ? 'l' : type, layouts[layout][0]);
    if (element)
        fprintf(g->out, "%cu", element);
    else if (g->budget > 0 && random_chance(&g->random, 15))
        write_template(g, "($u & 3u)");
    else
        write_template(g, "$#3.u");
    fprintf(g->out, "%s]", layouts[layout][1]);
}

/* The position after the bracket that closes the one around `text`. */
static const char *closing(const char *text) {
    int depth = 1;
    while (depth) {
        if (*text == '[') depth++;
        if (*text == ']') depth--;
        text++;
    }
    return text;
}

/* One of the alternatives in [text, end). */
static void write_alternative(struct generator *g, const char *text, const char *end) {
    const char *begins[64];
    unsigned count = 0;
    int depth = 0;
    begins[count++] = text;
    for (const char *p = text; p < end; p++) {
        if (*p == '[') depth++;
        if (*p == ']') depth--;
        if (*p == '`' && depth == 0 && count < 63) begins[count++] = p + 1;
    }
    begins[count] = end + 1;
    unsigned chosen = random_below(&g->random, count);
    size_t length = (size_t)(begins[chosen + 1] - 1 - begins[chosen]);
    char *alternative = strndup(begins[chosen], length);
    if (!alternative) abort();
    write_template(g, alternative);
    free(alternative);
}

void write_template(struct generator *g, const char *text) {
    while (*text) {
        size_t plain = strcspn(text, "$");
        fwrite(text, 1, plain, g->out);
        text += plain;
        if (!*text) break;
        char escape = text[1];
        text += 2;
        if (escape == '[') {
            const char *end = closing(text);
            write_alternative(g, text, end - 1);
            text = end;
        } else if (escape == '#') {
            char *end;
            unsigned most = (unsigned)strtoul(text, &end, 10);
            fprintf(g->out, "%u", random_below(&g->random, most + 1));
            text = end + 1;
        } else if (escape == '%') {
            write_integer(g);
        } else if (escape == '~') {
            write_real(g);
        } else if (escape == '<') {
            g->divergence++;
        } else if (escape == '>') {
            g->divergence--;
        } else if (escape == '!') {
            const char *name = choose_variable(g, (enum type) * text++, WRITABLE);
            fputs(name ? name : "unknown", g->out);
        } else if (escape == '^') {
            write_own_element(g, *text++, 0);
        } else if (escape == '*') {
            write_own_element(g, text[0], text[1]);
            text += 2;
        } else if (escape == 'k') {
            const char *name = choose_variable(g, UINT, COUNTER);
            fputs(name ? name : "4u", g->out);
        } else {
            write_rule(g, (enum type)escape);
        }
    }
}

void write_rule(struct generator *g, enum type type) {
    bool leaf = --g->budget < 0 || g->depth > 5;
    bool expression = type != STATEMENT && type != INDEX && type != SLOT;
    if (expression && random_chance(&g->random, leaf ? 70 : 25)) {
        const char *name = type == UNIFORM_UINT ? choose_variable(g, UINT, SAME_IN_GROUP)
                                                : choose_variable(g, type, ANY_VARIABLE);
        if (name) {
            fputs(name, g->out);
            return;
        }
    }
    const struct rule *rule = choose_rule(g, type, leaf && type != STATEMENT);
    if (!rule) {
        fputs(types[type_number(type)].plain, g->out);
        return;
    }
    use(g, rule->feature);
    if (among_lanes(rule->feature) && (g->divergence || g->returned)) use(g, FEATURE_SIMD_DIVERGENT);
    g->depth++;
    write_template(g, rule->text);
    g->depth--;
}
