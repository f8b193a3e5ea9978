#include "base/pipe_wait.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A script that starts a script that starts the program. */
#define MAX_GENERATIONS 4

/* The start of a small file of /proc as a string; false if there is none. */
static bool read_start(const char *path, char *text, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t count = read(fd, text, size - 1);
    close(fd);
    if (count < 0) return false;
    text[count] = 0;
    return true;
}

/* The address of the path that the process's current system call opens; 0: it opens none, or is running.
 * The file holds the call's number and its arguments. */
static unsigned long long opened_address(pid_t process) {
    char path[64], line[256];
    long number;
    unsigned long long first, second;
    snprintf(path, sizeof path, "/proc/%ld/syscall", (long)process);
    if (!read_start(path, line, sizeof line) || sscanf(line, "%ld %llx %llx", &number, &first, &second) != 3)
        return 0;
    if (number == SYS_openat) return second;
#ifdef SYS_open
    if (number == SYS_open) return first;
#endif
    return 0;
}

/* The string at an address of the process, "" if it cannot be read. */
static void read_string(pid_t process, unsigned long long address, char name[PIPE_NAME_BYTES]) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/mem", (long)process);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = fd < 0 ? 0 : pread(fd, name, PIPE_NAME_BYTES - 1, (off_t)address);
    if (fd >= 0) close(fd);
    name[count > 0 ? count : 0] = 0;
}

static bool is_named_pipe(pid_t process, const char *name) {
    char path[PIPE_NAME_BYTES + 64];
    struct stat status;
    if (*name == '/')
        snprintf(path, sizeof path, "%s", name);
    else
        snprintf(path, sizeof path, "/proc/%ld/cwd/%s", (long)process, name);
    return *name && stat(path, &status) == 0 && S_ISFIFO(status.st_mode);
}

static bool waits_itself(pid_t process, char name[PIPE_NAME_BYTES]) {
    unsigned long long address = opened_address(process);
    if (!address) return false;
    read_string(process, address, name);
    return is_named_pipe(process, name);
}

static bool find(pid_t process, int generations, char name[PIPE_NAME_BYTES]) {
    if (waits_itself(process, name)) return true;
    char path[64], children[1024], *end;
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)process, (long)process);
    if (!generations || !read_start(path, children, sizeof children)) return false;
    for (const char *at = children;; at = end) {
        long child = strtol(at, &end, 10);
        if (end == at) return false;
        if (find((pid_t)child, generations - 1, name)) return true;
    }
}

bool pipe_wait_find(pid_t process, char name[PIPE_NAME_BYTES]) {
    return find(process, MAX_GENERATIONS, name);
}
