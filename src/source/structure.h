/* The structure of a C++ text, as needed for rewriting: which braces are functions, which functions are
 * kernels, which statements instantiate templates.
 *
 * Requires: tokens with partners. Maintains: tokens are only read. */
#ifndef SMELT_SOURCE_STRUCTURE_H
#define SMELT_SOURCE_STRUCTURE_H

#include "base/arena.h"
#include "source/attribute.h"

/* The kind of the innermost braces around a token. */
enum scope { SCOPE_NAMESPACE, SCOPE_CLASS, SCOPE_FUNCTION, SCOPE_KERNEL };

/* A kernel function definition or declaration. */
struct parameter;
struct kernel_site {
    const char *name;     /* qualified: "ns::f" */
    uint32_t start;       /* first token of the declaration */
    uint32_t open, close; /* its parameter list's parentheses */
    uint32_t body;        /* its opening brace, or 0 for a declaration only */
    uint32_t end;         /* its last token: } or ; */
    int parameter_count;
    bool is_template;
    int least_arguments, most_arguments; /* of the template */
    bool graphics;                       /* of another stage: not run, removed from the text */
    bool left_out;                       /* once rewritten: so is it, as no entry can bind a parameter */
    uint32_t stage;                      /* the word that says which */
    const char *host_name;               /* from [[host_name("…")]], or NULL */
    struct parameter *parameters;        /* once read: src/source/entries.c */
    const char *scope;                   /* its namespace: "" or "ns::" */
    bool overloaded;                     /* other functions have its name */
    const char *types;                   /* once rewritten: its parameters' declarations, as a list */
    const char *required_threads;        /* of required_threads_per_threadgroup: "8, 8, 1"; or NULL */
    uint32_t required_token;             /* that attribute */
    const char *max_threads;             /* the expression of max_total_threads_per_threadgroup, or NULL */
};

/* template [[host_name("…")]] … f<…>…; */
struct instantiation_site {
    const char *host_name;
    const char *expression; /* "f<float, 4>" */
    const char *name;       /* "f", qualified as written */
    const char *scope;      /* its namespace: "" or "ns::" */
    int argument_count;     /* inside <> */
    int parameter_count;    /* of the list that follows, -1 where there is none */
    uint32_t open, close;   /* the parentheses of that list, 0 where there is none */
    const char *types;      /* once rewritten: that list */
    uint32_t start, end;    /* `template` and `;` */
};

/* A method that returns a pointer or reference into its object's address space:
 * `threadgroup T &at(int i) threadgroup { … }`. */
struct method_site {
    uint32_t first, last; /* the tokens [first, last) of what it returns */
    uint32_t open, close; /* the braces of its body */
};

struct structure {
    struct method_site *methods;
    int method_count;
    uint8_t *scopes; /* enum scope of each token */
    struct kernel_site *kernels;
    int kernel_count;
    struct instantiation_site *instantiations;
    int instantiation_count;
    uint32_t *functions; /* the names of functions at namespace scope, declared or defined */
    int function_count;
    uint32_t *bit_fields; /* the tokens that name one */
    int bit_field_count;
    uint32_t
        loose_variable; /* the name of the first variable at namespace scope that no address space owns; 0 */
};

smelt_status structure_find(const struct tokens *tokens, struct arena *arena, struct structure *structure);

/* "f" of the qualified name "ns::f". */
const char *structure_last_part(const char *name);

#endif
