/* Random kernels on both CPU engines, and on a GPU: all results must equal the scalar engine's. See
 * docs/fuzzing.md. */
#include "isolate.h"
#include "reduce.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char usage[] =
    "fuzz_kernels: random kernels on two or more devices; their results must be the same.\n"
    "  --seed N          the first kernel's seed; the next has N + 1 (default 1)\n"
    "  --count K         so many kernels (default 100)\n"
    "  --seconds S       at most so long (default: no limit)\n"
    "  --failures F      stop after so many failures (default 1)\n"
    "  --replay FILE …   run the cases in files instead; a --reduce before it applies\n"
    "  --print           write the kernel of --seed to standard output and end\n"
    "  --statistics      how many kernels contain each feature\n"
    "  --without A,B     leave out features (--features lists them)\n"
    "  --only A,B        leave out all other features\n"
    "  --features        list the features\n"
    "  --device A,B      the devices under test (default cpu), such as cpu,cuda\n"
    "  --checked         check the runs on the devices: they may find only what kernels do on purpose\n"
    "  --oracle NAME     the device that is right (default cpu-scalar); none: with --checked, no comparison\n"
    "  --tolerance R     floats may differ by R, relative (default 0: the same bits)\n"
    "  --timeout S       give the devices under test a time-out: they then run the code that polls for it\n"
    "  --reduce S        seconds to spend on making a failing kernel small (default 120; 0: as it is)\n"
    "  --output FOLDER   where failing kernels are written (default .)\n"
    "  --plant FROM=TO   the devices under test are given the text with FROM replaced by TO: a difference "
    "to find\n"
    "SMELT_CPU and the other variables of docs/environment.md apply.\n"
    "Exit status: 0 all agree, 1 a failure, 2 bad command line.\n";

struct options {
    uint64_t seed, count, failures;
    double seconds, reduce_seconds;
    bool print, statistics, without[FEATURE_COUNT];
    const char *folder;
    char **replay; /* ended by NULL */
    struct check_options check;
};

/* One kernel takes far less: one that takes longer does not end. */
#define KERNEL_SECONDS 90

static _Noreturn void refuse(const char *what, const char *value) {
    fprintf(stderr, "fuzz_kernels: %s%s%s\n", what, value ? " " : "", value ? value : "");
    exit(2);
}

static void set_features(bool without[FEATURE_COUNT], char *list, bool value) {
    for (char *name; (name = strsep(&list, ","));) {
        int f = 0;
        while (f < FEATURE_COUNT && strcmp(feature_names[f], name) != 0) f++;
        if (f == FEATURE_COUNT) refuse("no such feature (--features lists them):", name);
        without[f] = value;
    }
}

static void list_features(void) {
    for (int f = 0; f < FEATURE_COUNT; f++) printf("%-20s %s\n", feature_names[f], feature_meanings[f]);
    exit(0);
}

static double number(const char *text) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || value < 0) refuse("not a number:", text);
    return value;
}

static void read_plant(struct options *options, char *text) {
    char *middle = strstr(text, "=");
    if (!middle || middle == text) refuse("--plant needs FROM=TO, not", text);
    *middle = 0;
    options->check.plant_from = text;
    options->check.plant_to = middle + 1;
}

static void read_devices(struct options *options, char *list) {
    int count = 0;
    for (char *name; (name = strsep(&list, ","));) {
        if (count == MAX_DEVICES) refuse("too many devices, at", name);
        options->check.devices[count++] = name;
    }
    options->check.devices[count] = NULL;
}

static void read_value(struct options *options, const char *name, char *value) {
    if (strcmp(name, "--seed") == 0) {
        options->seed = (uint64_t)number(value);
    } else if (strcmp(name, "--count") == 0) {
        options->count = (uint64_t)number(value);
    } else if (strcmp(name, "--failures") == 0) {
        options->failures = (uint64_t)number(value);
    } else if (strcmp(name, "--seconds") == 0) {
        options->seconds = number(value);
    } else if (strcmp(name, "--reduce") == 0) {
        options->reduce_seconds = number(value);
    } else if (strcmp(name, "--tolerance") == 0) {
        options->check.tolerance = number(value);
    } else if (strcmp(name, "--timeout") == 0) {
        options->check.timeout = number(value);
    } else if (strcmp(name, "--device") == 0) {
        read_devices(options, value);
    } else if (strcmp(name, "--oracle") == 0) {
        options->check.oracle = value;
    } else if (strcmp(name, "--output") == 0) {
        options->folder = value;
    } else if (strcmp(name, "--plant") == 0) {
        read_plant(options, value);
    } else if (strcmp(name, "--without") == 0) {
        set_features(options->without, value, true);
    } else if (strcmp(name, "--only") == 0) {
        memset(options->without, true, sizeof options->without);
        options->without[FEATURE_LARGE] = false; /* a size, not a construct: only --without leaves it out */
        set_features(options->without, value, false);
    } else {
        refuse("unknown option", name);
    }
}

static struct options read_options(int count, char **arguments) {
    struct options options = {.seed = 1,
                              .count = 100,
                              .failures = 1,
                              .reduce_seconds = -1,
                              .folder = ".",
                              .check = {.devices = {"cpu"}, .oracle = "cpu-scalar"}};
    for (int i = 1; i < count; i++) {
        const char *name = arguments[i];
        if (strcmp(name, "--help") == 0) {
            fputs(usage, stdout);
            exit(0);
        } else if (strcmp(name, "--features") == 0) {
            list_features();
        } else if (strcmp(name, "--print") == 0) {
            options.print = true;
        } else if (strcmp(name, "--checked") == 0) {
            options.check.checked = true;
        } else if (strcmp(name, "--statistics") == 0) {
            options.statistics = true;
        } else if (i + 1 == count) {
            refuse("no value for, or no such option:", name);
        } else if (strcmp(name, "--replay") == 0) {
            options.replay = &arguments[i + 1];
            break;
        } else {
            read_value(&options, name, arguments[++i]);
        }
    }
    if (strcmp(options.check.oracle, "none") == 0 && !options.check.checked)
        refuse("--oracle none needs --checked", NULL);
    if (options.reduce_seconds < 0) options.reduce_seconds = options.replay ? 0 : 120;
    return options;
}

