#include "base/reserved.h"

smelt_status reserved_refuse(const char *type, const uint64_t *words, size_t bytes) {
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        if (words[i])
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "%s: reserved[%zu] is %#llx; expected 0: zero-initialise the structure, or use the "
                        "newer libsmelt that defines this field",
                        type, i, (unsigned long long)words[i]);
    return SMELT_OK;
}
