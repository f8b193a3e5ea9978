/* The executables of a kernel or function: a list that only grows. */
#ifndef SMELT_KERNEL_LOADED_H
#define SMELT_KERNEL_LOADED_H

#include "device/executable.h"

struct loaded {
    struct loaded *next;
    struct executable *executable;
};

struct loaded_list {
    pthread_mutex_t lock; /* for `first`; the rest never changes */
    struct loaded *first; /* newest first */
};

/* Under the lock. */
static inline void loaded_add(struct loaded_list *list, struct loaded *loaded) {
    loaded->next = list->first;
    list->first = loaded;
}

/* smelt_kernel_wait and smelt_function_wait, of the kernel `name`. */
smelt_status loaded_wait(struct loaded_list *list, const char *name, smelt_interrupt *interrupt);

#endif
