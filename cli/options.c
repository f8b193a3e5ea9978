#include "options.h"
#include "commands.h"
#include "source.h"
#include "values.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char options_help[] =
    "Source\n"
    "  SOURCE                     a .metal file, or a package of smelt build; `-` is standard input\n"
    "  --body                     SOURCE is the body of a kernel: the signature is generated\n"
    "  FUNCTION                   whole file: host name of the kernel function, if there are several\n"
    "  --name NAME                body: name of the kernel (default: the file's stem)\n"
    "  --header FILE              body: text put before the function\n"
    "  -I DIR                     folder for #include (may be repeated)\n"
    "  --math safe|relaxed|fast   floating point mode (default safe)\n"
    "  --metal-version VERSION    the version of the language: 3.2 (default), 4.0, 3.1, …\n"
    "\n"
    "Body form\n"
    "  -i NAME=VALUE              an input: FILE.npy, FILE.npy:DTYPE (its bytes as DTYPE),\n"
    "                             rand:DTYPE:4x16[:SEED] (also normal, zeros, ones, arange), 2 (int32),\n"
    "                             2.0 (float32), true\n"
    "  -o NAME:DTYPE:SHAPE[=FILE] an output; FILE is .npy, or .png for an image (HxW, HxWx3, HxWx4 of\n"
    "                             uint8, or of floats from 0 to 1); without FILE it is summarised\n"
    "  -t NAME=VALUE              a template argument: a dtype, an integer, true or false\n"
    "  --init VALUE               fill outputs first (nan, inf, -inf too)\n"
    "  --atomic-outputs           outputs are device atomic<T>*; they start as 0 without --init\n"
    "  --strided                  pass inputs with their strides instead of copying them contiguous\n"
    "\n"
    "Whole-file form\n"
    "  -b INDEX=VALUE             a buffer, values as for -i, of the parameter's dtype, or uint8 for bytes\n"
    "                             as they are; its contents are not printed\n"
    "  -b INDEX:out:DTYPE:SHAPE[=FILE]  an output buffer, zero-filled\n"
    "  --bytes INDEX=DTYPE:V[,V…] bytes for a constant buffer\n"
    "  --threadgroup-memory INDEX=BYTES\n"
    "  --constant INDEX=VALUE     a function constant, or NAME=VALUE: true, 3, 2.5 or DTYPE:V[,V…]\n"
    "  --groups X[,Y[,Z]]         threadgroups, instead of --grid\n"
    "\n"
    "Both\n"
    "  --grid X[,Y[,Z]]           threads\n"
    "  --threadgroup X[,Y[,Z]]    threads a group (with --grid the default is 256, or X of the grid if that "
    "is less)\n"
    "  --device NAME              cpu (the default), cpu-scalar, or a GPU: cuda, cuda:1 …\n"
    "  --profile apple            apply the limits of Apple GPUs (32 KiB of threadgroup memory)\n"
    "  --timeout SECONDS          stop the kernel after this long (default 60; 0: never)\n"
    "  --repeat N                 run N times, print the median time\n"
    "  --bytes-moved N            with it: print GB/s\n"
    "  --flops N                  with it: print GFLOP/s\n"
    "  --verbose                  print the generated source and what ran\n";

/* ---- The table of options: what each does with its value. */

enum action {
    SET_TEXT,
    SET_FLAG,
    SET_TRIPLE,
    SET_REAL,
    SET_COUNT,
    SET_INIT,
    SET_MATH,
    SET_METAL_VERSION,
    ADD /* may be repeated */
};

enum command { RUN = 1, SHOW = 2, BOTH = 3 };

