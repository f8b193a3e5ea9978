#include "report.h"

#include "gpu_columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Cells. */
static void add_error(struct body *text, const struct worst *worst) {
    body_add(text, worst->error >= 1000 ? "> 1000" : "%.2f", worst->error);
}
static void add_place(struct body *text, const struct function *function, const struct worst *worst) {
    if (worst->error == 0) return;
    for (int k = 0; k < function->arguments; k++) body_add(text, k ? ", %.9g" : "%.9g", worst->argument[k]);
}
/* The plain form in the three modes; one figure if all are the same. */
static void add_plain(struct body *text, const struct measurements *m, int engine) {
    double first = m->of[0][engine][PLAIN].worst.error;
    bool same = first == m->of[1][engine][PLAIN].worst.error && first == m->of[2][engine][PLAIN].worst.error;
    for (int math = 0; math < (same ? 1 : MODES); math++) {
        if (math) body_add(text, " / ");
        add_error(text, &m->of[math][engine][PLAIN].worst);
    }
}
/* Forms that differ in modes relaxed and fast, and results of the second engine that differ from the first's.
 */
static void add_others(struct body *text, const struct engines *engines, const struct measurements *m,
                       bool operation) {
    bool said = false;
    for (int math = 0; math < MODES; math++)
        for (int engine = 0; engine < ENGINES; engine++)
            for (int form = operation ? PLAIN : PRECISE; form < FORMS; form++) {
                const struct measurement *of = &m->of[math][engine][form];
                if (of->same || (engine == 0 && form == PLAIN)) continue;
                body_add(text, "%s%s %s %s ", said ? "; " : "", engines->name[engine], mode_names[math],
                         form == PRECISE ? "precise"
                         : form == FAST  ? "fast"
                                         : "plain");
                add_error(text, &of->worst);
                said = true;
            }
    if (!said) body_add(text, "same bits");
}

static const char *const table_names[TYPES] = {"float", "half", "bfloat"};

/* As a sum of powers of two; every sweep is one. */
static void add_count(struct body *text, int64_t count) {
    for (int power = 62, first = 1; power >= 0; power--)
        if (count >> power & 1) {
            body_add(text, first ? "2^%d" : " + 2^%d", power);
            first = 0;
        }
}

static const struct worst *precise_of(const struct function *function, const struct measurements *m) {
    return &m->of[0][0][function->operation ? PLAIN : PRECISE].worst;
}
static const struct worst *fast_of(const struct function *function, const struct measurements *m) {
    return function->operation ? &m->of[2][0][PLAIN].worst : &m->of[0][0][FAST].worst;
}

void report_gpu_cells(struct body *text, const struct engines *engines, const struct function *function,
                      const struct measurements *m) {
    body_add(text, " ");
    add_count(text, m->swept);
    body_add(text, " | ");
    add_error(text, precise_of(function, m));
    body_add(text, " | ");
    add_error(text, fast_of(function, m));
    body_add(text, " | ");
    add_plain(text, m, 0);
    body_add(text, " | ");
    add_others(text, engines, m, function->operation);
    body_add(text, " |\n");
}

static void add_row(struct body *text, const struct engines *engines, int type,
                    const struct function *function, const struct measurements *m) {
    const struct worst *precise = precise_of(function, m), *fast = fast_of(function, m);
    double bar = bar_of(function, measured_types[type]);
    body_add(text, "| %s | ", function->name);
    add_count(text, m->swept);
    body_add(text, " | %g | ", bar == 0.51 ? 0.5 : bar);
    add_error(text, precise);
    body_add(text, " | ");
    add_place(text, function, precise);
    if (measured_types[type] == SMELT_FLOAT32)
        body_add(text, " | %s | ", function->allowed ? function->allowed : "as precise");
    else
        body_add(text, " | %lld | ", (long long)precise->misrounded);
    add_error(text, fast);
    body_add(text, " | ");
    add_place(text, function, fast);
    body_add(text, " | ");
    add_plain(text, m, 0);
    body_add(text, " | ");
    add_others(text, engines, m, function->operation);
    body_add(text, " |\n");
}

/* Rows that were not measured stay as they are in `old`, the table's previous text (NULL: they are left out).
 */
static void add_table(struct body *text, const struct engines *engines, int type,
                      struct measurements (*measurements)[TYPES], const char *old) {
    body_add(text,
             "| function | arguments | bar | `precise::` | at | %s | `fast::` | at | plain: safe / relaxed / "
             "fast | "
             "`cpu-scalar`, other modes |\n|---|---|---|---|---|---|---|---|---|---|\n",
             measured_types[type] == SMELT_FLOAT32 ? "allowed when fast" : "not correctly rounded");
    for (int f = 0; f < accuracy_function_count; f++) {
        const struct function *function = &accuracy_functions[f];
        const struct measurements *m = &measurements[f][type];
        char begin[64];
        snprintf(begin, sizeof begin, "\n| %s |", function->name);
        const char *row = old ? strstr(old, begin) : NULL;
        if (m->swept)
            add_row(text, engines, type, function, m);
        else if (row)
            body_add(text, "%.*s\n", (int)strcspn(row + 1, "\n"), row + 1);
    }
}

