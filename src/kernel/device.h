/* A device: a struct of function pointers. Adding one touches its folder and the table in device.c. */
#ifndef SMELT_KERNEL_DEVICE_H
#define SMELT_KERNEL_DEVICE_H

#include "ir/image.h"

struct executable; /* the device's own */

#define LAUNCH_MAX_BUFFERS 400

/* One launch, checked and complete. */
struct launch {
    void *const *buffers;             /* by buffer index: address of element 0 */
    const size_t *threadgroup_memory; /* SMELT_MAX_BUFFERS sizes, bytes, by threadgroup index */
    uint32_t grid[3];                 /* threads, all > 0 */
    uint32_t group_size[3];           /* threads of a full group, product <= 1024 */
    double timeout;                   /* seconds; 0: none */
};

struct device {
    const char *name;           /* "cpu" */
    const char *description;    /* a sentence */
    const char *target;         /* what code is made for; part of cache keys; NULL: this machine's CPU */
    uint64_t threadgroup_limit; /* bytes of threadgroup memory */
    uint32_t thread_limit;      /* threads a group */
    /* Makes an image runnable under `name` (for messages). Takes the image over on success. */
    smelt_status (*load)(struct image *image, const char *name, struct executable **executable);
    void (*unload)(struct executable *executable);
    const struct image *(*image)(const struct executable *executable);
    int (*threads)(void); /* (optional) threads of this machine that work on a launch */
    /* Runs and waits. */
    smelt_status (*run)(struct executable *executable, const struct launch *launch);
};

/* The device called `name` (NULL: "cpu"), or NO_DEVICE with the names there are. */
smelt_status device_find(const char *name, const struct device **device);

extern const struct device cpu_device, cpu_scalar_device;

#endif
