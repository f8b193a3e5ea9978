/* The command line of `smelt run` and `smelt show`: parsed, checked, with its arrays made. */
#ifndef SMELT_CLI_OPTIONS_H
#define SMELT_CLI_OPTIONS_H

#include "smelt/smelt.h"

/* -o NAME:DTYPE:SHAPE[=FILE], or -b INDEX:out:DTYPE:SHAPE[=FILE] */
struct output_option {
    char *name;
    int index;
    smelt_dtype dtype;
    smelt_shape shape;
    char *file; /* NULL: print a summary */
};

struct options {
    char *source_path; /* "-": standard input */
    const char *source_label; /* its name in messages */
    char *source;      /* its text */
    char *function;    /* whole-file form */
    bool body;
    char *name;        /* of the kernel, body form */
    char *header_path, *header;
    smelt_math_mode math;
    const char *include_paths[SMELT_MAX_INCLUDE_PATHS];
    int include_count;
    /* Body form. */
    char *input_names[SMELT_MAX_ARGUMENTS];
    smelt_array *inputs[SMELT_MAX_ARGUMENTS];
    int input_count;
    smelt_template templates[SMELT_MAX_TEMPLATES];
    char *template_names[SMELT_MAX_TEMPLATES];
    int template_count;
    bool initialise, atomic_outputs, strided;
    double init_value;
    /* Whole-file form. */
    smelt_buffer buffers[SMELT_MAX_BUFFERS];
    void *bytes[SMELT_MAX_BUFFERS];
    size_t threadgroup_memory[SMELT_MAX_BUFFERS];
    smelt_constant constants[SMELT_MAX_CONSTANTS];
    int constant_count;
    int64_t groups[3];
    /* Both. */
    struct output_option outputs[SMELT_MAX_ARGUMENTS];
    int output_count;
    int64_t grid[3], threadgroup[3];
    const char *device, *profile;
    double timeout;
    int64_t repeat;
    double bytes_moved, flops;
    bool verbose, json, help;
    /* show */
    const char *stage;
};

/* Reads the arguments. Returns an exit status; EXIT_OK with options->help set means that help was asked for. */
int options_parse(int count, char **arguments, bool showing, struct options *options);
void options_free(struct options *options);

/* The help text shared by run and show. */
extern const char options_help[];

#endif
