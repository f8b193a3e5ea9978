#include "kernel_case.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_rest(FILE *file, const char *end, bool *ended) {
    char *text = NULL, *line = NULL;
    size_t size = 0, capacity = 0;
    FILE *out = open_memstream(&text, &size);
    *ended = false;
    while (out && !*ended && getline(&line, &capacity, file) >= 0) {
        if (end && strcmp(line, end) == 0)
            *ended = true;
        else
            fputs(line, out);
    }
    free(line);
    if (out) fclose(out);
    return text;
}

static bool read_field(const char *line, struct kernel_case *kernel) {
    struct launch *launch = &kernel->launches[kernel->launch_count];
    unsigned data;
    if (line[0] == '#' || line[0] == '\n' || strncmp(line, "math: safe", 10) == 0) return true;
    if (sscanf(line, "seed: %" SCNu64, &kernel->seed) == 1) return true;
    if (sscanf(line, "data: %u", &data) == 1 && data < DATA_KINDS) {
        kernel->data = (enum data_kind)data;
        return true;
    }
    if (kernel->launch_count < MAX_LAUNCHES &&
        sscanf(line, "launch: %" SCNd64 " %" SCNd64 " %" SCNd64 " / %" SCNd64 " %" SCNd64 " %" SCNd64,
               &launch->grid[0], &launch->grid[1], &launch->grid[2], &launch->group[0], &launch->group[1],
               &launch->group[2]) == 6) {
        int64_t threads = launch->grid[0] * launch->grid[1] * launch->grid[2];
        kernel->launch_count++;
        return threads > 0 && threads <= MAX_THREADS;
    }
    return false;
}

bool case_read(const char *path, struct kernel_case *kernel) {
    *kernel = (struct kernel_case){0};
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "%s cannot be read\n", path);
        return false;
    }
    char *line = NULL;
    size_t capacity = 0;
    bool good = true, header = false, body = false;
    while (good && !header && getline(&line, &capacity, file) >= 0) {
        header = strcmp(line, "-- header\n") == 0;
        good = header || read_field(line, kernel);
        if (!good) fprintf(stderr, "%s: not understood: %s", path, line);
    }
    free(line);
    if (good && header) kernel->header = read_rest(file, "-- body\n", &body);
    if (good && body) kernel->body = read_rest(file, NULL, &header);
    fclose(file);
    if (good && (!kernel->body || !kernel->launch_count)) {
        fprintf(stderr, "%s: a case needs `launch:`, `-- header` and `-- body`\n", path);
        good = false;
    }
    return good;
}

static void write_note(FILE *file, const char *note) {
    while (note && *note) {
        size_t length = strcspn(note, "\n");
        fprintf(file, "# %.*s\n", (int)length, note);
        note += length + (note[length] == '\n');
    }
}

bool case_write(const char *path, const struct kernel_case *kernel, const char *note) {
    FILE *file = fopen(path, "w");
    if (!file) return false;
    write_note(file, note);
    fprintf(file, "seed: %" PRIu64 "\ndata: %u\nmath: safe\n", kernel->seed, (unsigned)kernel->data);
    for (int i = 0; i < kernel->launch_count; i++) {
        const struct launch *launch = &kernel->launches[i];
        fprintf(file, "launch: %" PRId64 " %" PRId64 " %" PRId64 " / %" PRId64 " %" PRId64 " %" PRId64 "\n",
                launch->grid[0], launch->grid[1], launch->grid[2], launch->group[0], launch->group[1],
                launch->group[2]);
    }
    fprintf(file, "-- header\n%s-- body\n%s", kernel->header, kernel->body);
    return fclose(file) == 0;
}

struct kernel_case case_copy(const struct kernel_case *kernel) {
    struct kernel_case copy = *kernel;
    copy.header = strdup(kernel->header);
    copy.body = strdup(kernel->body);
    if (!copy.header || !copy.body) abort();
    return copy;
}

void case_free(struct kernel_case *kernel) {
    free(kernel->header);
    free(kernel->body);
    *kernel = (struct kernel_case){0};
}
