#!/usr/bin/env python3
"""Random kernels with tensor operations, on both CPU engines, against NumPy in float64 (docs/fuzzing.md).

    fuzz_tensors.py [--seed N] [--count N] [--seconds S] [--device NAME,…] [--show] [--plant OLD=NEW]

Kernel number N depends on N alone. A kernel that fails is printed with its seed; --seed N --count 1 --show prints its text.
--plant replaces text in each kernel, to see that differences are found. The exit status is 0 if all results are right.
"""
import argparse
import sys
import time

import numpy as np
import smelt
from program import Program


def difference(program, device, library):
    """None, or what is wrong with the results."""
    outputs = program.run(library, device)
    for name, (got, expected, bound) in outputs.items():
        got = got.astype(np.float64)
        wrong = ~(np.abs(got - expected) <= bound) & ~(np.isnan(got) & np.isnan(expected))
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            return f"{name}{list(at)} is {got[at]!r}, expected {expected[at]!r} within {np.broadcast_to(bound, got.shape)[at]:.3g} ({int(wrong.sum())} of {got.size} differ)"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000000)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--device", default="cpu,cpu-scalar")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--plant", metavar="OLD=NEW")
    options = parser.parse_args()
    begin, ran, failed = time.monotonic(), 0, 0
    for seed in range(options.seed, options.seed + options.count):
        if time.monotonic() - begin > options.seconds:
            break
        program = Program(np.random.default_rng(seed))
        text = program.text
        if options.plant:
            text = text.replace(*options.plant.split("=", 1))
        if options.show:
            print(text)
        ran += 1
        for device in options.device.split(","):
            try:
                wrong = difference(program, device, smelt.library(text))
            except (smelt.Error, ValueError, TypeError) as error:
                wrong = f"fails: {error}"
            if wrong:
                failed += 1
                print(f"seed {seed}, {program.summary}, on {device}: {wrong}\n{'' if options.show else text}", flush=True)
                break
    print(f"{ran} kernels, {failed} of them wrong")
    return 1 if failed or not ran else 0


sys.exit(main())
