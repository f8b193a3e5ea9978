/* The kernels whose float results a GPU may round otherwise than a CPU, and why. All others must have the
 * same bits on both. Each is still held to its float64 reference, within the bound of its test. */
#include "ml.h"

static const struct {
    const char *file, *entry; /* an entry, or what it begins with where a * ends it */
    const char *why;
} apart[] = {
    {NULL, NULL, NULL},
};

const char *rounded_apart(const char *file, const char *entry) {
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++) {
        if (!apart[i].file || strcmp(apart[i].file, file) != 0) continue;
        size_t length = strcspn(apart[i].entry, "*");
        if (strncmp(apart[i].entry, entry, length) == 0 && (apart[i].entry[length] || !entry[length]))
            return apart[i].why;
    }
    return NULL;
}
