#include "frontend/companion.h"
#include "smelt/smelt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool find_near(const char *file, const char *name, char path[4096]) {
    static const char *const places[] = {"", "smelt/", "../lib/"};
    const char *slash = strrchr(file, '/');
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        int length = snprintf(path, 4096, "%.*s/%s%s", (int)(slash - file), file, places[i], name);
        if (length < 4096 && access(path, R_OK) == 0) return true;
    }
    return false;
}

/* A program that was found in PATH, or started under another name, does not know its path. */
static const char *path_of(const char *file) {
    return strchr(file, '/') ? file : "/proc/self/exe";
}

/* Near the file that this code lies in, or near what that file is a link to. */
bool companion_find(const char *name, char path[4096]) {
    Dl_info info = {0};
    const char *file = dladdr((const void *)&smelt_version, &info) && info.dli_fname ? info.dli_fname : "";
    if (find_near(file, name, path)) return true;
    char *target = realpath(path_of(file), NULL);
    bool found = target && find_near(target, name, path);
    free(target);
    if (found) return true;
    const char *slash = strrchr(file, '/');
    snprintf(path, 4096, "%.*s%s", slash ? (int)(slash + 1 - file) : 0, file, name);
    return false;
}
