#include "frontend/clang.h"
#include "base/interrupt.h"
#include "frontend/cache.h"
#include "frontend/companion.h"
#include "frontend/compile_slot.h"
#include "frontend/compiling.h"
#include "frontend/prelude.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* A compiler that needs more than this is not compiling a kernel. */
#define CLANG_SECONDS 60
#define CLANG_MEMORY_MIB 4096
#define CLANG_OUTPUT_MIB 256

#define REQUIRED_MAJOR 19

static bool is_program(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

/* Looks a name up in PATH; a name with a slash is itself. */
static bool find_program(const char *name, char path[4096]) {
    if (strchr(name, '/')) return snprintf(path, 4096, "%s", name) < 4096 && is_program(path);
    const char *at = getenv("PATH");
    while (at && *at) {
        size_t length = strcspn(at, ":");
        if (snprintf(path, 4096, "%.*s/%s", (int)length, at, name) < 4096 && is_program(path)) return true;
        at += length + (at[length] == ':');
    }
    return false;
}

/* A limit of the environment table: `usual` unless the variable holds a number of at least 1 and at most
 * that. */
static long limit_of(const char *variable, long usual) {
    const char *setting = getenv(variable);
    if (!setting || !*setting) return usual;
    char *end;
    long value = strtol(setting, &end, 10);
    return !*end && value >= 1 && value <= usual ? value : usual;
}

long clang_limit_seconds(void) {
    return limit_of("SMELT_CLANG_SECONDS", CLANG_SECONDS);
}
size_t clang_limit_bytes(void) {
    return (size_t)limit_of("SMELT_CLANG_MEMORY", CLANG_MEMORY_MIB) << 20;
}

static bool same(struct hash a, struct hash b) {
    return a.low == b.low && a.high == b.high;
}

/* The last program that did not answer in time: nobody waits for it again. */
static pthread_mutex_t silent_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hash silent;

static bool is_silent(struct hash identity) {
    pthread_mutex_lock(&silent_lock);
    bool is = same(identity, silent);
    pthread_mutex_unlock(&silent_lock);
    return is;
}

static void note_silent(struct hash identity) {
    pthread_mutex_lock(&silent_lock);
    silent = identity;
    pthread_mutex_unlock(&silent_lock);
}

/* The first line of the program's --version; "" if it cannot be run. */
static void ask_version(const struct clang *clang, char line[256]) {
    const char *const arguments[] = {clang->path, "--version", NULL};
    long seconds = clang_limit_seconds();
    struct process_request request = {.arguments = arguments,
                                      .seconds = seconds < 10 ? (double)seconds : 10,
                                      .memory_bytes = clang_limit_bytes()};
    struct process_result result;
    line[0] = 0;
    if (is_silent(clang->identity)) return;
    /* It is short, and an interruption must not look like a program that cannot be run. */
    smelt_interrupt *interrupt = interrupt_begin_call(NULL);
    smelt_status status = process_run(&request, &result);
    interrupt_end_call(interrupt);
    if (status != SMELT_OK) return;
    if (result.timed_out) note_silent(clang->identity);
    const char *text = text_string(&result.output);
    snprintf(line, 256, "%.*s", (int)strcspn(text, "\n"), text);
    process_result_free(&result);
}

/* A query costs a process: the cache keeps the answer with the program's size and time. */
void clang_version(const struct clang *clang, char line[256]) {
    struct text kept = {0};
    if (cache_read(clang->identity, "version", &kept)) {
        snprintf(line, 256, "%s", text_string(&kept));
        text_free(&kept);
    } else {
        ask_version(clang, line);
        struct bytes piece = {line, strlen(line)};
        if (*line) cache_write(clang->identity, "version", &piece, 1);
    }
}

/* The major version a clang gives itself; 0 if it does not look like clang. `line` receives its first line.
 */
static int major_version(const struct clang *clang, char line[256]) {
    clang_version(clang, line);
    const char *word = strstr(line, "clang version ");
    return word ? atoi(word + strlen("clang version ")) : 0;
}

static void identify(struct clang *clang) {
    struct stat status = {0};
    (void)stat(clang->path, &status);
    struct hasher *hasher = hasher_create();
    hasher_add_string(hasher, clang->path);
    hasher_add_integer(hasher, status.st_size);
    hasher_add_integer(hasher, status.st_mtim.tv_sec);
    hasher_add_integer(hasher, status.st_mtim.tv_nsec);
    clang->identity = hasher_finish(hasher);
}

static smelt_status look_for_named(const char *named, struct clang *clang) {
    char line[256];
    if (!find_program(named, clang->path))
        return fail(SMELT_ERROR_NO_COMPILER, "SMELT_CLANG is '%s', which is not an executable program",
                    named);
    identify(clang);
    if (major_version(clang, line) == REQUIRED_MAJOR) return SMELT_OK;
    return fail(SMELT_ERROR_NO_COMPILER, "SMELT_CLANG is '%s', which reports '%s'; expected clang version %d",
                named, line, REQUIRED_MAJOR);
}

static smelt_status look_in_path(struct clang *clang) {
    char line[256];
    if (find_program("clang-19", clang->path)) {
        identify(clang);
        return SMELT_OK;
    }
    if (!find_program("clang", clang->path))
        return fail(SMELT_ERROR_NO_COMPILER,
                    "no clang: neither 'clang-19' nor 'clang' is in PATH; install the Debian package "
                    "clang-19, or name a clang %d in SMELT_CLANG",
                    REQUIRED_MAJOR);
    identify(clang);
    if (major_version(clang, line) == REQUIRED_MAJOR) return SMELT_OK;
    return fail(SMELT_ERROR_NO_COMPILER,
                "'%s' reports '%s'; expected clang version %d: install the Debian package clang-19",
                clang->path, line, REQUIRED_MAJOR);
}

bool clang_find_own(struct clang *clang) {
    if (!companion_find(COMPANION_CC1, clang->path) || !is_program(clang->path)) return false;
    identify(clang);
    return true;
}

static smelt_status look_for(struct clang *clang) {
    const char *named = getenv("SMELT_CLANG");
    if (named && *named) return look_for_named(named, clang);
    return clang_find_own(clang) ? SMELT_OK : look_in_path(clang);
}

/* The last find, kept while SMELT_CLANG, PATH and the program's file stay the same. */
static pthread_mutex_t found_lock = PTHREAD_MUTEX_INITIALIZER;
static struct clang found;
static struct hash found_environment;
static bool found_valid;

smelt_status clang_find(struct clang *clang) {
    struct hasher *hasher = hasher_create();
    hasher_add_string(hasher, getenv("SMELT_CLANG"));
    hasher_add_string(hasher, getenv("PATH"));
    struct hash environment = hasher_finish(hasher);
    pthread_mutex_lock(&found_lock);
    bool known = found_valid && same(environment, found_environment);
    if (known) *clang = found;
    pthread_mutex_unlock(&found_lock);
    if (known) {
        struct hash before = clang->identity;
        identify(clang);
        if (same(before, clang->identity)) return SMELT_OK;
    }
    TRY(look_for(clang));
    pthread_mutex_lock(&found_lock);
    found = *clang;
    found_environment = environment;
    found_valid = true;
    pthread_mutex_unlock(&found_lock);
    return SMELT_OK;
}

/* ---- Who compiled last, for hosts from which clang is gone. */

static struct hash last_key(void) {
    struct hasher *hasher = hasher_create();
    hasher_add_string(hasher, "the clang that compiled last");
    return hasher_finish(hasher);
}

static bool recall_last(struct hash *identity) {
    struct text stored = {0};
    bool there = cache_read(last_key(), "clang", &stored) && stored.length == sizeof *identity;
    if (there) memcpy(identity, stored.data, sizeof *identity);
    text_free(&stored);
    return there;
}

/* A clang alone makes no code. */
static bool has_compiler(void) {
    char path[4096];
    return companion_find(COMPANION_CC1, path) || companion_find(COMPANION_COMPILER_LIBRARY, path);
}

smelt_status clang_find_or_recall(struct clang *clang) {
    smelt_status status = clang_find(clang);
    if (status == SMELT_OK ? has_compiler() : status != SMELT_ERROR_NO_COMPILER) return status;
    struct clang last = {.path = ""};
    if (!recall_last(&last.identity)) return status == SMELT_OK ? status : clang_find(clang);
    *clang = last;
    return SMELT_OK;
}

bool clang_find_maker(const struct clang *clang, struct clang *maker) {
    char wanted[256], line[256];
    if (!clang_find_own(maker)) return false;
    if (same(maker->identity, clang->identity)) return true;
    clang_version(clang, wanted);
    clang_version(maker, line);
    return *line && strcmp(line, wanted) == 0;
}

void clang_note_use(const struct clang *clang) {
    struct hash last;
    struct bytes identity = {(const char *)&clang->identity, sizeof clang->identity};
    if (!recall_last(&last) || !same(last, clang->identity)) cache_write(last_key(), "clang", &identity, 1);
}

/* The dialect: see docs/architecture.md for why SYCL device mode. */
static const char *const dialect_flags[] = {
    "-triple", "x86_64-unknown-linux-gnu", "-aux-triple", "x86_64-unknown-linux-gnu", "-fdeclspec",
    "-ffreestanding", "-nostdsysteminc", "-fno-rtti", "-fno-threadsafe-statics", "-fsycl-is-device",
    "-cl-single-precision-constant", "-ffake-address-space-map", "-relaxed-aliasing", "-fno-finite-loops",
    "-fno-strict-return",
    /* A keyword of C++20: prelude/smelt_keywords.h has the others. */
    "-fno-char8_t",
    /* Each half and bfloat operation rounds; float to integer saturates. */
    "-ffloat16-excess-precision=none", "-fbfloat16-excess-precision=none", "-fno-strict-float-cast-overflow",
    "-ffp-contract=on", "-O3", "-disable-llvm-passes", "-debug-info-kind=line-tables-only",
    "-dwarf-version=4", "-fdebug-compilation-dir=/", "-w", "-fno-caret-diagnostics", "-ferror-limit", "20",
    "-ftemplate-backtrace-limit=0", "-fno-elide-type",
    /* Errors of clang 19 that Metal's compiler, an older clang for C++14, does not report: NS_ENUM in headers
     * that are shared with Objective-C, `a.template f(x)`, (Enum)7 in a constant expression, `register`. */
    "-Wno-elaborated-enum-base", "-Wno-missing-template-arg-list-after-template-kw",
    "-Wno-enum-constexpr-conversion", "-Wno-register", NULL};

/* Likely mistakes, and conversions that change a value or its sign. Other warnings would be about code that
 * the rewriter generates. */
static const char *const warning_flags[] = {"-Wno-everything",
                                            "-Wparentheses",
                                            "-Wparentheses-equality",
                                            "-Wunused-variable",
                                            "-Wno-unused-const-variable",
                                            "-Wunused-but-set-variable",
                                            "-Wunused-value",
                                            "-Wunused-comparison",
                                            "-Wuninitialized",
                                            "-Wsometimes-uninitialized",
                                            "-Wself-assign",
                                            "-Wtautological-compare",
                                            "-Wtautological-constant-compare",
                                            "-Wtautological-overlap-compare",
                                            "-Wtautological-unsigned-zero-compare",
                                            "-Wtautological-type-limit-compare",
                                            "-Wunreachable-code",
                                            "-Wbitwise-op-parentheses",
                                            "-Wlogical-op-parentheses",
                                            "-Wshift-op-parentheses",
                                            "-Wdangling-else",
                                            "-Wempty-body",
                                            "-Wsizeof-pointer-div",
                                            "-Wshift-count-overflow",
                                            "-Wshift-count-negative",
                                            "-Wdivision-by-zero",
                                            "-Warray-bounds",
                                            "-Wint-in-bool-context",
                                            "-Winfinite-recursion",
                                            "-Wreturn-type",
                                            "-Wmisleading-indentation",
                                            "-Wunsequenced",
                                            "-Wfor-loop-analysis",
                                            "-Wsign-compare",
                                            "-Wsign-conversion",
                                            "-Wshorten-64-to-32",
                                            "-Wimplicit-int-conversion",
                                            "-Wimplicit-float-conversion",
                                            "-Wfloat-conversion",
                                            "-Wimplicit-int-float-conversion",
                                            NULL};

static const char *const relaxed_flags[] = {"-mreassociate", "-freciprocal-math", "-fno-signed-zeros",
                                            "-D__SMELT_RELAXED_MATH__", NULL};
static const char *const fast_flags[] = {"-ffast-math",
                                         "-menable-no-infs",
                                         "-menable-no-nans",
                                         "-fapprox-func",
                                         "-mreassociate",
                                         "-freciprocal-math",
                                         "-fno-signed-zeros",
                                         "-D__SMELT_RELAXED_MATH__",
                                         NULL};

static const char *const *math_flags(smelt_math_mode math) {
    static const char *const none[] = {NULL};
    return math == SMELT_MATH_FAST ? fast_flags : math == SMELT_MATH_RELAXED ? relaxed_flags : none;
}

static const char *standard_flag(bool cpp23) {
    return cpp23 ? "-std=c++23" : "-std=c++17";
}

void clang_add_flags(smelt_math_mode math, bool cpp23, struct text *flags) {
    text_addf(flags, "%s ", standard_flag(cpp23));
    for (const char *const *f = dialect_flags; *f; f++) text_addf(flags, "%s ", *f);
    for (const char *const *f = math_flags(math); *f; f++) text_addf(flags, "%s ", *f);
}

/* The folder of Metal's headers for clang, which is not on disk: see overlay.h. */
#define OVERLAY_DESCRIPTOR "/dev/fd/3"

void clang_list_arguments(const struct clang *clang, const struct clang_request *request,
                          const char *arguments[CLANG_MAX_ARGUMENTS]) {
    int count = 0;
    arguments[count++] = clang->path;
    arguments[count++] = "-cc1";
    arguments[count++] = standard_flag(request->cpp23);
    for (const char *const *f = dialect_flags; *f; f++)
        if (request->action != CLANG_WARN || strcmp(*f, "-w") != 0) arguments[count++] = *f;
    for (const char *const *f = warning_flags; request->action == CLANG_WARN && *f; f++)
        arguments[count++] = *f;
    for (const char *const *f = math_flags(request->math); *f; f++) arguments[count++] = *f;
    for (const char *const *p = request->include_paths; p && *p && count < CLANG_MAX_ARGUMENTS - 19; p++) {
        arguments[count++] = "-I";
        arguments[count++] = *p;
    }
    if (request->header_overlay) {
        arguments[count++] = "-ivfsoverlay";
        arguments[count++] = OVERLAY_DESCRIPTOR;
        arguments[count++] = "-I";
        arguments[count++] = request->header_folder;
    }
    if (request->precompiled) {
        arguments[count++] = "-fno-validate-pch";
        arguments[count++] = "-include-pch";
        arguments[count++] = request->precompiled;
    }
    arguments[count++] = "-x";
    arguments[count++] = request->action == CLANG_PRECOMPILE ? "c++-header" : "c++";
    if (request->action == CLANG_PRECOMPILE) {
        /* Templates that the prelude itself uses are instantiated here once, not in every kernel. */
        arguments[count++] = "-fno-pch-timestamp";
        arguments[count++] = "-fpch-instantiate-templates";
    }
    arguments[count++] = request->action == CLANG_PREPROCESS   ? "-E"
                         : request->action == CLANG_PRECOMPILE ? "-emit-pch"
                                                               : "-emit-llvm-bc";
    arguments[count++] = "-o";
    arguments[count++] = "-";
    arguments[count++] = request->header_overlay ? request->source_path : "-";
    arguments[count] = NULL;
}

/* smelt-cc1's segments take 68 MiB (readelf -l). If the limit on memory has no room for them, Linux ends the
 * process by SIGSEGV, without a message: exec has replaced the old program by then and cannot return an
 * error. In less than this, not even a kernel of one line compiles, so SIGSEGV is never another fault. */
#define LEAST_BYTES ((size_t)80 << 20)

bool clang_lacked_memory(const struct process_result *result) {
    const char *messages = text_string(&result->messages);
    static const char *const words[] = {"out of memory", "bad_alloc", "Cannot allocate memory",
                                        "failed to map segment"};
    /* A source's own messages may have these words; the prelude's image is ours. */
    if (!result->signal && result->exit_code <= 1 && !strstr(messages, "error: unable to read PCH file"))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(messages, words[i])) return true;
    return result->signal == SIGSEGV && process_memory_limit(clang_limit_bytes()) < LEAST_BYTES;
}

