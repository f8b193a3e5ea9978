#include "source.h"
#include "smelt/graph.h"
#include "values.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* No kernel is this long, no package so large; an endless device file is. */
#define MAX_SOURCE_BYTES ((size_t)64 << 20)
#define MAX_PACKAGE_BYTES ((size_t)4 << 30)

static bool is_package(const char *data, size_t size) {
    size_t length = strlen(SMELT_PACKAGE_MAGIC);
    return size >= length && memcmp(data, SMELT_PACKAGE_MAGIC, length) == 0;
}

static bool is_called_package(const char *path) {
    size_t length = strlen(path), end = strlen(".smeltlib");
    return length > end && strcmp(path + length - end, ".smeltlib") == 0;
}

static bool too_long(const char *data, size_t size, bool text_only) {
    return size > (!text_only && is_package(data, size) ? MAX_PACKAGE_BYTES : MAX_SOURCE_BYTES);
}

/* Names of the process's own open files, which may be pipes: a shell gives them for <(…). */
static bool is_open_file(const char *path) {
    return strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/proc/self/fd/", 14) == 0 ||
           strcmp(path, "/dev/stdin") == 0;
}

/* Without waiting for somebody to write to a pipe; NULL: complained. */
static FILE *open_source(const char *path) {
    struct stat status;
    if (strcmp(path, "-") == 0) return stdin;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode) && !is_open_file(path)) {
        complain("file '%s' is a named pipe, expected a regular file; '-' reads standard input", path);
        (void)close(fd);
        return NULL;
    }
    if (fd >= 0) (void)fcntl(fd, F_SETFL, 0);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "rb");
    if (!file) complain("file '%s' cannot be opened: %s", path, strerror(errno));
    return file;
}

bool source_read(const char *path, char **contents, size_t *package_size) {
    FILE *file = open_source(path);
    if (!file) return false;
    size_t size = 0, capacity = 65536;
    char *data = malloc(capacity);
    errno = 0;
    for (size_t count; data && (count = fread(data + size, 1, capacity - size - 1, file)) > 0;) {
        size += count;
        if (capacity - size > 1) continue;
        if (too_long(data, size, !package_size)) break;
        char *grown = realloc(data, capacity *= 2);
        if (!grown) free(data);
        data = grown;
    }
    int reason = ferror(file) ? errno : 0;
    if (file != stdin) fclose(file);
    if (!data) return complain("file '%s' does not fit in memory", path);
    bool package = package_size && is_package(data, size), good = true;
    if (reason)
        good = complain("file '%s' cannot be read: %s", path, strerror(reason));
    else if (too_long(data, size, !package_size))
        good = complain(package ? "file '%s' is longer than 4 GiB, the limit for packages"
                                : "file '%s' is longer than 64 MiB, the limit for kernel sources",
                        path);
    else if (!package && package_size && is_called_package(path))
        good = source_is_graph(path)
                   ? complain("'%s' is a graph, which smelt run executes; expected kernels", path)
                   : complain("'%s' is not a smelt package", path);
    else if (!package && memchr(data, 0, size))
        good = complain("file '%s' is not text: it holds a zero byte", path);
    if (!good) {
        free(data);
        return false;
    }
    data[size] = 0;
    *contents = data;
    if (package_size) *package_size = package ? size : 0;
    return true;
}

bool source_is_graph(const char *path) {
    struct stat status;
    char head[sizeof SMELT_GRAPH_MAGIC - 1];
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return false;
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    bool same =
        fread(head, 1, sizeof head, file) == sizeof head && memcmp(head, SMELT_GRAPH_MAGIC, sizeof head) == 0;
    fclose(file);
    return same;
}

const char *source_label(const char *path) {
    return strcmp(path, "-") == 0 ? "standard input" : path;
}
