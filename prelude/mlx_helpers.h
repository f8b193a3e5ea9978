// MLX's helper set (start)
#pragma once
typedef half float16_t;
typedef bfloat bfloat16_t;
using namespace metal;
