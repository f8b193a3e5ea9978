#include "base/in_place.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#define LOOK_NANOSECONDS 10000000

static bool is_named_pipe(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISFIFO(status.st_mode);
}

int in_place_open(const char *path) {
    double deadline = clock_seconds() + IN_PLACE_SECONDS;
    for (;;) {
        int fd = open(path, O_WRONLY | O_CREAT | O_NOCTTY | O_CLOEXEC | O_NONBLOCK, 0666);
        if (fd >= 0) (void)fcntl(fd, F_SETFL, 0);
        if (fd >= 0 || errno != ENXIO || !is_named_pipe(path)) return fd;
        if (clock_seconds() > deadline) break;
        struct timespec time = {0, LOOK_NANOSECONDS};
        nanosleep(&time, NULL);
    }
    errno = ENXIO;
    return -1;
}

const char *in_place_reason(const char *path, int error) {
    return error == ENXIO && is_named_pipe(path) ? "it is a named pipe that no program reads"
                                                 : strerror(error);
}
