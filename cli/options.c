#include "options.h"
#include "commands.h"
#include "smelt/tune.h"
#include "source.h"
#include "tune_options.h"
#include "values.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The options of `smelt run` and `smelt show`. */

#define FIELD(name) offsetof(struct options, name)
#define TEXT(field) OPTION_TEXT, .offset = FIELD(field)
#define FLAG(field) OPTION_FLAG, .offset = FIELD(field)
#define REAL(field) OPTION_REAL, .offset = FIELD(field)
#define TRIPLE(field) OPTION_TRIPLE, .offset = FIELD(field)
#define ADD(function) OPTION_ADD, .add = (function), .many = true
#define SET(function) OPTION_ADD, .add = (function)

static const struct option both[] = {
    {.name = "", .help = "Source"},
    {.name = "SOURCE",
     .help = "a .metal file, a package from smelt build, or (smelt run) an exported\n"
             "graph; `-` is standard input"},
    {"--body", NULL, "SOURCE is the body of a kernel: the signature is generated", FLAG(body)},
    {.name = "FUNCTION", .help = "whole file: host name of the kernel function, if there are several"},
    {"--name", "NAME", "body: name of the kernel (default: the file's stem)", TEXT(name)},
    {"--header", "FILE", "body: text put before the function", TEXT(header_path)},
    {"-I", "DIR", "folder for #include (may be repeated)", ADD(option_add_include)},
    {"-D", "NAME[=TEXT]", "a macro, 1 without a text (may be repeated)", ADD(option_add_macro)},
    {"--math", "safe|relaxed|fast", "floating point mode (default safe)", SET(option_set_math),
     .words = "safe relaxed fast"},
    {"--metal-version", "VERSION", "language version: 3.2 (default), 4.1, 4.0, …",
     SET(option_set_metal_version), .words = "3.2 4.0 4.1 3.1"},
    {.name = "", .help = "\nBody form"},
    {"-i", "NAME=VALUE",
     "an input: FILE.npy, FILE.npy:DTYPE (its bytes as DTYPE),\n"
     "rand:DTYPE:4x16[:SEED] (also normal, zeros, ones, arange), 2 (int32),\n"
     "2.0 (float32), true",
     ADD(option_add_input)},
    {"-o", "NAME:DTYPE:SHAPE[=FILE]",
     "an output; FILE is .npy, or .png for an image (HxW, HxWx3, HxWx4 of\n"
     "uint8, or of floats from 0 to 1); without FILE it is summarised",
     ADD(option_add_output)},
    {.name = "-o",
     .value = "NAME=FILE",
     .help = "an output of an exported graph, which has its dtype and shape"},
    {"-t", "NAME=VALUE", "a template argument: a dtype, an integer, true or false", ADD(option_add_template)},
    {"--init", "VALUE", "fill outputs first (also nan, inf, -inf)", SET(option_set_init)},
    {"--atomic-outputs", NULL, "outputs are device atomic<T>*; they start as 0 without --init",
     FLAG(atomic_outputs)},
    {"--strided", NULL, "pass inputs with their strides instead of copying them contiguous", FLAG(strided)},
    {.name = "", .help = "\nWhole-file form"},
    {"-b", "INDEX=VALUE",
     "a buffer: values as for -i, of the parameter's dtype, or uint8 for raw\n"
     "bytes; its contents are not printed",
     ADD(option_add_buffer)},
    {.name = "-b", .value = "INDEX:out:DTYPE:SHAPE[=FILE]", .help = "an output buffer, zero-filled"},
    {.name = "-b",
     .value = "INDEX=tensor:TYPE:DIMS[:scales=TYPE:BLOCKS][:SEED]",
     .help = "a tensor, random, the innermost\n"
             "dimension first: tensor:fp8_e4m3:4096x128:scales=ue8m0:32x1"},
    {.name = "-b", .value = "INDEX:out:tensor:TYPE:DIMS[=FILE]", .help = "an output tensor"},
    {.name = "-b", .value = "INDEX=FILE.safetensors:NAME", .help = "an array of a file"},
    {.name = "-b",
     .value = "INDEX=tensor:FILE.safetensors:NAME",
     .help = "a tensor with the scales that the file has"},
    {"--bytes", "INDEX=DTYPE:V[,V…]", "bytes for a constant buffer", ADD(option_add_bytes)},
    {"--threadgroup-memory", "INDEX=BYTES", "", ADD(option_add_threadgroup_memory)},
    {"--constant", "INDEX=VALUE", "a function constant, or NAME=VALUE: true, 3, 2.5 or DTYPE:V[,V…]",
     ADD(option_add_constant)},
    {"--groups", "X[,Y[,Z]]", "threadgroups, instead of --grid", TRIPLE(groups)},
    {.name = "", .help = "\nBoth"},
    {"--grid", "X[,Y[,Z]]", "threads", TRIPLE(grid)},
    {"--threadgroup", "X[,Y[,Z]]",
     "threads per threadgroup (default with --grid: 256, or the grid's X if that is less)",
     TRIPLE(threadgroup)},
    {"--device", "NAME", "cpu (the default), cpu-scalar, or a GPU: cuda, cuda:1 …", TEXT(device),
     .words = "cpu cpu-scalar cuda"},
    {"--profile", "apple", "apply the limits of Apple GPUs (32 KiB of threadgroup memory)", TEXT(profile),
     .words = "apple"},
    {"--timeout", "SECONDS", "stop the kernel after this long (default 60; 0: never)", REAL(timeout)},
    {"--repeat", "N", "run N times, print the median time", OPTION_COUNT, .offset = FIELD(repeat),
     .most = 1000000},
    {"--bytes-moved", "N", "with --repeat: print GB/s", REAL(bytes_moved)},
    {"--flops", "N", "with --repeat: print GFLOP/s", REAL(flops)},
    {"--verbose", NULL, "print the generated source and what ran", FLAG(verbose)},
    {0},
};