void report_print(const struct engines *engines, struct measurements (*measurements)[TYPES],
                  const struct table *others) {
    for (int type = 0; type < TYPES; type++) {
        struct body text = {0};
        add_table(&text, engines, type, measurements, NULL);
        printf("%s\n\n%s\n", table_names[type], text.text);
        body_free(&text);
    }
    for (int i = 0; i < OTHER_TABLES; i++)
        if (others[i].text) printf("%s\n\n%s\n", others[i].name, others[i].text);
}

/* ---- The document. */
static char *read_text(const char *path) {
    FILE *file = fopen(path, "rb");
    struct body text = {0};
    char line[1000];
    body_add(&text, "%s", "");
    while (file && fgets(line, sizeof line, file)) body_add(&text, "%s", line);
    if (!file) {
        failed("%s cannot be read", path);
        body_free(&text);
        return NULL;
    }
    fclose(file);
    return text.text;
}

/* The text between a table's markers; false, after reporting a failure, if there are none. */
static bool find_table(const char *document, const char *name, const char **begin, const char **end) {
    char first[64], last[64];
    snprintf(first, sizeof first, "<!-- %s -->\n", name);
    snprintf(last, sizeof last, "<!-- end of %s -->", name);
    *begin = strstr(document, first);
    *end = strstr(document, last);
    if (!*begin || !*end || *end < *begin) {
        failed("no table between <!-- %s --> and <!-- end of %s -->", name, name);
        return false;
    }
    *begin += strlen(first);
    return true;
}

/* The document with the text between two places replaced; frees the old one. */
static char *replaced(char *document, const char *begin, const char *end, const char *text) {
    size_t head = (size_t)(begin - document), size = strlen(text), tail = strlen(end);
    char *joined = malloc(head + size + tail + 1);
    if (!joined) abort();
    memcpy(joined, document, head);
    memcpy(joined + head, text, size);
    memcpy(joined + head + size, end, tail + 1);
    free(document);
    return joined;
}

/* The document with `cpu` (NULL: unchanged) and the GPU's columns as the table `name`; frees the old one. */
static char *with_table(char *document, const char *name, const char *cpu, const char *gpu) {
    const char *begin, *end;
    if (!document || !find_table(document, name, &begin, &end)) return document;
    char *old = strndup(begin, (size_t)(end - begin));
    if (!old) abort();
    char *joined = gpu_columns_joined(name, cpu ? cpu : old, old, gpu);
    document = replaced(document, begin, end, joined);
    free(joined);
    free(old);
    return document;
}

void report_write(const char *path, const struct engines *engines, struct measurements (*measurements)[TYPES],
                  const struct table *others, const char *gpu) {
    char *document = read_text(path), *results = gpu ? read_text(gpu) : NULL;
    const char *begin, *end;
    for (int type = 0; document && type < TYPES; type++) {
        if (!find_table(document, table_names[type], &begin, &end)) continue;
        struct body table = {0};
        char *old = strndup(begin, (size_t)(end - begin));
        if (!old) abort();
        add_table(&table, engines, type, measurements, old);
        document = with_table(document, table_names[type], table.text, results);
        free(old);
        body_free(&table);
    }
    for (int i = 0; i < OTHER_TABLES; i++)
        document = with_table(document, others[i].name, others[i].text, results);
    FILE *file = document && (results || !gpu) ? fopen(path, "wb") : NULL;
    if (!file || fputs(document, file) < 0 || fclose(file)) failed("%s cannot be written", path);
    free(document);
    free(results);
}

/* Checks that a table's rows begin with these names, in order. */
static void check_rows(const char *path, const char *document, const char *name, const char *const *rows,
                       int count) {
    const char *line, *end;
    if (!find_table(document, name, &line, &end)) return;
    int row = -2; /* the head has two lines */
    for (; line < end; line = strchr(line, '\n') + 1, row++) {
        if (row < 0) continue;
        char expected[64] = "no further row";
        if (row < count) snprintf(expected, sizeof expected, "| %s |", rows[row]);
        if (strncmp(line, expected, strlen(expected)) != 0)
            failed("%s: row %d of table %s should begin with %s: write the tables again", path, row, name,
                   expected);
    }
    if (row < count)
        failed("%s: table %s lacks %s and what follows: write the tables again", path, name,
               rows[row < 0 ? 0 : row]);
}

bool report_check(const char *path, const struct table *others) {
    char *document = read_text(path);
    const char *names[128];
    if (accuracy_function_count > 128) abort();
    for (int f = 0; f < accuracy_function_count; f++) names[f] = accuracy_functions[f].name;
    for (int type = 0; document && type < TYPES; type++)
        check_rows(path, document, table_names[type], names, accuracy_function_count);
    for (int i = 0; document && i < OTHER_TABLES; i++) {
        int count = 0;
        while (others[i].rows[count]) count++;
        check_rows(path, document, others[i].name, others[i].rows, count);
    }
    free(document);
    return !failures;
}
