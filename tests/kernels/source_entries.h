// Included by source_entries.metal.
#pragma once
#include <metal_stdlib>
#include <metal_math>
enum Index : int { A = 0, kOtherIndex = 2 };
