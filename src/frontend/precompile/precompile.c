/* A step of the build: writes the precompiled preludes that are installed with smelt-cc1, which it finds near
 * itself. Usage: smelt_precompile FOLDER, an absolute path: clang records the current folder in an image, and
 * the images of two builds are the same. */
#include "frontend/prelude.h"

#include <stdio.h>
#include <unistd.h>

static int write_one(const char *folder, enum prelude prelude, smelt_math_mode math) {
    const char *name = prelude_installed_name(prelude, math);
    char path[4096];
    if (!name) return 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (prelude_write_installed(prelude, math, path) == SMELT_OK) return 0;
    fprintf(stderr, "%s: %s\n", path, smelt_error());
    return 1;
}

int main(int count, char **arguments) {
    int failures = 0;
    if (count != 2 || arguments[1][0] != '/' || chdir("/") != 0) {
        fputs("usage: smelt_precompile FOLDER\n", stderr);
        return 2;
    }
    for (int prelude = 0; prelude < PRELUDE_COUNT; prelude++)
        for (int math = 0; math <= SMELT_MATH_FAST; math++)
            failures += write_one(arguments[1], (enum prelude)prelude, (smelt_math_mode)math);
    return failures ? 1 : 0;
}
