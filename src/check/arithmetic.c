/* Arithmetic whose result Metal leaves undefined, and assertions. */
#include "check/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *type_name(unsigned width, bool is_signed) {
    switch (width) {
    case 8:
        return is_signed ? "char" : "uchar";
    case 16:
        return is_signed ? "short" : "ushort";
    case 32:
        return is_signed ? "int" : "uint";
    default:
        return is_signed ? "long" : "ulong";
    }
}

static double real_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t unsigned_of(uint64_t bits, unsigned width) {
    return width < 64 ? bits & ((UINT64_C(1) << width) - 1) : bits;
}

/* what: enum check_real. */
static void describe_real(double x, double y, unsigned what, const char *name, char text[200]) {
    const char *is = what & CHECK_REAL_NAN ? "NaN" : "infinite";
    what &= ~(unsigned)CHECK_REAL_NAN;
    if (what == CHECK_REAL_CONVERT)
        snprintf(text, 200, "converts %.9g to a type in which it is %s", x, is);
    else if (what == CHECK_REAL_CALL)
        snprintf(text, 200, "computes %s, which is %s", name, is);
    else if (what == CHECK_REAL_CALL_OF_ONE)
        snprintf(text, 200, "computes %s(%.9g), which is %s", name, x, is);
    else if (what == CHECK_REAL_CALL_OF_TWO)
        snprintf(text, 200, "computes %s(%.9g, %.9g), which is %s", name, x, y, is);
    else
        snprintf(text, 200, "computes %.9g %c %.9g, which is %s", x, "+-*/%"[what], y, is);
}

/* What the thread does, behind "thread (0, 0, 0) ". */
static enum finding_kind describe(uint64_t x, uint64_t y, uint32_t what, char text[200]) {
    enum check_operation operation = CHECK_OPERATION(what);
    unsigned width = CHECK_WIDTH(what);
    int64_t a = (int64_t)x, b = (int64_t)y;
    switch (operation) {
    case CHECK_ADD:
    case CHECK_SUBTRACT:
    case CHECK_MULTIPLY:
        snprintf(text, 200, "computes %" PRId64 " %c %" PRId64 ", which %s cannot hold", a, "+-*"[operation],
                 b, type_name(width, true));
        return FINDING_OVERFLOW;
    case CHECK_SHIFT:
        snprintf(text, 200, "shifts a number of %u bits by %" PRId64, width, a);
        return FINDING_SHIFT;
    case CHECK_DIVIDE:
    case CHECK_DIVIDE_UNSIGNED:
        if (a != 0) {
            snprintf(text, 200, "divides %" PRId64 " by -1, which %s cannot hold", b, type_name(width, true));
            return FINDING_OVERFLOW;
        }
        if (operation == CHECK_DIVIDE)
            snprintf(text, 200, "divides %" PRId64 " by 0", b);
        else
            snprintf(text, 200, "divides %" PRIu64 " by 0", unsigned_of(y, width));
        return FINDING_DIVISION;
    case CHECK_ADD_UNSIGNED:
    case CHECK_SUBTRACT_UNSIGNED:
    case CHECK_MULTIPLY_UNSIGNED:
        snprintf(text, 200, "computes %" PRIu64 " %c %" PRIu64 ", which wraps in %s", unsigned_of(x, width),
                 "+-*"[operation - CHECK_ADD_UNSIGNED], unsigned_of(y, width), type_name(width, false));
        return FINDING_WRAP;
    case CHECK_FINITE:
    case CHECK_CONVERT:
    case CHECK_CONVERT_UNSIGNED:
        break;
    }
    snprintf(text, 200, "converts %.9g to %s, which cannot hold it", real_of(x),
             type_name(width, operation == CHECK_CONVERT));
    return FINDING_CONVERSION;
}

static void tell(struct check *check, struct finding *finding, const char *text) {
    smelt_finding *told = &finding->told;
    check_place(check, told);
    told->message = findings_text(check->findings, "thread (%u, %u, %u) of threadgroup (%u, %u, %u) %s",
                                  told->thread[0], told->thread[1], told->thread[2], told->threadgroup[0],
                                  told->threadgroup[1], told->threadgroup[2], text);
}

void smelt_check_arithmetic(uint64_t x, uint64_t y, uint32_t what, const struct check_site *site) {
    struct check *check = check_this;
    const struct check_parameters *parameters = smelt_check_parameters();
    /* Of values that were never set, undefined.c speaks. */
    if (parameters->parameters[0] || parameters->parameters[1]) return;
    char text[200];
    bool is_new;
    enum finding_kind kind = describe(x, y, what, text);
    struct finding *finding = findings_add(check->findings, kind, site, NULL, NULL, &is_new);
    if (!finding || !is_new) return;
    tell(check, finding, text);
}

void smelt_check_assertion(const struct check_site *site) {
    struct check *check = check_this;
    bool is_new;
    struct finding *finding = findings_add(check->findings, FINDING_ASSERTION, site, NULL, NULL, &is_new);
    if (finding && is_new)
        tell(check, finding,
             findings_text(check->findings, "fails assertion '%s'", site->name ? site->name : ""));
}

uint64_t smelt_check_real(uint64_t result, uint64_t x, uint64_t y, uint32_t what,
                          const struct check_site *site) {
    struct check *check = check_this;
    struct check_parameters *parameters = smelt_check_parameters();
    uint64_t shadow = 0;
    for (int i = 0; i < 3; i++) shadow |= parameters->parameters[i];
    parameters->result[0] = parameters->parameters[0];
    parameters->result_origin = parameters->origins[0];
    if (shadow) return result; /* of values that were never set, undefined.c speaks */
    char text[200];
    bool is_new;
    struct finding *finding = findings_hold(check->findings, FINDING_NOT_FINITE, site, NULL, &is_new);
    if (!finding) return result;
    if (is_new) {
        describe_real(real_of(x), real_of(y), what, site->name ? site->name : "", text);
        tell(check, finding, text);
    }
    parameters->result[0] = UINT64_MAX;
    parameters->result_origin = undefined_origin(check, ORIGIN_HELD, finding);
    return result;
}
