// <MetalPerformancePrimitives/MetalPerformancePrimitives.h>: tensor operations.
#pragma once

#include "MetalPerformancePrimitives/MPPTensorOpsMatMul2d.h"