static const struct option {
    const char *name;
    enum action action;
    size_t offset; /* of the field it sets */
    bool (*add)(struct options *options, const char *text);
    enum command commands; /* that take it */
} table[] = {
#define FIELD(name) offsetof(struct options, name)
    {"--body", SET_FLAG, FIELD(body), NULL, BOTH},
    {"--name", SET_TEXT, FIELD(name), NULL, BOTH},
    {"--header", SET_TEXT, FIELD(header_path), NULL, BOTH},
    {"-I", ADD, 0, option_add_include, BOTH},
    {"--math", SET_MATH, 0, NULL, BOTH},
    {"--metal-version", SET_METAL_VERSION, 0, NULL, BOTH},
    {"-i", ADD, 0, option_add_input, BOTH},
    {"-o", ADD, 0, option_add_output, BOTH},
    {"-t", ADD, 0, option_add_template, BOTH},
    {"--init", SET_INIT, 0, NULL, BOTH},
    {"--atomic-outputs", SET_FLAG, FIELD(atomic_outputs), NULL, BOTH},
    {"--strided", SET_FLAG, FIELD(strided), NULL, BOTH},
    {"-b", ADD, 0, option_add_buffer, BOTH},
    {"--bytes", ADD, 0, option_add_bytes, BOTH},
    {"--threadgroup-memory", ADD, 0, option_add_threadgroup_memory, BOTH},
    {"--constant", ADD, 0, option_add_constant, BOTH},
    {"--groups", SET_TRIPLE, FIELD(groups), NULL, BOTH},
    {"--grid", SET_TRIPLE, FIELD(grid), NULL, BOTH},
    {"--threadgroup", SET_TRIPLE, FIELD(threadgroup), NULL, BOTH},
    {"--device", SET_TEXT, FIELD(device), NULL, BOTH},
    {"--profile", SET_TEXT, FIELD(profile), NULL, BOTH},
    {"--timeout", SET_REAL, FIELD(timeout), NULL, BOTH},
    {"--repeat", SET_COUNT, FIELD(repeat), NULL, BOTH},
    {"--bytes-moved", SET_REAL, FIELD(bytes_moved), NULL, BOTH},
    {"--flops", SET_REAL, FIELD(flops), NULL, BOTH},
    {"--verbose", SET_FLAG, FIELD(verbose), NULL, BOTH},
    {"--json", SET_FLAG, FIELD(json), NULL, RUN},
    {"--trace", SET_TEXT, FIELD(trace), NULL, RUN},
    {"--stage", SET_TEXT, FIELD(stage), NULL, SHOW},
    {"--target", SET_TEXT, FIELD(target), NULL, SHOW},
    {"--why", SET_FLAG, FIELD(why), NULL, SHOW},
    {"--help", SET_FLAG, FIELD(help), NULL, BOTH},
    {"-h", SET_FLAG, FIELD(help), NULL, BOTH},
#undef FIELD
};
#define OPTION_COUNT (sizeof table / sizeof *table)

/* The state of reading the arguments. */
struct parser {
    int count, at;
    char **arguments;
    struct options *options;
    enum command command;
    bool seen[OPTION_COUNT];
};

/* The argument of the option at hand, or NULL after a complaint. */
static char *option_value(struct parser *p, const char *option) {
    if (p->at + 1 < p->count) return p->arguments[++p->at];
    complain("%s needs a value", option);
    return NULL;
}

bool option_set_math(struct options *o, const char *text) {
    static const char *const names[] = {"safe", "relaxed", "fast"};
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            o->math = (smelt_math_mode)i;
            return true;
        }
    return complain("--math is '%s', expected safe, relaxed or fast", text);
}

bool option_set_metal_version(struct options *o, const char *text) {
    static const char *const names[] = {"1.0", "1.1", "1.2", "2.0", "2.1", "2.2",
                                        "2.3", "2.4", "3.0", "3.1", "3.2", "4.0"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i]) == 0) {
            o->metal_version = 100 * (text[0] - '0') + 10 * (text[2] - '0');
            return true;
        }
    return complain("--metal-version is '%s', expected 3.2, 4.0 or an earlier version of Metal", text);
}

static bool apply(struct parser *p, const struct option *option) {
    struct options *o = p->options;
    void *field = (char *)o + option->offset;
    if (option->action == SET_FLAG) {
        *(bool *)field = true;
        return true;
    }
    char *value = option_value(p, option->name);
    if (!value) return false;
    if (option->action == ADD) return option->add(o, value);
    if (p->seen[option - table]) return complain("%s is given twice", option->name);
    p->seen[option - table] = true;
    switch (option->action) {
    case SET_TEXT:
        *(char **)field = value;
        return true;
    case SET_TRIPLE:
        return parse_triple(option->name, value, field);
    case SET_REAL:
        return parse_real(option->name, value, false, field);
    case SET_COUNT:
        return parse_integer(option->name, value, 1, 1000000, field);
    case SET_INIT:
        o->initialise = true;
        return parse_real(option->name, value, true, &o->init_value);
    case SET_MATH:
        return option_set_math(o, value);
    case SET_METAL_VERSION:
        return option_set_metal_version(o, value);
    case SET_FLAG:
    case ADD:
        break;
    }
    return true;
}

