"""Whether PTX is well formed, as far as its text tells: it needs no assembler, which would find more.

problems_of(text, target) lists what is wrong, each with its line: a register, label or symbol that is used and not declared, a
register narrower or wider than the instruction's type, an initialiser that names no variable, an instruction that the target
does not have.
"""
import re

TOKEN = re.compile(r"[%$]?[\w$.]+(?:::[\w$.]+)*|\S")
NUMBER = re.compile(r"-?(0[xX][0-9a-fA-F]+U?|0[fd][0-9a-fA-F]+|\d+(\.\d+)?)$")
SPECIAL = re.compile(r"%(tid|ntid|ctaid|nctaid|laneid|warpid|nwarpid|smid|clock|clock64|globaltimer|lanemask_\w+|dynamic_smem_size"
                     r"|total_smem_size|clusterid|nclusterid|cluster_\w+|is_explicit_cluster|aggr_smem_size)(\.[xyz])?$")
WIDTHS = {"pred": 1, "b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16, "f16x2": 32, "bf16x2": 32,
          "b32": 32, "u32": 32, "s32": 32, "f32": 32, "tf32": 32, "b64": 64, "u64": 64, "s64": 64, "f64": 64, "b128": 128,
          "e4m3x2": 16, "e5m2x2": 16}
# The first target of an instruction (a pattern of its beginning), and what only one target has.
SINCE = {r"griddepcontrol\.": 90, r"cp\.async\.bulk": 90, r"stmatrix\.": 90, r"mapa\.": 90, r"barrier\.cluster": 90, r"elect\.": 90,
         r"fence\.proxy\.async": 90, r"mbarrier\.try_wait": 90, r"st\.async": 90, r"(add|sub|mul)(\.\w+)*\.bf16": 90,
         r"red\.\S*\.v[24]": 90, r"atom\.\S*\.v[24]": 90, r"cvt\.\S*e[45]m[23]x2": 89, r"mma\.\S*e[45]m[23]": 89,
         r"cp\.async": 80, r"redux\.": 80, r"ldmatrix\.": 75}
OF_ONE = {r"(wgmma|setmaxnreg)\.": "90a"}
# Of these, every register operand has the width of the last type. A wider register may take what is loaded or converted.
PLAIN = re.compile(r"(add|sub|mul\.lo|mul\.hi|mad\.lo|mad\.hi|min|max|abs|neg|and|or|xor|not|fma|div|rem|sqrt|rcp|rsqrt|mov|cnot|lg2|ex2|sin"
                   r"|cos|tanh|mul|copysign)\.(?!wide)")


