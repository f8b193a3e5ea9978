/* Blocks of sums in registers of 512 bits. */
#include <string.h>

#define LANES 16
#define ROWS 12
#define ROW_CASES ROW_CASES_12
typedef float VECTOR __attribute__((vector_size(64)));
typedef int32_t WHOLE __attribute__((vector_size(64)));

#include "device/cpu/arch/x86_64/tile_multiply.h"
