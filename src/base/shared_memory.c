#include "base/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* Above standard streams also in a host that closed them. */
static int create_file(size_t size) {
    int low = memfd_create("smelt", MFD_CLOEXEC);
    if (low < 0) return -1;
    int fd = fcntl(low, F_DUPFD_CLOEXEC, 16);
    close(low);
    if (fd < 0 || ftruncate(fd, (off_t)size) == 0) return fd;
    close(fd);
    return -1;
}

bool shared_memory_create(size_t size, struct shared_memory *memory) {
    *memory = (struct shared_memory){.size = size, .fd = create_file(size)};
    if (memory->fd < 0) return false;
    memory->bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
    if (memory->bytes != MAP_FAILED) return true;
    close(memory->fd);
    *memory = (struct shared_memory){.fd = -1};
    return false;
}

void shared_memory_free(struct shared_memory *memory) {
    if (memory->bytes) (void)munmap(memory->bytes, memory->size);
    if (memory->fd >= 0) close(memory->fd);
    *memory = (struct shared_memory){.fd = -1};
}
