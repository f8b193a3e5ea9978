#pragma once
// Included by source_includes.metal: nested and relative includes, guards, Metal's own headers in between.
#include "below/second.h"
#include "third.h"
static inline float first(float x) {
    return second(x) + third(x);
}
