#include "array/format.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int bits;
} formats[] = {
#define X(number, upper, lower, bits) {#lower, bits},
    SMELT_FORMAT_TABLE(X)
#undef X
};
enum { FIRST = SMELT_INT4, COUNT = sizeof formats / sizeof *formats };

bool element_is_packed(int element) {
    return element >= FIRST && element < FIRST + COUNT;
}

const char *smelt_element_name(int element) {
    return element_is_packed(element) ? formats[element - FIRST].name
                                      : smelt_dtype_name((smelt_dtype)element);
}

int smelt_element_bits(int element) {
    return element_is_packed(element) ? formats[element - FIRST].bits
                                      : 8 * (int)smelt_dtype_bytes((smelt_dtype)element);
}

struct element_names element_list(void) {
    struct element_names out = {""};
    size_t used = 0;
    for (int e = 1; e < FIRST + COUNT && used < sizeof out.text; e++)
        if (smelt_element_bits(e))
            used += (size_t)snprintf(out.text + used, sizeof out.text - used, "%s%s", used ? ", " : "",
                                     smelt_element_name(e));
    return out;
}

smelt_status smelt_element_from_name(const char *name, int *element) {
    if (!element) return fail(SMELT_ERROR_INVALID_ARGUMENT, "element from name: element is NULL");
    for (int e = 1; e < FIRST + COUNT; e++)
        if (name && smelt_element_bits(e) && strcmp(name, smelt_element_name(e)) == 0) {
            *element = e;
            return SMELT_OK;
        }
    return fail(SMELT_ERROR_INVALID_ARGUMENT, "element type '%s' is unknown; expected one of %s",
                name ? name : "(null)", element_list().text);
}
