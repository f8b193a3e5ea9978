#!/usr/bin/env python3
"""Writes kernels' text into one C file, so that programs run from anywhere.

Usage: embed.py OUTPUT FILE…  — FILE "grid_sample_vjp.body" becomes `const char kernel_text_grid_sample_vjp[]`.
kernels/kernel_text.h declares those of the shipped kernels.
"""
import os
import sys


def main():
    output, files = sys.argv[1], sys.argv[2:]
    with open(output, "w", encoding="ascii") as out:
        for path in files:
            name = os.path.splitext(os.path.basename(path))[0]
            with open(path, "rb") as file:
                data = file.read() + b"\0"
            rows = (",".join(str(byte) for byte in data[i:i + 24]) for i in range(0, len(data), 24))
            out.write(f"extern const char kernel_text_{name}[];\n")
            out.write(f"const char kernel_text_{name}[] = {{\n" + ",\n".join(rows) + "};\n")


main()
