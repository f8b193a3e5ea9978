#!/usr/bin/env python3
"""Writes the swizzles of metal::vec and metal::packed_vec: every combination of components as a property.

Usage: generate_vectors.py OUTPUT. The text is only repetition; everything else about vectors is in metal_vector.
"""
import itertools
import sys

POSITIONS = "xyzw"
COLOURS = "rgba"


def property_of(kind, name, source, writable):
    put = f", put = __put_{source}" if writable else ""
    return f"  __declspec(property(get = __get_{source}{put})) {kind} {name};"


def components(count):
    """x, y, z, w are members; r, g, b, a are the same by another name."""
    for position, colour in zip(POSITIONS[:count], COLOURS):
        yield f"  constexpr T __get_{position}() const {{ return {position}; }}"
        yield f"  constexpr void __put_{position}(T v) & {{ {position} = v; }}"
        yield property_of("T", colour, position, True)


def swizzles(count):
    for length in (2, 3, 4):
        kind = f"vec<T, {length}>"
        for combination in itertools.product(range(count), repeat=length):
            position = "".join(POSITIONS[i] for i in combination)
            colour = "".join(COLOURS[i] for i in combination)
            values = ", ".join(position)
            yield f"  __SMELT_BY_COMPONENT constexpr {kind} __get_{position}() const {{ return {kind}({values}); }}"
            writable = len(set(combination)) == length
            if writable:
                stores = " ".join(f"{p} = v.{POSITIONS[j]};" for j, p in enumerate(position))
                yield f"  __SMELT_BY_COMPONENT constexpr void __put_{position}({kind} v) & {{ {stores} }}"
            yield property_of(kind, position, position, writable)
            yield property_of(kind, colour, position, writable)


def parts(count):
    """Halves and every other component, as clang has them for its own vectors; Metal's documents do not name them."""
    def kind(source):
        return f"vec<T, {len(source)}>" if len(source) > 1 else "T"
    names = {2: {"lo": "x", "hi": "y", "even": "x", "odd": "y"}, 3: {"lo": "xy", "even": "xz"},
             4: {"lo": "xy", "hi": "zw", "even": "xz", "odd": "yw"}}
    for name, source in names.get(count, {}).items():
        yield property_of(kind(source), name, source, True)


def main():
    with open(sys.argv[1], "w", encoding="ascii") as out:
        for count in (1, 2, 3, 4):
            out.write(f"#define __SMELT_SWIZZLES_{count} \\\n")
            out.write(" \\\n".join([*components(count), *swizzles(count), *parts(count)]))
            out.write("\n\n")


main()
