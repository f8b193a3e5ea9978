#!/usr/bin/env python3
"""Searches for settings of shipped operations and prints those worth shipping, as rows of src/tune/defaults.inc:

    bench/python/tuning_defaults.py --smelt build/bin/smelt --device cuda --kind sm_90 [--only matmul] [--gain 1.05]
        [--dtypes float32,float16] [--sizes 512,64x1024x1024] [--budget 60]

A row is printed if two searches find the same setting, at least --gain times as fast as the operation's own choice.
--kind is the GPU's compute capability (sm_90), or the CPU's vectors and its threads, rounded up to a power of two (avx512 16).
Run it on a machine without other work. Like any `smelt tune`, it stores the results on the machine."""
import argparse
import subprocess
import sys

# The operation, its dtypes and its sizes.
JOBS = {"cuda": [("matmul", "float32 float16 bfloat16", "512 1024 2048 4096 16x4096x4096 64x4096x4096 256x4096x4096 1024x4096x1024 "
                  "64x1024x1024 256x1024x1024 128x16384x4096 512x4096x16384 4096x64x4096 2048x2048x256")],
        "cpu": [("matmul", "float32 float16 bfloat16", "128 256 512 1024 2048 64x4096x4096 256x1024x4096 1024x64x1024 1024x1024x64"),
                ("attention", "float32", "16x512x512x64 16x1024x1024x64 16x1024x1024x128")]}


def search(smelt, device, operation, dtype, sizes, budget):
    """The numbers of the fastest setting, and how many times as fast it is as the operation's own choice."""
    command = [smelt, "tune", operation, "--sizes", sizes, "--dtype", dtype, "--device", device, "--again",
               "--budget", str(budget)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    tried, chosen = {}, None
    for line in done.stdout.splitlines()[1:]:
        words = line.split()
        if line.startswith(operation):
            chosen = words
        else:
            tried[words[0]] = words[1]
    own = next(iter(tried.values()), "skipped")  # the operation's own choice is tried first
    if chosen is None or own == "skipped":
        sys.exit(f"{' '.join(command)}: nothing to compare with in\n{done.stdout}")
    return chosen[-3].rstrip(","), float(own) / float(chosen[-2])


def key_of(dtype, sizes):
    numbers = [int(size) for size in sizes.split("x")]
    numbers = numbers * 3 if len(numbers) == 1 else numbers  # rows, columns and depth of a product
    return f"{dtype} " + "x".join(str(1 << (number - 1).bit_length()) for number in numbers)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smelt", default="build/bin/smelt")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--kind", required=True)
    parser.add_argument("--only")
    parser.add_argument("--gain", type=float, default=1.05)
    parser.add_argument("--dtypes", help="instead of all")
    parser.add_argument("--sizes", help="instead of the operation's list")
    parser.add_argument("--budget", type=float, default=60, help="seconds of each search")
    options = parser.parse_args()
    for operation, dtypes, all_sizes in JOBS["cpu" if options.device.startswith("cpu") else "cuda"]:
        if options.only not in (None, operation):
            continue
        for dtype in (options.dtypes or dtypes).replace(",", " ").split():
            for sizes in (options.sizes or all_sizes).replace(",", " ").split():
                choice, gain = search(options.smelt, options.device, operation, dtype, sizes, options.budget)
                key = key_of(dtype, sizes)
                if gain >= options.gain and not choice.startswith("0,"):
                    again, least = search(options.smelt, options.device, operation, dtype, sizes, options.budget)
                    if again == choice and least >= options.gain:
                        print(f'ROW("{options.kind}", "{operation}", "{key}", {choice.replace(",", ", ")}) '
                              f"/* {min(gain, least):.2f} times as fast */", flush=True)
                        continue
                print(f"{operation} {key}: {choice} is {gain:.2f} times as fast: no row", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
