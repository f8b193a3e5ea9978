#include "frontend/compile_time.h"

static double milliseconds(int64_t nanoseconds) {
    return 1e-6 * (double)nanoseconds;
}

static void add_row(struct text *table, const char *name, int64_t elapsed) {
    text_addf(table, "%-20s  %8.2f", name, milliseconds(elapsed));
}

/* Only smelt-cc1 reports the size of clang's output. */
static void add_stage(struct text *table, const struct compile_stage *stage) {
    add_row(table, compile_stage_name(stage->kind), stage->end - stage->start);
    text_addf(table, "  %12.2f", milliseconds(stage->processor));
    if (stage->instructions)
        text_addf(table, "  %15llu\n", (unsigned long long)stage->instructions);
    else
        text_addf(table, "  %15s\n", "-");
}

static void add_quick(struct text *table, const struct compile_times *times) {
    int64_t processor = 0;
    for (int i = 0; i < times->quick_record.count; i++) processor += times->quick_record.stages[i].processor;
    text_addf(table,
              "A first launch runs quick code, which takes %.2f ms in total and %.2f ms of a processor.\n",
              milliseconds(times->translate + times->quick_compile), milliseconds(processor));
}

void compile_times_describe(const struct compile_times *times, struct text *table) {
    const struct compile_record *record = &times->record;
    int64_t in_stages = 0;
    text_addf(table, "%-20s  %8s  %12s  %15s\n", "stage", "ms", "processor ms", "IR instructions");
    add_row(table, "translate", times->translate);
    text_addf(table, "  %12s  %15s\n", "-", "-");
    for (int i = 0; i < record->count; i++) {
        add_stage(table, &record->stages[i]);
        in_stages += record->stages[i].end - record->stages[i].start;
    }
    add_row(table, "processes and files", times->compile - in_stages);
    text_addf(table, "  %12s  %15s\n", "-", "-");
    add_row(table, "total", times->translate + times->compile);
    text_addf(table, "  %12s  %15s\n", "-", "-");
    if (times->has_quick) add_quick(table, times);
    text_addf(table, "The disk cache %s this code; the search took %.2f ms.\n",
              times->cached ? "has" : "did not have", milliseconds(times->recall));
}
