/* smelt build: kernels of a whole file compiled ahead of time into a package. */
#include "commands.h"
#include "options.h"
#include "source.h"
#include "values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct build {
    char *source_path, *output;
    char *source;           /* the text */
    struct options options; /* its math mode, include folders and constants */
    smelt_build_desc desc;
    char *targets[SMELT_MAX_BUILD_TARGETS];
    const char **entries;
    int target_count, entry_count, threadgroup_count;
    bool list, verbose, help;
    /* While it runs. */
    bool progress; /* on standard error */
    int name_width, failed;
};

static void print_help(void) {
    printf(
        "usage: smelt build FILE.metal -o FILE.smeltlib OPTIONS\n"
        "       smelt build FILE.metal --list-entries\n\n"
        "Compiles the kernel functions of a whole file into a package, which smelt run, smelt show and "
        "the C API "
        "load\n"
        "without clang, and without the compiler library on machines it holds code for. Prints a line for "
        "each\n"
        "entry: name, targets, milliseconds, and ok or the first error. Exit status 1 if one failed; then "
        "nothing is\n"
        "written, unless --keep-going is given.\n\n"
        "  -o FILE                    the package\n"
        "  --list-entries             print the host names instead, one a line; compiles nothing (clang "
        "is run only\n"
        "                             to preprocess a file that has directives)\n"
        "  --entry NAME               only this entry (may be repeated)\n"
        "  --target LIST              what to make code for, with commas between: cpu (this machine's "
        "own, the\n"
        "                             default), x86-64, x86-64-v3 (AVX2), x86-64-v4 (AVX-512); NVIDIA GPUs "
        "from this one on:\n"
        "                             sm_80, sm_86, sm_87, sm_89, sm_90, and sm_90a: those of 9.0 alone\n"
        "  --threadgroup X[,Y[,Z]]    make code for threadgroups of this size too (may be repeated): "
        "kernels with\n"
        "                             barriers, and on GPUs those without, gain by it where there is no "
        "compiler library\n"
        "  --constant INDEX=VALUE     a function constant, or NAME=VALUE: true, 3, 2.5 or DTYPE:V[,V…] (may "
        "be repeated); "
        "entries that\n"
        "                             need another one are compiled when they are loaded with it\n"
        "  --keep-going               go on after a failure, and write the others\n"
        "  --jobs N                   compile N entries at once (default: one a CPU)\n"
        "  -I DIR                     folder for #include (may be repeated)\n"
        "  --math safe|relaxed|fast   floating point mode (default safe)\n"
        "  --metal-version VERSION    the version of the language: 3.2 (default), 4.0, 3.1, …\n"
        "  --verbose                  print the whole of each error, and how much went into the package\n\n"
        "Example\n"
        "  smelt build sums.metal -o sums.smeltlib --target cpu,x86-64-v3,sm_80\n");
}

/* ---- The command line. */

/* "cpu,x86-64-v3"; the library knows which there are. */
static bool set_targets(struct build *b, const char *text) {
    while (*text) {
        size_t length = strcspn(text, ",");
        if (!length) return complain("--target has an empty name in its list");
        if (b->target_count == SMELT_MAX_BUILD_TARGETS - 1)
            return complain("more than %d targets are given", SMELT_MAX_BUILD_TARGETS - 1);
        for (int i = 0; i < b->target_count; i++)
            if (strlen(b->targets[i]) == length && strncmp(b->targets[i], text, length) == 0)
                return complain("target '%s' is given twice", b->targets[i]);
        b->targets[b->target_count] = strndup(text, length);
        if (!b->targets[b->target_count]) return complain("no memory for the targets");
        b->desc.targets[b->target_count] = b->targets[b->target_count];
        b->target_count++;
        text += length + (text[length] == ',');
    }
    return b->target_count > 0 || complain("--target is empty; expected a list as cpu,x86-64-v3");
}