static const struct option of_run[] = {
    {"--json", NULL, "print results as JSON", FLAG(json)},
    {"--trace", "FILE.json", "record a trace for Perfetto or chrome://tracing", TEXT(trace)},
    {0},
};

static const struct option of_show[] = {
    {"--stage", "source", "the Metal text, with the generated signature (the default)", TEXT(stage),
     .words = "source rewritten ir simd asm ptx contents"},
    {.name = "--stage", .value = "rewritten", .help = "the text passed to clang"},
    {.name = "--stage", .value = "ir", .help = "LLVM IR after optimisation"},
    {.name = "--stage",
     .value = "simd",
     .help = "vector IR of the SIMD engine, with the shape of each value"},
    {.name = "--stage", .value = "asm", .help = "machine code of the device, as text"},
    {.name = "--stage", .value = "ptx", .help = "code for an NVIDIA GPU, which need not be present"},
    {.name = "--stage", .value = "contents", .help = "of a package: its origin, targets, entries and code"},
    {"--after", "PASS",
     "LLVM IR after this pass of the compiler, on the way to the code of the device\n"
     "(or of --target); a wrong name lists the passes",
     TEXT(after)},
    {"--target", "NAME",
     "the GPU to show code for: sm_80, sm_86, sm_87, sm_89, sm_90, sm_90a (default:\n"
     "this machine's GPU, or sm_90a if it has none)",
     TEXT(target), .words = "sm_80 sm_86 sm_87 sm_89 sm_90 sm_90a"},
    {"--checked", NULL, "the code of checked runs (smelt check)", FLAG(checked)},
    {"--why", NULL,
     "for each gather, scatter, masked loop or rejection by the SIMD engine: the\n"
     "line that caused it, and why; for a GPU (--target): what one thread of it does",
     FLAG(why)},
    {"--time", NULL,
     "how long each stage takes, in milliseconds and in those of a processor, and the\n"
     "size of the IR after it; nothing is taken from the cache",
     FLAG(time)},
    {.name = "", .help = ""},
    {0},
};

static bool is_operation(const char *name) {
    const char *operation;
    for (int i = 0; (operation = smelt_tune_operation_name(i, NULL)); i++)
        if (strcmp(operation, name) == 0) return true;
    return false;
}

