"""Chains of guarded loads: an emulator runs the PTX, and the results equal the CPU engine's. Run as `test_guards.py SMELT`.

Lanes vote which form a chain takes. Which of them vote together is open, so these kernels run on threads that are
scheduled at random, too (warps.py)."""
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from coarse import PLAIN, Input, Machine, Output, check, part, shown  # noqa: E402
from warps import Warps  # noqa: E402

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guards.metal")
FOUR_LOADS = r"(ld\.global(?:(?!st\.shared|bra)[\s\S])*){4}"

NUMBERS = random.Random(3)
MACHINES = (Machine, lambda: Warps(NUMBERS))

for rows, columns, depth in part(((16, 16, 16), (8, 9, 24), (13, 21, 11), (1, 1, 1))):
    groups = -(-rows // 8) * -(-columns // 8)
    for machine in MACHINES:
        check("tiles", (32 * groups,), (32,), [Input("float32", rows * depth, 9), Input("float32", depth * columns, 9), Output("float32", rows * columns),
                                             rows, columns, depth], PLAIN, loads=FOUR_LOADS, source=SOURCE, machine=machine)
for n in part((40, 0, 64, 5, 31, 80)):
    for machine in MACHINES:
        check("between", (32,), (32,), [Input("int32", 80), Input("int32", 80), Output("int32", 64), n], PLAIN, source=SOURCE, machine=machine)
# All lanes multiply together between the guarded loads at an operand's edge, so the chain gets no form that only some lanes take.
TENSORS = os.path.join(os.path.dirname(SOURCE), "..", "ml", "tensor_single.metal")
check("spaces", (32,), (32,), [Input("float16", 16 * 24, 9), Input("float16", 24 * 32, 9), Output("float32", 16 * 32), Output("float32", 3 * 32)], PLAIN,
      source=TENSORS)
why = shown("seen", SOURCE, "tiles", "--why", "--target", "sm_90a", "--grid", "32", "--threadgroup", "32")
assert "vote.sync.all" in shown("seen", SOURCE, "tiles", "--stage", "ptx", "--target", "sm_90a", "--grid", "32", "--threadgroup", "32")
assert "4 guarded loads are begun together if all guards hold\n" in why, why
print("guarded loads: right")