static bool add_threadgroup(struct build *b, const char *text) {
    if (b->threadgroup_count == SMELT_MAX_BUILD_THREADGROUPS - 1)
        return complain("--threadgroup is given more than %d times", SMELT_MAX_BUILD_THREADGROUPS - 1);
    return parse_triple("--threadgroup", text, b->desc.threadgroups[b->threadgroup_count++]);
}

static bool set_once(const char *option, char **field, char *value) {
    if (*field) return complain("%s is given twice", option);
    *field = value;
    return true;
}

static bool set_jobs(struct build *b, const char *text) {
    int64_t jobs;
    if (!parse_integer("--jobs", text, 1, 1024, &jobs)) return false;
    b->desc.jobs = (int)jobs;
    return true;
}

/* Options with a value; *known: it is one. */
static bool take_value(struct build *b, const char *option, char *value, bool *known) {
    *known = true;
    if (strcmp(option, "-o") == 0) return set_once(option, &b->output, value);
    if (strcmp(option, "--target") == 0) return set_targets(b, value);
    if (strcmp(option, "--threadgroup") == 0) return add_threadgroup(b, value);
    if (strcmp(option, "--jobs") == 0) return set_jobs(b, value);
    if (strcmp(option, "-I") == 0) return option_add_include(&b->options, value);
    if (strcmp(option, "--math") == 0) return option_set_math(&b->options, value);
    if (strcmp(option, "--metal-version") == 0) return option_set_metal_version(&b->options, value);
    if (strcmp(option, "--constant") == 0) return option_add_constant(&b->options, value);
    if (strcmp(option, "--entry") == 0) {
        b->entries[b->entry_count++] = value;
        return true;
    }
    *known = false;
    return false;
}

static const char *const with_value[] = {"-o",     "--target",   "--threadgroup", "--jobs",         "-I",
                                         "--math", "--constant", "--entry",       "--metal-version"};

static bool takes_value(const char *option) {
    for (size_t i = 0; i < sizeof with_value / sizeof *with_value; i++)
        if (strcmp(option, with_value[i]) == 0) return true;
    return false;
}

static bool take_flag(struct build *b, const char *option) {
    if (strcmp(option, "--list-entries") == 0)
        b->list = true;
    else if (strcmp(option, "--keep-going") == 0)
        b->desc.keep_going = true;
    else if (strcmp(option, "--verbose") == 0)
        b->verbose = true;
    else if (is_help(option))
        b->help = true;
    else if (strcmp(option, "--body") == 0)
        return complain("--body: a package is built from a whole file; bodies cannot be packaged yet");
    else
        return complain("option '%s' is unknown; see smelt build --help", option);
    return true;
}

static bool parse(struct build *b, int count, char **arguments) {
    bool ended = false, known;
    b->entries = calloc((size_t)count + 1, sizeof *b->entries);
    if (!b->entries) return complain("no memory for the arguments");
    for (int i = 0; i < count && !b->help; i++) {
        char *argument = arguments[i];
        bool good = true;
        if (!ended && argument[0] == '-' && argument[1]) {
            if (strcmp(argument, "--") == 0)
                ended = true;
            else if (!takes_value(argument))
                good = take_flag(b, argument);
            else if (i + 1 == count)
                good = complain("%s needs a value", argument);
            else
                good = take_value(b, argument, arguments[++i], &known);
        } else if (!b->source_path) {
            b->source_path = argument;
        } else {
            good = complain("argument '%s' is one too many; expected one FILE (entries are named by --entry)",
                            argument);
        }
        if (!good) return false;
    }
    if (b->help) return true;
    if (!b->source_path) return complain("no FILE is given; see smelt build --help");
    if (b->list && b->output) return complain("--list-entries and -o are both given; one says what is done");
    if (!b->list && !b->output) return complain("-o FILE is missing: where the package goes");
    return true;
}

/* ---- At work. */

static void clear_progress(const struct build *b) {
    if (b->progress) fputs("\r\033[K", stderr);
}

