"""What LLVM or NVIDIA's assembler gets wrong of numbers unless its input avoids it. Run as `test_numbers.py SMELT`.

LLVM's faults are seen by an emulator that runs the PTX. The assembler's are not: the PTX must not hold what it gets wrong."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cases import KERNELS, run_case, show  # noqa: E402

NARROW = ["-i", "a=arange:int32:64", "--grid", "64", "--threadgroup", "64"]


def check_no_narrow(name, outputs):
    text = show(os.path.join(KERNELS, name), NARROW + [word for output in outputs for word in ("-o", output + ":int32:64")])
    found = re.search(r"\b(neg|abs|min|max)\.[su]16\b", text)
    assert not found, f"{name}: {found[0]}, which the assembler gets wrong of -32768, or compared"
    assert re.search(r"\b(neg|abs|min|max)\.[su]32\b", text), f"{name}: there is nothing to see"


run_case("type_zero_signs")
run_case("type_limits")
run_case("math_exp_negative")
run_case("private_ring")
run_case("type_conversions_widened")
run_case("type_narrow_extremes")
run_case("type_narrow_saturated")
run_case("memory_bytes_and_vectors")
check_no_narrow("type_narrow_extremes.body", ("compared", "negated", "bytes"))
check_no_narrow("type_narrow_saturated.body", ("taken", "away", "large"))
print("numbers: right")
