#include "base/file.h"
#include "base/in_place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The open file that a path like /dev/stdout or /dev/fd/3 names, or -1. */
static int descriptor_named(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdin") == 0) return STDIN_FILENO;
    if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        size_t length = strlen(folders[i]);
        char *end;
        if (strncmp(path, folders[i], length) != 0 || path[length] < '0' || path[length] > '9') continue;
        long fd = strtol(path + length, &end, 10);
        if (!*end && fd <= INT_MAX) return (int)fd;
    }
    return -1;
}

/* Nothing that is read whole comes from a device in such an amount: it has no end. */
#define MAX_DEVICE_BYTES ((size_t)64 << 20)

#define READ_BYTES 16384

/* Opens without waiting for a writer. *device: it may have no end. */
static smelt_status open_to_read(const char *path, int *fd, bool *device) {
    struct stat status;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0) return fail(SMELT_ERROR_IO, "file '%s' cannot be opened: %s", path, strerror(errno));
    if (fstat(*fd, &status) != 0) status.st_mode = S_IFREG;
    *device = S_ISCHR(status.st_mode);
    if ((S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)) && descriptor_named(path) < 0) {
        close(*fd);
        return fail(SMELT_ERROR_IO, "file '%s' is a %s, expected a regular file", path,
                    S_ISFIFO(status.st_mode) ? "named pipe" : "socket");
    }
    (void)fcntl(*fd, F_SETFL, 0);
    return SMELT_OK;
}

/* 0 or the reason; EFBIG: a device without end. */
static int read_all(int fd, bool device, struct text *contents) {
    char chunk[READ_BYTES];
    for (;;) {
        ssize_t count = read(fd, chunk, sizeof chunk);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return errno;
        if (count == 0) return 0;
        text_append(contents, chunk, (size_t)count);
        if (contents->failed) return ENOMEM;
        if (device && contents->length > MAX_DEVICE_BYTES) return EFBIG;
    }
}

smelt_status file_read(const char *path, struct text *contents) {
    int fd;
    bool device;
    TRY(open_to_read(path, &fd, &device));
    int reason = read_all(fd, device, contents);
    close(fd);
    if (!reason) return SMELT_OK;
    text_free(contents);
    if (reason == ENOMEM) return fail(SMELT_ERROR_OUT_OF_MEMORY, "file '%s' does not fit in memory", path);
    if (reason == EFBIG) return fail(SMELT_ERROR_IO, "file '%s' is a device that does not end", path);
    return fail(SMELT_ERROR_IO, "file '%s' cannot be read: %s", path, strerror(reason));
}

static int write_all(int fd, const char *data, size_t size) {
    while (size) {
        ssize_t count = write(fd, data, size);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return -1;
        data += count;
        size -= (size_t)count;
    }
    return 0;
}

static int write_pieces(int fd, const struct bytes *pieces, int count) {
    for (int i = 0; i < count; i++)
        if (write_all(fd, pieces[i].data, pieces[i].size) != 0) return -1;
    return 0;
}

/* A pipe whose reader has gone raises SIGPIPE in this thread, a file that reaches the limit on its size
 * (ulimit -f) SIGXFSZ: hold them back, and take them away again if they were ours. */
