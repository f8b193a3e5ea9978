// Everything a kernel has without including anything: Metal's library and MLX's helpers. Precompiled.
#pragma once

#include "smelt_dialect.h"
#include "metal_stdlib"
#include "mlx_helpers.h"
