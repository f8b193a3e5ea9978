#include "graph/record.h"

#include <stdlib.h>
#include <string.h>

static const char *place_of(smelt_array *const *inputs, int input_count, smelt_array *const *outputs, int i) {
    const smelt_array *array = i < input_count ? inputs[i] : outputs ? outputs[i - input_count] : NULL;
    return array ? array->data : NULL;
}

static void clear(struct records *records, struct record *record) {
    smelt_recording_release(record->recording);
    for (int i = 0; i < records->arrays && record->kept; i++) smelt_array_release(record->kept[i]);
    free(record->kept);
    record->kept = NULL;
    record->recording = NULL;
}

struct record *record_find(struct records *records, smelt_array *const *inputs, int input_count,
                           smelt_array *const *outputs) {
    for (int r = 0; r < records->count; r++) {
        int same = 0;
        while (same < records->arrays &&
               records->items[r].places[same] == place_of(inputs, input_count, outputs, same))
            same++;
        if (same == records->arrays) return &records->items[r];
    }
    struct record *record = &records->items[records->next];
    if (!record->places) record->places = calloc((size_t)records->arrays + 1, sizeof *record->places);
    if (!record->places) return NULL; /* without room, nothing is recorded */
    clear(records, record);
    for (int i = 0; i < records->arrays; i++) record->places[i] = place_of(inputs, input_count, outputs, i);
    if (records->next == records->count) records->count++;
    records->next = (records->next + 1) % RECORDS;
    return NULL;
}

smelt_status record_keep(struct records *records, struct record *record, smelt_recording *recording,
                         smelt_array *const *inputs, int input_count, smelt_array *const *outputs) {
    record->kept = calloc((size_t)records->arrays + 1, sizeof *record->kept);
    if (!record->kept) return fail_out_of_memory((size_t)records->arrays * sizeof *record->kept);
    for (int i = 0; i < records->arrays; i++)
        record->kept[i] = smelt_array_retain(i < input_count ? inputs[i] : outputs[i - input_count]);
    record->recording = recording;
    records->made++;
    return SMELT_OK;
}

void records_free(struct records *records) {
    for (int r = 0; r < records->count; r++) {
        clear(records, &records->items[r]);
        free(records->items[r].places);
    }
    smelt_stream_release(records->stream);
}
