/* The contents of a .smeltlib file: clang's output for kernel entries, code for some machines, and everything
 * needed to run them without their source. docs/packages.md describes them for users. */
#ifndef SMELT_PACKAGE_PACKAGE_H
#define SMELT_PACKAGE_PACKAGE_H

#include "base/arena.h"
#include "base/file.h"
#include "abi/image.h"
#include "source/program.h"

/* Raise it with every change of format.c's output or of the structures that code reads at run time
 * (abi/cpu_context.h). */
#define PACKAGE_FORMAT 6

/* A kind of target machine. Readers ignore unknown kinds. */
enum package_target_kind {
    PACKAGE_TARGET_CPU = 1,
    PACKAGE_TARGET_CUDA = 2 /* PTX: `name` and `processor` are the target's (device/gpu_shape.h) */
};

struct package_target {
    uint32_t kind;
    const char *name;      /* as requested: "cpu", "x86-64-v3" */
    const char *processor; /* LLVM's name of the target; "" for the machine that built it */
    const char *features;  /* what a machine must have: features.h */
};

/* Code for one target and shape. */
struct package_code {
    uint32_t target; /* index into the package's */
    struct code_shape shape;
    uint32_t engine;    /* the engine of the code: the scalar engine's if the SIMD engine refused */
    struct bytes image; /* image_write */
};

/* A function constant that the entry's code names. */
struct package_constant {
    const char *name;
    smelt_dtype type;
    bool required;        /* the entry reads it, and it has no value in the package */
    bool set;             /* it has one: `value` */
    smelt_constant value; /* its index always */
};

struct package_entry {
    struct entry entry;           /* host name and parameters; no tokens, no expression */
    uint32_t max_threads;         /* max_total_threads_per_threadgroup; 0: not given, or no code was made */
    uint32_t required_threads[3]; /* required_threads_per_threadgroup; 0 likewise */
    bool has_barrier;
    const struct package_constant *constants;
    int constant_count;
    struct bytes bitcode; /* before function constants have values */
    const struct package_code *codes;
    int code_count; /* 0: constants are missing */
};

struct package {
    struct arena arena;                       /* strings and lists below; blocks of bytes lie elsewhere */
    const char *smelt_version, *llvm_version; /* of the build that wrote it */
    const char *bitcode_interface, *code_interface; /* what its bitcode and code expect: interface_id.h */
    const char *source_name;
    smelt_math_mode math;
    uint32_t metal_version; /* 320 is 3.2 */
    const struct package_target *targets;
    int target_count;
    const struct package_entry *entries;
    int entry_count;
};

/* Whether the bytes begin as a package does. */
bool package_begins(const char *bytes, size_t size);

/* The same contents give the same bytes. */
smelt_status package_write(const struct package *package, struct text *bytes);

/* `bytes` must outlive the package: blocks lie in them. `label` names them in messages. FORMAT with a
 * sentence for bytes that are not a package, have a newer format, are truncated or damaged, or need another
 * build's prelude.
 */
smelt_status package_read(const char *label, const char *bytes, size_t size, struct package *package);
void package_free(struct package *package);

/* Whether its machine code fits this build's engines. */
bool package_code_fits(const struct package *package);

#endif