/* ---- Failures */

struct search {
    const struct check_options *check;
    enum outcome outcome;
    struct verdict last; /* of the smallest case that failed */
};

static bool fails_likewise(const struct kernel_case *candidate, void *context) {
    struct search *search = context;
    struct verdict verdict;
    check_isolated(candidate, search->check, search->outcome == HANGS ? 15 : KERNEL_SECONDS, &verdict);
    if (verdict.outcome != search->outcome) return false;
    search->last = verdict;
    return true;
}

static void report(const struct options *options, const struct kernel_case *kernel,
                   const struct verdict *verdict) {
    const struct launch *launch = &kernel->launches[verdict->launch];
    printf("FAILURE: the kernel of seed %" PRIu64 " %s.\n  %s\n", kernel->seed,
           outcome_names[verdict->outcome], verdict->message);
    printf("  grid %" PRId64 " %" PRId64 " %" PRId64 ", threadgroup %" PRId64 " %" PRId64 " %" PRId64 "\n",
           launch->grid[0], launch->grid[1], launch->grid[2], launch->group[0], launch->group[1],
           launch->group[2]);
    struct kernel_case small = case_copy(kernel);
    struct search search = {&options->check, verdict->outcome, *verdict};
    if (options->reduce_seconds > 0 && verdict->outcome != INVALID)
        reduce_case(&small, options->reduce_seconds, fails_likewise, &search);
    char path[4096], note[1600];
    snprintf(path, sizeof path, "%s/seed_%" PRIu64 "%s.kernel", options->folder, kernel->seed,
             options->replay ? "_reduced" : "");
    snprintf(note, sizeof note, "%s: %s\n", outcome_names[verdict->outcome], search.last.message);
    mkdir(options->folder, 0777);
    printf("---- reduced: %s\n%s%s----\n", search.last.message, small.header, small.body);
    if (case_write(path, &small, note))
        printf("Run it again: fuzz_kernels --replay %s\n", path);
    else
        printf("%s cannot be written.\n", path);
    case_free(&small);
}

static int replay(const struct options *options) {
    int failures = 0;
    for (char **path = options->replay; *path; path++) {
        struct kernel_case kernel;
        struct verdict verdict = {.outcome = INVALID};
        if (!case_read(*path, &kernel)) {
            failures++;
        } else {
            check_isolated(&kernel, &options->check, KERNEL_SECONDS, &verdict);
            printf("%s: %s%s%s\n", *path, outcome_names[verdict.outcome], *verdict.message ? ": " : "",
                   verdict.message);
            if (verdict.notes) printf("  logged: %s\n", verdict.note);
            failures += verdict.outcome != AGREES;
            if (verdict.outcome != AGREES && options->reduce_seconds > 0) report(options, &kernel, &verdict);
        }
        case_free(&kernel);
    }
    return failures ? 1 : 0;
}

static void print_statistics(const struct totals *totals) {
    printf("%-20s %10s %12s\n", "feature", "kernels", "occurrences");
    for (int f = 0; f < FEATURE_COUNT; f++)
        printf("%-20s %9.1f%% %12" PRIu64 "\n", feature_names[f],
               totals->kernels ? 100 * (double)totals->with[f] / (double)totals->kernels : 0,
               totals->counts[f]);
}

static int fuzz(const struct options *options) {
    struct totals totals = {0};
    double begin = seconds_now(), until = options->seconds > 0 ? begin + options->seconds : 1e30;
    uint64_t seed = options->seed, end = options->seed + options->count, failures = 0;
    while (seed < end && seconds_now() < until && failures < options->failures) {
        struct verdict verdict;
        seed = check_seeds(seed, end, until, options->without, &options->check, KERNEL_SECONDS, &totals,
                           &verdict);
        if (verdict.outcome == AGREES) continue;
        unsigned counts[FEATURE_COUNT];
        struct kernel_case kernel = generate(seed++, options->without, counts);
        report(options, &kernel, &verdict);
        case_free(&kernel);
        failures++;
    }
    double seconds = seconds_now() - begin;
    printf("%" PRIu64 " kernels on ", totals.kernels);
    for (int d = 0; options->check.devices[d]; d++) printf("%s%s", d ? ", " : "", options->check.devices[d]);
    printf(" and %s, %" PRIu64 " failed; %.1f s\n", options->check.oracle, failures, seconds);
    if (totals.noted)
        printf("Of %" PRIu64 " kernels something was logged, at last: %s\n", totals.noted, totals.note);
    if (options->statistics) print_statistics(&totals);
    return failures ? 1 : 0;
}

static int print_kernel(const struct options *options) {
    unsigned counts[FEATURE_COUNT];
    struct kernel_case kernel = generate(options->seed, options->without, counts);
    bool written = case_write("/dev/stdout", &kernel, NULL);
    case_free(&kernel);
    return written ? 0 : 2;
}

int main(int count, char **arguments) {
    struct options options = read_options(count, arguments);
    if (options.print) return print_kernel(&options);
    return options.replay ? replay(&options) : fuzz(&options);
}
