#include "bench/against.h"
#include "bench/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define NOT_RUN 3 /* exit status where a child cannot be started, or ends by a signal */
#define MOST_ARGUMENTS 64

/* ---- Children. */

static char *read_all(int file) {
    size_t size = 0, room = 4096;
    char *text = malloc(room + 1);
    while (text) {
        ssize_t got = read(file, text + size, room - size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        size += (size_t)got;
        if (size < room) continue;
        char *grown = realloc(text, 2 * room + 1);
        if (!grown) break;
        text = grown;
        room *= 2;
    }
    if (text) text[size] = 0;
    return text;
}

/* LD_LIBRARY_PATH takes precedence over the programs' own paths: each build's libraries are put at its front.
 */
static char *library_path(const char *program, const char *old) {
    char *path = NULL;
    const char *slash = strrchr(program, '/');
    int length = slash ? (int)(slash - program) : 1;
    if (asprintf(&path, "LD_LIBRARY_PATH=%.*s/../lib:%s", length, slash ? program : ".", old) < 0)
        return NULL;
    return path;
}

static char **environment_for(char *path) {
    size_t count = 0;
    while (environ[count]) count++;
    char **own = malloc((count + 1) * sizeof *own);
    if (!own) return NULL;
    memcpy(own, environ, (count + 1) * sizeof *own);
    for (size_t i = 0; i < count; i++)
        if (strncmp(own[i], "LD_LIBRARY_PATH=", 16) == 0) own[i] = path;
    return own;
}

static int start(const char *program, const char *const *arguments, int output, pid_t *child) {
    const char *words[MOST_ARGUMENTS + 2] = {program};
    for (int i = 0; i < MOST_ARGUMENTS && arguments[i]; i++) words[i + 1] = arguments[i];
    const char *old = getenv("LD_LIBRARY_PATH");
    char *path = old && *old ? library_path(program, old) : NULL;
    char **own = path ? environment_for(path) : NULL;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    int error = posix_spawn(child, program, &actions, NULL, (char **)words, own ? own : environ);
    posix_spawn_file_actions_destroy(&actions);
    free(own);
    free(path);
    return error;
}

/* Runs the program; *output is what it printed, heap memory. Returns its exit status. */
static int run_child(struct against *a, const char *program, const char *const *arguments, char **output) {
    int ends[2], status;
    pid_t child;
    *output = NULL;
    int error = pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;
    if (!error) {
        error = start(program, arguments, ends[1], &child);
        (void)close(ends[1]);
        if (!error) *output = read_all(ends[0]);
        (void)close(ends[0]);
    }
    if (error) {
        snprintf(a->message, sizeof a->message, "'%s' cannot be run: %s", program, strerror(error));
        return NOT_RUN;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : NOT_RUN;
}

bool against_find(struct against *a, const char *build, char **path) {
    struct stat about;
    bool folder = stat(build, &about) == 0 && S_ISDIR(about.st_mode);
    if (asprintf(path, "%s%s", build, folder ? "/bin/smelt" : "") < 0) {
        *path = NULL;
        snprintf(a->message, sizeof a->message, "no memory for a path");
        return false;
    }
    char *output = NULL;
    int status = run_child(a, *path, (const char *const[]){"--version", NULL}, &output);
    bool good = status == 0 && output && strncmp(output, "smelt ", 6) == 0;
    if (!good && !*a->message)
        snprintf(a->message, sizeof a->message, "'%s --version' does not answer like smelt", *path);
    free(output);
    return good;
}

/* ---- What children print: an object per line. */

struct series {
    char *job, *variant;
    double *times[AGAINST_BUILDS];
    int count[AGAINST_BUILDS], last_round[AGAINST_BUILDS];
};

struct table {
    struct series *rows;
    int count, rounds;
};

/* The text behind "key": , as far as its closing quote; heap memory, NULL if there is none. */
static char *text_field(const char *line, const char *key) {
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\": \"", key);
    const char *at = strstr(line, quoted);
    if (!at) return NULL;
    at += strlen(quoted);
    char *text = malloc(strlen(at) + 1), *end = text;
    for (; text && *at && *at != '"'; at++) {
        if (*at == '\\' && at[1]) at++;
        *end++ = *at;
    }
    if (text) *end = 0;
    return text;
}

static struct series *add_series(struct table *table, char *job, char *variant) {
    struct series *grown = realloc(table->rows, (size_t)(table->count + 1) * sizeof *grown);
    if (!grown) return NULL;
    table->rows = grown;
    struct series *row = &grown[table->count];
    *row = (struct series){.job = job, .variant = variant, .last_round = {-1, -1}};
    for (int b = 0; b < AGAINST_BUILDS; b++) row->times[b] = calloc((size_t)table->rounds, sizeof(double));
    table->count++;
    return row;
}

/* Takes job and variant over. */
static struct series *series_of(struct table *table, char *job, char *variant) {
    struct series *row = NULL;
    for (int i = 0; i < table->count && !row; i++)
        if (strcmp(table->rows[i].job, job) == 0 && strcmp(table->rows[i].variant, variant) == 0)
            row = &table->rows[i];
    struct series *added = row ? NULL : add_series(table, job, variant);
    if (added) return added;
    free(job);
    free(variant);
    return row;
}

/* A variant that is compared twice has two rows, of one time. */
static void take_line(struct table *table, const char *line, int build, int round) {
    char *job = text_field(line, "job"), *variant = text_field(line, "variant");
    const char *median = strstr(line, "\"median_s\": ");
    if (!job || !variant || !median) {
        free(job);
        free(variant);
        return;
    }
    struct series *row = series_of(table, job, variant);
    double seconds = strtod(median + strlen("\"median_s\": "), NULL);
    if (!row || !row->times[build] || row->last_round[build] == round || seconds <= 0) return;
    row->last_round[build] = round;
    row->times[build][row->count[build]++] = seconds;
}

/* ---- Rounds. */

static int run_build(struct against *a, const char *const *arguments, struct table *table, int build,
                     int round) {
    char *output;
    int status = run_child(a, a->program[build], arguments, &output);
    for (char *line = output, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        take_line(table, line, build, round);
    }
    free(output);
    return status;
}

static void report_row(const struct against *a, struct series *one) {
    struct against_row row = {.job = one->job, .variant = one->variant};
    for (int b = 0; b < AGAINST_BUILDS; b++) {
        int count = one->count[b];
        row.median[b] = count ? bench_quantile(one->times[b], count, 0.5) : (double)NAN;
        row.spread[b] =
            count ? bench_quantile(one->times[b], count, 0.75) - bench_quantile(one->times[b], count, 0.25)
                  : (double)NAN;
        free(one->times[b]);
    }
    a->report(&row, a->context);
    free(one->job);
    free(one->variant);
}

int against_run(struct against *a, const char *const *arguments) {
    struct table table = {.rounds = a->rounds};
    int failed = 0;
    for (int round = 0; round < a->rounds; round++)
        for (int turn = 0; turn < AGAINST_BUILDS; turn++) {
            int status = run_build(a, arguments, &table, (round + turn) % AGAINST_BUILDS, round);
            if (!failed) failed = status;
        }
    for (int i = 0; i < table.count; i++) report_row(a, &table.rows[i]);
    free(table.rows);
    return failed;
}
