// smelt_prelude.h with Metal 4's tensors and their operations, for sources that use them. C++23: descriptors of operations
// are template arguments, and elements have several subscripts.
#pragma once

#define __METAL_VERSION__ 410
#include "smelt_prelude.h"
#include "MetalPerformancePrimitives/MetalPerformancePrimitives.h"