static bool add_positional(void *target, char *argument) {
    struct options *o = target;
    if (!o->source_path)
        o->source_path = argument;
    else if (!o->function)
        o->function = argument;
    else
        return complain("argument '%s' is one too many; expected SOURCE [FUNCTION]", argument);
    return true;
}

const struct command run_command = {
    .name = "run",
    .summary = "run a kernel",
    .usage = "smelt run SOURCE [FUNCTION] OPTIONS\n",
    .examples =
        "Examples\n"
        "  smelt run --body exp.body -i inp=normal:float16:4x16 -o out:float16:4x16 -t T=float16 --grid 64\n"
        "  smelt run sums.metal row_sum -b 0=x.npy -b 1:out:float32:8=sums.npy --groups 8 --threadgroup 32\n"
        "  smelt run sums.smeltlib row_sum -b 0=x.npy -b 1:out:float32:8 --groups 8 --threadgroup 32\n"
        "  smelt run model.smeltlib -i image=image.npy -o mask=mask.npy\n",
    .options = {both, of_run},
    .width = 26,
    .argument = add_positional,
};

static const struct option of_check[] = {
    {"--format", "text", "text, json, sarif (for code scanning) or github (annotations)", TEXT(format),
     .words = "text json sarif github"},
    {"--json", NULL, "print the findings as JSON", FLAG(json)},
    {"--also", "LIST",
     "what else to look for, words separated by commas: not-finite, unsigned,\n"
     "divergent, conversions, advice, all",
     TEXT(also), .words = "not-finite unsigned divergent conversions advice all"},
    {"--schedules", "N", "run in N orders of threadgroups and simdgroups, and compare the results",
     OPTION_COUNT, .offset = FIELD(schedules), .most = 1000},
    {"--shrink", NULL, "search for the smallest grid that still shows the first finding", FLAG(shrink)},
    {0},
};

const struct command check_command = {
    .name = "check",
    .summary = "run a kernel and name its bugs",
    .usage =
        "smelt check SOURCE [FUNCTION] OPTIONS\n\n"
        "Runs a kernel on the CPU, one thread at a time, with every access of memory checked, and prints "
        "what it\n"
        "finds: accesses out of bounds, races, values that were never set, outputs that were not written, "
        "barriers\n"
        "that threads miss. The exit status is 1 if there are findings; without any, files of outputs are "
        "written.\n"
        "It takes the options of smelt run; the kernel runs once, whatever --repeat says. On a GPU (--device "
        "cuda),\n"
        "it finds only the first access that is out of bounds or misaligned.\n",
    .options = {both, of_check},
    .width = 26,
    .argument = add_positional,
};

const struct command show_command = {
    .name = "show",
    .summary = "print a compilation stage of a kernel: source, …, ir, asm, ptx",
    .usage = "smelt show SOURCE [FUNCTION] [--stage STAGE | --after PASS | --why | --time] OPTIONS\n\n"
             "Prints a compilation stage of a kernel. The options are those of smelt run; only the dtypes "
             "and shapes of\n"
             "arrays matter, and --grid may be omitted. Code depends on the threadgroup's size: the code of "
             "full threadgroups\n"
             "(--threadgroup, default 256) is shown. It polls for a time-out only with --timeout.\n",
    .options = {of_show, both},
    .width = 26,
    .argument = add_positional,
};

/* A shipped operation, or a source. */
static bool add_tuned(void *target, char *argument) {
    struct options *o = target;
    if (o->source_path || o->operation || !is_operation(argument)) return add_positional(target, argument);
    o->operation = argument;
    return true;
}

static const char *operation_at(const void *context, int index) {
    (void)context;
    return smelt_tune_operation_name(index, NULL);
}

