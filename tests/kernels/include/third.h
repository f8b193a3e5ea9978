#pragma once
#include <metal_stdlib>
#ifdef __METAL_VERSION__
#define PROGRAM_CONSTANT constant
#else
#include <stdio.h>
#endif
PROGRAM_CONSTANT float kThird = 1.0;
inline float third(float x) {
    return metal::exp(x) * kThird;
}
