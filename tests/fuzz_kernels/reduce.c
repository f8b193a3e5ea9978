/* Reduces by lines: removes runs of complete lines (with matching braces), from long runs to single lines;
 * then the braces around a block; then replaces parenthesised parts of expressions by 1. Lines that end in
 * "// exchange N" are removed together or not at all, since without one of them the kernel would have a race.
 * These, and lines that end in "// fixed", are not simplified. The test rejects what no longer compiles. */
#include "reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct reducer {
    struct kernel_case *kernel;
    char **text; /* the part being reduced: the header or the body */
    still_fails *fails;
    void *context;
    double end;
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Accepts `candidate` if the case still fails with it. */
static bool try_text(struct reducer *r, char *candidate) {
    char *before = *r->text;
    *r->text = candidate;
    if (strcmp(before, candidate) != 0 && r->fails(r->kernel, r->context)) {
        free(before);
        return true;
    }
    *r->text = before;
    free(candidate);
    return false;
}

struct lines {
    char *text; /* with 0 for line ends */
    char **line;
    bool *gone;
    int count;
};

static struct lines split(const char *text) {
    struct lines lines = {.text = strdup(text)};
    for (const char *p = text; *p; p++) lines.count += *p == '\n';
    lines.line = calloc((size_t)lines.count + 1, sizeof *lines.line);
    lines.gone = calloc((size_t)lines.count + 1, sizeof *lines.gone);
    if (!lines.text || !lines.line || !lines.gone) abort();
    char *rest = lines.text;
    for (int i = 0; i < lines.count; i++) lines.line[i] = strsep(&rest, "\n");
    return lines;
}

static void free_lines(struct lines *lines) {
    free(lines->text);
    free(lines->line);
    free(lines->gone);
}

static char *join(const struct lines *lines) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) abort();
    for (int i = 0; i < lines->count; i++)
        if (!lines->gone[i]) fprintf(out, "%s\n", lines->line[i]);
    fclose(out);
    return text;
}

static const char *tag(const char *line) {
    return strstr(line, "// exchange ");
}

/* If one line of an exchange is removed, all of its lines are. */
static void complete_exchanges(struct lines *lines) {
    for (int i = 0; i < lines->count; i++) {
        if (!lines->gone[i] || !tag(lines->line[i])) continue;
        for (int j = 0; j < lines->count; j++)
            if (tag(lines->line[j]) && strcmp(tag(lines->line[i]), tag(lines->line[j])) == 0)
                lines->gone[j] = true;
    }
}

/* The end of the run of whole statements that begins at line `first` and has at least `length` lines, if
 * there is one. */
static int whole_run(const struct lines *lines, int first, int length) {
    int depth = 0, end = first;
    for (int i = first; i < lines->count && (i < first + length || depth > 0); i++) {
        for (const char *p = lines->line[i]; *p; p++) {
            depth += (*p == '{') - (*p == '}');
            if (depth < 0) return end;
        }
        if (depth == 0) end = i + 1;
    }
    return end;
}

/* From the end, where lines declare nothing that others need. */
static bool remove_runs(struct reducer *r, int length) {
    bool any = false;
    struct lines all = split(*r->text);
    int first = all.count - 1;
    free_lines(&all);
    for (; first >= 0 && now() < r->end; first--) {
        struct lines lines = split(*r->text);
        int end = first < lines.count ? whole_run(&lines, first, length) : first;
        if (end > first && end - first >= length) {
            for (int i = first; i < end; i++) lines.gone[i] = true;
            complete_exchanges(&lines);
            bool taken = try_text(r, join(&lines));
            any |= taken;
            if (!taken && length > 2) first -= length / 2 - 1;
        }
        free_lines(&lines);
    }
    return any;
}

/* Removes a block's first and last line, or its else. */
static bool open_blocks(struct reducer *r) {
    bool any = false;
    for (int first = 0; now() < r->end; first++) {
        struct lines lines = split(*r->text);
        bool more = first < lines.count;
        const char *line = more ? lines.line[first] : "";
        size_t length = strlen(line);
        if (length && line[length - 1] == '{') {
            int depth = 0, end = first;
            for (; end < lines.count; end++) {
                const char *p = lines.line[end];
                if (end == first) p += strspn(p, " }");
                for (; *p && depth >= 0; p++) {
                    depth += (*p == '{') - (*p == '}');
                    if (depth == 0 && *p == '}') break;
                }
                if (depth == 0 && end > first) break;
            }
            if (end < lines.count) {
                lines.gone[first] = lines.gone[end] = true;
                any |= try_text(r, join(&lines));
            }
        }
        free_lines(&lines);
        if (!more) break;
    }
    return any;
}

