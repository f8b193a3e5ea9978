#include "gpu_columns.h"

#include "../prelude/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The beginning of the heads of the GPU's columns. */
#define MARK "`cuda`"

static const char *const table_names[TYPES] = {"float", "half", "bfloat"};

static const char *columns_of(const char *name) {
    for (int type = 0; type < TYPES; type++)
        if (!strcmp(name, table_names[type]))
            return " " MARK " arguments | " MARK " `precise::` | " MARK " `fast::` | " MARK
                   " plain: safe / relaxed / fast | " MARK " and `cpu` |";
    return " " MARK " |";
}

/* ---- Rows. A line "| a | b |" has the cells " a " and " b ". */

/* The next line of *text, without its end; *text moves past it. NULL at the end. */
static const char *next_line(const char **text, size_t *length) {
    if (!*text || !**text) return NULL;
    const char *line = *text;
    *length = strcspn(line, "\n");
    *text = line + *length + (line[*length] == '\n');
    return line;
}

/* The start of cell number `cell` of a line, after its bar; the line's end if it has fewer. */
static const char *cell_at(const char *line, size_t length, int cell) {
    const char *at = line, *end = line + length;
    for (int bars = -1; at < end; at++)
        if (*at == '|' && ++bars == cell) return at + 1;
    return end;
}

/* The number of CPU cells of the head: all before the first GPU cell. */
static int cpu_cells(const char *head, size_t length) {
    for (int cell = 0;; cell++) {
        const char *at = cell_at(head, length, cell);
        if (at + 1 >= head + length || !strncmp(at + 1, MARK, strlen(MARK))) return cell;
    }
}

/* The GPU's cells of the row that begins with the cell `first` in a table of the document, or NULL. */
static const char *old_cells(const char *old, const char *first, size_t first_length, size_t *length) {
    const char *rest = old, *line;
    size_t size;
    int cells = -1;
    while ((line = next_line(&rest, &size))) {
        if (cells < 0) cells = cpu_cells(line, size);
        const char *at = cell_at(line, size, 0), *gpu = cell_at(line, size, cells);
        if ((size_t)(line + size - at) < first_length || strncmp(at, first, first_length) != 0) continue;
        *length = (size_t)(line + size - gpu);
        return *length ? gpu : NULL;
    }
    return NULL;
}

/* The same for a file's row. */
static const char *new_cells(const char *results, const char *name, const char *first, size_t first_length,
                             size_t *length) {
    const char *rest = results, *line;
    size_t size, name_length = strlen(name);
    while ((line = next_line(&rest, &size))) {
        if (size < name_length + 2 + first_length || strncmp(line, name, name_length) != 0 ||
            strncmp(line + name_length, " |", 2) != 0 ||
            strncmp(line + name_length + 2, first, first_length) != 0)
            continue;
        const char *cells = line + name_length + 2 + first_length;
        *length = (size_t)(line + size - cells);
        return cells;
    }
    return NULL;
}

char *gpu_columns_joined(const char *name, const char *cpu, const char *old, const char *results) {
    struct body text = {0};
    const char *rest = cpu, *line;
    size_t size;
    bool wanted = (old && strstr(old, MARK)) || (results && *results);
    int columns = 0, cells = 0, row = 0;
    for (const char *c = columns_of(name); *c; c++) columns += *c == '|';
    body_add(&text, "%s", "");
    for (; (line = next_line(&rest, &size)); row++) {
        if (row == 0) cells = cpu_cells(line, size);
        const char *end = cell_at(line, size, cells), *first = cell_at(line, size, 0);
        body_add(&text, "%.*s", (int)(end - line), line);
        if (wanted && row == 0) {
            body_add(&text, "%s", columns_of(name));
        } else if (wanted && row == 1) {
            for (int column = 0; column < columns; column++) body_add(&text, "---|");
        } else if (wanted) {
            size_t length = 0, first_length = (size_t)(cell_at(line, size, 1) - first);
            const char *gpu = new_cells(results, name, first, first_length, &length);
            if (!gpu) gpu = old_cells(old, first, first_length, &length);
            if (gpu) body_add(&text, "%.*s", (int)length, gpu);
            for (int column = 0; !gpu && column < columns; column++) body_add(&text, " |");
        }
        body_add(&text, "\n");
    }
    return text.text;
}

/* ---- Writing the file. */

/* Joins the cells number `cell` to `last` of a row; one if all are the same. Omits empty ones. */
static void add_joined(struct body *text, const char *line, size_t length, int cell, int last) {
    struct body all = {0};
    char first[100] = "";
    bool same = true;
    int count = 0;
    body_add(&all, "%s", "");
    for (; cell <= last; cell++) {
        const char *at = cell_at(line, length, cell), *end = cell_at(line, length, cell + 1);
        if (at == line + length) break;
        char value[100];
        snprintf(value, sizeof value, "%.*s", (int)(end - at < 3 ? 0 : end - at - 3), at + 1);
        if (!*value) continue;
        if (count++ == 0) snprintf(first, sizeof first, "%s", value);
        same = same && !strcmp(first, value);
        body_add(&all, "%s%s", count > 1 ? " / " : "", value);
    }
    body_add(text, " %s |\n", same ? first : all.text);
    body_free(&all);
}

void gpu_columns_write(const char *path, const struct engines *engines,
                       struct measurements (*measurements)[TYPES], const struct table *others) {
    struct body text = {0};
    body_add(&text, "%s", "");
    for (int type = 0; type < TYPES; type++)
        for (int f = 0; f < accuracy_function_count; f++) {
            const struct measurements *m = &measurements[f][type];
            if (!m->swept) continue;
            body_add(&text, "%s | %s |", table_names[type], accuracy_functions[f].name);
            report_gpu_cells(&text, engines, &accuracy_functions[f], m);
        }
    for (int i = 0; i < OTHER_TABLES; i++) {
        const char *rest = others[i].text, *line;
        size_t size;
        for (int row = 0; (line = next_line(&rest, &size)); row++) {
            if (row < 2) continue;
            const char *first = cell_at(line, size, 0);
            body_add(&text, "%s |%.*s", others[i].name, (int)(cell_at(line, size, 1) - first), first);
            /* The figures: all cells of `packing`, those of mode safe of `geometric`, otherwise what follows
             * the count. */
            bool packing = !strcmp(others[i].name, "packing"),
                 geometric = !strcmp(others[i].name, "geometric");
            add_joined(&text, line, size, packing ? 1 : 2, geometric ? 4 : 99);
        }
    }
    FILE *file = fopen(path, "wb");
    if (!file || fputs(text.text, file) < 0 || fclose(file)) failed("%s cannot be written", path);
    body_free(&text);
}
