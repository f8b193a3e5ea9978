"""Random kernels of independent threads, coarsened, as PTX that an emulator runs, against the CPU engine. Run as
`test_coarse_random.py SMELT [FIRST COUNT]`: seeds."""
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import coarse  # noqa: E402

TYPES = {"int": "int32", "uint": "uint32", "short": "int16", "uchar": "uint8", "long": "int64"}
COUNT = 320  # of each input: enough for every index below


class Kernel:
    """`text`, and what it is launched with."""

    def __init__(self, seed):
        self.random = r = random.Random(seed)
        self.plane = r.random() < 0.4
        self.grid = (r.randint(1, 9) * r.choice((1, 4)), r.randint(1, 8)) if self.plane else (r.choice((1, 7, 31, 64, 65, 66)),)
        self.group = r.choice(((32, 1), (8, 4), (16, 4), (64, 1), (4, 8))) if self.plane else (r.choice((32, 64, 20)),)
        self.inputs = [r.choice(list(TYPES)) for _ in range(r.randint(1, 3))]
        self.outputs = [r.choice(list(TYPES)) for _ in range(r.randint(1, 2))]
        self.width, self.limit = r.choice((5, 8, 16)), r.choice((0, 3, 40, 1000))
        self.text = self.write()

    def index(self):
        """Below COUNT for every thread: grids have up to 288 threads, x and y are below 66."""
        r = self.random
        own = "(p.y * all.x + p.x)" if self.plane else "p.x"
        choices = [own, own, own, f"({own} + {r.randint(1, 20)})", f"({own} % w)", f"({own} / 3)", "(p.x % 8 * 8 + p.y % 8)", "p.x", "w",
                   f"(300 - {own})", f"({own} & 12)", "(t.x + g.x)", "(index % 40)"]
        return r.choice(choices)

    def value(self, depth=2):
        r = self.random
        if depth == 0 or r.random() < 0.3:
            kind = r.random()
            if kind < 0.6:
                number = r.randrange(len(self.inputs))
                return f"int(i{number}[{self.index()}])"
            return r.choice((str(r.randint(-9, 9)), "int(p.x)", "v", "int(t.x + g.x * 3)", "int(lane)"))
        a, b = self.value(depth - 1), self.value(depth - 1)
        return r.choice((f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} ^ {b})", f"({a} / {b})", f"max({a}, {b})",
                         f"({a} > {b} ? {a} : {b})"))

    def statements(self, depth):
        r, lines = self.random, []
        for _ in range(r.randint(1, 3)):
            kind = r.random()
            if kind < 0.4:
                lines.append(f"v = {self.value()};")
            elif kind < 0.65 or depth == 0:
                number = r.randrange(len(self.outputs))
                lines.append(f"o{number}[own] = {self.value(1)};")
            elif kind < 0.9:
                other = f" else {{ {self.statements(depth - 1)} }}" if r.random() < 0.5 else ""
                lines.append(f"if ({self.value(1)} % 3 == {r.randint(0, 2)}) {{ {self.statements(depth - 1)} }}{other}")
            else:
                lines.append(f"if ({self.value(1)} % 7 == 3) return;")
        return " ".join(lines)

    def write(self):
        r, arguments = self.random, []
        for i, kind in enumerate(self.inputs):
            arguments.append(f"device const {kind} *i{i} [[buffer({i})]]")
        for i, kind in enumerate(self.outputs):
            arguments.append(f"device {kind} *o{i} [[buffer({len(self.inputs) + i})]]")
        more = len(self.inputs) + len(self.outputs)
        # Every argument is used: those that are not have no place among the parameters.
        used = " + ".join(f"int(i{i}[own % 7])" for i in range(len(self.inputs)))
        ends = " ".join(f"if (v % 5 == {i}) o{i}[own] = v + int(w);" for i in range(1, len(self.outputs)))
        guard = r.choice(("", "", "if (p.x >= n) return;", "if (own >= n || p.y > 6) return;"))
        return f"""#include <metal_stdlib>
using namespace metal;
kernel void k({", ".join(arguments)}, constant uint &w [[buffer({more})]], constant uint &n [[buffer({more + 1})]],
              uint3 p [[thread_position_in_grid]], uint3 all [[threads_per_grid]], uint3 t [[thread_position_in_threadgroup]],
              uint3 g [[threadgroup_position_in_grid]], uint index [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {{
    uint own = p.y * all.x + p.x;
    {guard}
    int v = int(p.x) - 3;
    {self.statements(2)}
    v += ({used}) * int(w) + int(own + 1000 == n);
    {ends}
    o0[own] = v;
}}
"""

    def buffers(self):
        coarse.RANDOM.seed(self.random.random())
        threads = self.grid[0] * (self.grid[1] if self.plane else 1)
        return [coarse.Input(TYPES[kind], COUNT) for kind in self.inputs] + [coarse.Output(TYPES[kind], threads) for kind in self.outputs] + [
            self.width, self.limit]


