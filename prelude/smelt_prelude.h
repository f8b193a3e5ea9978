// What every kernel has without including anything: the dialect and Metal's library. Precompiled.
#pragma once

#include "smelt_dialect.h"
#include "metal_stdlib"
