/* Settings of shipped operations for kinds of machines, as `smelt tune` has found them there. Jobs that lack
 * a row run with what the operation itself chooses. */
#include "tune/setting.h"

#include <string.h>

struct row {
    const char *machine, *operation, *key;
    int64_t numbers[SETTING_NUMBERS];
};

static const struct row rows[] = {
#define ROW(machine, operation, key, ...) {machine, operation, key, {__VA_ARGS__}},
#include "tune/defaults.inc"
#undef ROW
    {NULL, NULL, NULL, {0}},
};

const int64_t *tune_default(const char *machine, const char *operation, const char *key) {
    for (const struct row *row = rows; row->machine; row++)
        if (strcmp(row->machine, machine) == 0 && strcmp(row->operation, operation) == 0 &&
            strcmp(row->key, key) == 0)
            return row->numbers;
    return NULL;
}
