"""One random kernel: a product of two matrices by tiles, its text, its arguments and what it must compute."""
import numpy as np
import smelt
from elements import FORMATS, HANDLES, PLAIN, PRECISION, Matrix, rows

HEAD = """#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;
"""


def up(a, b):
    return -(-a // b)


class Operand:
    """One side of the product: how it is stored, reaches the kernel and is cut to a tile."""

    def __init__(self, rng, p, side, kind):
        self.side, self.kind, self.transposed = side, kind, bool(rng.random() < 0.4)
        self.letter = "ab"[side]
        self.packed = kind in FORMATS
        self.scaled = kind in HANDLES and p.scaled
        if self.scaled:
            self.transposed = side == 1
        length, breadth = (p.K, p.M if side == 0 else p.N)
        inner_is_k = (side == 0) != self.transposed
        self.inner_is_k = inner_is_k
        self.columns, self.rows = (length, breadth) if inner_is_k else (breadth, length)
        unit = 32 if self.scaled else 8 if self.packed else 1
        # What a program may do with it.
        forms = ["inline", "inline", "handle", "constant", "threadgroup"]
        if not self.packed:
            forms.append("guide")
        # Memory of the threadgroup holds one tile.
        begins_at_byte = not self.packed or (p.k if inner_is_k else p.m if side == 0 else p.n) % 8 == 0
        if p.scope == "thread" or (p.scope == "simdgroup" and p.simdgroups > 1 and side == 1) or not begins_at_byte:
            forms.remove("threadgroup")
        if p.scope == "simdgroup" and p.k and not self.scaled:
            forms += ["cooperative", "cooperative"]
        if self.scaled:
            forms = ["inline", "handle"]
        if self.columns % unit:
            forms = [form for form in forms if form != "handle"]
        self.form = str(rng.choice(forms))
        self.sliced_twice = bool(rng.random() < 0.3)
        self.origin = (int(rng.integers(0, 3)) * unit, int(rng.integers(0, 4))) if self.sliced_twice else (0, 0)
        wide, tall = self.columns + self.origin[0], self.rows + self.origin[1]
        stride = up(wide, unit) * unit + int(rng.integers(0, 3)) * unit
        if self.packed and self.form == "handle":
            stride = wide
        self.wide, self.tall = wide, tall
        self.matrix = Matrix(rng, kind, tall, wide, stride, p.whole)
        values = self.matrix.values
        if self.scaled:
            self.scales = rng.integers(124, 131, (tall, up(wide, 32))).astype(np.uint8)
            values = values * np.repeat(2.0 ** (self.scales.astype(int) - 127), 32, -1)[:, :wide]
        values = values[self.origin[1]:, self.origin[0]:]
        # As rows of the product's left operand, or columns of its right one.
        self.values = values if inner_is_k == (side == 0) else values.T

    # ---- Text.

    @property
    def plane(self):
        return ", tensor_blockwise<tensor_plane_scales, device metal_fp8_ue8m0_format, 32, 1>" if self.scaled else ""

    def parameter(self):
        if self.form == "handle":
            index = "dextents<int, 2>"
            return f"tensor<device {self.kind}, {index}, tensor_handle{self.plane}> {self.letter}_all [[buffer({self.side})]]"
        space = "constant" if self.form == "constant" else "device const"
        bytes_ = "uchar" if self.packed else self.kind
        scales = f",\n    device uchar *{self.letter}_scales [[buffer({6 + self.side})]]" if self.scaled else ""
        return f"{space} {bytes_} *{self.letter}_in [[buffer({self.side})]]{scales}"

    def setup(self):
        """Makes `a` or `b`: the whole matrix."""
        c, lines = self.letter, []
        extents, strides = f"dextents<int, 2>({self.wide}, {self.tall})", f"array<int, 2>{{1, {self.matrix.stride}}}"
        if self.form == "guide":
            lines.append(f"auto {c}_all = tensor({c}_in, {extents}, {strides});")
        elif self.form != "handle":
            space = "constant" if self.form == "constant" else "device"
            const = "" if self.form == "constant" or self.scaled or self.packed else "const "
            lines.append(f"using {c}_type = tensor<{space} {const}{self.kind}, dextents<int, 2>, tensor_inline{self.plane}>;")
            plane = (f", tensor_blockwise<tensor_plane_scales, device metal_fp8_ue8m0_format, 32, 1>({c}_scales)" if self.scaled else "")
            lines.append(f"{c}_type {c}_all((typename {c}_type::data_handle_type){c}_in, {extents}, {strides}{plane});")
        if self.sliced_twice:
            x, y = self.origin
            lines.append(f"auto {c} = {c}_all.slice({x // 2 // 32 * 32}, {y // 2}).slice({x - x // 2 // 32 * 32}, {y - y // 2});")
        else:
            lines.append(f"auto {c} = {c}_all;")
        return lines

    def tile(self, p):
        """Makes `a_tile` or `b_tile` of the terms from `step` on."""
        c, across = self.letter, "row" if self.side == 0 else "column"
        breadth, k = (p.m if self.side == 0 else p.n), p.k or p.K
        x, y = ("step", across) if self.inner_is_k else (across, "step")
        wide, tall = (k, breadth) if self.inner_is_k else (breadth, k)
        whole = p.aligned and p.k
        static = f".slice<{wide if whole else 'dynamic_extent'}, {tall if whole else 'dynamic_extent'}>"
        cut = f"{c}{static if p.static_slices and self.form != 'threadgroup' else '.slice'}({x}, {y})"
        if self.form == "threadgroup":
            return self.threadgroup_tile(p, cut, wide, tall)
        if self.form != "cooperative":
            return [f"auto {c}_tile = {cut};"]
        side = "left" if self.side == 0 else "right"
        lines = [f"auto {c}_part = {cut};",
                 f"auto {c}_tile = op.template get_{side}_input_cooperative_tensor<{p.left.kind}, {p.right.kind}, {p.result}>();"]
        if p.fills_by_load and not self.packed:
            return [*lines, f"{c}_tile.load({c}_part);"]
        return [*lines, f"for (ushort i = 0; i < {c}_tile.get_capacity(); i++)",
                f"  if ({c}_tile.is_valid_element(i)) {{",
                f"    auto at = {c}_tile.get_multidimensional_index(i);",
                f"    bool inside = at[0] < {c}_part.get_extent(0) && at[1] < {c}_part.get_extent(1);",
                f"    {c}_tile.set(i, inside ? {c}_part.get(at[0], at[1]) : 0);",
                "  }"]

    def threadgroup_tile(self, p, cut, wide, tall):
        """Copies the part through threadgroup memory; elements outside become zeros."""
        c = self.letter
        if self.packed:
            per = 8 // self.matrix.bits
            unit = up(wide, 8) * 8
            size = tall * unit // per
            return [f"threadgroup uchar {c}_memory[{size}];",
                    "threadgroup_barrier(mem_flags::mem_threadgroup);",
                    f"for (uint i = index; i < {size}; i += {p.threads}) {{",
                    f"  long first = long({c}_origin(step)) / {per} + i / {unit // per} * {self.matrix.stride // per} + i % {unit // per};",
                    f"  {c}_memory[i] = first < {len(self.matrix.stored)} ? {c}_in[first] : 0;",
                    "}",
                    "threadgroup_barrier(mem_flags::mem_threadgroup);",
                    f"auto {c}_part = {cut};",
                    f"tensor<threadgroup {self.kind}, dextents<int, 2>, tensor_inline> {c}_tile({c}_memory, dextents<int, 2>(min({wide}, {c}_part.get_extent(0)), "
                    f"min({tall}, {c}_part.get_extent(1))), array<int, 2>{{1, {unit}}});"]
        return [f"threadgroup {self.kind} {c}_memory[{wide * tall}];",
                f"auto {c}_part = {cut};",
                "threadgroup_barrier(mem_flags::mem_threadgroup);",
                f"for (uint i = index; i < {wide * tall}; i += {p.threads}) {{",
                f"  int x = i % {wide}, y = i / {wide};",
                f"  {c}_memory[i] = x < {c}_part.get_extent(0) && y < {c}_part.get_extent(1) ? {c}_part[x, y] : ({self.kind})0;",
                "}",
                "threadgroup_barrier(mem_flags::mem_threadgroup);",
                f"tensor<threadgroup {self.kind}, extents<int, {wide}, {tall}>, tensor_inline> {c}_tile({c}_memory, extents<int, {wide}, {tall}>());"]

    def argument(self):
        if self.form != "handle":
            return self.matrix.stored
        if self.scaled:
            made = smelt.Tensor((self.wide, self.tall), HANDLES[self.kind], scales=("ue8m0", (32, 1)))
            made.write(np.ascontiguousarray(self.matrix.stored.reshape(self.tall, -1)))
            made.write(self.scales, plane="scales")
            return made
        if self.packed:
            return self.matrix.stored.reshape(self.tall, -1)
        return self.matrix.stored.reshape(self.tall, self.matrix.stride)[:, :self.wide]


class Program:
    def __init__(self, rng):
        left, right, results = rows()[rng.integers(len(rows()))]
        self.result = str(rng.choice(results))
        self.scope = str(rng.choice(["thread", "simdgroup", "simdgroup", "simdgroups"]))
        self.simdgroups = {"thread": 1, "simdgroup": int(rng.choice([1, 1, 2, 3])), "simdgroups": int(rng.choice([2, 3, 4, 8]))}[self.scope]
        self.threads = 32 * self.simdgroups
        self.scaled = bool(rng.random() < 0.5)
        self.whole = bool(rng.random() < 0.4)
        self.draw_sizes(rng)
        self.adds = bool(rng.random() < 0.5)
        self.fills_by_load = bool(rng.random() < 0.5)
        self.static_slices = bool(rng.random() < 0.4)
        self.left, self.right = Operand(rng, self, 0, left), Operand(rng, self, 1, right)
        self.steps = up(self.K, self.k) if self.k else 1
        if self.steps > 1:
            self.adds = True
        self.draw_destination(rng)
        self.before = rng.integers(-3, 4, (self.M, self.N)).astype(np.float64)
        self.text = self.write()
        self.summary = (f"{left} × {right} → {self.result}, {self.scope} {self.simdgroups}, tile {self.m} × {self.n} × {self.k or 'all'} of "
                        f"{self.M} × {self.N} × {self.K}, {self.left.form} and {self.right.form} → {self.destination}")

    def draw_sizes(self, rng):
        choose = lambda *values: int(rng.choice(values))
        if self.scope == "thread":
            self.m, self.n = int(rng.integers(1, 7)), int(rng.integers(1, 7))
            self.k = choose(0, 0, 1, 4, 9)
            scale = 3
        elif rng.random() < 0.85:
            self.m, self.n = choose(8, 16, 16, 32, 32, 48, 64), choose(16, 16, 32, 32, 48, 64)
            self.k = choose(0, 0, 16, 16, 32, 48)
            scale = 2.5
        else:
            self.m, self.n, self.k = int(rng.integers(1, 50)), int(rng.integers(1, 50)), choose(0, 8, 20, 24)
            scale = 2.5
        # Slices of tensors with scales begin with a block, or in a part that divides it.
        if self.scaled and self.k and 32 % self.k:
            self.k = 32
        self.aligned = bool(rng.random() < 0.3)
        self.M, self.N = int(rng.integers(1, int(scale * self.m) + 2)), int(rng.integers(1, int(scale * self.n) + 2))
        self.K = int(rng.integers(1, 90))
        if rng.random() < 0.3:
            self.K = up(self.K, 32) * 32
        if self.aligned:
            self.M, self.N = up(self.M, self.m) * self.m, up(self.N, self.n) * self.n
            self.K = up(self.K, self.k) * self.k if self.k else self.K

    def draw_destination(self, rng):
        choices = ["device", "handle", "cooperative", "cooperative", "cooperative"]
        if self.scope != "thread":
            choices.append("threadgroup")
        self.destination = str(rng.choice(choices))
        self.finish, self.reduction, self.operation, self.chain = "none", None, "sum", None
        if self.destination != "cooperative":
            return
        self.finish = str(rng.choice(["none", "slots", "iterator", "coordinates"]))
        if self.scope == "simdgroup" and self.result != "int" and rng.random() < 0.6:
            self.reduction = str(rng.choice(["rows", "columns"]))
            self.operation = str(rng.choice(["sum", "max", "min"]))
            self.subtracts = bool(rng.random() < 0.5)
        if self.scope == "simdgroup" and self.simdgroups == 1 and self.result != "int" and rng.random() < 0.9:
            self.draw_chain(rng)

    def draw_chain(self, rng):
        """A second product, of the destination as its left or right operand."""
        self.chain = int(rng.integers(2))
        self.other_kind = str(rng.choice(["half", "bfloat", "float"]))
        self.other_size = int(rng.choice([8, 16, 16, 32, 24, 5]))
        shape = (self.n, self.other_size) if self.chain == 0 else (self.other_size, self.m)
        self.other = rng.integers(-2, 3, shape).astype(PLAIN[self.other_kind])

    # ---- Text.

    def write(self):
        a, b = self.left, self.right
        parameters = [a.parameter(), b.parameter()]
        parameters.append(f"tensor<device {self.result}, dextents<int, 2>> c_all [[buffer(2)]]" if self.destination == "handle"
                          else f"device {self.result} *c_in [[buffer(2)]]")
        if self.chain is not None:
            parameters += [f"device {self.other_kind} *other [[buffer(4)]]", "device float *seconds [[buffer(5)]]"]
        parameters += ["device float *results [[buffer(3)]]", "uint2 group [[threadgroup_position_in_grid]]",
                       "uint index [[thread_index_in_threadgroup]]", "uint simdgroup [[simdgroup_index_in_threadgroup]]"]
        across = {"thread": "group.x * 32 + index", "simdgroup": f"group.x * {self.simdgroups} + simdgroup", "simdgroups": "group.x"}[self.scope]
        k = self.k or "static_cast<int>(dynamic_extent)"
        mode = "multiply_accumulate" if self.adds else "multiply"
        scope = {"thread": "execution_thread", "simdgroup": "execution_simdgroup", "simdgroups": f"execution_simdgroups<{self.simdgroups}>"}[self.scope]
        flags = f"{str(a.transposed).lower()}, {str(b.transposed).lower()}, false"
        lines = [*a.setup(), *b.setup()]
        if self.destination != "handle":
            lines.append(f"auto c_all = tensor(c_in, dextents<int, 2>({self.N}, {self.M}));")
        lines += [f"int row = group.y * {self.m}, column = ({across}) * {self.n}, tile = {across};"]
        # Packed elements of threadgroup memory begin at a byte.
        uses_barrier = "threadgroup" in (a.form, b.form, self.destination)
        for o in (a, b):
            if o.form == "threadgroup" and o.packed:
                x, y = o.origin
                along = "row" if o.side == 0 else "column"
                at = f"({y} + {along}) * {o.matrix.stride} + {x} + step" if o.inner_is_k else f"({y} + step) * {o.matrix.stride} + {x} + {along}"
                lines.append(f"auto {o.letter}_origin = [&](int step) {{ return {at}; }};")
        if self.scope != "simdgroups":
            if uses_barrier:
                lines.append(f"bool outside = column >= {self.N};")
                lines.append("if (outside) column = 0;")
            else:
                lines.append(f"if (column >= {self.N}) return;")
        lines += [f"constexpr auto descriptor = matmul2d_descriptor({self.m}, {self.n}, {k}, {flags}, matmul2d_descriptor::mode::{mode});",
                  f"matmul2d<descriptor, {scope}> op;"]
        lines += self.write_destination()
        loop = self.steps > 1
        # A simdgroup without a tile takes part in barriers alone.
        condition = "if (!outside) " if uses_barrier and self.scope == "simdgroup" else ""
        body = [*a.tile(self), *b.tile(self), f"{condition}op.run(a_tile, b_tile, c);"]
        if loop:
            lines += [f"for (int step = 0; step < {self.K}; step += {self.k}) {{", *[f"  {line}" for line in body], "}"]
        else:
            lines += ["const int step = 0;", *body]
        lines += self.write_finish()
        return HEAD + "kernel void fuzz(" + ",\n    ".join(parameters) + ") {\n" + "".join(f"  {line}\n" for line in lines) + "}\n"

    def write_destination(self):
        if self.destination == "cooperative":
            operand = lambda o: (f"decltype(op.template get_{'left' if o.side == 0 else 'right'}_input_cooperative_tensor<{self.left.kind}, {self.right.kind}, {self.result}>())"
                                 if o.form == "cooperative" else f"decltype({o.letter})")
            return [f"auto c = op.template get_destination_cooperative_tensor<{operand(self.left)}, {operand(self.right)}, {self.result}>();"]
        if self.destination != "threadgroup":
            return ["auto c = c_all.slice(column, row);"]
        count = self.simdgroups if self.scope == "simdgroup" else 1
        at = f"simdgroup * {self.m * self.n}" if self.scope == "simdgroup" else "0"
        return [f"threadgroup {self.result} c_memory[{count * self.m * self.n}];",
                f"for (uint i = index; i < {count * self.m * self.n}; i += {self.threads}) c_memory[i] = 0;",
                "threadgroup_barrier(mem_flags::mem_threadgroup);",
                f"auto c = tensor(c_memory + {at}, extents<int, {self.n}, {self.m}>());"]

    def write_finish(self):
        skip = ["if (outside) return;"] if self.scope == "simdgroup" and "threadgroup" in (self.left.form, self.right.form, self.destination) else []
        if self.destination == "threadgroup":
            first = f"index; i < {self.m * self.n}; i += {self.threads}" if self.scope == "simdgroups" else f"index % 32; i < {self.m * self.n}; i += 32"
            return ["threadgroup_barrier(mem_flags::mem_threadgroup);", *skip,
                    f"for (uint i = {first})",
                    f"  c_all.set(c[i % {self.n}, i / {self.n}], column + i % {self.n}, row + i / {self.n});"]
        if self.destination != "cooperative":
            return []
        lines = [*([f"threadgroup {self.result} staged[{self.m * self.n}];"] if self.chain is not None else []), *skip]
        if self.finish == "slots":
            lines += ["for (ushort i = 0; i < c.get_capacity(); i++) c[i] = c[i] * 2;"]
        elif self.finish == "iterator":
            lines += ["for (auto it = c.begin(); it != c.end(); it++)", "  if (it.is_valid_element()) *it = *it * 2 + it.get_multidimensional_index()[0] % 4;"]
        elif self.finish == "coordinates":
            lines += ["for (ushort i = 0; i < c.get_capacity(); i++) {", "  auto at = c.get_multidimensional_index(i);",
                      "  if (c.is_valid_element(i)) c.set(i, c.get(i) + at[1] % 4);", "}"]
        if self.reduction:
            kind = self.reduction[:-1]
            identity = {"sum": "0", "max": "-INFINITY", "min": "INFINITY"}[self.operation]
            lines += [f"auto r = op.template get_{kind}_reduction_destination_cooperative_tensor<decltype(a_tile), decltype(b_tile), {self.result}>();"
                      if self.steps == 1 else
                      f"auto r = op.template get_{kind}_reduction_destination_cooperative_tensor<{self.operand_types()}, {self.result}>();",
                      f"reduce_{self.reduction}(c, r, reduction_operation::{self.operation}, ({self.result}){identity});",
                      "for (ushort i = 0; i < r.get_capacity(); i++)",
                      f"  if (r.is_valid_element(i)) results[(group.y * {self.tiles_across} + tile) * {max(self.m, self.n)} + r.get_multidimensional_index(i)[0]] = r[i];"]
            if self.subtracts:
                lines += ["for (auto it = c.begin(); it != c.end(); it++) *it -= *r.map_iterator(it);"]
        if self.chain is not None:
            lines += self.write_chain()
        return [*lines, "auto c_slice = c_all.slice(column, row);", "c.store(c_slice);"]

    @property
    def chain_shape(self):
        return (self.m, self.other_size) if self.chain == 0 else (self.other_size, self.n)

    def write_chain(self):
        side, rest = ("left", "right") if self.chain == 0 else ("right", "left")
        (m, n), k = self.chain_shape, self.n if self.chain == 0 else self.m
        types = f"{self.result}, {self.other_kind}, float" if self.chain == 0 else f"{self.other_kind}, {self.result}, float"
        input_type = f"decltype(op2.template get_{side}_input_cooperative_tensor<{types}>())"
        operands = lambda own, other: f"{own}, {other}" if self.chain == 0 else f"{other}, {own}"
        wide, tall = (n, k) if self.chain == 0 else (k, m)
        return [f"matmul2d<matmul2d_descriptor({m}, {n}, {k}), execution_simdgroup> op2;",
                f"auto {rest} = tensor(other, dextents<int, 2>({wide}, {tall}));",
                f"auto second = op2.template get_destination_cooperative_tensor<{operands(input_type, f'decltype({rest})')}, float>();",
                f"if (op2.template is_compatible_as_{side}_input<{types}>(c)) {{",
                f"  auto {side} = op2.template get_{side}_input_cooperative_tensor<{types}>(c);",
                f"  op2.run({operands(side, rest)}, second);",
                "} else {",
                f"  auto t = tensor(staged, extents<int, {self.n}, {self.m}>());",
                "  c.store(t);",
                "  simdgroup_barrier(mem_flags::mem_threadgroup);",
                f"  auto {side} = op2.template get_{side}_input_cooperative_tensor<{types}>();",
                f"  {side}.load(t);",
                f"  op2.run({operands(side, rest)}, second);",
                "}",
                f"auto all = tensor(seconds + (group.y * {self.tiles_across} + tile) * {m * n}, dextents<int, 2>({n}, {m}));",
                "second.store(all);"]

    def operand_types(self):
        texts = []
        for o in (self.left, self.right):
            side = "left" if o.side == 0 else "right"
            texts.append(f"typename decltype(op)::template cooperative_tensor_{side}_input_t<{self.left.kind}, {self.right.kind}, {self.result}>"
                         if o.form == "cooperative" else f"decltype({o.letter})")
        return ", ".join(texts)

    # ---- Numbers.

    @property
    def tiles_across(self):
        return {"thread": 32, "simdgroup": self.simdgroups, "simdgroups": 1}[self.scope] * self.groups[0]

    @property
    def groups(self):
        wide = {"thread": 32, "simdgroup": self.simdgroups, "simdgroups": 1}[self.scope] * self.n
        return (up(self.N, wide), up(self.M, self.m), 1)

    def product(self):
        """The product, and what its error is at most relative to."""
        a, b = self.left.values, self.right.values
        return a @ b, np.abs(a) @ np.abs(b)

    def expected(self):
        result, size = self.product()
        starts = self.adds and self.destination in ("device", "handle")
        if starts:
            result, size = result + self.before, size + np.abs(self.before)
        if self.result == "int":
            bound = np.zeros_like(size)
        else:
            half_unit, step = PRECISION[self.result]
            bound = (self.K + 8) * 2.0**-23 * size + (self.steps + 1) * half_unit * size + step
        tiles_m, tiles_n = up(self.M, self.m), up(self.N, self.n)
        padded = lambda x: np.pad(x, ((0, tiles_m * self.m - self.M), (0, tiles_n * self.n - self.N)))
        result, bound = padded(result), padded(bound)
        x, y = np.arange(tiles_n * self.n) % self.n % 4, (np.arange(tiles_m * self.m) % self.m % 4)[:, None]
        if self.finish in ("slots", "iterator"):
            result, bound = result * 2, bound * 2
        if self.finish == "iterator":
            result = result + x
        if self.finish == "coordinates":
            result = result + y
        half_unit, step = PRECISION.get(self.result, (0, 0))
        if self.finish != "none":
            bound = bound + 2 * half_unit * np.abs(result) + step
        reduced = None
        if self.reduction:
            axis = 3 if self.reduction == "rows" else 1
            by_tile = result.reshape(tiles_m, self.m, tiles_n, self.n)
            bounds = bound.reshape(by_tile.shape)
            count = by_tile.shape[axis]
            if self.operation == "sum":
                values = by_tile.sum(axis, keepdims=True)
                reduced_bound = bounds.sum(axis, keepdims=True) + count * 2 * half_unit * np.abs(by_tile).sum(axis, keepdims=True)
            else:
                values = getattr(by_tile, self.operation)(axis, keepdims=True)
                reduced_bound = bounds.max(axis, keepdims=True)
            if self.subtracts:
                result = (by_tile - values).reshape(result.shape)
                bound = (bounds + reduced_bound + half_unit * np.abs(by_tile - values)).reshape(result.shape)
            reduced = np.moveaxis(values, 2, 1).reshape(tiles_m, tiles_n, -1), np.moveaxis(reduced_bound, 2, 1).reshape(tiles_m, tiles_n, -1)
        second = None
        if self.chain is not None:
            tiles = [np.moveaxis(x.reshape(tiles_m, self.m, tiles_n, self.n), 2, 1) for x in (result, bound)]
            other = self.other.astype(np.float64)
            multiply = (lambda x, o: x @ o) if self.chain == 0 else (lambda x, o: o @ x)
            second = (multiply(tiles[0], other),
                      multiply(tiles[1], np.abs(other)) + 100 * 2.0**-23 * multiply(np.abs(tiles[0]), np.abs(other)))
        return result[:self.M, :self.N], bound[:self.M, :self.N], reduced, second

    def run(self, library, device):
        expected, bound, reduced, second = self.expected()
        dtype = np.dtype(PLAIN[self.result])
        starts = self.adds and self.destination in ("device", "handle")
        behind = (self.m + 1) * self.N + 64  # where a tile that is not cut off would go
        out = np.full(self.M * self.N + behind, 77).astype(dtype)
        out[:self.M * self.N] = self.before.reshape(-1) if starts else 99
        longest = max(self.m, self.n)
        results = np.full((self.groups[1], self.tiles_across, longest), np.nan, np.float32)
        argument = out[:self.M * self.N].reshape(self.M, self.N) if self.destination == "handle" else out
        scales = [o.scales if o.scaled and o.form == "inline" else None for o in (self.left, self.right)]
        seconds = np.full((self.groups[1], self.tiles_across, *self.chain_shape), np.nan, np.float32) if second else None
        other = np.ascontiguousarray(self.other) if second else None
        listed = [self.left.argument(), self.right.argument(), argument, results, other, seconds, *scales]
        while listed[-1] is None:
            listed.pop()
        library.function("fuzz")(*listed, groups=self.groups, group_size=self.threads, device=device)
        outputs = {"c": (out[:self.M * self.N].reshape(self.M, self.N), expected, bound),
                   "behind c": (out[self.M * self.N:], np.full(behind, 77.0), 0)}
        if self.result == "int":
            wrapped = (expected.astype(np.int64) + 2**31) % 2**32 - 2**31
            outputs["c"] = (outputs["c"][0], wrapped.astype(np.float64), bound)
        if reduced:
            values, limit = reduced
            got = results[:values.shape[0], :values.shape[1], :values.shape[2]]
            outputs["results"] = (got, values, limit)
        if second:
            outputs["seconds"] = (seconds[:second[0].shape[0], :second[0].shape[1]], *second)
        return outputs
