// smelt_prelude_tensor.h with MLX's helpers.
#pragma once

#include "smelt_prelude_tensor.h"
#include "mlx_helpers.h"
