/* From clang's bitcode to a compiled entry: the only door to LLVM. It is behind a process, smelt-cc1, or else
 * in libsmelt_compiler.so. */
#ifndef SMELT_ABI_COMPILER_H
#define SMELT_ABI_COMPILER_H

#include "abi/compile_progress.h"
#include "abi/image.h"
#include "smelt/smelt.h"

#include <string.h>

/* Checked when the library is opened: raise it with every change here or in image.h. */
#define COMPILER_INTERFACE 12

enum compile_output {
    COMPILE_OBJECT,   /* fills `image` */
    COMPILE_IR,       /* fills `text`: optimised IR before the engine */
    COMPILE_SIMD,     /* fills `text`: the SIMD engine's vector IR with shapes as comments */
    COMPILE_WHY,      /* fills `text`: the code of each line that is not plain vector code, and why */
    COMPILE_ASM,      /* fills `text`: of the PTX engine, PTX */
    COMPILE_AFTER,    /* fills `text`: IR after the request's pass `after` */
    COMPILE_CONSTANTS /* fills `constants` */
};

/* A function constant that the entry's code names. */
struct constant_use {
    int32_t index;
    uint32_t dtype;    /* enum smelt_dtype of its type */
    uint32_t required; /* it is read and has no value in the request */
    char name[116];    /* cut off if it is longer */
};

/* Whether a given constant is the one of this index and name: by its name if it has one, which may be
 * qualified. */
static inline bool constant_matches(const smelt_constant *given, long index, const char *name) {
    if (!given->name) return given->index == index;
    const char *colon = strrchr(given->name, ':');
    return name && strcmp(colon ? colon + 1 : given->name, name) == 0;
}

struct compile_request {
    const char *bitcode; /* or LLVM's text, for tests of passes */
    size_t bitcode_size;
    const char *after;          /* of COMPILE_AFTER; INVALID_ARGUMENT lists the valid names */
    const char *only;           /* names separated by commas: no other pass runs; NULL: all do */
    const char *cpu, *features; /* LLVM's names; NULL: this machine's. PTX: "sm_90a", "+ptx80", both given */
    const smelt_constant *constants; /* ended by SMELT_NO_DTYPE; may be NULL */
    uint64_t private_limit;          /* the most bytes of private arrays per thread */
    struct known_values values;      /* the code is for these alone */
    struct code_shape shape;
    enum compile_output output;
    enum compile_effort effort;        /* of COMPILE_OBJECT and COMPILE_ASM */
    int progress_fd;                   /* of the file that `progress` lies in, for a child; 0: none */
    struct compile_progress *progress; /* noted as it goes; may be NULL */
};

/* The longest is the list of an engine's passes. */
#define COMPILE_MESSAGE_BYTES 2048

struct compile_result {
    struct image image;
    char *text;                     /* heap */
    struct constant_use *constants; /* heap */
    int constant_count;
    char message[COMPILE_MESSAGE_BYTES]; /* of a failure */
};

struct compiler {
    int interface;              /* COMPILER_INTERFACE */
    const char *llvm_version;   /* "19.1.7" */
    bool in_process_of_its_own; /* compile() keeps the limits on time and memory itself, and can be
                                   interrupted */
    /* Of the vector registers that the SIMD engine uses on `cpu` (as in a request): 512, 256 or 128. */
    int (*vector_bits)(const char *cpu);
    /* The caller frees the contents of `result`, also after a failure. */
    smelt_status (*compile)(const struct compile_request *request, struct compile_result *result);
};

/* The library's one exported symbol: "smelt_compiler". */
typedef const struct compiler *smelt_compiler_function(void);

#endif