class Checker:
    def __init__(self, target):
        self.number, self.only = int(re.search(r"\d+", target).group()), target.removeprefix("sm_")
        self.scopes, self.found, self.line = [{}], [], 0
        self.labels, self.jumps, self.symbols = set(), [], []

    def complain(self, text, line=None):
        self.found.append(f"line {line or self.line}: {text}")

    def declare(self, name, width):
        self.scopes[-1][name] = width

    def width_of(self, name):
        """The width of a register; 0: the name is not a register's; None: it is not declared."""
        if SPECIAL.match(name):
            return 0
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
            family = re.match(r"(%[a-z]+)(\d+)$", name)
            if family and (family.group(1), "count") in scope:
                count, width = scope[family.group(1), "count"]
                return width if 0 < int(family.group(2)) < count else None
        return None

    # ---- Directives.

    def registers(self, words):
        """.reg .b32 %r<16>, or names."""
        width = WIDTHS.get(words[1].removeprefix("."))
        if width is None:
            return self.complain(f"registers of an unknown type '{words[1]}'")
        rest = words[2:]
        while rest:
            if len(rest) > 3 and rest[1] == "<":
                self.scopes[-1][rest[0], "count"] = int(rest[2]), width
                rest = rest[5:]
            else:
                self.declare(rest[0], width)
                rest = rest[2:]

    def variable(self, words):
        """.global .align 4 .u64 table[2] = {first, generic(second)+8}; .param and .extern as well."""
        names = [w for w in words if re.match(r"[A-Za-z_$][\w$]*$", w)]
        if not names:
            return
        self.declare(names[0], 0)
        if "=" in words:
            for name in words[words.index("=") + 1:]:
                if re.match(r"[A-Za-z_$]", name) and name != "generic":
                    self.symbols.append((name, self.line))
            bits = re.search(r"\.([busf]\d+) " + re.escape(names[0]), " ".join(words))
            if any(n for n in names[1:] if n != "generic") and bits and bits.group(1) not in ("u64", "b64", "u8", "b8"):
                self.complain(f"'{names[0]}' holds an address in {bits.group(1)}")

    # ---- Instructions.

    def operands(self, words):
        for name in words:
            if name.startswith("%"):
                if self.width_of(name) is None:
                    self.complain(f"register {name} is not declared")
            elif re.match(r"[A-Za-z_$][\w$]*$", name) and not NUMBER.match(name) and name != "_":
                self.symbols.append((name, self.line))

    def known(self, name):
        return any(name in scope for scope in self.scopes)

    def check_widths(self, opcode, words):
        types = [t for t in opcode.split(".")[1:] if t in WIDTHS]
        if not types or not PLAIN.match(opcode + "."):
            return
        wanted = WIDTHS[types[-1]]
        for name in words:
            width = self.width_of(name) if name.startswith("%") else 0
            if width and width != wanted and "{" not in words and "[" not in words:
                self.complain(f"{opcode} takes {wanted} bits, but {name} has {width}")

    def instruction(self, words):
        if words[0] == "@":
            name = words[1:3] if words[1] == "!" else words[1:2]
            if self.width_of(name[-1]) != 1:
                self.complain(f"the condition {name[-1]} is no declared predicate")
            words = words[len(name) + 1:]
        opcode, rest = words[0], words[1:]
        lacking = any(self.number < since and re.match(pattern, opcode) for pattern, since in SINCE.items())
        if lacking or any(self.only != one and re.match(pattern, opcode) for pattern, one in OF_ONE.items()):
            self.complain(f"{opcode} is not an instruction of sm_{self.only}")
        if opcode.split(".")[0] in ("bra", "brx"):
            self.jumps += [(name, self.line) for name in rest if re.match(r"[A-Za-z_$]", name)]
            self.operands([name for name in rest if name.startswith("%")])
            return
        self.operands(rest)
        self.check_widths(opcode, rest)

    # ---- The text.

    def statement(self, words):
        if not words or words[0] in (".loc", ".file", ".section", ".pragma", ".version", ".target", ".address_size", ".maxntid",
                                     ".minnctapersm", ".maxnreg", ".reqntid", ".noreturn", ".explicitcluster", ".reqnctapercluster"):
            return
        if words[0] == ".reg":
            self.registers(words)
        elif words[0] in (".global", ".shared", ".local", ".const", ".param", ".extern", ".visible", ".weak", ".func", ".entry"):
            self.variable(words)
        elif words[0].startswith("."):
            if words[0] not in (".branchtargets", ".callprototype", ".calltargets"):
                self.complain(f"directive {words[0]} is unknown")
        else:
            self.instruction(words)

    def head(self, words):
        """The head of a function: declares its name and parameters."""
        for at, word in enumerate(words):
            if word.startswith(".param") or word in (".reg", ".entry", ".func"):
                names = [w for w in words[at + 1:] if re.match(r"[A-Za-z_$][\w$]*$", w)]
                if names:
                    self.declare(names[0], 0)
                if word == ".func":
                    for name in names:
                        self.declare(name, 0)

    def close(self):
        for name, line in self.jumps:
            if name not in self.labels:
                self.complain(f"label {name} does not exist", line)
        self.jumps, self.labels = [], set()

    def settle(self, inner=False):
        """Symbols may be declared after their use only at the level of the module."""
        self.symbols = [(name, line) for name, line in self.symbols if not self.known(name) and name not in self.labels]
        if not inner:
            for name, line in self.symbols:
                self.complain(f"'{name}' is not declared", line)

    def run(self, text):
        text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
        words, depth = [], 0
        for self.line, line in enumerate(text.splitlines(), 1):
            line = line.split("//")[0]
            if depth == 0 and re.match(r"\s*\.(version|target|address_size|file)\b", line):
                words = []
                continue
            if re.match(r"\s*\.(maxntid|minnctapersm|pragma|loc)\b", line):
                continue
            for word in TOKEN.findall(line):
                if word == "{" and (not words if depth else self.opens_body(words)):
                    self.scopes.append({})
                    self.head(words)
                    depth, words = depth + 1, []
                elif word == "}" and depth and not self.open_list(words):
                    self.settle(inner=True)
                    if depth == 1:
                        self.close()
                    names = self.scopes.pop()
                    depth, words = depth - 1, []
                    if depth == 0:
                        self.keep_functions(names)
                elif word == ";":
                    self.statement(words)
                    words = []
                elif word == ":" and len(words) == 1 and depth:
                    self.labels.add(words[0])
                    words = []
                else:
                    words.append(word)
        if depth:
            self.complain("a brace is not closed")
        self.settle()
        return self.found

    @staticmethod
    def opens_body(words):
        return ".entry" in words or ".func" in words

    @staticmethod
    def open_list(words):
        return words.count("{") > words.count("}")

    def keep_functions(self, names):
        """Functions are declared in the module, not in their own body."""
        self.scopes[0].update({name: 0 for name, width in names.items() if isinstance(name, str) and width == 0})


def problems_of(text, target):
    found = Checker(target).run(text)
    if not re.search(rf"^\.target {target}\b", text, re.M):
        found.insert(0, f"the text is not for {target}")
    return found