static const struct option of_tune[] = {
    {.name = "", .help = "\nTuning"},
    {"--space", "NAME=V[,V…]",
     "values of a function constant or template parameter to try, or of\n"
     "`threads`, the threadgroup's X; every combination is tried",
     ADD(option_add_space)},
    {"--divide", "NAME[,NAME[,NAME]]",
     "divide --groups by these parameters, rounding up; `-` leaves one alone", SET(option_set_divide)},
    {"--expect", "NAME=FILE.npy", "the right contents of an output, by name or index",
     ADD(option_add_expected)},
    {"--tolerance", "T", "|result - expected| <= T (1 + |expected|); default 1e-3",
     SET(option_set_tolerance)},
    {"--budget", "SECONDS", "stop after this long (default 30); one candidate is always tried",
     SET(option_set_budget)},
    {"--again", NULL, "search even if there is a stored result", OPTION_CALL, .call = option_tune_again},
    {"--sizes", "LIST", "operations: sizes, like 1024,1000x300x517; default 1024", SET(option_set_sizes)},
    {"--dtype", "NAME", "operations: float32 (default), float16 or bfloat16", SET(option_set_tune_dtype),
     .words = "float32 float16 bfloat16"},
    {"--json", NULL, "print results as JSON", FLAG(json)},
    {"--list", NULL, "print the stored results", OPTION_CALL, .call = option_tune_list},
    {"--forget", NULL, "remove all stored results", OPTION_CALL, .call = option_tune_forget},
    {0},
};

static void list_operations(FILE *out) {
    const char *name, *sizes;
    fputs("Operations, and their sizes\n", out);
    for (int i = 0; (name = smelt_tune_operation_name(i, &sizes)); i++)
        fprintf(out, "  %-10s %s\n", name, sizes);
    fputc('\n', out);
}

const struct command tune_command = {
    .name = "tune",
    .summary = "find the fastest settings of an operation or a kernel",
    .usage =
        "smelt tune OPERATION [--sizes LIST] [--dtype NAME] [--device NAME] [--budget SECONDS]\n"
        "       smelt tune SOURCE [FUNCTION] --space NAME=V,V… … OPTIONS\n"
        "       smelt tune --list | --forget\n\n"
        "Tries settings, prints the time of each, and stores the fastest for this machine. An operation\n"
        "uses it from then on; for a kernel, the options of smelt run are printed. Ctrl-C stops and\n"
        "stores nothing.\n",
    .examples = "Examples\n"
                "  smelt tune matmul --sizes 512,1024x1024x64 --budget 20\n"
                "  smelt tune sums.metal row_sum --space TILE=8,16,32 --space threads=64,256 -b 0=x.npy\n"
                "      -b 1:out:float32:1024 --groups 1024 --divide TILE --threadgroup 64\n",
    .options = {both, of_tune},
    .width = 26,
    .argument = add_tuned,
    .list = list_operations,
    .word = operation_at,
};

bool option_set_init(struct options *o, const char *text) {
    o->initialise = true;
    return parse_real("--init", text, true, &o->init_value);
}

bool option_set_math(struct options *o, const char *text) {
    static const char *const names[] = {"safe", "relaxed", "fast"};
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            o->math = (smelt_math_mode)i;
            o->math_given = true;
            return true;
        }
    return complain("--math is '%s', expected safe, relaxed or fast", text);
}

bool option_set_metal_version(struct options *o, const char *text) {
    static const char *const names[] = {"1.0", "1.1", "1.2", "2.0", "2.1", "2.2", "2.3",
                                        "2.4", "3.0", "3.1", "3.2", "4.0", "4.1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i]) == 0) {
            o->metal_version = 100 * (text[0] - '0') + 10 * (text[2] - '0');
            return true;
        }
    return complain("--metal-version is '%s', expected 4.1, 4.0, 3.2 or an earlier version of Metal", text);
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

/* ---- Combinations of options. */

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
static bool check_package(const struct options *o) {
    if (!o->package_size) return true;
    if (o->body) return complain("'%s' is a package, not the body of a kernel", o->source_path);
    if (o->math_given || o->include_count || o->metal_version)
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
        return complain("--grid and --groups are both given; expected one of them");
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
            !buffer_value_make(what, &o->buffer_values[i], contents, &o->buffers[i], status))
            return false;
    }
    for (int i = 0; i < o->output_count && !o->body && !o->graph; i++) {
        struct array_value zeros = {
            .kind = ARRAY_ZEROS, .dtype = o->outputs[i].dtype, .shape = o->outputs[i].shape};
        snprintf(what, sizeof what, "buffer %d", o->outputs[i].index);
        smelt_buffer *buffer = &o->buffers[o->outputs[i].index];
        const struct tensor_value *tensor = o->outputs[i].tensor;
        if (tensor ? !tensor_value_make(what, tensor, false, &buffer->tensor, status)
                   : !array_value_make(what, &zeros, contents, &buffer->array, status))
            return false;
    }
    return true;
}