static bool add_positional(struct options *o, char *argument) {
    if (!o->source_path)
        o->source_path = argument;
    else if (!o->function)
        o->function = argument;
    else
        return complain("argument '%s' is one too many; expected SOURCE [FUNCTION]", argument);
    return true;
}

static bool unknown_option(const struct parser *p, const char *argument) {
    size_t length = strcspn(argument, "=");
    for (size_t i = 0; i < OPTION_COUNT && argument[length]; i++)
        if (strlen(table[i].name) == length && strncmp(argument, table[i].name, length) == 0)
            return complain("option '%s' is unknown; the value is an argument of its own: %s %s", argument,
                            table[i].name, argument + length + 1);
    return complain("option '%s' is unknown; see smelt %s --help", argument,
                    p->command == SHOW ? "show" : "run");
}

static bool parse_arguments(struct parser *p) {
    bool ended = false; /* by "--" */
    for (p->at = 0; p->at < p->count; p->at++) {
        char *argument = p->arguments[p->at];
        const struct option *found = NULL;
        bool is_option = !ended && argument[0] == '-' && argument[1];
        for (size_t i = 0; i < OPTION_COUNT && is_option && !found; i++)
            if (strcmp(argument, table[i].name) == 0 && (table[i].commands & p->command)) found = &table[i];
        bool good = true;
        if (found)
            good = apply(p, found);
        else if (is_option && strcmp(argument, "--") == 0)
            ended = true;
        else
            good = is_option ? unknown_option(p, argument) : add_positional(p->options, argument);
        if (!good) return false;
        if (p->options->help) return true;
    }
    return true;
}

/* "dir/my-exp.body" → "my_exp". */
static char *stem_of(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *start = slash ? slash + 1 : path;
    size_t length = strcspn(start, ".");
    if (strcmp(path, "-") == 0 || !length) return strdup("kernel");
    char *name = malloc(length + 2);
    if (!name) return NULL;
    size_t at = 0;
    if (*start >= '0' && *start <= '9') name[at++] = '_';
    for (size_t i = 0; i < length; i++) {
        char c = start[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        name[at++] = good ? c : '_';
    }
    name[at] = 0;
    return name;
}

/* ---- What goes together. */

static bool check_form(const struct options *o) {
    bool whole_file = o->groups[0] || o->constant_count;
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++)
        whole_file |= o->buffer_given[i] || o->bytes[i] || o->threadgroup_memory[i];
    for (int i = 0; i < o->output_count; i++) whole_file |= !o->outputs[i].name;
    if (o->body && whole_file)
        return complain("-b, --bytes, --threadgroup-memory, --constant and --groups go with a whole file, "
                        "not with --body");
    if (o->body && o->function)
        return complain("argument '%s' is one too many: with --body there is no FUNCTION", o->function);
    bool body_only = o->input_count || o->template_count || o->initialise || o->atomic_outputs ||
                     o->strided || o->header_path || o->name;
    if (!o->body && body_only)
        return complain("-i, -t, --init, --atomic-outputs, --strided, --header and --name go with --body; a "
                        "whole file takes -b");
    for (int i = 0; i < o->output_count && !o->body; i++)
        if (o->outputs[i].name)
            return complain("-o goes with --body; a whole file takes -b INDEX:out:DTYPE:SHAPE");
    if (o->header_path && strcmp(o->header_path, "-") == 0 && strcmp(o->source_path, "-") == 0)
        return complain("SOURCE and --header cannot both be standard input");
    return true;
}

/* What only text has. */
static bool check_package(const struct parser *p) {
    const struct options *o = p->options;
    if (!o->package_size) return true;
    if (o->body) return complain("'%s' is a package, not the body of a kernel", o->source_path);
    bool math = false;
    for (size_t i = 0; i < OPTION_COUNT; i++) math |= p->seen[i] && table[i].action == SET_MATH;
    if (math || o->include_count || o->metal_version)
        return complain("'%s' is a package: --math, --metal-version and -I were given when it was built",
                        o->source_path);
    return true;
}

