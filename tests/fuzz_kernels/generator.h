/* The generator's state, shared by its parts: grammar.c with rules.c (the contents of a line) and statement.c
 * (control flow and barriers). Every result of a generated kernel is defined: see docs/fuzzing.md. */
#ifndef SMELT_FUZZ_GENERATOR_H
#define SMELT_FUZZ_GENERATOR_H

#include "generate.h"
#include "random.h"

#include <stdio.h>

/* The result of a rule: expressions by the type of their value, and statements. The character is the name of
 * the type in the rules. */
enum type {
    BOOL = 'B',
    UCHAR = 'c',
    SHORT = 's',
    INT = 'i',
    UINT = 'u',
    LONG = 'l',
    ULONG = 'L',
    HALF = 'h',
    FLOAT = 'f',
    FLOAT2 = '2',
    FLOAT3 = '3',
    FLOAT4 = '4',
    UINT4 = 'U',
    UCHAR4 = 'C',
    HALF4 = 'H',
    UNIFORM_UINT = 'V', /* the same in all threads of a group */
    UNIFORM_BOOL = 'W',
    INDEX = '@', /* below INPUT_ELEMENTS */
    SLOT = 'T',  /* a thread's index in its group: below `size` */
    STATEMENT = ';'
};

struct variable {
    enum type type;
    char name[12];
    bool writable, uniform, counter;
};

#define MAX_VARIABLES 160

struct generator {
    FILE *out;
    struct random random;
    struct random ways; /* of returns past barriers: separate, so that earlier seeds keep their kernels */
    bool enabled[FEATURE_COUNT]; /* in this kernel */
    unsigned *counts;            /* occurrences by feature */
    struct variable variables[MAX_VARIABLES];
    int variable_count;
    int next_name, next_exchange;
    int indent, nesting, loops; /* depth of blocks, and of loops */
    int divergence;             /* > 0: some threads may be elsewhere */
    bool returned;              /* some threads may have left for good */
    int depth;                  /* of the expression */
    int budget;                 /* remaining subexpressions of an expression */
    int statements;             /* remaining statements of the kernel */
    bool in_kernel;             /* not in a helper function */
    enum type result;           /* of the helper function */
    unsigned slots;             /* one bit per type: there is threadgroup memory of it */
    int helpers;                /* that may be called */
    struct loop *loop;
    int layout[7]; /* of each plain output: enum layout */
    int dimensions;
};

/* The loop or switch around a statement. */
struct loop {
    bool uniform; /* all threads of a group stay together: barriers are allowed */
    bool is_switch;
    struct loop *outer;
};

/* The positions of a thread's four elements of an output. */
enum layout { INTERLEAVED, PLANAR, REVERSED, SCATTERED, WIDE_INDEX, SIGNED_INDEX, LAYOUTS };

/* Writes one line of a rule of `type`. */
void write_rule(struct generator *g, enum type type);
/* Writes `text`, in which $ introduces a placeholder: see rules.c. */
void write_template(struct generator *g, const char *text);
void use(struct generator *g, enum feature feature);
bool allowed(const struct generator *g, enum feature feature);
const char *type_name(enum type type);
const struct variable *add_variable(struct generator *g, enum type type, const char *name, bool writable);

/* statement.c: a line, from a template. */
void write_line(struct generator *g, const char *text);
/* Up to `most` statements in braces; the opening brace has been written. */
void write_block(struct generator *g, bool divergent, int most);
/* exchange.c: threadgroup memory. */
void declare_slots(struct generator *g);
void write_exchange(struct generator *g);

#endif
