#!/usr/bin/env python3
"""Random index expressions: normal runs must find every access that misses its array, as a plain model does.

Usage: bounds.py [KERNELS] [FIRST_SEED] [--device cpu|cpu-scalar] [--seconds S] [--show SEED]

Each kernel has a few accesses of device, constant, threadgroup and private arrays, whose indices come from sums that
wrap around, narrow types, negative numbers, large strides, loops, helper functions, chosen pointers, structures and
vectors, under conditions and after early returns. It runs with several sets of numbers, some of which keep all
accesses inside. A model in Python executes the threads one after the other and lists the accesses that miss. The run
must fail if there is one, name one of them with its line, index and thread, and change nothing that the model does
not; otherwise it must store exactly what the model stores. SMELT_CPU and the like apply.
"""
import argparse
import os
import random
import re
import sys
import time

os.environ.setdefault("SMELT_TIERS", "0")
import numpy as np
import smelt
from smelt import library

WIDTH = {"uint": 32, "int": 32, "ulong": 64, "long": 64, "ushort": 16, "short": 16, "uchar": 8, "char": 8}
PARAMETERS = 6
DEVICE = "cpu"  # --device
GUARD = 4096
ELEMENTS = {"float": 4, "int": 4, "uchar": 1, "ushort": 2, "long": 8, "float4": 16, "float2": 8, "pair": 12, "packed_float3": 12}
MESSAGE = re.compile(r"(writes|reads) (.+) at .*:(\d+), (?:but|which has).*\(threads? (\d+)(?: to (\d+))? of threadgroup \((\d+), (\d+), (\d+)\)\)")


def wrap(value, kind):
    width = WIDTH[kind]
    value &= (1 << width) - 1
    return value if kind.startswith("u") or value < 1 << (width - 1) else value - (1 << width)


def result(v, value, kind):
    """Of a sum or product: that of signed numbers is undefined if it overflows."""
    wrapped = wrap(value, kind)
    if wrapped != value and not kind.startswith("u"):
        v["overflows"] = True
    return wrapped


# ---- Expressions: text, kind, and a function of the thread's variables.

class Value:
    def __init__(self, text, kind, of):
        self.text, self.kind, self.of = text, kind, of

    def to(self, kind):
        if kind == self.kind:
            return self
        return Value(f"{kind}({self.text})", kind, lambda v: wrap(self.of(v), kind))