/* Whether the parenthesis at `open` may be replaced: not a loop's bound, nor what keeps threads or arrays
 * apart. */
static bool may_simplify(const char *text, const char *open) {
    const char *line = open, *end = strchr(open, '\n');
    int depth = 0;
    while (line > text && line[-1] != '\n') line--;
    char *copy = strndup(line, end ? (size_t)(end - line) : strlen(line));
    if (!copy) abort();
    size_t at = (size_t)(open - line);
    bool may = !tag(copy) && !strstr(copy, "// fixed") && !strstr(copy, " j ");
    if (at >= 4 && strncmp(open - 4, "for ", 4) == 0) may = false;
    if (at >= 6 && strncmp(open - 6, "while ", 6) == 0) may = false;
    /* The index of an element the thread owns. */
    for (const char *p = copy + at; may && p > copy; p--) {
        depth += (*p == ']') - (*p == '[');
        if (depth < 0) {
            if (p - copy >= 5 && strncmp(p - 5, "out_", 4) == 0) may = false;
            depth = 0;
        }
    }
    free(copy);
    return may;
}

/* Replaces each parenthesised part with contents by 1. */
static bool simplify_expressions(struct reducer *r) {
    bool any = false;
    for (size_t at = 0; now() < r->end && (*r->text)[at]; at++) {
        const char *text = *r->text, *open = text + at, *close = open;
        if (*open != '(' || !may_simplify(text, open)) continue;
        int depth = 0;
        do depth += (*close == '(') - (*close == ')');
        while (depth && *++close && *close != '\n');
        if (depth || close - open < 4) continue;
        char *candidate = malloc(strlen(text) + 4);
        if (!candidate) abort();
        sprintf(candidate, "%.*s(1%s", (int)at, text, close);
        any |= try_text(r, candidate);
    }
    return any;
}

static void keep_one_launch(struct reducer *r) {
    static const struct launch small[] = {{{1, 1, 1}, {1, 1, 1}},   {{8, 1, 1}, {8, 1, 1}},
                                          {{32, 1, 1}, {32, 1, 1}}, {{33, 1, 1}, {33, 1, 1}},
                                          {{64, 1, 1}, {32, 1, 1}}, {{64, 1, 1}, {64, 1, 1}},
                                          {{96, 1, 1}, {96, 1, 1}}, {{128, 1, 1}, {128, 1, 1}}};
    struct kernel_case before = *r->kernel;
    for (int l = 0; l < before.launch_count; l++) {
        r->kernel->launch_count = 1;
        r->kernel->launches[0] = before.launches[l];
        if (before.launch_count == 1 || r->fails(r->kernel, r->context)) break;
        *r->kernel = before;
    }
    if (r->kernel->launch_count != 1) return;
    struct launch failing = r->kernel->launches[0];
    for (unsigned n = 0; n < sizeof small / sizeof *small && now() < r->end; n++) {
        if (small[n].grid[0] >= failing.grid[0] * failing.grid[1] * failing.grid[2]) break;
        r->kernel->launches[0] = small[n];
        if (r->fails(r->kernel, r->context)) return;
        r->kernel->launches[0] = failing;
    }
}

void reduce_case(struct kernel_case *kernel, double seconds, still_fails *fails, void *context) {
    struct reducer r = {.kernel = kernel, .fails = fails, .context = context, .end = now() + seconds};
    char **const parts[] = {&kernel->body, &kernel->header};
    keep_one_launch(&r);
    for (bool any = true; any && now() < r.end;) {
        any = false;
        for (int part = 0; part < 2; part++) {
            r.text = parts[part];
            for (int length = 64; length; length /= 2) any |= remove_runs(&r, length);
            any |= open_blocks(&r);
        }
        r.text = parts[0];
        any |= simplify_expressions(&r);
    }
    keep_one_launch(&r);
}
