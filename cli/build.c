/* smelt build: kernels of a whole file compiled ahead of time into a package. */
#include "commands.h"
#include "options.h"
#include "source.h"
#include "values.h"

#include <stddef.h>
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
    int64_t jobs;
    bool list, verbose;
    /* While it runs. */
    bool progress; /* on standard error */
    int name_width, failed;
};

/* ---- The command line. */

/* "cpu,x86-64-v3"; the library checks the names. */
static bool set_targets(void *target, const char *text) {
    struct build *b = target;
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
    return b->target_count > 0 || complain("--target is empty; expected a list such as cpu,x86-64-v3");
}

static bool add_threadgroup(void *target, const char *text) {
    struct build *b = target;
    if (b->threadgroup_count == SMELT_MAX_BUILD_THREADGROUPS - 1)
        return complain("--threadgroup is given more than %d times", SMELT_MAX_BUILD_THREADGROUPS - 1);
    return parse_triple("--threadgroup", text, b->desc.threadgroups[b->threadgroup_count++]);
}

static bool add_entry(void *target, const char *text) {
    struct build *b = target;
    b->entries[b->entry_count++] = text;
    return true;
}

static bool refuse_body(void *target, const char *text) {
    (void)target;
    (void)text;
    return complain("--body: a package is built from a whole file; bodies cannot be packaged yet");
}

static bool set_source(void *target, char *text) {
    struct build *b = target;
    if (b->source_path)
        return complain("argument '%s' is one too many; expected one FILE (entries are named by --entry)",
                        text);
    b->source_path = text;
    return true;
}

#define FIELD(name) offsetof(struct build, name)
#define ADD(function) OPTION_ADD, .offset = FIELD(options), .add = (function), .many = true
#define CALL(function) OPTION_CALL, .call = (function), .many = true

static const struct option options[] = {
    {"-o", "FILE", "the package", OPTION_TEXT, .offset = FIELD(output)},
    {"--list-entries", NULL,
     "print the host names instead, one per line, without compiling (clang runs\n"
     "only to preprocess a file that has directives)",
     OPTION_FLAG, .offset = FIELD(list)},
    {"--entry", "NAME", "only this entry (may be repeated)", CALL(add_entry)},
    {"--target", "LIST",
     "targets, separated by commas: cpu (this machine, the default), x86-64,\n"
     "x86-64-v3 (AVX2), x86-64-v4 (AVX-512); NVIDIA GPUs of this capability or higher:\n"
     "sm_80, sm_86, sm_87, sm_89, sm_90; or of 9.0 only: sm_90a",
     CALL(set_targets), .words = "cpu x86-64 x86-64-v3 x86-64-v4 sm_80 sm_86 sm_87 sm_89 sm_90 sm_90a"},
    {"--threadgroup", "X[,Y[,Z]]",
     "also generate code for this threadgroup size (may be repeated). Without the compiler\n"
     "library it speeds up kernels with barriers, and on GPUs all kernels",
     CALL(add_threadgroup)},
    {"--constant", "INDEX=VALUE",
     "a function constant, or NAME=VALUE: true, 3, 2.5 or DTYPE:V[,V…] (may be repeated); entries that\n"
     "need others are compiled when these are given at load",
     ADD(option_add_constant)},
    {"--keep-going", NULL, "continue after a failure and write the other entries", OPTION_FLAG,
     .offset = FIELD(desc.keep_going)},
    {"--jobs", "N", "compile N entries at once (default: one per CPU)", OPTION_COUNT, .offset = FIELD(jobs),
     .many = true, .most = 1024},
    {"-I", "DIR", "folder for #include (may be repeated)", ADD(option_add_include)},
    {"-D", "NAME[=TEXT]", "a macro, 1 without a text (may be repeated)", ADD(option_add_macro)},
    {"--math", "safe|relaxed|fast", "floating point mode (default safe)", ADD(option_set_math),
     .words = "safe relaxed fast"},
    {"--metal-version", "VERSION", "language version: 3.2 (default), 4.1, 4.0, …",
     ADD(option_set_metal_version), .words = "3.2 4.0 4.1 3.1"},
    {"--verbose", NULL, "print errors in full, and the package's size", OPTION_FLAG,
     .offset = FIELD(verbose)},
    {"--body", NULL, NULL, CALL(refuse_body)},
    {0},
};

const struct command build_command = {
    .name = "build",
    .summary = "compile a file's kernels ahead of time into a package",
    .usage = "smelt build FILE.metal -o FILE.smeltlib OPTIONS\n"
             "       smelt build FILE.metal --list-entries\n\n"
             "Compiles the kernel functions of a whole file into a package, which smelt run, smelt show and "
             "the C API load\n"
             "without clang, and without the compiler library on machines it holds code for. Prints one line "
             "per entry:\n"
             "name, targets, milliseconds, and ok or the first error. If an entry fails, the exit status is "
             "1 and nothing\n"
             "is written, unless --keep-going is given.\n",
    .examples = "Example\n"
                "  smelt build sums.metal -o sums.smeltlib --target cpu,x86-64-v3,sm_80\n",
    .options = {options},
    .width = 26,
    .argument = set_source,
};

static enum parsed parse(struct build *b, int count, char **arguments) {
    b->entries = calloc((size_t)count + 1, sizeof *b->entries);
    if (!b->entries) return complain("no memory for the arguments") ? PARSED : PARSED_WRONG;
    enum parsed parsed = parse_options(&build_command, count, arguments, b);
    if (parsed != PARSED) return parsed;
    b->desc.jobs = (int)b->jobs;
    bool good = true;
    if (!b->source_path)
        good = complain("no FILE is given; see smelt build --help");
    else if (b->list && b->output)
        good = complain("--list-entries and -o are both given; expected one of them");
    else if (!b->list && !b->output)
        good = complain("-o FILE is missing; expected the package to write");
    return good ? PARSED : PARSED_WRONG;
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
    smelt_set_progress(NULL, NULL); /* it shows its own, of entries */
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
                               .metal_version = b->options.metal_version,
                               .macros = b->options.macros};
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
    enum parsed parsed = parse(&b, count, arguments);
    int exit_status = parsed == PARSED_WRONG ? EXIT_USAGE : EXIT_OK;
    if (parsed == PARSED_HELP) print_command_help(&build_command);
    if (parsed == PARSED) exit_status = work(&b);
    for (int i = 0; i < b.target_count; i++) free(b.targets[i]);
    free(b.entries);
    free(b.source);
    options_free(&b.options);
    return exit_status;
}