class Kernel:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.lines, self.run = [], []  # text; functions of the state
        self.names = {}
        self.grid2 = self.r.random() < 0.2
        self.arrays = {
            "o": (self.r.choice(["float", "int", "uchar", "ushort", "long", "float4", "float2", "pair", "packed_float3"]), "device"),
            "d": (self.r.choice(["float", "int", "uchar", "ushort", "long", "float4", "float2", "pair", "packed_float3"]), "device const"),
            "c": (self.r.choice(["float", "int", "uchar"]), "constant"),
            "t": (self.r.choice(["float", "int", "uchar"]), "threadgroup"),
            "p": ("int", "thread"),
        }
        self.local_sizes = {"t": self.r.choice([8, 33, 64, 100]), "p": self.r.choice([4, 7, 16])}
        self.loops = 0
        self.make()

    # ---- Values.

    def leaf(self):
        r = self.r
        choice = r.random()
        if choice < 0.45:
            return Value("i", "uint", lambda v: v["i"])
        if choice < 0.55:
            return Value("me", "uint", lambda v: v["me"])
        if choice < 0.6 and self.grid2:
            return Value("g.y", "uint", lambda v: v["y"])
        if choice < 0.9:
            n = r.randrange(PARAMETERS)
            kind = r.choice(["uint", "int", "uint", "int", "ulong", "long"])
            return Value(f"{kind}(P[{n}])", kind, lambda v: wrap(v["P"][n], kind))
        c = r.choice([0, 1, 2, 3, 5, 8, 64, 255, 1 << 16, 0x7fffffff, 0xffffffff])
        return Value(f"{c}u", "uint", lambda v: c)

    def value(self, depth):
        r = self.r
        names = list(self.names)
        if names and r.random() < 0.35:
            name = r.choice(names)
            return Value(name, self.names[name], lambda v: v[name])
        if depth == 0:
            return self.leaf()
        a, b = self.value(depth - 1), self.value(depth - 1)
        kind = r.choice(["uint", "uint", "int", "int", "ulong", "long"])
        a, b = a.to(kind), b.to(kind)
        op = r.choice(["+", "+", "+", "-", "-", "*", "&", "%", ">>", "narrow", "select", "min", "max", "xor", "<<"])
        x, y = a.of, b.of
        if op in "+-*":
            f = {"+": lambda p, q: p + q, "-": lambda p, q: p - q, "*": lambda p, q: p * q}[op]
            return Value(f"({a.text} {op} {b.text})", kind, lambda v: result(v, f(x(v), y(v)), kind))
        if op in ("&", "xor"):
            c = r.choice([1, 7, 15, 31, 63, 255])
            if op == "xor":
                return Value(f"({a.text} ^ {kind}({c}))", kind, lambda v: wrap(x(v) ^ c, kind))
            return Value(f"({a.text} & {kind}({c}))", kind, lambda v: x(v) & c)
        if op == "%":
            c = r.choice([3, 8, 17, 32, 64])
            def rest(v):
                n = abs(x(v)) % c
                return -n if x(v) < 0 else n
            return Value(f"({a.text} % {kind}({c}))", kind, rest)
        if op in (">>", "<<"):
            c = r.randint(1, 4)
            if op == ">>":
                return Value(f"({a.text} >> {c})", kind, lambda v: x(v) >> c)
            return Value(f"({a.text} << {c})", kind, lambda v: result(v, x(v) << c, kind))
        if op == "narrow":
            small = r.choice(["ushort", "short", "uchar", "char"])
            return Value(f"{kind}({small}({a.text}))", kind, lambda v: wrap(wrap(x(v), small), kind))
        if op in ("min", "max"):
            f = min if op == "min" else max
            return Value(f"{op}({a.text}, {b.text})", kind, lambda v: f(x(v), y(v)))
        text, condition = self.condition()
        return Value(f"({text} ? {a.text} : {b.text})", kind, lambda v: x(v) if condition(v) else y(v))

    def condition(self):
        r = self.r
        a = self.value(r.choice([0, 0, 1]))
        c = r.choice([1, 2, 7, 16, 31, 32, 40])
        kind = a.kind
        op = r.choice(["<", "<", "<=", ">", ">=", "!=", "=="])
        f = {"<": lambda p: p < c, "<=": lambda p: p <= c, ">": lambda p: p > c, ">=": lambda p: p >= c,
             "!=": lambda p: p != c, "==": lambda p: p == c}[op]
        return f"{a.text} {op} {kind}({c})", lambda v: f(a.of(v))

    # ---- Accesses.

    def index(self):
        """An index near the array, mostly: what a user would write, with numbers that may lead away."""
        r = self.r
        base = self.value(r.choice([0, 1, 1, 2]))
        if base.kind == "ushort":
            base = base.to("uint")  # sums of narrow numbers are int
        if r.random() < 0.5:
            kind = r.choice(["ulong", "long", "uint", "int", base.kind])
            base = base.to(kind)
        if r.random() < 0.6:
            c = r.choice([1, 1, 2, 3, 5, 31, -1, -1, -2, -5])
            kind = base.kind
            base = Value(f"({base.text} {'-' if c < 0 else '+'} {kind}({abs(c)}))", kind, lambda v, b=base: result(v, b.of(v) + c, kind))
        return base

    def access(self, depth):
        """A statement that accesses one array."""
        r = self.r
        name = r.choice(["o", "o", "o", "o", "d", "d", "d", "c", "t", "p"])
        kind, space = self.arrays[name]
        index = self.index()
        offset = None
        if name in "odc" and r.random() < 0.35:
            offset = self.value(r.choice([0, 0, 1]))
        other = name == "o" and offset is None and r.random() < 0.15
        size = ELEMENTS[kind]
        low, bytes_ = 0, size
        member = ""
        if kind == "float4" and r.random() < 0.6:
            m = r.randrange(4)
            member, low, bytes_ = "." + "xyzw"[m], 4 * m, 4
        elif kind == "float2" and r.random() < 0.6:
            m = r.randrange(2)
            member, low, bytes_ = "." + "xy"[m], 4 * m, 4
        elif kind == "pair":
            member, low, bytes_ = r.choice([(".x", 0, 4), (".y", 4, 4), (".z", 8, 2), (".w", 10, 1)])
        elif kind == "packed_float3":
            m = r.randrange(3)
            member, low, bytes_ = f"[{m}]", 4 * m, 4
        if other:
            text, condition = self.condition()
            pointer = f"({text} ? o : o2)"
        elif offset is not None:
            pointer, condition = f"({name} + {offset.text})", None
        else:
            pointer, condition = name, None
        style = r.random()
        if style < 0.15 and name in "odc":
            helper = "at_" + name
            element = f"(*{helper}({pointer}, {index.text}))"
        elif style < 0.25:
            element = f"(*({pointer} + {index.text}))"
        else:
            element = f"{pointer}[{index.text}]"
        store = name in ("o", "t", "p") and r.random() < (0.7 if name == "o" else 0.5)
        atomic = store and name == "o" and kind == "int" and not other and r.random() < 0.3
        if atomic:
            text = f"atomic_fetch_or_explicit((device atomic_int *)&{element}, 1, memory_order_relaxed);"
        elif store:
            scalar = "1" if kind not in ("float4", "float2", "packed_float3") or member else f"{kind}(1)"
            text = f"{element}{member} = {scalar};"
        else:
            one = f"{element}{member}"
            if not member and kind in ("float4", "float2"):
                one = f"({one}.x + {one}.{'w' if kind == 'float4' else 'y'})"
                bytes_ = size
            text = f"sum += float({one});"
        line = len(self.lines) + 1
        self.lines.append("  " * depth + text)

        def run(state, v):
            target = name
            if other and not condition(v):
                target = "o2"
            at = index.of(v) + (offset.of(v) if offset is not None else 0)
            address = at * size + low
            state.touch(target, address, bytes_, line, at, store, v)
        return run

    def statement(self, depth):
        r = self.r
        choice = r.random()
        if choice < 0.6 or depth > 2:
            return self.access(depth)
        if choice < 0.75:
            value = self.value(2)
            name = f"x{len(self.lines)}"
            self.lines.append("  " * depth + f"{value.kind} {name} = {value.text};")
            self.names[name] = value.kind

            def run(state, v):
                v[name] = value.of(v)
            return run
        if choice < 0.85:
            text, condition = self.condition()
            self.lines.append("  " * depth + f"if ({text}) {{")
            body = self.block(depth + 1)
            self.lines.append("  " * depth + "}")

            def run(state, v):
                if condition(v):
                    body(state, v)
            return run
        if choice < 0.88 and depth == 1:
            text, condition = self.condition()
            self.lines.append("  " * depth + f"if ({text}) {{ result[i] = sum; return; }}")

            def run(state, v):
                if condition(v):
                    raise StopIteration
            return run
        return self.loop(depth)

    def loop(self, depth):
        r = self.r
        name = f"k{self.loops}"
        self.loops += 1
        kind = r.choice(["uint", "int", "uint", "int", "ulong", "ushort"])
        first = self.value(r.choice([0, 1])).to(kind)
        step = self.r.choice([1, 1, 1, 2, 3, 7, 32, -1, -1, -2, 1 << 10])
        rounds = self.r.randint(1, 6)
        form = r.random()
        if form < 0.5:
            n = f"n{self.loops}"
            self.lines.append("  " * depth + f"{kind} {name} = {first.text}; for (int {n} = 0; {n} < {rounds}; {n}++, {name} += {step}) {{")
            ends = None
        elif form < 0.8:
            bound = self.value(r.choice([0, 1])).to(kind)
            op = "<" if step > 0 else ">"
            ends = (lambda k, v: k < bound.of(v)) if step > 0 else (lambda k, v: k > bound.of(v))
            self.lines.append("  " * depth + f"for ({kind} {name} = {first.text}; {name} {op} {bound.text}; {name} += {step}) {{")
        else:
            wrap_text = f"{kind}({first.text} + {kind}({step * rounds}))"
            ends = lambda k, v: k != result(v, first.of(v) + step * rounds, kind)
            self.lines.append("  " * depth + f"for ({kind} {name} = {first.text}; {name} != {wrap_text}; {name} += {step}) {{")
        self.names[name] = kind
        body = self.block(depth + 1)
        del self.names[name]
        self.lines.append("  " * depth + "}")

        def run(state, v):
            v[name] = first.of(v)
            count = 0
            while ends(v[name], v) if ends else count < rounds:
                body(state, v)
                count += 1
                if count > 40:
                    raise TooLong
                v[name] = wrap(v[name] + step, kind) if kind == "ushort" else result(v, v[name] + step, kind)
        return run

    def block(self, depth):
        names = dict(self.names)
        steps = [self.statement(depth) for _ in range(self.r.choice([1, 1, 2, 3]))]
        self.names = names

        def run(state, v):
            for step in steps:
                step(state, v)
        return run

    def make(self):
        types = {name: kind for name, (kind, _) in self.arrays.items()}
        self.lines += [
            "#include <metal_stdlib>", "using namespace metal;",
            "struct pair { float x; int y; ushort z; uchar w; };",
        ]
        for name, space in (("o", "device"), ("d", "device const"), ("c", "constant")):
            self.lines.append(f"template <typename I> {space} {types[name]} *at_{name}({space} {types[name]} *p, I n) {{ return p + n; }}")
        position = "uint2 g" if self.grid2 else "uint i"
        self.lines += [
            f"kernel void k(device {types['o']} *o [[buffer(0)]], device {types['o']} *o2 [[buffer(1)]], device const {types['d']} *d [[buffer(2)]],",
            f"              constant {types['c']} *c [[buffer(3)]], device const long *P [[buffer(4)]], device float *result [[buffer(5)]],",
            f"              {position} [[thread_position_in_grid]], uint me [[thread_index_in_threadgroup]]) {{",
            f"  threadgroup {types['t']} t[{self.local_sizes['t']}]; int p[{self.local_sizes['p']}];",
            f"  for (int z = 0; z < {self.local_sizes['p']}; z++) p[z] = z;",
            f"  if (me == 0) for (int z = 0; z < {self.local_sizes['t']}; z++) t[z] = 0;",
            "  threadgroup_barrier(mem_flags::mem_threadgroup);",
            "  float sum = 0;",
        ]
        if self.grid2:
            self.lines.append("  uint i = g.x + 16 * g.y;")
        self.steps = [self.statement(1) for _ in range(self.r.choice([1, 1, 1, 2, 3, 5]))]
        self.lines += [f"  for (int z = 0; z < {self.local_sizes['p']}; z++) sum += p[z];", "  result[i] = sum;", "}"]

    def text(self):
        return "\n".join(self.lines) + "\n"