class Loop(Kernel):
    """Threads that loop over the grid: their rounds run together."""

    def __init__(self, seed):
        self.random = r = random.Random(-seed)
        self.plane, self.grid, self.group = False, (r.choice((1, 7, 31, 64, 65, 66, 96)),), (r.choice((32, 64, 20)),)
        self.inputs = [r.choice(list(TYPES)) for _ in range(r.randint(1, 3))]
        self.outputs = [r.choice(list(TYPES)) for _ in range(r.randint(1, 2))]
        self.width, self.limit = r.choice((5, 8, 16)), r.choice((0, 3, 40, 96, 200, 261, COUNT))
        self.text = self.write()

    def index(self):
        return self.random.choice(("i", "i", "i", "i", "(i % w)", "(i / 3)", "w", "(i & 12)", f"({COUNT - 1} - i)"))

    def value(self, depth=2):
        r = self.random
        if depth == 0 or r.random() < 0.3:
            return r.choice((f"int(i{r.randrange(len(self.inputs))}[{self.index()}])", str(r.randint(-9, 9)), "int(i)", "int(p)", "v"))
        a, b = self.value(depth - 1), self.value(depth - 1)
        return r.choice((f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} ^ {b})", f"max({a}, {b})", f"({a} > {b} ? {a} : {b})"))

    def branches(self, depth=2):
        """Branches in a round. Most only compute, and become selects."""
        r = self.random
        if depth == 0 or r.random() < 0.3:
            return f"v = {r.choice((f'v * {r.randint(2, 9)} - 3', 'v ^ (v >> 3)', 'v + int(i)', 'v / (v % 5)' if r.random() < 0.2 else '-v', self.value(1)))};"
        other = f" else {{ {self.branches(depth - 1)} }}" if r.random() < 0.6 else ""
        both = f" {r.choice(('&&', '||'))} v % 3 == {r.randint(0, 2)}" if r.random() < 0.3 else ""
        return f"if (v % {r.randint(2, 7)} == {r.randint(0, 1)}{both}) {{ {self.branches(depth - 1)} {self.branches(depth - 1)} }}{other}"

    def write(self):
        r, count = self.random, len(self.inputs)
        arguments = [f"device const {kind} *i{i} [[buffer({i})]]" for i, kind in enumerate(self.inputs)]
        arguments += [f"device {kind} *o{i} [[buffer({count + i})]]" for i, kind in enumerate(self.outputs)]
        more = len(arguments)
        used = " + ".join(f"int(i{i}[i])" for i in range(count))
        lines = [f"v += {self.value()};" for _ in range(r.randint(0, 2))]
        lines += [self.branches() for _ in range(r.choice((0, 0, 1, 2)))]
        # As above, every argument is used.
        lines += [f"o{i}[i] = (({self.value(1)} + v) ^ 21) + ({used}) * int(w);" for i in range(len(self.outputs))]
        r.shuffle(lines)
        return f"""#include <metal_stdlib>
using namespace metal;
kernel void k({", ".join(arguments)}, constant uint &w [[buffer({more})]], constant uint &n [[buffer({more + 1})]],
              uint p [[thread_position_in_grid]], uint all [[threads_per_grid]]) {{
    {r.choice(("", "if (p >= n) return;"))}
    int v = int(p) - 3;
    for ({r.choice(("uint", "uint", "ulong"))} i = p; i < n; i += {r.choice(("all", "all", "all + w"))}) {{
        {" ".join(lines)}
    }}
}}
"""

    def buffers(self):
        coarse.RANDOM.seed(self.random.random())
        return [coarse.Input(TYPES[kind], COUNT) for kind in self.inputs] + [coarse.Output(TYPES[kind], COUNT) for kind in self.outputs] + [
            self.width, self.limit]


def run(seed, folder, kind):
    kernel = kind(seed)
    path = os.path.join(folder, f"{kind.__name__}{seed}.metal")  # what is shown of a path is remembered
    with open(path, "w", encoding="utf-8") as file:
        file.write(kernel.text)
    try:
        coarse.check("k", kernel.grid, kernel.group, kernel.buffers(), form=coarse.ANY, source=path,
                     code=kernel.random.choice(("seen", "seen", "any")))
    except Exception as error:
        raise AssertionError(f"seed {seed}:\n{kernel.text}") from error


first, count = (int(word) for word in sys.argv[2:4]) if len(sys.argv) > 3 else (1, 12 if coarse.FULL else 6)
with tempfile.TemporaryDirectory() as scratch:
    for number in range(first, first + count):
        run(number, scratch, Kernel)
        run(number, scratch, Loop)
print(f"{count} random kernels: right")
