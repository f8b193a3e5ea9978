/* Blocks of sums in registers of 512 bits. */
#include <stdbool.h>
#include <string.h>

#define LANES 16
#define ROWS 12
#define ROW_CASES ROW_CASES_12
#define DEPTH 256
#define FETCHES true
#include "device/cpu/arch/x86_64/tile_multiply.h"
