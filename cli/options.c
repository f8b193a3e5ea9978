#include "options.h"
#include "commands.h"
#include "values.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char options_help[] =
    "Source\n"
    "  SOURCE                     a .metal file; `-` is standard input\n"
    "  --body                     SOURCE is the body of a kernel: the signature is generated\n"
    "  FUNCTION                   whole file: host name of the kernel function, if there are several\n"
    "  --name NAME                body: name of the kernel (default: the file's stem)\n"
    "  --header FILE              body: text put before the function\n"
    "  -I DIR                     folder for #include (may be repeated)\n"
    "  --math safe|relaxed|fast   floating point mode (default safe)\n"
    "\n"
    "Body form\n"
    "  -i NAME=VALUE              an input: FILE.npy, FILE.npy:bfloat16, rand:DTYPE:4x16[:SEED] (also normal, zeros,\n"
    "                             ones, arange), 2 (int32), 2.0 (float32), true\n"
    "  -o NAME:DTYPE:SHAPE[=FILE] an output; without FILE it is summarised\n"
    "  -t NAME=VALUE              a template argument: a dtype, an integer, true or false\n"
    "  --init VALUE               fill outputs first (nan, inf, -inf too)\n"
    "  --atomic-outputs           outputs are device atomic<T>*\n"
    "  --strided                  pass inputs with their strides instead of copying them contiguous\n"
    "\n"
    "Whole-file form\n"
    "  -b INDEX=VALUE             a buffer, values as for -i; its contents are not printed\n"
    "  -b INDEX:out:DTYPE:SHAPE[=FILE]  an output buffer, zero-filled\n"
    "  --bytes INDEX=DTYPE:V[,V…] bytes for a constant buffer\n"
    "  --threadgroup-memory INDEX=BYTES\n"
    "  --constant INDEX=VALUE     a function constant: true, 3, 2.5 or DTYPE:VALUE\n"
    "  --groups X[,Y[,Z]]         threadgroups, instead of --grid\n"
    "\n"
    "Both\n"
    "  --grid X[,Y[,Z]]           threads\n"
    "  --threadgroup X[,Y[,Z]]    threads a group\n"
    "  --device cpu|cpu-scalar    (default cpu)\n"
    "  --profile apple            apply the limits of Apple GPUs (32 KiB of threadgroup memory)\n"
    "  --timeout SECONDS          stop the kernel after this long (default 60; 0: never)\n"
    "  --verbose                  print the generated source and what ran\n"
    "  --json                     print results as JSON\n";

/* What parse functions share. */
struct parser {
    int count, at;
    char **arguments;
    struct options *options;
    int status; /* exit status of a failure */
    bool showing;
};

/* The argument of the option at hand, or NULL after a complaint. */
static char *option_value(struct parser *p, const char *option) {
    if (p->at + 1 < p->count) return p->arguments[++p->at];
    complain("%s needs a value", option);
    return NULL;
}

/* "NAME=VALUE" → NAME in heap memory, VALUE in place. */
static char *split_name(const char *option, const char *text, const char **value) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        complain("%s '%s' is not of the form NAME=VALUE", option, text);
        return NULL;
    }
    *value = equals + 1;
    return strndup(text, (size_t)(equals - text));
}

static bool add_input(struct parser *p, const char *text) {
    struct options *o = p->options;
    const char *value;
    char what[300];
    if (o->input_count == SMELT_MAX_ARGUMENTS) return complain("more than %d inputs are given", SMELT_MAX_ARGUMENTS);
    char *name = split_name("-i", text, &value);
    if (!name) return false;
    snprintf(what, sizeof what, "input '%.200s'", name);
    o->input_names[o->input_count] = name;
    if (!parse_array(what, value, &o->inputs[o->input_count], &p->status)) {
        free(name);
        return false;
    }
    o->input_count++;
    return true;
}

/* DTYPE:SHAPE[=FILE] behind the colon. */
static bool parse_output(const char *what, const char *text, struct output_option *out) {
    const char *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : strlen(text);
    const char *colon = memchr(text, ':', length);
    if (!colon) return complain("%s is '%s', expected DTYPE:SHAPE[=FILE]", what, text);
    if (!parse_dtype(what, text, (size_t)(colon - text), &out->dtype)) return false;
    if (!parse_shape(what, colon + 1, length - (size_t)(colon + 1 - text), &out->shape)) return false;
    if (equals && !equals[1]) return complain("%s has an empty file name", what);
    out->file = equals ? strdup(equals + 1) : NULL;
    return true;
}

