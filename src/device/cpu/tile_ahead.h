/* What a product of tiles reads after the block at hand, so that an engine fetches it while it multiplies
 * (arch/tile.h). Rows of a matrix lie in different pages: no hardware fetches them in advance. */
#ifndef SMELT_DEVICE_CPU_TILE_AHEAD_H
#define SMELT_DEVICE_CPU_TILE_AHEAD_H

#include "device/cpu/arch/tile.h"

/* Runs of consecutive bytes, of which each block fetches `share`. */
struct tile_runs {
    const char *next;
    int64_t stride; /* from run to run, in bytes */
    int count, share;
};

/* The elements of so many lines and terms, to be fetched by so many blocks. None where neither lines nor
 * terms are consecutive. */
struct tile_runs tile_runs_of(const struct tile_source *source, int64_t first_line, int64_t first_term,
                              int lines, int terms, int blocks);

/* The next block's share: fills ahead[from], …, and returns the index behind the last one, at most
 * TILE_AHEAD. */
int tile_runs_take(struct tile_runs *runs, const char *ahead[TILE_AHEAD], int from);

#endif
