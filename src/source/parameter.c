#include "source/parameter.h"
#include "source/attribute.h"

/* The token after a bracketed or template list that opens at `i`; i + 1 if none does. */
static uint32_t after(const struct tokens *t, uint32_t i, uint32_t end) {
    uint32_t angle = token_is(t, i, "<") ? tokens_angle_end(t, i, end) : 0;
    return angle ? angle : (t->items[i].partner > i ? t->items[i].partner : i) + 1;
}

/* Words that may be part of a type but do not name one. */
static bool is_qualifier(const struct tokens *t, uint32_t i) {
    static const char *const words[] = {"const",  "volatile", "device", "constant", "threadgroup", "thread",
                                        "struct", "class",    "union",  "enum",     "typename",    NULL};
    return token_is_one_of(t, i, words);
}

/* Words that cannot be a parameter's name. */
static bool is_type_word(const struct tokens *t, uint32_t i) {
    static const char *const words[] = {"bool",   "char", "short", "int",  "long",   "unsigned",
                                        "signed", "half", "float", "void", "bfloat", NULL};
    return token_is_one_of(t, i, words);
}

/* Whether the last of the tokens is a name, which follows a type. */
static bool ends_with_name(const struct tokens *t, uint32_t first, uint32_t end) {
    uint32_t last = end - 1;
    if (!token_is_identifier(t, last) || is_qualifier(t, last) || is_type_word(t, last)) return false;
    if (token_is(t, last - 1, ":")) return false;
    for (uint32_t i = first; i < last; i++)
        if (token_is_identifier(t, i) && !is_qualifier(t, i)) return true;
    return false;
}

static bool has_type_in_parentheses(const struct tokens *t, uint32_t open) {
    static const char *const words[] = {"decltype", "alignas", "__attribute__", NULL};
    return token_is_one_of(t, open - 1, words);
}

/* Finds the name in a parameter's tokens; false if it cannot be parsed. */
static bool find_name(const struct tokens *t, struct parameter *p) {
    for (uint32_t i = p->first; i < p->end; i = after(t, i, p->end)) {
        uint32_t close = t->items[i].partner;
        if (token_pair(t, i, '.', '.') || token_pair(t, i, '&', '&') || attribute_list_end(t, i))
            return false;
        if (token_is(t, i, "(") && !has_type_in_parentheses(t, i)) { /* float (&x)[4] */
            bool refers = token_is(t, close - 2, "&") || token_is(t, close - 2, "*");
            p->name = close - 1;
            p->named = refers && token_is_identifier(t, p->name);
            return p->named;
        }
        if (!token_is(t, i, "[")) continue;
        p->name = i;
        break;
    }
    p->named = p->name > p->first && ends_with_name(t, p->first, p->name);
    if (p->named) p->name--;
    return p->end > p->first;
}

bool parameter_read(const struct tokens *t, uint32_t first, uint32_t close, struct parameter *out) {
    *out = (struct parameter){.first = first, .end = close, .stop = close};
    for (uint32_t i = first; i < close; i = after(t, i, close)) {
        if (t->items[i].kind == TOKEN_DIRECTIVE) return false;
        if (token_is(t, i, "=") && out->end == close) out->end = i;
        if (!token_is(t, i, ",")) continue;
        out->stop = i;
        break;
    }
    if (out->end > out->stop) out->end = out->stop;
    out->name = out->end;
    return find_name(t, out);
}

uint32_t parameters_start(const struct tokens *t, uint32_t open, uint32_t close) {
    return token_is(t, open + 1, "void") && close == open + 2 ? close : open + 1;
}

uint32_t parameter_next(const struct parameter *parameter, uint32_t close) {
    return parameter->stop < close ? parameter->stop + 1 : close;
}

bool parameters_alike(const struct tokens *t, uint32_t a_open, uint32_t b_open) {
    uint32_t a_close = t->items[a_open].partner, b_close = t->items[b_open].partner;
    uint32_t i = parameters_start(t, a_open, a_close), k = parameters_start(t, b_open, b_close);
    while (i < a_close && k < b_close) {
        struct parameter a, b;
        if (!parameter_read(t, i, a_close, &a) || !parameter_read(t, k, b_close, &b))
            return tokens_alike(t, i, a_close, k, b_close);
        if (!tokens_alike(t, a.first, a.name, b.first, b.name)) return false;
        if (!tokens_alike(t, a.name + a.named, a.end, b.name + b.named, b.end)) return false;
        i = parameter_next(&a, a_close);
        k = parameter_next(&b, b_close);
    }
    return i == a_close && k == b_close;
}