static smelt_status fail_of_memory(void) {
    size_t allowed = clang_limit_bytes(), limit = process_memory_limit(allowed);
    return fail(SMELT_ERROR_LIMIT,
                "clang needed more than %zu MiB of memory%s for the source and was stopped", limit >> 20,
                limit < allowed ? ", the limit of this process (ulimit -v)," : "");
}

static const char *overflow_hint(void) {
    struct rlimit stack;
    bool little = getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < PROCESS_STACK_BYTES;
    return little ? "; its stack may be too small (ulimit -s), expected 8192 KiB"
                  : "; expressions or types nested many thousand levels deep overflow its stack";
}

/* clang ends with 0 or 1 normally; with anything else it was stopped or crashed. */
smelt_status clang_judge(const struct process_result *result) {
    const char *messages = text_string(&result->messages);
    if (result->pipe)
        return fail(SMELT_ERROR_COMPILE,
                    "file '%s' is a named pipe, expected a regular file; the source includes it",
                    result->pipe);
    if (result->timed_out)
        return fail(SMELT_ERROR_TIMEOUT, "clang took more than %ld seconds on the source and was stopped",
                    clang_limit_seconds());
    if (clang_lacked_memory(result)) return fail_of_memory();
    if (result->signal == SIGXFSZ)
        return fail(SMELT_ERROR_LIMIT, "clang wrote more than %d MiB of messages and was stopped",
                    CLANG_OUTPUT_MIB);
    if (result->signal)
        return fail(SMELT_ERROR_COMPILE, "clang crashed on the source: signal %d (%s)%s", result->signal,
                    strsignal(result->signal), result->signal == SIGSEGV ? overflow_hint() : "");
    if (result->exit_code > 1 && strstr(messages, "too big for FPTrunc"))
        return fail(SMELT_ERROR_COMPILE, "an expression of the source mixes half and bfloat, which have no "
                                         "common type; convert one of them, as in half(x)");
    if (result->exit_code > 1 &&
        (strstr(messages, "Invalid bitcast") || strstr(messages, "Call parameter type does not match")))
        return fail(
            SMELT_ERROR_UNSUPPORTED,
            "a structure in the constant address space has vectors or matrices that are computed from "
            "function constants, which is not supported; make each a constant of its own");
    if (result->exit_code > 1)
        return fail(SMELT_ERROR_COMPILE, "clang failed on the source: exit status %d, \"%.*s\"",
                    result->exit_code, (int)strcspn(messages, "\n"), messages);
    return SMELT_OK;
}

