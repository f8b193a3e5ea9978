#!/usr/bin/env python3
"""A program's own functions may have the names of Metal's: where the library does not take the types of a call, or the program's
function suits them better, that one is called. For every function of coverage.txt, on types of every kind.

Usage: test_own_functions.py SMELT [--print]
"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CHAPTERS = ("2.12", "6.")
NO_FUNCTIONS = ("array array_ref uniform is_uniform is_uniform_v remove_uniform_t enable_if enable_if_t conditional conditional_t "
                "integral_constant bool_constant true_type false_type declval integer_sequence index_sequence make_index_sequence "
                "index_sequence_for numeric_limits mem_flags memory_order thread_scope quad_vote simd_vote").split()

# The library has no function of two of these; of one, some.
FOREIGN = "Plain Word Box<int> Box<float4> Color float2x2 int2x2 thread_pointer array<float,3> lambda".split()
# Those it has are templates, to which a function of the program's own is preferred.
EXACT = "short3 int2 uint4 long2 bool3 uchar2 packed_short3 packed_int2 packed_uchar4 atomic<int> uniform<int> float8x8".split()
FEW = "Plain short3 packed_short3 bool3".split()  # with one, two and three arguments
METAL_OWN = [("all", "bool3", 1), ("any", "bool3", 1)]  # a program's function with these types is ambiguous, as in Metal

# Families that macros make: a few types will do.
MADE_ALIKE = ("simd_", "quad_", "pack_", "unpack_", "atomic_")

# Functions of floating-point numbers by their number of arguments; which of them take integers or no scalars.
FLOATING = {
    1: "acos acosh asin asinh atan atanh ceil cos cosh cospi exp exp2 exp10 fabs abs floor fract log log2 log10 rint round rsqrt "
       "saturate sign sin sinh sinpi sqrt tan tanh tanpi trunc length length_squared normalize",
    2: "atan2 copysign divide fdim fmax fmin fmod max min nextafter pow powr step cross distance distance_squared dot reflect",
    3: "clamp fma fmax3 fmedian3 fmin3 max3 median3 min3 mix smoothstep faceforward",
}
INTEGER = "abs max min max3 median3 min3 clamp".split()
GEOMETRIC = "length length_squared normalize cross distance distance_squared dot reflect faceforward".split()

HEAD = """#include <metal_stdlib>
using namespace metal;
struct Plain { float x, y; };
struct Word { int bits; Word() = default; Word(int bits) : bits(bits) {} operator int() const { return bits; } };
template <class T> struct Box { T value; };
enum class Color { red, green };
typedef thread float *thread_pointer;
typedef matrix<int, 2, 2> int2x2;
typedef simdgroup_matrix<float, 8, 8> float8x8;
typedef void (*lambda)(int);
template <int number> struct own {};
template <class T> T a();
template <class A, class B> constexpr bool same = is_same_v<A, B>;
"""


def functions():
    """The names of coverage.txt that are functions."""
    names, wanted = [], False
    with open(os.path.join(HERE, "coverage.txt"), encoding="utf-8") as file:
        for line in file:
            section = re.match(r"\[(\w+)\] ([\d.]+)?", line)
            if section:
                wanted = section.group(1) == "names" and (section.group(2) or "").startswith(CHAPTERS)
            elif wanted and not line.startswith("#"):
                names += line.split()
    traits = re.compile(r"(is_|make_(un)?signed|make_scalar|vec_elements|remove_|add_|underlying|decay|\w+junction_v|negation_v)")
    return [n for n in names if n not in NO_FUNCTIONS and not traits.match(n)]


class Program:
    """Declarations, and for each a check that a call takes it."""

    def __init__(self):
        self.lines, self.number = [HEAD], 0

    def own(self, declaration, call, space="{}"):
        """declaration: has RESULT in place of its type."""
        self.number += 1
        self.lines.append(space.format(declaration.replace("RESULT", f"own<{self.number}>")))
        check = f"static_assert(same<decltype({call}), own<{self.number}>>, \"{call}\");"
        self.lines.append(space.format(check))

    def function(self, name, types):
        call = f"{name}({', '.join(f'a<{t}>()' for t in types)})"
        self.own(f"static RESULT {name}({', '.join(types)});", call)

    def name(self, name):
        for kind in FEW if name.startswith(MADE_ALIKE) else FOREIGN + EXACT:
            for count in (1, 2, 3) if kind in FEW else (2,):
                if (name, kind, count) not in METAL_OWN:
                    self.function(name, [kind] * count)
        for types in (["short3", "short"], ["int2", "float"], ["int", "uint4", "uint4"], ["float3", "int2"], ["half4", "float4"],
                      ["float3", "Plain"], ["Plain", "float"], ["float4", "float4x4"], ["int2", "thread_pointer"],
                      ["half4", "half", "half"], ["device atomic<Plain> *", "Plain", "memory_order"]):
            self.function(name, types)
        # By reference and in an address space; templates.
        self.own(f"static RESULT {name}(device Box<half> &, device Box<half> &);",
                 f"{name}(a<device Box<half> &>(), a<device Box<half> &>())")
        self.own(f"template <class T> RESULT {name}(Box<T>, T);", f"{name}(a<Box<short>>(), a<short>())")
        # In a namespace Metal's are hidden, from templates and for Metal's own types, too.
        inside = f"namespace inside_{name} {{{{ {{}} }}}}"
        for count in (1, 2, 3):
            self.own(f"template <class T> RESULT {name}({', '.join(['T'] * count)});", f"{name}({', '.join(['a<float3>()'] * count)})",
                     inside)
        self.own(f"static RESULT {name}(int3, Plain);", f"{name}(a<int3>(), a<Plain>())", inside)
        self.own(f"template <class T, int N> RESULT {name}(vec<T, N>, packed_vec<T, N>);",
                 f"{name}(a<half4>(), a<packed_half4>())", inside)

    def templates(self, name, count):
        """A program's own templates beside Metal's function: it comes first where its types are those of the call, the template
        where there would be conversions."""
        lines = [f"namespace beside_{name} {{ template <class T> own<0> {name}({', '.join(['T'] * count)});",
                 f"template <class T, int N> own<0> {name}({', '.join(['vec<T, N>'] * count)}); }}",
                 f"namespace calls_{name} {{ using namespace beside_{name}; using namespace metal;"]
        vectors = [("float3", False), ("half3", False), ("bfloat3", False), ("int3", name not in INTEGER)]
        scalars = [(kind, name in GEOMETRIC) for kind in ("float", "half", "bfloat")] + [("int", name not in INTEGER)]
        for kind, own in scalars + vectors:
            call = f"{name}({', '.join([f'a<{kind}>()'] * count)})"
            # Of vectors of integers a template on vec<T, N> may be taken before Metal's function.
            if kind != "int3" or own:
                lines.append(f"static_assert({'' if own else '!'}same<decltype({call}), own<0>>, \"{call}\");")
        self.lines.append("\n".join(lines) + "}")

    def text(self):
        return "\n".join(self.lines) + "\nkernel void nothing(device int *out [[buffer(0)]]) { out[0] = 1; }\n"


def main():
    program = Program()
    for name in functions():
        program.name(name)
    for count, names in FLOATING.items():
        for name in names.split():
            program.templates(name, count)
    text = program.text()
    if "--print" in sys.argv:
        print(text)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "own.metal")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run([sys.argv[1], "show", path, "--stage", "ir"], capture_output=True, text=True, check=False)
    print(done.stderr[:20000], end="")
    sys.exit(done.returncode)


main()