/* Two outputs in one file would be one output. */
static bool check_files(const struct options *o) {
    for (int i = 0; i < o->output_count; i++)
        for (int j = 0; j < i && o->outputs[i].file; j++)
            if (o->outputs[j].file && strcmp(o->outputs[i].file, o->outputs[j].file) == 0 &&
                strcmp(o->outputs[i].file, "/dev/null") != 0)
                return complain("file '%s' is given to two outputs", o->outputs[i].file);
    return true;
}

/* What running needs beyond what showing needs. */
static bool check_run(const struct options *o) {
    if (o->groups[0] && o->grid[0])
        return complain("--grid and --groups are both given; one says how much runs");
    if (!o->groups[0] && !o->grid[0])
        return complain(o->body ? "--grid is missing: the number of threads, as in --grid 64"
                                : "--grid (threads) or --groups (threadgroups) is missing, as in --grid 64");
    if (o->groups[0] && !o->threadgroup[0])
        return complain("--groups needs --threadgroup, as in --threadgroup 64");
    /* Longer than thirty years is never meant, and is more than clocks can add. */
    if (o->timeout > 1e9) return complain("--timeout is more than 1e9 seconds; 0 means never");
    return true;
}

/* ---- Arrays. */

static bool make_arrays(struct options *o, bool contents, int *status) {
    char what[300];
    for (int i = 0; i < o->input_count; i++) {
        snprintf(what, sizeof what, "input '%.200s'", o->input_names[i]);
        if (!array_value_make(what, &o->input_values[i], contents, &o->inputs[i], status)) return false;
    }
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) {
        snprintf(what, sizeof what, "buffer %d", i);
        if (o->buffer_given[i] &&
            !array_value_make(what, &o->buffer_values[i], contents, &o->buffers[i].array, status))
            return false;
    }
    for (int i = 0; i < o->output_count && !o->body; i++) {
        struct array_value zeros = {
            .kind = ARRAY_ZEROS, .dtype = o->outputs[i].dtype, .shape = o->outputs[i].shape};
        snprintf(what, sizeof what, "buffer %d", o->outputs[i].index);
        if (!array_value_make(what, &zeros, contents, &o->buffers[o->outputs[i].index].array, status))
            return false;
    }
    return true;
}

int options_parse(int count, char **arguments, bool showing, struct options *o) {
    *o = (struct options){.timeout = showing ? 0 : 60, .repeat = 1};
    struct parser parser = {
        .count = count, .arguments = arguments, .options = o, .command = showing ? SHOW : RUN};
    if (!parse_arguments(&parser)) return EXIT_USAGE;
    if (o->help) return EXIT_OK;
    if (!o->source_path) {
        complain("no SOURCE is given; see smelt %s --help", showing ? "show" : "run");
        return EXIT_USAGE;
    }
    if (!check_form(o) || !check_files(o) || !(showing || check_run(o))) return EXIT_USAGE;
    /* What is shown the device need not run. */
    if (o->device && !showing && !smelt_device_description(o->device)) return report(SMELT_ERROR_NO_DEVICE);
    if (!source_read(o->source_path, &o->source, &o->package_size)) return EXIT_USAGE;
    if (o->header_path && !source_read(o->header_path, &o->header, NULL)) return EXIT_USAGE;
    if (!check_package(&parser)) return EXIT_USAGE;
    o->source_label = source_label(o->source_path);
    if (!o->name) o->name = o->stem = stem_of(o->source_path);
    int status = EXIT_USAGE;
    return make_arrays(o, !showing, &status) ? EXIT_OK : status;
}

void options_free(struct options *o) {
    free(o->source);
    free(o->header);
    free(o->stem);
    for (int i = 0; i < o->input_count; i++) {
        free(o->input_names[i]);
        array_value_free(&o->input_values[i]);
        smelt_array_release(o->inputs[i]);
    }
    for (int i = 0; i < o->template_count; i++) free(o->template_names[i]);
    for (int i = 0; i < SMELT_MAX_CONSTANTS; i++) free(o->constant_names[i]);
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) {
        array_value_free(&o->buffer_values[i]);
        smelt_array_release(o->buffers[i].array);
        free(o->bytes[i]);
    }
    for (int i = 0; i < o->output_count; i++) {
        free(o->outputs[i].name);
        free(o->outputs[i].file);
    }
}