class TooLong(Exception):
    pass


class State:
    def __init__(self, sizes):
        self.sizes = sizes  # bytes
        self.missed, self.stored, self.unclear = {}, {name: set() for name in sizes}, False

    def touch(self, name, address, count, line, index, store, v):
        size = self.sizes[name]
        wrapped = address & ((1 << 64) - 1)
        if wrapped != address and wrapped + count <= size:
            self.unclear = True  # 64 bits wrapped around: either answer
        if address < 0 or address + count > size:
            self.missed.setdefault((name, line), set()).add((v["thread"], index))
        elif store:
            self.stored[name].update(range(address, address + count))


POOL = [0, 1, 2, 3, 5, 7, 8, 16, 31, 32, 33, 63, 64, 100, -1, -2, -3, -5, -8, -16, -31, -32, -33, -64, 0xffff, 0x10000, 0x7fff,
        0x7fffffff, 0x80000000, 0x7ffffff0, 0x7fffffe0, -0x80000000, -0x7fffffff, 0xffffffff, 0xfffffff0, 0xffffffe0,
        0xfffffffe, 1 << 32, (1 << 32) + 3, -(1 << 32), 1 << 40, 1 << 62, -(1 << 63), (1 << 63) - 1, 1 << 30, 1 << 28, 0x3fffffff, 0x40000000]


