/* A level of vectors: included by its file, and compiled for it. Before that the file defines
 * halves_to_floats and floats_to_halves (tile_pack.h), LANES, ROWS and ROW_CASES (tile_multiply.h), and then
 * multiply_add and multiply_pairs, for DEFINE_LEVEL. */
#define PANEL (2 * LANES)
#include "device/cpu/arch/x86_64/tile_pack.h"
#include "device/cpu/arch/x86_64/tile_multiply.h"
#include "device/cpu/arch/x86_64/tile_slots.h"

/* The level and its engines. `exact` computes the blocks whose products are exact: of DEFINE_SUMS, or
 * multiply_floats where rounding once is as fast. */
#define DEFINE_LEVEL(level, exact)                                                               \
    DEFINE_SUMS(multiply_floats, VECTOR, load_floats, store_floats, spread_float, multiply_add)  \
    DEFINE_SUMS(multiply_shorts, WHOLE, load_wholes, store_wholes, spread_whole, multiply_pairs) \
    static const struct tile_engine on_floats = VECTOR_ENGINE(1, multiply_floats);               \
    static const struct tile_engine on_exacts = VECTOR_ENGINE(1, exact);                         \
    static const struct tile_engine on_shorts = VECTOR_ENGINE(2, multiply_shorts);               \
    const struct tile_level tile_level_##level = {.name = #level,                                \
                                                  .pack = pack_part,                             \
                                                  .store = store_sums,                           \
                                                  .load = load_sums,                             \
                                                  .unfold = unfold_tile,                         \
                                                  .fold = fold_tile,                             \
                                                  .engines = {[TILE_UNIT_FLOAT] = &on_floats,    \
                                                              [TILE_UNIT_EXACT] = &on_exacts,    \
                                                              [TILE_UNIT_SHORT] = &on_shorts}};
