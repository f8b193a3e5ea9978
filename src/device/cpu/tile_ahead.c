#include "device/cpu/tile_ahead.h"

struct tile_runs tile_runs_of(const struct tile_source *source, int64_t first_line, int64_t first_term,
                              int lines, int terms, int blocks) {
    bool along_terms = source->term_stride == 1;
    if ((!along_terms && source->line_stride != 1) || lines <= 0 || terms <= 0) return (struct tile_runs){0};
    int64_t bits = tile_kind_bits(source->kind);
    int64_t first = source->first + first_line * source->line_stride + first_term * source->term_stride;
    struct tile_runs runs = {.next = source->data + first * bits / 8,
                             .stride = (along_terms ? source->line_stride : source->term_stride) * bits / 8,
                             .count = along_terms ? lines : terms};
    runs.share = (runs.count + blocks - 1) / blocks;
    return runs;
}

int tile_runs_take(struct tile_runs *runs, const char *ahead[TILE_AHEAD], int from) {
    for (int i = 0; i < runs->share && runs->count && from < TILE_AHEAD; i++) {
        ahead[from++] = runs->next;
        runs->next += runs->stride, runs->count--;
    }
    return from;
}