static enum compile_stage_kind stage_of(enum clang_action action) {
    return action == CLANG_PREPROCESS   ? COMPILE_STAGE_PREPROCESS
           : action == CLANG_PRECOMPILE ? COMPILE_STAGE_PRELUDE
                                        : COMPILE_STAGE_CLANG;
}

/* As a stage of a compile. */
static smelt_status run(const struct process_request *process, const struct clang_request *request,
                        struct process_result *result) {
    struct compiling compiling;
    struct compile_slot slot;
    compiling_begin(&compiling, request->name);
    smelt_status status = compile_slot_take(&slot);
    if (status == SMELT_OK) {
        compile_stage_begin(compiling.progress, stage_of(request->action));
        status = process_run(process, result);
        compile_stage_end(compiling.progress, 0);
        compile_slot_give(&slot);
    }
    if (status == SMELT_OK)
        compiling.progress->stages[0].processor = (int64_t)(1e9 * result->processor_seconds);
    compiling_end(&compiling);
    return status;
}

struct process_request clang_process(const struct clang_request *request, const char *const *arguments) {
    return (struct process_request){.arguments = arguments,
                                    .input = request->text,
                                    .input_size = request->length,
                                    .extra = request->header_overlay,
                                    .extra_size =
                                        request->header_overlay ? strlen(request->header_overlay) : 0,
                                    .files = request->header_overlay ? prelude_headers : NULL,
                                    .seconds = (double)clang_limit_seconds(),
                                    .memory_bytes = clang_limit_bytes(),
                                    .output_bytes = (size_t)CLANG_OUTPUT_MIB << 20};
}

smelt_status clang_run(const struct clang *clang, const struct clang_request *request, struct text *output,
                       struct text *messages, bool *ok) {
    const char *arguments[CLANG_MAX_ARGUMENTS];
    struct process_result result;
    clang_list_arguments(clang, request, arguments);
    struct process_request process = clang_process(request, arguments);
    TRY(run(&process, request, &result));
    *ok = result.exit_code == 0;
    smelt_status status = clang_judge(&result);
    if (status != SMELT_OK) {
        process_result_free(&result);
        return status;
    }
    *output = result.output;
    *messages = result.messages;
    return SMELT_OK;
}
