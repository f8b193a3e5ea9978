/* Arithmetic whose result Metal leaves undefined. */
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
            snprintf(text, 200, "divides %" PRIu64 " by 0",
                     width < 64 ? y & ((UINT64_C(1) << width) - 1) : y);
        return FINDING_DIVISION;
    case CHECK_CONVERT:
    case CHECK_CONVERT_UNSIGNED:
        break;
    }
    snprintf(text, 200, "converts %.9g to %s, which cannot hold it", real_of(x),
             type_name(width, operation == CHECK_CONVERT));
    return FINDING_CONVERSION;
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
    smelt_finding *told = &finding->told;
    check_place(check, told);
    told->message = findings_text(check->findings, "thread (%u, %u, %u) of threadgroup (%u, %u, %u) %s",
                                  told->thread[0], told->thread[1], told->thread[2], told->threadgroup[0],
                                  told->threadgroup[1], told->threadgroup[2], text);
}