/* A stored graph has its sizes and its code. */
static bool check_graph(const struct options *o) {
    bool kernel = o->grid[0] || o->threadgroup[0] || o->groups[0] || o->template_count || o->initialise ||
                  o->header_path || o->strided || o->atomic_outputs || o->constant_count || o->math_given ||
                  o->include_count || o->metal_version || o->device || o->body || o->function;
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) kernel |= o->buffer_given[i] || o->bytes[i];
    if (kernel)
        return complain(
            "'%s' is a graph, not a kernel: it takes -i NAME=VALUE and -o NAME=FILE, and its sizes, "
            "code and device are stored with it",
            o->source_path);
    for (int i = 0; i < o->output_count; i++)
        if (o->outputs[i].dtype)
            return complain("output '%s' of a graph has its own dtype and shape; expected -o %s=FILE",
                            o->outputs[i].name, o->outputs[i].name);
    return check_files(o);
}

/* Outputs of kernels need a dtype. */
static bool check_outputs(const struct options *o) {
    for (int i = 0; i < o->output_count; i++)
        if (!o->outputs[i].dtype && !o->outputs[i].tensor)
            return complain("-o '%s=%s' is not of the form NAME:DTYPE:SHAPE[=FILE]", o->outputs[i].name,
                            o->outputs[i].file);
    return true;
}

/* Options that are missing are reported after a file that cannot be read, but before a source is read from
 * standard input, so that nobody types it in vain. */
static bool read_and_check(struct options *o, bool showing) {
    bool typed = strcmp(o->source_path, "-") == 0;
    if (typed && !showing && !check_run(o)) return false;
    if (!source_read(o->source_path, &o->source, &o->package_size)) return false;
    return typed || showing || check_run(o);
}

int options_parse(const struct command *command, int count, char **arguments, struct options *o) {
    bool showing = command == &show_command;
    *o = (struct options){.timeout = showing ? 0 : 60, .repeat = 1};
    enum parsed parsed = parse_options(command, count, arguments, o);
    if (parsed == PARSED_WRONG) return EXIT_USAGE;
    o->help = parsed == PARSED_HELP;
    if (o->help || (command == &tune_command && tune_needs_no_source(o))) return EXIT_OK;
    if (!o->source_path) {
        complain("no SOURCE is given; see smelt %s --help", command->name);
        return EXIT_USAGE;
    }
    o->graph = command == &run_command && source_is_graph(o->source_path);
    if (o->graph) {
        int status = EXIT_USAGE;
        return check_graph(o) && make_arrays(o, true, &status) ? EXIT_OK : status;
    }
    if (!check_outputs(o) || !check_form(o) || !check_files(o) || !read_and_check(o, showing))
        return EXIT_USAGE;
    /* What is shown the device need not run. */
    if (o->device && !showing && !smelt_device_description(o->device)) return report(SMELT_ERROR_NO_DEVICE);
    if (o->header_path && !source_read(o->header_path, &o->header, NULL)) return EXIT_USAGE;
    if (!check_package(o)) return EXIT_USAGE;
    o->source_label = source_label(o->source_path);
    if (!o->name) o->name = o->stem = stem_of(o->source_path);
    int status = EXIT_USAGE;
    return make_arrays(o, !showing, &status) ? EXIT_OK : status;
}

void options_free(struct options *o) {
    tune_options_free(o->tune);
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
        smelt_tensor_release(o->buffers[i].tensor);
        free(o->bytes[i]);
    }
    for (int i = 0; i < o->output_count; i++) {
        free(o->outputs[i].name);
        free(o->outputs[i].file);
        free(o->outputs[i].tensor);
    }
}
