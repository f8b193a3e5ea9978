#include "abi/vector_math.h"

#include <math.h>

vector_of_4_floats smelt_runtime_fma_4(vector_of_4_floats a, vector_of_4_floats b, vector_of_4_floats c) {
    vector_of_4_floats result;
    for (int lane = 0; lane < 4; lane++) result[lane] = fmaf(a[lane], b[lane], c[lane]);
    return result;
}
