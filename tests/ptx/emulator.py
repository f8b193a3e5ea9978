"""Runs PTX as the command prints it, thread by thread, without a GPU: slow, and no more of PTX than the tests need.

The layouts of mma's fragments are written here from the PTX ISA, apart from the engine's own. Threads of a block run in
step as far as they can: of those not waiting the ones earliest in the text go first.
"""
import functools
import math
import re
import struct

FORMATS = {"f16": "e", "f32": "f", "f64": "d"}
SHARED_WINDOW = 1 << 40


def to_float(bits, kind):
    if kind == "bf16":
        return struct.unpack("<f", struct.pack("<I", (bits & 0xFFFF) << 16))[0]
    return struct.unpack("<" + FORMATS[kind], (bits & (1 << width(kind)) - 1).to_bytes(width(kind) // 8, "little"))[0]


def from_float(value, kind):
    if kind == "bf16":
        bits = from_float(value, "f32")
        return (bits >> 16 | 64) if value != value else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    if kind in ("f16", "f32"):
        try:
            packed = struct.pack("<" + FORMATS[kind], value)
        except OverflowError:
            packed = struct.pack("<" + FORMATS[kind], math.copysign(math.inf, value))
    else:
        packed = struct.pack("<d", value)
    return int.from_bytes(packed, "little")


# The cached functions parse the text of instructions, which every thread runs: each text is parsed once.
@functools.cache
def width(kind):
    return 1 if kind == "pred" else int(re.search(r"\d+$", kind).group())


def signed(value, bits):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


@functools.cache
def constant(operand):
    """The bits of a number, None of any other operand."""
    if operand.startswith(("0f", "0d")):
        return int(operand[2:], 16)
    if re.match(r"0x[0-9A-Fa-f]+$", operand):
        return int(operand, 16)
    return int(operand) if re.match(r"-?\d+$", operand) else None


@functools.cache
def reading(kind):
    """Whether operands of a kind are floats, and otherwise whether they have a sign, and their bits."""
    return kind[0] in "bf" and kind in FORMATS or kind == "bf16", kind[0] == "s", (1 << width(kind)) - 1


@functools.cache
def parts(operand):
    return [part.strip() for part in operand.strip("{}[]").split(",")] if operand[0] in "{[" else [operand]


@functools.cache
def place(operand):
    """The base and the offset of an address."""
    base, offset = re.match(r"\[\s*([%\w$.]+)\s*\+?\s*(-?\d+)?\s*\]", operand).groups()
    return base, int(offset or 0)


@functools.cache
def space_of(name):
    return next((space for space in ("param", "shared", "global", "local") if space in name), "generic")


class Thread:
    def __init__(self, index):
        self.index, self.pc, self.registers, self.state, self.local = index, 0, {}, "runs", bytearray(1 << 12)


def extreme(operation, a, b):
    """Of numbers; of a NaN and a number the number; -0 is less than +0."""
    if a != a or b != b:
        return b if a != a else a
    order = lambda x: (x, math.copysign(1, x))
    return (min if operation == "min" else max)(a, b, key=order)


def divided(a, b):
    """The quotient of floats, of which b may be 0."""
    if b != 0:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)


def voted(name, bits):
    """What a vote gives the lanes that take part, and its kind. `bits`: the lanes' own."""
    if "ballot" in name:
        return sum(bit << lane for lane, bit in bits.items()), "b32"
    assert name[2] in ("any", "all"), f"{'.'.join(name)} is not emulated"
    return (any if name[2] == "any" else all)(bits.values()), "pred"


class Machine:
    """Memory: bytearrays at addresses; `run` launches a kernel of a module's text."""

    def __init__(self):
        self.segments = []
        self.counts = {}

    def allocate(self, data):
        base = 1 << 20 if not self.segments else (self.segments[-1][0] + len(self.segments[-1][1]) + 4096) // 4096 * 4096 + 4096
        self.segments.append((base, bytearray(data)))
        return base

    def contents(self, base):
        return next(bytes(data) for start, data in self.segments if start == base)

    def find(self, address, size, space):
        if space == "param":
            return self.parameters, address
        if space == "shared":
            data, at = self.shared, address & 0xFFFFFFFF  # addresses there have 32 bits
        elif SHARED_WINDOW <= address < SHARED_WINDOW + len(self.shared):
            data, at = self.shared, address - SHARED_WINDOW
        else:
            for base, data in self.segments:
                if base <= address and address + size <= base + len(data):
                    return data, address - base
            raise IndexError(f"address {address:#x} is in no array")
        if not 0 <= at <= len(data) - size:
            raise IndexError(f"{at} is outside of threadgroup memory")
        if at % size:
            raise IndexError(f"{at} is not aligned to {size}")
        return data, at

    # ---- Text.

    def parse(self, text):
        self.code, self.labels, self.symbols = [], {}, {}
        for size, symbol, values in re.findall(r"\.(?:global|const) [^\n]*\.[bf](\d+) ([\w$]+)\[\d+\] = \{([^}]*)\}", text):
            numbers = [int(value, 0) for value in values.split(",")]
            self.symbols[symbol] = self.allocate(b"".join(n.to_bytes(int(size) // 8, "little") for n in numbers))
        body = text[text.index(".entry"):]
        inside = False
        for line in re.sub(r"//.*", "", body).replace("{\n", "\n{\n").split("\n"):
            line = line.strip()
            if line == "{" and not inside:
                inside = True
                continue
            if not inside or not line or line.startswith((".reg", ".loc", ".pragma", ".file")):
                continue
            label = re.match(r"(\$?[\w$]+):\s*(.*)", line)
            if label:
                self.labels[label.group(1)] = len(self.code)
                line = label.group(2)
            for statement in filter(None, (part.strip() for part in line.split(";"))):
                statement = re.sub(r"^\{\s+(?=[@.\w])", "", statement)
                if statement in "{}" or statement.startswith(".reg"):
                    continue
                guard = re.match(r"@(!?)([%\w]+)\s+(.*)", statement)
                if guard:
                    statement = guard.group(3)
                name, _, rest = statement.partition(" ")
                name, _, more = name.partition("\t")
                operands = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", more + " " + rest)
                self.code.append((tuple(name.split(".")), operands, (guard.group(2), bool(guard.group(1))) if guard else None))

    # ---- Operands.

    def read(self, thread, operand):
        bits = thread.registers.get(operand)  # of an inline assembly's own, too
        if bits is None:
            bits = constant(operand)
        return self.read_other(thread, operand) if bits is None else bits

    def read_other(self, thread, operand):
        if operand.startswith("%"):
            special = {"%tid.x": thread.index, "%ctaid.x": self.group[0], "%ctaid.y": self.group[1], "%ctaid.z": self.group[2],
                       "%ntid.x": self.block, "%laneid": thread.index % 32, "%lanemask_lt": (1 << thread.index % 32) - 1}
            return special.get(operand, 0)
        if operand.startswith("!"):
            return not self.read(thread, operand[1:])
        return self.symbols.get(operand, 0)  # the parameter's and all shared memory's are 0

    def number(self, thread, operand, kind):
        bits = self.read(thread, operand)
        is_float, has_sign, mask = reading(kind)
        if is_float:
            return to_float(bits, kind)
        return signed(bits, width(kind)) if has_sign else bits & mask

    def write(self, thread, operand, value, kind):
        if operand == "_":
            return
        if isinstance(value, float):
            value = from_float(value, kind)
        thread.registers[operand] = int(value) & (1 << max(width(kind), 1)) - 1

    # ---- Instructions of one thread.

    def step(self, thread, name, operands):
        kind = name[-1]
        get = lambda i, k=None: self.number(thread, operands[i], k or kind)
        put = lambda value, k=None: self.write(thread, operands[0], value, k or kind)
        operation = name[0]
        if operation in ("ld", "st"):
            self.access(thread, name, operands)
        elif operation == "mov":
            if operands[1][0] == "{":
                low, high = (self.read(thread, part) for part in parts(operands[1]))
                half = width(kind) // 2
                put(low & (1 << half) - 1 | high << half)
            elif operands[0][0] == "{":
                half = width(kind) // 2
                for i, part in enumerate(parts(operands[0])):
                    self.write(thread, part, self.read(thread, operands[1]) >> half * i, "b%d" % half)
            else:
                put(self.read(thread, operands[1]) & (1 << max(width(kind), 1)) - 1)
        elif operation == "cvta":
            value = self.read(thread, operands[1])
            put(value + (0 if "shared" not in name else -SHARED_WINDOW if "to" in name else SHARED_WINDOW))
        elif operation == "cvt":
            self.convert(thread, name, operands)
        elif operation in ("add", "sub"):
            put(get(1) + get(2) * (1 if operation == "add" else -1))
        elif operation in ("mul", "mad"):
            if kind in FORMATS:
                put(get(1) * get(2))
            else:
                product = get(1) * get(2)
                if "hi" in name:
                    product >>= width(kind)
                wide = kind[0] + str(2 * width(kind)) if "wide" in name else kind
                if operation == "mad":
                    product += self.number(thread, operands[3], wide)
                put(product, wide)
        elif operation == "fma":
            put(get(1) * get(2) + get(3))
        elif operation == "neg":
            put(-get(1))
        elif operation == "abs":
            put(abs(get(1)))
        elif operation == "not":
            put(~self.read(thread, operands[1]))
        elif operation in ("and", "or", "xor"):
            a, b = self.read(thread, operands[1]), self.read(thread, operands[2])
            put(a & b if operation == "and" else a | b if operation == "or" else a ^ b)
        elif operation == "lop3":  # bit i of the table: for the operands' bits i / 4, i / 2 % 2, i % 2
            a, b, c = (self.read(thread, operand) & 0xFFFFFFFF for operand in operands[1:4])
            table, result = constant(operands[4]), 0
            for i in range(8):
                if table >> i & 1:
                    result |= (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
            put(result & 0xFFFFFFFF)
        elif operation == "shl":
            count = self.read(thread, operands[2]) & 0xFFFFFFFF
            put(0 if count >= width(kind) else get(1) << count)
        elif operation == "shr":
            put(get(1) >> min(self.read(thread, operands[2]) & 0xFFFFFFFF, width(kind)))
        elif operation in ("min", "max"):
            a, b = get(1), get(2)
            put(math.nan if "NaN" in name and (a != a or b != b) else extreme(operation, a, b))
        elif operation in ("div", "rem"):
            a, b = get(1), get(2)
            quotient = divided(a, b) if kind in FORMATS else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            put(quotient if operation == "div" else a - b * quotient)
        elif operation == "bfe":
            at, count = self.read(thread, operands[2]) & 255, self.read(thread, operands[3]) & 255
            field = self.read(thread, operands[1]) >> at & (1 << count) - 1
            put(signed(field, count) if kind[0] == "s" and count else field)
        elif operation == "bfi":
            at, count = self.read(thread, operands[3]) & 255, self.read(thread, operands[4]) & 255
            mask = (1 << count) - 1
            put(self.read(thread, operands[2]) & ~(mask << at) | (self.read(thread, operands[1]) & mask) << at)
        elif operation == "shf":
            low, high, by = (self.read(thread, operands[k]) for k in (1, 2, 3))
            by = by & 31 if "wrap" in name else min(by, 32)
            both = high << 32 | low
            self.write(thread, operands[0], (both >> by if name[1] == "r" else both << by >> 32) & 0xffffffff, "b32")
        elif operation == "prmt":
            both = self.read(thread, operands[1]) & 0xFFFFFFFF | (self.read(thread, operands[2]) & 0xFFFFFFFF) << 32
            choice = self.read(thread, operands[3])
            found = [both >> 8 * (choice >> 4 * i & 7) & 255 for i in range(4)]
            put(sum((255 * (byte >> 7) if choice >> 4 * i & 8 else byte) << 8 * i for i, byte in enumerate(found)))
        elif operation == "setp":
            a, b = get(1), get(2)
            compare = name[1]
            put({"eq": a == b, "ne": a == a and b == b and a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b,
                 "nan": a != a or b != b, "num": a == a and b == b, "neu": not a == b, "ltu": not a >= b, "leu": not a > b, "gtu": not a <= b, "geu": not a < b}[compare], "pred")
        elif operation == "atom":
            data, at = self.find(self.address_of(thread, operands[1]), width(kind) // 8, space_of(name))
            old = data[at:at + width(kind) // 8]
            assert name[2] == "cas", ".".join(name)
            put(int.from_bytes(old, "little"))
            if get(0) == get(2):
                data[at:at + len(old)] = (get(3) & (1 << width(kind)) - 1).to_bytes(len(old), "little")
        elif operation in ("fence", "membar", "griddepcontrol"):
            pass
        elif operation == "selp":
            put(self.read(thread, operands[1 if self.read(thread, operands[3]) & 1 else 2]))
        else:
            raise NotImplementedError(".".join(name))

    def convert(self, thread, name, operands):
        to, source = name[-2], name[-1]
        if to in ("bf16x2", "f16x2"):  # the first number is the upper half
            high, low = (from_float(self.number(thread, operand, source), to[:-2]) for operand in operands[1:3])
            self.write(thread, operands[0], high << 16 | low, "b32")
            return
        value = self.number(thread, operands[1], source)
        if "rna" in name:  # to tf32: 10 bits of fraction, ties away from zero
            self.write(thread, operands[0], (self.read(thread, operands[1]) + 0x1000) & 0xFFFFE000, "b32")
        elif to in FORMATS or to == "bf16":
            self.write(thread, operands[0], float(value), to)
        elif isinstance(value, float):  # what is beyond the range, cut to it
            least = -1 << width(to) - 1 if to[0] == "s" else 0
            most = least + (1 << width(to)) - 1
            self.write(thread, operands[0], 0 if value != value else int(max(least, min(most, value))), to)
        elif to == "s8":  # a register has 16 bits at least: the sign goes on
            self.write(thread, operands[0], signed(int(value), 8), "s32")
        else:
            self.write(thread, operands[0], int(value), to)

    def address_of(self, thread, operand):
        base, offset = place(operand)
        return self.read(thread, base) + offset

    @staticmethod
    def find_local(thread, address, size):
        """Registers of 32 bits may hold an address below 0, to which an offset is added."""
        address &= 0xFFFFFFFF
        if address + size > len(thread.local):
            raise IndexError(f"{address:#x} is not in a thread's memory")
        return thread.local, address

    def access(self, thread, name, operands):
        kind, load = name[-1], name[0] == "ld"
        space = space_of(name)
        values, at = (operands[0], operands[1]) if load else (operands[1], operands[0])
        address, registers = self.address_of(thread, at), parts(values)
        size = max(width(kind) // 8, 1)
        whole = size * len(registers)
        if address % whole:
            raise IndexError(f"{address:#x} is not aligned to {whole}: {'.'.join(name)}")
        for i, register in enumerate(registers):
            data, at = self.find_local(thread, address + i * size, size) if space == "local" else self.find(address + i * size, size, space)
            if load:
                value = int.from_bytes(data[at:at + size], "little")
                self.write(thread, register, signed(value, width(kind)) if kind[0] == "s" else value,
                           "b64" if register.startswith("%rd") else "b32")
            else:
                value = self.read(thread, register) & (1 << width(kind)) - 1
                data[at:at + size] = value.to_bytes(size, "little")

    # ---- Instructions of a warp.

    def members(self, warp, operand, everyone):
        """All lanes the mask names must be there, but for those that never were or have ended."""
        mask = self.read(warp[0], operand) & 0xFFFFFFFF
        here = {thread.index % 32 for thread in warp}
        missing = [t.index for t in everyone if t.state != "ended" and mask >> t.index % 32 & 1 and t.index % 32 not in here]
        assert not missing, f"mask {mask:#x} names threads {missing}, which are elsewhere"
        assert all(mask >> lane & 1 for lane in here), f"mask {mask:#x} leaves out one of {here}"

    def shuffle(self, warp, name, operands, everyone):
        self.members(warp, operands[4], everyone)
        by_lane, got = {thread.index % 32: thread for thread in warp}, {}
        for thread in warp:
            lane, b, c = thread.index % 32, self.read(thread, operands[2]), self.read(thread, operands[3])
            kept, clamp = c >> 8 & 31, c & 31
            source = lane ^ b if "bfly" in name else lane & kept | b & ~kept & 31
            if source > (lane & kept | clamp & ~kept):
                source = lane
            # From a lane that is off comes anything: something that would be noticed.
            got[thread] = self.read(by_lane[source], operands[1]) if source in by_lane else 0x7FC0DEAD
        for thread, value in got.items():
            self.write(thread, operands[0], value, "b32")

    def reduce(self, warp, name, operands):
        """Of the lanes that take part; s32 in two's complement."""
        signed = name[-1] == "s32"
        numbers = [((self.read(thread, operands[1]) & 0xffffffff) ^ (signed << 31)) - (signed << 31) for thread in warp]
        result = sum(numbers) if name[2] == "add" else min(numbers) if name[2] == "min" else max(numbers)
        for thread in warp:
            self.write(thread, operands[0], result, "b32")

    def vote(self, warp, name, operands, everyone):
        self.members(warp, operands[2], everyone)
        result, kind = voted(name, {thread.index % 32: self.read(thread, operands[1]) & 1 for thread in warp})
        for thread in warp:
            self.write(thread, operands[0], result, kind)

    def note_active(self, lanes, operands):
        """`lanes`: those of a warp that run the instruction at once."""
        mask = sum(1 << thread.index % 32 for thread in lanes)
        for thread in lanes:
            self.write(thread, operands[0], mask, "b32")

    def multiply(self, warp, name, operands):
        """Fragments as the PTX ISA gives them: groupID = lane >> 2, threadID_in_group = lane % 4."""
        assert len(warp) == 32, "mma wants the whole warp"
        kind, depth = name[7], int(name[3].rpartition("k")[2])
        d, a, b, c = (parts(operand) for operand in operands)
        left, right, sums = {}, {}, {}
        for thread in warp:
            group, member = divmod(thread.index % 32, 4)
            values = lambda part: [self.read(thread, register) for register in part]
            if kind == "tf32":
                for i, bits in enumerate(values(a)):
                    left[group + 8 * (i & 1), member + 4 * (i >> 1)] = to_float(bits & 0xFFFFE000, "f32")
                for i, bits in enumerate(values(b)):
                    right[member + 4 * i, group] = to_float(bits & 0xFFFFE000, "f32")
            else:
                for i, bits in enumerate(values(a)):
                    for e in range(2):
                        left[group + 8 * (i & 1), member * 2 + e + 8 * (i >> 1)] = to_float(bits >> 16 * e & 0xFFFF, kind)
                for i, bits in enumerate(values(b)):
                    for e in range(2):
                        right[member * 2 + e + 8 * i, group] = to_float(bits >> 16 * e & 0xFFFF, kind)
            for i, bits in enumerate(values(c)):
                sums[group + 8 * (i >> 1), member * 2 + (i & 1)] = to_float(bits, "f32")
        assert len(left) == 16 * depth and len(right) == 8 * depth and len(sums) == 128
        for thread in warp:
            group, member = divmod(thread.index % 32, 4)
            for i, register in enumerate(d):
                row, column = group + 8 * (i >> 1), member * 2 + (i & 1)
                total = sums[row, column] + sum(left[row, k] * right[k, column] for k in range(depth))
                self.write(thread, register, float(total), "f32")

    def load_matrices(self, warp, name, operands):
        """Lanes 8 m … 8 m + 7 name the rows of matrix m; a lane gets two neighbours of a row, or of a column."""
        assert len(warp) == 32, "ldmatrix wants the whole warp"
        registers = parts(operands[0])
        assert name[4] == f"x{len(registers)}", f"{name[4]} with {len(registers)} registers"
        for matrix, register in enumerate(registers):
            rows = []
            for row in range(8):
                thread = warp[matrix * 8 + row]
                base, offset = place(operands[1])
                address = self.read(thread, base) + offset
                assert address % 16 == 0, f"a row at {address}"
                rows.append(self.shared[address:address + 16])
                assert len(rows[-1]) == 16, f"a row at {address} of {len(self.shared)}"
            for thread in warp:
                group, member = divmod(thread.index % 32, 4)
                places = [(2 * member + e, group) if "trans" in name else (group, 2 * member + e) for e in range(2)]
                values = [rows[r][2 * c] | rows[r][2 * c + 1] << 8 for r, c in places]
                self.write(thread, register, values[0] | values[1] << 16, "b32")

    def transpose(self, warp, _, operands):
        """Lane 4 r + p has elements 2 p and 2 p + 1 of row r."""
        assert len(warp) == 32, "movmatrix wants the whole warp"
        words = [self.read(thread, operands[1]) for thread in warp]
        element = lambda row, column: words[4 * row + column // 2] >> 16 * (column % 2) & 0xFFFF
        for i, thread in enumerate(warp):
            row, pair = divmod(i, 4)
            self.write(thread, operands[0], element(2 * pair, row) | element(2 * pair + 1, row) << 16, "b32")

    # ---- A launch.

    def run_block(self, group):
        self.group, threads = group, [Thread(i) for i in range(self.block)]
        while True:
            running = [t for t in threads if t.state == "runs"]
            if not running:
                waiting = [t for t in threads if t.state == "waits"]
                if not waiting:
                    return
                for thread in waiting:
                    thread.state = "runs"
                continue
            pc = min(t.pc for t in running)
            name, operands, guard = self.code[pc]
            here = [t for t in running if t.pc == pc]
            self.counts[name[0]] = self.counts.get(name[0], 0) + 1
            taken = here if guard is None else [t for t in here if (self.read(t, guard[0]) & 1) != guard[1]]
            if name[0] == "bra" and "uni" in name:
                for first in range(0, self.block, 32):
                    parted = len({thread in taken for thread in here if first <= thread.index < first + 32}) > 1
                    assert not parted, f"lanes part at a branch that all take alike: {operands}"
            for thread in here:
                thread.pc += 1
            if name[0] in ("activemask", "shfl", "vote", "redux", "mma", "ldmatrix", "movmatrix"):
                for first in range(0, self.block, 32):
                    warp = [t for t in taken if first <= t.index < first + 32]
                    if not warp:
                        continue
                    if name[0] == "shfl":
                        self.shuffle(warp, name, operands, threads[first:first + 32])
                    elif name[0] == "activemask":
                        self.note_active(warp, operands)
                    elif name[0] == "vote":
                        self.vote(warp, name, operands, threads[first:first + 32])
                    elif name[0] == "redux":
                        self.reduce(warp, name, operands)
                    else:
                        {"mma": self.multiply, "ldmatrix": self.load_matrices, "movmatrix": self.transpose}[name[0]](warp, name, operands)
                continue
            for thread in taken:
                if name[0] == "bra":
                    thread.pc = self.labels[operands[0]]
                elif name[0] in ("ret", "exit"):
                    thread.state = "ended"
                elif name[0] in ("bar", "barrier"):
                    thread.state = "waits" if name[1] != "warp" else "runs"
                else:
                    self.step(thread, name, operands)

    def run(self, text, slots, groups, threads, shared=1 << 16, stop=0, extents=()):
        """`slots`: addresses of buffers, in the order of the kernel's arguments. Groups and threads of one dimension.

        For checked code, `stop`: the address of its struct cuda_stop; `extents`: start and bytes of each slot."""
        self.parse(text)
        self.block = threads
        self.shared = bytearray(shared)
        words = [threads * groups[0], groups[1], groups[2], threads, 1, 1, *groups, 0]
        self.parameters = bytearray(struct.pack("<10I2Q", *words, stop, 0) + struct.pack(f"<{len(slots)}Q", *slots))
        for extent in extents:
            self.parameters += struct.pack("<2Q", *extent)
        for z in range(groups[2]):
            for y in range(groups[1]):
                for x in range(groups[0]):
                    self.run_block((x, y, z))