static bool add_output(struct parser *p, const char *text) {
    struct options *o = p->options;
    char what[300];
    const char *colon = strchr(text, ':');
    if (!colon || colon == text) return complain("-o '%s' is not of the form NAME:DTYPE:SHAPE[=FILE]", text);
    if (o->output_count == SMELT_MAX_ARGUMENTS) return complain("more than %d outputs are given", SMELT_MAX_ARGUMENTS);
    struct output_option *out = &o->outputs[o->output_count];
    snprintf(what, sizeof what, "output '%.*s'", (int)(colon - text), text);
    if (!parse_output(what, colon + 1, out)) return false;
    out->name = strndup(text, (size_t)(colon - text));
    o->output_count++;
    return true;
}

static bool parse_index(const char *option, const char *text, size_t length, int64_t limit, int *index) {
    char digits[32];
    int64_t value;
    snprintf(digits, sizeof digits, "%.*s", (int)length, text);
    char what[64];
    snprintf(what, sizeof what, "the index of %s", option);
    if (!parse_integer(what, digits, 0, limit, &value)) return false;
    *index = (int)value;
    return true;
}

static bool add_buffer(struct parser *p, const char *text) {
    struct options *o = p->options;
    size_t head = strcspn(text, "=:");
    int index;
    char what[64];
    if (!text[head]) return complain("-b '%s' is not of the form INDEX=VALUE or INDEX:out:DTYPE:SHAPE[=FILE]", text);
    if (!parse_index("-b", text, head, SMELT_MAX_BUFFERS - 1, &index)) return false;
    if (o->buffers[index].array || o->bytes[index]) return complain("buffer %d is given twice", index);
    snprintf(what, sizeof what, "buffer %d", index);
    if (text[head] == '=') return parse_array(what, text + head + 1, &o->buffers[index].array, &p->status);
    if (strncmp(text + head, ":out:", 5) != 0)
        return complain("-b '%s' is not of the form INDEX=VALUE or INDEX:out:DTYPE:SHAPE[=FILE]", text);
    struct output_option *out = &o->outputs[o->output_count];
    if (!parse_output(what, text + head + 5, out)) return false;
    out->index = index;
    o->output_count++;
    if (smelt_array_create(out->dtype, out->shape, &o->buffers[index].array) != SMELT_OK ||
        smelt_array_fill(o->buffers[index].array, 0) != SMELT_OK)
        return complain("%s: %s", what, smelt_error());
    return true;
}

static bool add_bytes(struct parser *p, const char *text) {
    struct options *o = p->options;
    size_t head = strcspn(text, "=");
    int index;
    char what[64];
    if (!text[head]) return complain("--bytes '%s' is not of the form INDEX=DTYPE:VALUE[,VALUE…]", text);
    if (!parse_index("--bytes", text, head, SMELT_MAX_BUFFERS - 1, &index)) return false;
    if (o->buffers[index].array || o->bytes[index]) return complain("buffer %d is given twice", index);
    snprintf(what, sizeof what, "bytes %d", index);
    if (!parse_bytes(what, text + head + 1, &o->bytes[index], &o->buffers[index].size)) return false;
    o->buffers[index].bytes = o->bytes[index];
    return true;
}

static bool add_threadgroup_memory(struct parser *p, const char *text) {
    size_t head = strcspn(text, "=");
    int index;
    int64_t bytes;
    if (!text[head]) return complain("--threadgroup-memory '%s' is not of the form INDEX=BYTES", text);
    if (!parse_index("--threadgroup-memory", text, head, SMELT_MAX_BUFFERS - 1, &index)) return false;
    if (!parse_integer("--threadgroup-memory", text + head + 1, 1, (int64_t)1 << 40, &bytes)) return false;
    p->options->threadgroup_memory[index] = (size_t)bytes;
    return true;
}

static bool add_constant(struct parser *p, const char *text) {
    struct options *o = p->options;
    size_t head = strcspn(text, "=");
    char what[64];
    if (!text[head]) return complain("--constant '%s' is not of the form INDEX=VALUE", text);
    if (o->constant_count == SMELT_MAX_CONSTANTS - 1)
        return complain("more than %d function constants are given", SMELT_MAX_CONSTANTS - 1);
    smelt_constant *constant = &o->constants[o->constant_count];
    if (!parse_index("--constant", text, head, 65535, &constant->index)) return false;
    snprintf(what, sizeof what, "function constant %d", constant->index);
    if (!parse_constant(what, text + head + 1, constant)) return false;
    o->constant_count++;
    return true;
}

