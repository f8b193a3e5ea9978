#ifndef BELOW_SECOND_H
#define BELOW_SECOND_H
#include <metal_math>
#include "../third.h"
inline float second(float x) {
    return third(x) * 2;
}
#endif
