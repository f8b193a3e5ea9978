/* A library and its functions: library.c, and function.c, which uses it. */
#ifndef SMELT_KERNEL_LIBRARY_H
#define SMELT_KERNEL_LIBRARY_H

#include "kernel/dispatch.h"
#include "kernel/loaded.h"
#include "package/build.h"
#include "package/code.h"

#include <stdatomic.h>

struct smelt_library {
    atomic_int references;
    char *label;        /* its name in messages */
    struct text source; /* the text, or the package's bytes */
    bool packaged;
    struct translation translation; /* where it is not packaged */
    struct package package;         /* where it is */
};

struct smelt_function {
    atomic_int references;
    smelt_library *library;
    const struct entry *entry;
    const struct package_entry *packaged;              /* NULL: compiled from text */
    bool constants_changed;                            /* from those of the package's code */
    atomic_flag noted;                                 /* a note that faster code is possible */
    smelt_constant constants[SMELT_MAX_CONSTANTS + 1]; /* ended by SMELT_NO_DTYPE; names in `arena` */
    struct arena arena;
    struct loaded_list loaded; /* one per device */
};

/* The entry of the function with this index. */
const struct entry *library_entry(const smelt_library *library, int index);

/* The index of the function with this host name; otherwise of the only function whose host name without
 * namespaces this is; otherwise -1. */
int library_find(const smelt_library *library, const char *name);

/* The error that there is no function `name` (NULL: none is named), with the names there are. */
smelt_status library_lacks(const smelt_library *library, const char *name);

/* Adds the bytes of the package that smelt_library_build writes, with code for these launches (struct
 * package_request). desc->path is not used. */
smelt_status library_package(const smelt_library *library, const smelt_build_desc *desc,
                             const struct package_launch *launches, int launch_count, struct text *bytes);

/* Of a list ended by SMELT_NO_DTYPE: their reserved words. */
smelt_status library_check_constants(const smelt_constant *constants);

#endif