static int write_quietly(int fd, const struct bytes *pieces, int count) {
    sigset_t held, pending, previous;
    sigpending(&pending);
    sigemptyset(&held);
    if (!sigismember(&pending, SIGPIPE)) sigaddset(&held, SIGPIPE);
    if (!sigismember(&pending, SIGXFSZ)) sigaddset(&held, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &held, &previous);
    int result = write_pieces(fd, pieces, count);
    int reason = errno;
    if (result != 0 && (reason == EPIPE || reason == EFBIG)) {
        struct timespec now = {0, 0};
        while (sigtimedwait(&held, NULL, &now) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &previous, NULL);
    errno = reason;
    return result;
}

/* As many as writers of one path can meet, many times over. */
#define NAMING_ATTEMPTS 1000

/* Each returns 0 or the reason. */

static int write_in_place(const char *path, const struct bytes *pieces, int count) {
    int fd = in_place_open(path);
    if (fd < 0) return errno;
    int reason = write_quietly(fd, pieces, count) == 0 ? 0 : errno;
    if (close(fd) != 0 && !reason) reason = errno;
    return reason;
}

/* A name next to `path` that no other write of this or another process uses. Heap memory. */
static char *temporary_name(const char *path) {
    static atomic_uint serial;
    size_t size = strlen(path) + 48;
    char *name = malloc(size);
    if (name) snprintf(name, size, "%s.tmp.%ld.%u", path, (long)getpid(), atomic_fetch_add(&serial, 1));
    return name;
}

/* Opens a file without a name in the folder of `path`: the system removes it if we are killed. -1 where the
 * file system has none. */
static int open_nameless(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder =
        slash ? string_copy(path, slash == path ? 1 : (size_t)(slash - path)) : string_copy(".", 1);
    int fd = folder ? open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
    free(folder);
    return fd;
}

/* Gives the nameless file its name. Where one stands already it gets a name beside it first, for the time of
 * one system call: there is no other way to replace. That name is always the same, so that a process killed
 * in between leaves what the next write to the path takes away; another process may take ours away just so,
 * then we begin again. */
static int name_file(int fd, const char *path, bool exists) {
    char itself[64];
    snprintf(itself, sizeof itself, "/proc/self/fd/%d", fd);
    if (!exists && linkat(AT_FDCWD, itself, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0) return 0;
    if (!exists && errno != EEXIST) return errno;
    size_t size = strlen(path) + sizeof ".tmp.new";
    char *beside = malloc(size);
    if (!beside) return ENOMEM;
    snprintf(beside, size, "%s.tmp.new", path);
    int reason = EAGAIN;
    for (int attempt = 0; attempt < NAMING_ATTEMPTS && reason; attempt++) {
        reason = linkat(AT_FDCWD, itself, AT_FDCWD, beside, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
        if (reason == EEXIST)
            (void)unlink(beside);
        else if (reason)
            break;
        else if (rename(beside, path) != 0 && (reason = errno) != ENOENT) {
            (void)unlink(beside);
            break;
        }
    }
    free(beside);
    return reason;
}

static int write_named(const char *path, const struct stat *old, const struct bytes *pieces, int count) {
    char *temporary = temporary_name(path);
    if (!temporary) return ENOMEM;
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int reason = fd < 0 ? errno : 0;
    if (fd >= 0) {
        if (old) (void)fchmod(fd, old->st_mode & 07777);
        if (write_quietly(fd, pieces, count) != 0) reason = errno;
        if (close(fd) != 0 && !reason) reason = errno;
        if (!reason && rename(temporary, path) != 0) reason = errno;
        if (reason) (void)unlink(temporary);
    }
    free(temporary);
    return reason;
}

/* `old`: the existing regular file, or NULL. */
static int replace(const char *path, const struct stat *old, const struct bytes *pieces, int count) {
    if (old && access(path, W_OK) != 0) return errno;
    int fd = open_nameless(path);
    if (fd < 0) return write_named(path, old, pieces, count);
    if (old) (void)fchmod(fd, old->st_mode & 07777);
    int reason = write_quietly(fd, pieces, count) == 0 ? 0 : errno;
    bool written = !reason;
    if (written) reason = name_file(fd, path, old != NULL);
    if (close(fd) != 0 && !reason) reason = errno;
    /* Naming needs /proc, and a file system that can link. */
    return written && reason ? write_named(path, old, pieces, count) : reason;
}

smelt_status file_write(const char *path, const struct bytes *pieces, int count) {
    struct stat status;
    bool exists = stat(path, &status) == 0;
    int reason, open_file = descriptor_named(path);
    if (open_file >= 0) {
        /* Written where that file stands: replacing what a redirection opened would part it from its other
         * writers. */
        reason = write_quietly(open_file, pieces, count) == 0 ? 0 : errno;
    } else if (exists && !S_ISREG(status.st_mode)) {
        reason = write_in_place(path, pieces, count);
    } else {
        /* Follows symbolic links: replaces their targets. */
        char *target = exists ? realpath(path, NULL) : NULL;
        reason = replace(target ? target : path, exists ? &status : NULL, pieces, count);
        free(target);
    }
    if (reason)
        return fail(SMELT_ERROR_IO, "file '%s' cannot be written: %s", path, in_place_reason(path, reason));
    return SMELT_OK;
}

smelt_status file_check_writable(const char *path) {
    struct stat status;
    int reason = 0;
    if (descriptor_named(path) >= 0) return SMELT_OK;
    if (stat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            reason = EISDIR;
        else if (access(path, W_OK) != 0)
            reason = errno;
    } else {
        const char *slash = strrchr(path, '/');
        char *folder = slash ? string_copy(path, (size_t)(slash - path) + 1) : string_copy(".", 1);
        if (!folder)
            reason = ENOMEM;
        else if (access(folder, W_OK | X_OK) != 0)
            reason = errno;
        free(folder);
    }
    if (reason) return fail(SMELT_ERROR_IO, "file '%s' cannot be written: %s", path, strerror(reason));
    return SMELT_OK;
}

smelt_status file_make_folder(const char *path) {
    struct stat there;
    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode)) return SMELT_OK;
    char *partial = string_copy(path, strlen(path));
    if (!partial) return fail_out_of_memory(strlen(path) + 1);
    smelt_status status = SMELT_OK;
    for (char *slash = partial + 1;; slash++) {
        if (*slash && *slash != '/') continue;
        char kept = *slash;
        *slash = 0;
        /* What stands there may still refuse to be made for another reason than that it stands there. */
        if (mkdir(partial, 0700) != 0 && errno != EEXIST && (kept == 0 || stat(partial, &there) != 0)) {
            status = fail(SMELT_ERROR_IO, "folder '%s' cannot be created: %s", partial, strerror(errno));
            break;
        }
        *slash = kept;
        if (!kept) break;
    }
    free(partial);
    return status;
}
