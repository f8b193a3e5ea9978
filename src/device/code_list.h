/* The codes of an entry, by the shape of launch each was made for: made when a launch first needs them, kept
 * until the entry is unloaded. Finding one takes no lock. */
#ifndef SMELT_DEVICE_CODE_LIST_H
#define SMELT_DEVICE_CODE_LIST_H

#include "device/device.h"

#include <pthread.h>
#include <stdatomic.h>

/* What a device's own code begins with. Never changed once it is in the list. */
struct code_head {
    struct code_head *next;
    struct code_shape shape; /* asked for; the image may be of another engine */
    struct image image;
};

struct code_list {
    pthread_mutex_t lock;              /* to add a code */
    _Atomic(struct code_head *) first; /* latest first; only ever added to */
};

void code_list_open(struct code_list *list);

/* Calls `release` for each code. */
void code_list_close(struct code_list *list, void (*release)(struct code_head *code));

/* NULL: there is none yet. */
struct code_head *code_list_find(struct code_list *list, const struct code_shape *shape);

/* Adds a code that is ready to run, and gives it back. Where one of its shape has come in meanwhile that one
 * stays and is the result; `made` is then released. */
struct code_head *code_list_add(struct code_list *list, struct code_head *made,
                                void (*release)(struct code_head *code));

/* Notes that code was missing and has been made. `preparation` may be NULL. */
void preparation_note(struct preparation *preparation, bool cache_hit);

#endif