static void print_report(const smelt_build_report *report, void *context) {
    struct build *b = context;
    clear_progress(b);
    printf("%-*s  %s  %8.1f ms  ", b->name_width, report->entry, report->targets, 1e3 * report->seconds);
    if (report->status == SMELT_OK)
        printf(*report->message ? "ok (%s)\n" : "ok\n", report->message);
    else
        printf("%.*s\n", (int)strcspn(report->message, "\n"), report->message);
    (void)fflush(stdout);
    b->failed += report->status != SMELT_OK;
    if (b->verbose && report->status != SMELT_OK)
        fprintf(stderr, "smelt: %s\n", report->message);
    else if (b->verbose)
        fprintf(stderr, "smelt: %s: %d codes; %llu bytes with its bitcode\n", report->entry, report->codes,
                (unsigned long long)report->bytes);
    if (b->progress) fprintf(stderr, "%d of %d entries", report->number, report->total);
}

static int list_entries(const smelt_library *library) {
    for (int i = 0; i < smelt_library_function_count(library); i++)
        puts(smelt_library_function_name(library, i));
    return EXIT_OK;
}

/* The names' width, so that columns stand below each other; one long name does not push the others apart. */
static int name_width(const smelt_library *library, const char *const *entries) {
    int width = 0;
    for (int i = 0; i < smelt_library_function_count(library); i++) {
        const char *name = smelt_library_function_name(library, i);
        bool wanted = !*entries;
        for (const char *const *e = entries; *e; e++) wanted |= strcmp(*e, name) == 0;
        int length = (int)strlen(name);
        if (wanted && length > width && length <= 60) width = length;
    }
    return width;
}

static int build(struct build *b, smelt_library *library) {
    b->desc.path = b->output;
    b->desc.entries = b->entry_count ? b->entries : NULL;
    b->desc.report = print_report;
    b->desc.context = b;
    memcpy(b->desc.constants, b->options.constants, sizeof b->desc.constants);
    b->name_width = name_width(library, b->entries);
    b->progress = isatty(STDERR_FILENO);
    smelt_status status = smelt_library_build(library, &b->desc);
    clear_progress(b);
    if (status == SMELT_OK) return EXIT_OK;
    /* The lines have said what is wrong with entries, unless it is the machine. */
    int exit_status = exit_status_of(status);
    if (b->failed && exit_status != EXIT_ENVIRONMENT) {
        fprintf(stderr, "smelt: %d %s not compile; %s\n", b->failed,
                b->failed == 1 ? "entry does" : "entries do",
                b->desc.keep_going ? "the others are in the package" : "no package is written");
        return EXIT_KERNEL;
    }
    (void)report(status);
    bool command_line = status == SMELT_ERROR_INVALID_ARGUMENT || status == SMELT_ERROR_UNSUPPORTED;
    return command_line ? EXIT_USAGE : exit_status;
}

static int work(struct build *b) {
    smelt_library *library;
    size_t package_size;
    if (!source_read(b->source_path, &b->source, &package_size)) return EXIT_USAGE;
    smelt_library_desc desc = {.path = source_label(b->source_path),
                               .math = b->options.math,
                               .metal_version = b->options.metal_version};
    if (package_size) {
        desc.package = b->source;
        desc.package_size = package_size;
    } else {
        desc.source = b->source;
    }
    memcpy(desc.include_paths, b->options.include_paths, sizeof desc.include_paths);
    smelt_status status = smelt_library_create(&desc, &library);
    if (status != SMELT_OK) return report(status);
    int exit_status = b->list ? list_entries(library) : build(b, library);
    smelt_library_release(library);
    return exit_status;
}

int command_build(int count, char **arguments) {
    struct build b = {0};
    int exit_status = EXIT_USAGE;
    if (parse(&b, count, arguments)) {
        exit_status = EXIT_OK;
        if (b.help)
            print_help();
        else
            exit_status = work(&b);
    }
    for (int i = 0; i < b.target_count; i++) free(b.targets[i]);
    free(b.entries);
    free(b.source);
    options_free(&b.options);
    return exit_status;
}
