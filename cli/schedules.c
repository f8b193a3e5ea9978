#include "schedules.h"
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Contents of arrays. */

/* Of the arrays that a run may change in place, or of its outputs. */
struct contents {
    char *bytes[SMELT_MAX_BUFFERS];
    size_t sizes[SMELT_MAX_BUFFERS];
};

static size_t bytes_of(const smelt_array *array) {
    return (size_t)smelt_array_size(array) * smelt_dtype_bytes(smelt_array_dtype(array));
}

static void clear(struct contents *contents) {
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) free(contents->bytes[i]);
    *contents = (struct contents){0};
}

static bool keep(struct contents *contents, int slot, const void *bytes, size_t size) {
    contents->bytes[slot] = malloc(size ? size : 1);
    if (!contents->bytes[slot]) return false;
    memcpy(contents->bytes[slot], bytes, size);
    contents->sizes[slot] = size;
    return true;
}

static bool keep_buffers(const struct session *session, struct contents *contents) {
    for (int i = 0; i < SMELT_MAX_BUFFERS && session->function; i++) {
        smelt_array *array = session->dispatch.buffers[i].array;
        if (array && !keep(contents, i, smelt_array_data(array), bytes_of(array))) return false;
    }
    return true;
}

static void restore_buffers(struct session *session, const struct contents *contents) {
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++)
        if (contents->bytes[i])
            memcpy(smelt_array_data(session->dispatch.buffers[i].array), contents->bytes[i],
                   contents->sizes[i]);
}

/* ---- Results that differ. */

static void report_difference(struct findings *findings, const struct options *o, int output, size_t element,
                              long long schedule) {
    char name[32], message[256];
    const char *named = o->outputs[output].name;
    if (!named) snprintf(name, sizeof name, "buffer %d", o->outputs[output].index);
    if (!named) named = name;
    snprintf(message, sizeof message,
             "%s[%zu] depends on the order of threads: schedules 0 and %lld (SMELT_CHECK_SEED) give "
             "different values",
             named, element, schedule);
    findings_add_one(findings, &(smelt_finding){.code = "SM013",
                                                .kind = "race",
                                                .message = message,
                                                .argument = named,
                                                .has_index = true,
                                                .index = (int64_t)element,
                                                .count = 1});
}

/* Of schedule 0 the outputs are kept, those of others compared with them. */
static smelt_status compare(struct session *session, struct contents *first, struct findings *findings,
                            long long schedule) {
    const struct options *o = session->options;
    for (int i = 0; i < o->output_count; i++) {
        smelt_array *array;
        if (o->outputs[i].tensor) continue;
        smelt_status status = session_output(session, o, i, &array);
        if (status != SMELT_OK) return status;
        const char *bytes = smelt_array_data(array);
        size_t size = bytes_of(array), element = smelt_dtype_bytes(smelt_array_dtype(array)), at = 0;
        if (schedule == 0) {
            findings->out_of_memory |= !keep(first, i, bytes, size);
        } else if (first->bytes[i]) {
            while (at < size && bytes[at] == first->bytes[i][at]) at++;
            if (at < size) report_difference(findings, o, i, at / element, schedule);
        }
        smelt_array_release(array);
    }
    return SMELT_OK;
}

smelt_status schedules_run(struct session *session, smelt_run_info *info, struct findings *findings) {
    const struct options *o = session->options;
    struct contents before = {0}, first = {0};
    long long count = o->schedules > 1 ? o->schedules : 1;
    smelt_status status = SMELT_OK;
    bool complete = true;
    findings->out_of_memory |= !keep_buffers(session, &before);
    for (long long i = 0; i < count && (status == SMELT_OK || status == SMELT_ERROR_CHECK); i++) {
        char seed[32];
        snprintf(seed, sizeof seed, "%lld", i);
        if (i) restore_buffers(session, &before);
        if (count > 1) (void)setenv("SMELT_CHECK_SEED", seed, 1);
        status = session_run(session, info);
        findings_collect(findings);
        /* A body's outputs exist only if nothing was found. */
        complete &= status == SMELT_OK || (status == SMELT_ERROR_CHECK && session->function);
        if (complete && count > 1) {
            smelt_status compared = compare(session, &first, findings, i);
            if (compared != SMELT_OK) status = compared;
        }
    }
    if (status == SMELT_OK && findings_fail(findings)) status = SMELT_ERROR_CHECK;
    if (status != SMELT_OK) restore_buffers(session, &before);
    clear(&before);
    clear(&first);
    return status;
}

/* ---- Smaller grids. */

static int64_t *sizes_of(struct session *session, bool *by_groups) {
    *by_groups = session->function && session->dispatch.groups[0];
    if (!session->function) return session->run.grid;
    return *by_groups ? session->dispatch.groups : session->dispatch.grid;
}

static bool shows(struct session *session, const struct contents *before, const smelt_finding *wanted) {
    smelt_run_info info;
    smelt_finding finding;
    restore_buffers(session, before);
    (void)session_run(session, &info);
    for (int i = 0; smelt_findings_get(i, &finding); i++)
        if (findings_are_same(&finding, wanted)) return true;
    return false;
}

/* Half as many threadgroups in a dimension; the same: there is no smaller number. */
static int64_t halved(int64_t size, int64_t unit) {
    int64_t groups = (size + unit - 1) / unit;
    return groups > 1 ? groups / 2 * unit : size;
}

void schedules_shrink(struct session *session, const smelt_finding *finding) {
    bool by_groups, smaller = true;
    int64_t *sizes = sizes_of(session, &by_groups);
    const int64_t *group = session->function ? session->dispatch.threadgroup : session->run.threadgroup;
    struct contents before = {0};
    if (!keep_buffers(session, &before)) return;
    while (smaller) {
        smaller = false;
        for (int d = 0; d < 3; d++) {
            int64_t was = sizes[d], unit = by_groups || group[d] < 1 ? 1 : group[d], half = halved(was, unit);
            if (was < 2 || half == was) continue;
            sizes[d] = half;
            if (shows(session, &before, finding))
                smaller = true;
            else
                sizes[d] = was;
        }
    }
    restore_buffers(session, &before);
    clear(&before);
    fprintf(stderr, "smelt: the smallest grid that still shows the first finding (%s, line %d): %s %lld",
            finding->code, finding->line, by_groups ? "--groups" : "--grid", (long long)sizes[0]);
    for (int d = 1; d < 3 && (sizes[1] > 1 || sizes[2] > 1); d++)
        fprintf(stderr, ",%lld", (long long)(sizes[d] ? sizes[d] : 1));
    fputc('\n', stderr);
}
