#include "frontend/cache_lock.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "frontend/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

/* The dot sets it apart from the cache's entries. */
#define LOCK_FILE ".locks"

/* The pause between two attempts: short at first, because most compiles are short. */
#define FIRST_PAUSE 0.001
#define LAST_PAUSE 0.02

/* A file description of the lock's own: the kernel releases its locks when its last descriptor is closed. */
static int open_file(void) {
    char path[4352];
    const char *folder = cache_folder();
    if (!folder || snprintf(path, sizeof path, "%s/" LOCK_FILE, folder) >= (int)sizeof path) return -1;
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
}

/* *possible: the file system has locks. */
static bool take_byte(int fd, off_t at, bool *possible) {
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    if (fcntl(fd, F_OFD_SETLK, &byte) == 0) return true;
    *possible &= errno == EAGAIN || errno == EACCES || errno == EINTR;
    return false;
}

static bool take_any(int fd, off_t first, int count, bool *possible) {
    for (int i = 0; i < count && *possible; i++)
        if (take_byte(fd, first + i, possible)) return true;
    return false;
}

static void pause_for(double seconds) {
    struct timespec time = {.tv_nsec = (long)(seconds * 1e9)};
    background_pause();
    (void)nanosleep(&time, NULL);
    background_resume();
}

static smelt_status take(off_t first, int count, double seconds, cache_lock *lock) {
    *lock = -1;
    int fd = open_file();
    if (fd < 0) return SMELT_OK;
    double end = clock_seconds() + seconds;
    bool possible = true;
    smelt_status status = SMELT_OK;
    for (double pause = FIRST_PAUSE;; pause = pause < LAST_PAUSE ? 1.5 * pause : LAST_PAUSE) {
        if (take_any(fd, first, count, &possible)) {
            *lock = fd;
            return SMELT_OK;
        }
        status = interrupt_check();
        if (!possible || status != SMELT_OK || clock_seconds() >= end) break;
        pause_for(interrupt_of_call() && pause > INTERRUPT_LOOK_SECONDS ? INTERRUPT_LOOK_SECONDS : pause);
    }
    close(fd);
    return status;
}

smelt_status cache_lock_key(struct hash key, double seconds, cache_lock *lock) {
    off_t at = CACHE_LOCK_NUMBERS + (off_t)(key.low >> 2);
    return take(at, 1, seconds, lock);
}

smelt_status cache_lock_number(int count, double seconds, cache_lock *lock) {
    return take(0, count < CACHE_LOCK_NUMBERS ? count : CACHE_LOCK_NUMBERS, seconds, lock);
}

/* Needed where a fork of the host shares the description. */
void cache_unlock(cache_lock lock) {
    struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    if (lock < 0) return;
    (void)fcntl(lock, F_OFD_SETLK, &all);
    close(lock);
}