static bool add_template(struct parser *p, const char *text) {
    struct options *o = p->options;
    const char *value;
    char what[300];
    if (o->template_count == SMELT_MAX_TEMPLATES - 1)
        return complain("more than %d template arguments are given", SMELT_MAX_TEMPLATES - 1);
    char *name = split_name("-t", text, &value);
    if (!name) return false;
    smelt_template *t = &o->templates[o->template_count];
    o->template_names[o->template_count++] = name;
    t->name = name;
    snprintf(what, sizeof what, "template '%.200s'", name);
    return parse_template(what, value, t);
}

static bool set_math(struct options *o, const char *text) {
    static const char *const names[] = {"safe", "relaxed", "fast"};
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            o->math = (smelt_math_mode)i;
            return true;
        }
    return complain("--math is '%s', expected safe, relaxed or fast", text);
}

static bool add_include(struct options *o, const char *text) {
    if (o->include_count == SMELT_MAX_INCLUDE_PATHS - 1)
        return complain("more than %d include folders are given", SMELT_MAX_INCLUDE_PATHS - 1);
    o->include_paths[o->include_count++] = text;
    return true;
}

/* ---- The table of options: what each does with its value. */

enum action {
    SET_TEXT, SET_FLAG, SET_TRIPLE, SET_REAL, SET_COUNT, SET_INIT, SET_MATH,
    ADD_INPUT, ADD_OUTPUT, ADD_TEMPLATE, ADD_BUFFER, ADD_BYTES, ADD_MEMORY, ADD_CONSTANT, ADD_INCLUDE
};

static const struct option {
    const char *name;
    enum action action;
    size_t offset; /* of the field it sets */
} table[] = {
    {"--body", SET_FLAG, offsetof(struct options, body)},
    {"--name", SET_TEXT, offsetof(struct options, name)},
    {"--header", SET_TEXT, offsetof(struct options, header_path)},
    {"-I", ADD_INCLUDE, 0},
    {"--math", SET_MATH, 0},
    {"-i", ADD_INPUT, 0},
    {"-o", ADD_OUTPUT, 0},
    {"-t", ADD_TEMPLATE, 0},
    {"--init", SET_INIT, 0},
    {"--atomic-outputs", SET_FLAG, offsetof(struct options, atomic_outputs)},
    {"--strided", SET_FLAG, offsetof(struct options, strided)},
    {"-b", ADD_BUFFER, 0},
    {"--bytes", ADD_BYTES, 0},
    {"--threadgroup-memory", ADD_MEMORY, 0},
    {"--constant", ADD_CONSTANT, 0},
    {"--groups", SET_TRIPLE, offsetof(struct options, groups)},
    {"--grid", SET_TRIPLE, offsetof(struct options, grid)},
    {"--threadgroup", SET_TRIPLE, offsetof(struct options, threadgroup)},
    {"--device", SET_TEXT, offsetof(struct options, device)},
    {"--profile", SET_TEXT, offsetof(struct options, profile)},
    {"--timeout", SET_REAL, offsetof(struct options, timeout)},
    {"--repeat", SET_COUNT, offsetof(struct options, repeat)},
    {"--bytes-moved", SET_REAL, offsetof(struct options, bytes_moved)},
    {"--flops", SET_REAL, offsetof(struct options, flops)},
    {"--verbose", SET_FLAG, offsetof(struct options, verbose)},
    {"--json", SET_FLAG, offsetof(struct options, json)},
    {"--stage", SET_TEXT, offsetof(struct options, stage)},
    {"--help", SET_FLAG, offsetof(struct options, help)},
};

static bool apply(struct parser *p, const struct option *option) {
    struct options *o = p->options;
    void *field = (char *)o + option->offset;
    if (option->action == SET_FLAG) {
        *(bool *)field = true;
        return true;
    }
    char *value = option_value(p, option->name);
    if (!value) return false;
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
        return set_math(o, value);
    case ADD_INPUT:
        return add_input(p, value);
    case ADD_OUTPUT:
        return add_output(p, value);
    case ADD_TEMPLATE:
        return add_template(p, value);
    case ADD_BUFFER:
        return add_buffer(p, value);
    case ADD_BYTES:
        return add_bytes(p, value);
    case ADD_MEMORY:
        return add_threadgroup_memory(p, value);
    case ADD_CONSTANT:
        return add_constant(p, value);
    case ADD_INCLUDE:
        return add_include(o, value);
    case SET_FLAG:
        break;
    }
    return true;
}

