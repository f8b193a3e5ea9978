// <MetalPerformancePrimitives/MetalPerformancePrimitives.h>: tensor operations.
#pragma once

#include "MetalPerformancePrimitives/MPPTensorOpsMatMul2d.h"
#include "MetalPerformancePrimitives/MPPTensorOpsConvolution2d.h"
