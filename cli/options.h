/* The command line of `smelt run` and `smelt show`: parsed, checked, with its arrays created. */
#ifndef SMELT_CLI_OPTIONS_H
#define SMELT_CLI_OPTIONS_H

#include "array_value.h"

/* -o NAME:DTYPE:SHAPE[=FILE], or -b INDEX:out:DTYPE:SHAPE[=FILE]; of a stored graph -o NAME=FILE, without
 * dtype */
struct output_option {
    char *name;
    int index;
    smelt_dtype dtype;
    smelt_shape shape;
    char *file;                  /* NULL: print a summary */
    struct tensor_value *tensor; /* a tensor, whose values have the dtype and shape above; heap */
};

struct command;

struct options {
    char *source_path;        /* "-": standard input */
    const char *source_label; /* its name in messages */
    char *source;             /* its text, or … */
    size_t package_size;      /* … a package of so many bytes; 0: it is text */
    char *function;           /* whole-file form */
    bool body, graph;         /* graph: SOURCE is a stored graph */
    char *name;               /* of the kernel, body form: --name or … */
    char *stem;               /* … the file's stem */
    char *header_path, *header;
    smelt_math_mode math;
    bool math_given;
    int metal_version; /* 320; 0: not given */
    const char *include_paths[SMELT_MAX_INCLUDE_PATHS];
    int include_count;
    const char *macros[SMELT_MAX_ARGUMENTS];
    int macro_count;
    /* Body form. */
    char *input_names[SMELT_MAX_ARGUMENTS];
    struct array_value input_values[SMELT_MAX_ARGUMENTS];
    smelt_array *inputs[SMELT_MAX_ARGUMENTS];
    int input_count;
    smelt_template templates[SMELT_MAX_TEMPLATES];
    char *template_names[SMELT_MAX_TEMPLATES];
    int template_count;
    bool initialise, atomic_outputs, strided;
    double init_value;
    /* Whole-file form. */
    bool buffer_given[SMELT_MAX_BUFFERS]; /* by -b INDEX=VALUE: */
    struct array_value buffer_values[SMELT_MAX_BUFFERS];
    smelt_buffer buffers[SMELT_MAX_BUFFERS];
    void *bytes[SMELT_MAX_BUFFERS];
    smelt_dtype bytes_dtypes[SMELT_MAX_BUFFERS];
    size_t threadgroup_memory[SMELT_MAX_BUFFERS];
    smelt_constant constants[SMELT_MAX_CONSTANTS];
    char *constant_names[SMELT_MAX_CONSTANTS];
    int constant_count;
    int64_t groups[3];
    /* Both. */
    struct output_option outputs[SMELT_MAX_ARGUMENTS];
    int output_count;
    int64_t grid[3], threadgroup[3];
    char *device, *profile;
    double timeout;
    int64_t repeat;
    double bytes_moved, flops;
    bool verbose, json, help;
    char *trace; /* run: the file for a trace */
    /* check */
    char *format, *also;
    int64_t schedules;
    bool shrink;
    /* show */
    char *stage, *after, *target;
    bool checked; /* the code of checked runs */
    bool why, time;
    /* tune */
    char *operation; /* a shipped operation, in place of a source */
    struct tune_options *tune;
};

/* Reads the arguments and the texts they name, and then makes the arrays: what is wrong on the command line
 * is answered before anything takes long. `showing`: arrays stay without contents. Returns an exit status;
 * EXIT_OK with options->help set means that help was requested. */
int options_parse(const struct command *command, int count, char **arguments, struct options *options);
void options_free(struct options *options);

/* The options that may be repeated; each adds the value of `text` to `options`, or complains. */
bool option_add_input(struct options *options, const char *text);
bool option_add_output(struct options *options, const char *text);
bool option_add_template(struct options *options, const char *text);
bool option_add_buffer(struct options *options, const char *text);
bool option_add_bytes(struct options *options, const char *text);
bool option_add_threadgroup_memory(struct options *options, const char *text);
bool option_add_constant(struct options *options, const char *text);
bool option_set_init(struct options *options, const char *text);
bool option_set_math(struct options *options, const char *text);
bool option_set_metal_version(struct options *options, const char *text);
bool option_add_include(struct options *options, const char *text);
bool option_add_macro(struct options *options, const char *text);

#endif