static bool add_positional(struct options *o, char *argument) {
    if (!o->source_path) o->source_path = argument;
    else if (!o->function) o->function = argument;
    else return complain("argument '%s' is one too many; expected SOURCE [FUNCTION]", argument);
    return true;
}

static bool parse_arguments(struct parser *p) {
    for (p->at = 0; p->at < p->count; p->at++) {
        char *argument = p->arguments[p->at];
        const struct option *found = NULL;
        for (size_t i = 0; i < sizeof table / sizeof *table && !found; i++)
            if (strcmp(argument, table[i].name) == 0) found = &table[i];
        if (found && strcmp(found->name, "--stage") == 0 && !p->showing) found = NULL;
        bool good = found ? apply(p, found)
                    : argument[0] == '-' && argument[1] ? complain("option '%s' is unknown; see --help", argument)
                                                        : add_positional(p->options, argument);
        if (!good) return false;
        if (p->options->help) return true;
    }
    return true;
}

/* ---- Files. */

static bool read_text(const char *path, char **text) {
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!file) return complain("file '%s' cannot be opened: %s", path, strerror(errno));
    size_t size = 0, capacity = 65536;
    char *data = malloc(capacity);
    for (size_t count; data && (count = fread(data + size, 1, capacity - size - 1, file)) > 0;) {
        size += count;
        if (capacity - size > 1) continue;
        char *grown = realloc(data, capacity *= 2);
        if (!grown) free(data);
        data = grown;
    }
    bool bad = ferror(file) != 0;
    int reason = errno;
    if (file != stdin) fclose(file);
    if (!data) return complain("file '%s' does not fit in memory", path);
    if (bad) {
        free(data);
        return complain("file '%s' cannot be read: %s", path, strerror(reason));
    }
    if (memchr(data, 0, size)) {
        free(data);
        return complain("file '%s' is not text: it holds a zero byte", path);
    }
    data[size] = 0;
    *text = data;
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

static bool check_form(const struct options *o) {
    bool whole_file = o->groups[0] || o->constant_count;
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++)
        whole_file |= o->buffers[i].array || o->bytes[i] || o->threadgroup_memory[i];
    if (o->body && whole_file)
        return complain("-b, --bytes, --threadgroup-memory, --constant and --groups go with a whole file, not with --body");
    if (o->body && o->function) return complain("argument '%s' is one too many: with --body there is no FUNCTION", o->function);
    bool body_only = o->input_count || o->template_count || o->initialise || o->atomic_outputs || o->strided ||
                     o->header_path || o->name;
    if (!o->body && body_only)
        return complain("-i, -t, --init, --atomic-outputs, --strided, --header and --name go with --body; a whole file takes -b");
    if (!o->body)
        for (int i = 0; i < o->output_count; i++)
            if (o->outputs[i].name) return complain("-o goes with --body; a whole file takes -b INDEX:out:DTYPE:SHAPE");
    return true;
}

int options_parse(int count, char **arguments, bool showing, struct options *options) {
    *options = (struct options){.timeout = 60, .repeat = 1};
    struct parser parser = {.count = count, .arguments = arguments, .options = options, .status = EXIT_USAGE, .showing = showing};
    if (!parse_arguments(&parser)) return parser.status;
    if (options->help) return EXIT_OK;
    if (!options->source_path) {
        complain("no SOURCE is given; see --help");
        return EXIT_USAGE;
    }
    if (!check_form(options)) return EXIT_USAGE;
    if (!read_text(options->source_path, &options->source)) return EXIT_USAGE;
    if (options->header_path && !read_text(options->header_path, &options->header)) return EXIT_USAGE;
    options->source_label = strcmp(options->source_path, "-") == 0 ? "standard input" : options->source_path;
    options->name = options->name ? strdup(options->name) : stem_of(options->source_path);
    return EXIT_OK;
}

void options_free(struct options *o) {
    free(o->source);
    free(o->header);
    if (o->source) free(o->name);
    for (int i = 0; i < o->input_count; i++) {
        free(o->input_names[i]);
        smelt_array_release(o->inputs[i]);
    }
    for (int i = 0; i < o->template_count; i++) free(o->template_names[i]);
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) {
        smelt_array_release(o->buffers[i].array);
        free(o->bytes[i]);
    }
    for (int i = 0; i < o->output_count; i++) {
        free(o->outputs[i].name);
        free(o->outputs[i].file);
    }
}
