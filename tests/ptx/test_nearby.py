"""Accesses that share an address, and rounds that are left of a loop: an emulator runs the PTX, and the results equal the
CPU engine's. Run as `test_nearby.py SMELT`."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from coarse import ANY, Input, Output, check, part, shown  # noqa: E402

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nearby.metal")

for w, h in part(((7, 5), (1, 1), (2, 9), (13, 4))):
    check("window", (w, h), (8, 4), [Input("int32", w * h), Output("int32", w * h), w, h], ANY, source=SOURCE)
for w in part((9, 1, 33)):
    # What no thread writes is 0 on both devices.
    check("spread", (w,), (32,), [Input("uint8", w), Output("uint32", 3 * w), w], ANY, source=SOURCE)
for n, rounds in part(((20, 3), (20, 0), (5, 9), (20, 1), (20, 2), (20, 4), (20, 7), (9, 6))):
    check("radius", (n,), (32,), [Input("int32", n), Output("int32", n), n, rounds], ANY, source=SOURCE)
for w, h in part(((9, 3), (16, 4), (23, 5))):
    check("match", (w, h), (8, 4), [Input("uint8", w * h), Input("uint8", w * h), Output("uint32", w * h), w, h], ANY, source=SOURCE)
why = shown("seen", SOURCE, "window", "--why", "--target", "sm_90a", "--grid", "64,64", "--threadgroup", "8,4")
assert "3 addresses are shared by accesses a constant apart\n" in why, why
why = shown("match", SOURCE, "match", "--why", "--target", "sm_90a", "--threadgroup", "8,4")
assert "addresses are shared by accesses a constant apart\n" in why and "loaded as the words around them" in why, why
print("nearby accesses: right")
