// What the body of a kernel has without including anything: Metal's library and MLX's helpers. Precompiled.
#pragma once

#include "smelt_prelude.h"
#include "mlx_helpers.h"