def draw(r, n):
    if n == 0:
        return [r.choice([0, 0, 1, 2, 3]) for _ in range(PARAMETERS)]
    if n == 1:
        return [r.choice(POOL[:12]) for _ in range(PARAMETERS)]
    if n < 4:
        return [r.choice(POOL) if r.random() < 0.2 else r.choice(POOL[:6]) for _ in range(PARAMETERS)]
    return [r.choice(POOL) if r.random() < 0.6 else r.choice(POOL[:20]) for _ in range(PARAMETERS)]


def guarded(elements, size):
    memory = np.full(2 * GUARD + elements * size, 0xA5, np.uint8)
    view = memory[GUARD:GUARD + elements * size]
    view[:] = 0
    return memory, view


class Failure(Exception):
    pass


def check(kernel, function, r, n):
    parameters = draw(r, n)
    group = r.choice([1, 8, 32, 32, 33, 64])
    threads = group * r.choice([1, 1, 2]) - r.choice([0, 0, 0, 1 if group > 1 else 0])
    dims, groups = ((16, max(1, threads // 16)), (16, max(1, min(4, threads // 16)))) if kernel.grid2 else ((threads, 1), (group, 1))
    total = dims[0] * dims[1]
    elements = {name: r.choice([32, 40, 64, 100, 200]) for name in ("o", "o2", "d", "c")}
    kinds = {name: kernel.arrays["o" if name == "o2" else name][0] for name in elements}
    memory = {name: guarded(elements[name], ELEMENTS[kinds[name]]) for name in elements}
    sizes = {name: elements[name] * ELEMENTS[kinds[name]] for name in elements}
    sizes |= {name: kernel.local_sizes[name] * ELEMENTS[kernel.arrays[name][0]] for name in ("t", "p")}
    state = State(sizes)
    # The model.
    for y in range(dims[1]):
        for x in range(dims[0]):
            gx, gy = x // groups[0], y // groups[1]
            inside = (x % groups[0]) + (y % groups[1]) * min(groups[0], dims[0] - gx * groups[0])
            v = {"i": x + 16 * y if kernel.grid2 else x, "y": y, "me": inside, "P": parameters, "thread": (inside, gx, gy)}
            try:
                for step in kernel.steps:
                    step(state, v)
            except StopIteration:
                pass
            except TooLong:
                return None
            state.unclear |= v.get("overflows", False)
    P = np.array([wrap(p, "long") for p in parameters], np.int64)
    guard_result, result = guarded(total, 4)
    keywords = {"threads": dims if kernel.grid2 else dims[0], "group_size": groups if kernel.grid2 else groups[0]}
    message = None
    try:
        function(memory["o"][1], memory["o2"][1], memory["d"][1], memory["c"][1], P, result, device=DEVICE, **keywords)
    except smelt.Error as error:
        message = str(error)
    # The verdict.
    where = f"numbers {parameters}, {keywords}, elements {elements}"
    for name, (whole, view) in memory.items():
        if (whole[:GUARD] != 0xA5).any() or (whole[GUARD + view.size:] != 0xA5).any():
            raise Failure(f"memory around {name} has changed; {where}")
        changed = set(np.flatnonzero(view != 0).tolist())
        if not changed <= state.stored[name] and not state.unclear:
            raise Failure(f"{name} has changed at bytes {sorted(changed - state.stored[name])[:8]}; {where}; message {message}; "
                          f"missed {str(state.missed)[:600]}")
    if state.unclear:
        return None
    if message is None:
        # Accesses of a private array may be gone before the tests are made (docs/checking.md), and with them what is computed from
        # the value.
        if state.missed and all(array != "p" for array, _ in state.missed):
            raise Failure(f"no error, but {str(state.missed)[:600]} miss; {where}")
        for name, (_, view) in memory.items():
            changed = set(np.flatnonzero(view != 0).tolist())
            if kinds[name] in ("uchar", "ushort", "int", "long"):
                least = {byte for byte in state.stored[name] if byte % ELEMENTS[kinds[name]] == 0}
                if not least <= changed:
                    raise Failure(f"{name} lacks stores at {sorted(least - changed)[:8]}; {where}")
        return False
    found = MESSAGE.search(message)
    if not found:
        raise Failure(f"an unexpected message: {message}; {where}; missed {str(state.missed)[:600]}")
    if not state.missed:
        raise Failure(f"a false error: {message}; {where}")
    what, line = found[2], int(found[3])
    name, index = re.fullmatch(r"(\w+)\[(-?\d+)\]", what).groups() if "[" in what else (None, re.search(r"-?\d+", what)[0])
    if line == 0:
        return "no line"
    candidates = [one for (array, at), ones in state.missed.items() for one in ones if at == line and name in (None, array)]
    first, last = int(found[4]), int(found[5] or found[4])
    place = (int(found[6]), int(found[7]))
    threads_named = [c for c in candidates if first <= c[0][0] <= last and (c[0][1], c[0][2]) == place]
    def same(model):  # narrow names: addresses modulo 2^64
        size = ELEMENTS[kinds[name]] if name in kinds else 4
        distance = (model - int(index)) * size % (1 << 64)
        return distance < size or distance > (1 << 64) - size
    if not any(same(c[1]) for c in threads_named):
        if any((c[1] - int(index)) % (1 << 32) == 0 for c in threads_named):
            return "sign"
        raise Failure(f"named wrongly: {message}; {where}; missed {str(state.missed)[:900]}")
    if name and not any(same(c[1]) and c[1] == int(index) for c in threads_named):
        return "other"
    return True


def main():
    global DEVICE
    parser = argparse.ArgumentParser()
    parser.add_argument("kernels", nargs="?", type=int, default=400)
    parser.add_argument("seed", nargs="?", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--show", type=int)
    parser.add_argument("--failures", type=int, default=20)
    arguments = parser.parse_args()
    DEVICE = arguments.device
    if arguments.show is not None:
        for number, line in enumerate(Kernel(arguments.show).lines, 1):
            print(f"{number:3} {line}")
        return 0
    start, failures, counts = time.monotonic(), 0, {}
    made = 0
    for seed in range(arguments.seed, arguments.seed + arguments.kernels):
        if time.monotonic() - start > arguments.seconds or failures >= arguments.failures:
            break
        kernel = Kernel(seed)
        made += 1
        try:
            function = library(kernel.text()).k
        except smelt.Error as error:
            print(f"seed {seed}: does not compile: {error}")
            failures += 1
            continue
        r = random.Random(~seed)
        for n in range(6):
            try:
                verdict = check(kernel, function, r, n)
            except Failure as failure:
                print(f"seed {seed}, set {n}: {failure}", flush=True)
                failures += 1
                verdict = "failed"
                break
            counts[verdict] = counts.get(verdict, 0) + 1
    print(f"{made} kernels, {sum(counts.values())} launches: {counts}, {failures} failed; {time.monotonic() - start:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
