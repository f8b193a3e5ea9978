#!/usr/bin/env python3
"""Writes the swizzles of metal::vec: every combination of components as a property, for 2, 3 and 4 components.

Usage: generate_vectors.py OUTPUT. The text is only repetition; everything else about vectors is in metal_vector.
"""
import itertools
import sys

POSITIONS = "xyzw"
COLOURS = "rgba"


def swizzles(components):
    for count in (2, 3, 4):
        for combination in itertools.product(range(components), repeat=count):
            position = "".join(POSITIONS[i] for i in combination)
            colour = "".join(COLOURS[i] for i in combination)
            values = ", ".join(POSITIONS[i] for i in combination)
            yield (f"  constexpr vec<T, {count}> __get_{position}() const "
                   f"{{ return vec<T, {count}>({values}); }}")
            writable = len(set(combination)) == count
            if writable:
                stores = " ".join(f"{POSITIONS[i]} = v.{POSITIONS[j]};" for j, i in enumerate(combination))
                yield f"  constexpr void __put_{position}(vec<T, {count}> v) {{ {stores} }}"
            put = f", put = __put_{position}" if writable else ""
            for name in (position, colour):
                yield f"  __declspec(property(get = __get_{position}{put})) vec<T, {count}> {name};"


def main():
    with open(sys.argv[1], "w", encoding="ascii") as out:
        for components in (2, 3, 4):
            out.write(f"#define __SMELT_SWIZZLES_{components} \\\n")
            out.write(" \\\n".join(swizzles(components)))
            out.write("\n\n")


main()
