#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

smelt_status file_read(const char *path, struct text *contents) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fail(SMELT_ERROR_IO, "file '%s' cannot be opened: %s", path, strerror(errno));
    char chunk[65536];
    for (;;) {
        ssize_t count = read(fd, chunk, sizeof chunk);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            int reason = errno;
            close(fd);
            text_free(contents);
            return fail(SMELT_ERROR_IO, "file '%s' cannot be read: %s", path, strerror(reason));
        }
        if (count == 0) break;
        text_append(contents, chunk, (size_t)count);
    }
    close(fd);
    if (contents->failed) {
        text_free(contents);
        return fail(SMELT_ERROR_OUT_OF_MEMORY, "file '%s' does not fit in memory", path);
    }
    return SMELT_OK;
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

smelt_status file_write(const char *path, const struct bytes *pieces, int count) {
    static atomic_uint serial;
    struct stat status;
    bool exists = stat(path, &status) == 0;
    bool in_place = exists && !S_ISREG(status.st_mode);
    char *temporary = NULL;
    if (!in_place) {
        size_t size = strlen(path) + 48;
        temporary = malloc(size);
        if (!temporary) return fail_out_of_memory(size);
        snprintf(temporary, size, "%s.tmp.%ld.%u", path, (long)getpid(), atomic_fetch_add(&serial, 1));
    }
    const char *target = in_place ? path : temporary;
    int flags = in_place ? O_WRONLY : O_WRONLY | O_CREAT | O_EXCL;
    int fd = open(target, flags | O_CLOEXEC, 0666);
    int reason = fd < 0 ? errno : 0;
    if (fd >= 0) {
        if (!in_place && exists) (void)fchmod(fd, status.st_mode & 07777);
        if (write_pieces(fd, pieces, count) != 0) reason = errno;
        if (close(fd) != 0 && !reason) reason = errno;
        if (!in_place && !reason && rename(temporary, path) != 0) reason = errno;
        if (!in_place && reason) (void)unlink(temporary);
    }
    free(temporary);
    if (reason) return fail(SMELT_ERROR_IO, "file '%s' cannot be written: %s", path, strerror(reason));
    return SMELT_OK;
}

smelt_status file_make_folder(const char *path) {
    char *partial = string_copy(path, strlen(path));
    if (!partial) return fail_out_of_memory(strlen(path) + 1);
    smelt_status status = SMELT_OK;
    for (char *slash = partial + 1;; slash++) {
        if (*slash && *slash != '/') continue;
        char kept = *slash;
        *slash = 0;
        if (mkdir(partial, 0700) != 0 && errno != EEXIST) {
            status = fail(SMELT_ERROR_IO, "folder '%s' cannot be made: %s", partial, strerror(errno));
            break;
        }
        *slash = kept;
        if (!kept) break;
    }
    free(partial);
    return status;
}
