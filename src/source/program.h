/* A Metal text prepared for clang: rewritten into the C++ dialect of prelude/, with its kernel functions.
 *
 * Requires: text without directives other than #line, line markers, #pragma and #include of Metal's own
 * headers (preprocess it first if it has others). Maintains: every line of the text stays on its line, so
 * that line numbers agree. */
#ifndef SMELT_SOURCE_PROGRAM_H
#define SMELT_SOURCE_PROGRAM_H

#include "base/arena.h"
#include "base/text.h"
#include "source/refuse.h"
#include "source/token.h"

enum parameter_kind {
    PARAMETER_BUFFER,      /* [[buffer(index)]] */
    PARAMETER_THREADGROUP, /* [[threadgroup(index)]] */
    PARAMETER_ATTRIBUTE,   /* [[thread_position_in_grid]] … */
    PARAMETER_UNSUPPORTED, /* [[texture(0)]] …: the entry is refused when it is requested */
    PARAMETER_RESOURCE     /* of a type that is not supported; `attribute` is the type */
};

struct parameter {
    const char *name;
    enum parameter_kind kind;
    const char *index;     /* the expression inside buffer(…) or threadgroup(…); "3" */
    const char *attribute; /* the attribute's name */
    const char *guard;     /* function_constant(guard), or NULL */
    uint32_t token;        /* where the parameter starts, for messages */
    bool by_reference;     /* of a buffer: T & */
    bool by_value;         /* neither T & nor T *: a tensor, or a value in a buffer */
    bool is_constant;      /* its type names the constant address space */
};

/* One kernel function that can be run. */
struct entry {
    const char *host_name;
    const char *scope;      /* its namespace: "" or "ns::" */
    const char *expression; /* the function's name there in C++: "f<float, 4>" */
    const char *definition; /* the namespace of its definition, where indices and guards are looked up */
    const char *types; /* its parameters, where the expression alone may name several functions; or NULL */
    const struct parameter *parameters;
    int parameter_count;
    uint32_t token;          /* where it is declared */
    uint32_t required_token; /* its attribute required_threads_per_threadgroup, 0: it has none */
};

/* A function of another stage, or a template of kernels (stage NULL): not an entry. */
struct other_function {
    const char *name, *stage;
    uint32_t token;
};

/* The body of a kernel that nothing else in the text names: other entries do not need it. */
struct kernel_body {
    const char *name;
    int uses;             /* how often the text has the name */
    uint32_t start;       /* the kernel's first token: that of its entry */
    uint32_t open, close; /* its braces */
};

struct program {
    struct arena arena;
    struct tokens input; /* over the text handed in, which must outlive the program */
    struct text text;    /* the rewritten text */
    uint32_t *positions; /* byte in `text` where each input token's replacement starts */
    struct entry *entries;
    int entry_count;
    struct kernel_body *bodies;
    int body_count;
    const char **constants; /* the names of function constants */
    int constant_count;
    struct other_function *others;
    int other_count;
    struct refusal refusal; /* the reason why no entry can be compiled */
    bool tensors;           /* its text has the word */
    bool objects;           /* its methods have their objects as parameters, as in C++23 */
    bool air_functions;     /* it declares functions by labels "air.…" (prelude: smelt_air.h) */
    bool apart;             /* a pragma turns contraction off */
};

/* COMPILE with a located message for text whose structure cannot be parsed. Free with program_free, on
 * success only. */
smelt_status program_create(const char *text, size_t length, struct program *program);
void program_free(struct program *program);

/* Appends the rewritten text, with the bodies of other kernels left out: clang would parse them and
 * instantiate the templates that they use, only to drop them. Lines and columns stay. */
void program_add_text(const struct program *program, const struct entry *entry, struct text *text);

/* The C++ function that binds the arguments of one entry and calls it; appended to `text` it completes the
 * translation unit. */
smelt_status program_add_entry_point(const struct program *program, const struct entry *entry,
                                     struct text *text);

/* The byte of the input for a byte of the rewritten text. */
uint32_t program_origin(const struct program *program, uint32_t position);

#endif
