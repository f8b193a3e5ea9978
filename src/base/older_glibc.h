/* Functions that glibc has had since 2.30 and 2.34, for wheels that are built for older systems. */
#ifndef SMELT_BASE_OLDER_GLIBC_H
#define SMELT_BASE_OLDER_GLIBC_H

#include <dirent.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !__GLIBC_PREREQ(2, 30)
#define gettid() ((pid_t)syscall(SYS_gettid))
#endif

#if !__GLIBC_PREREQ(2, 34)
/* Closes what is open now. A descriptor that another thread opens meanwhile, without O_CLOEXEC, is passed on.
 */
static inline int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int first) {
    DIR *folder = opendir("/proc/self/fd");
    int error = 0;
    for (struct dirent *entry; folder && !error && (entry = readdir(folder));) {
        int fd = atoi(entry->d_name); /* 0 for "." */
        if (fd >= first) error = posix_spawn_file_actions_addclose(actions, fd);
    }
    if (folder) closedir(folder);
    return error;
}
#endif

#endif
