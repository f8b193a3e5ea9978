#!/usr/bin/env python3
"""Draws random mutants of smelt's sources and builds a library of each, to be tried by sample_try.py.

    tests/mutations/sample.py FOLDER --seed N [--count 60] [--build build] [--only 3 17]
    tests/mutations/sample.py --list --seed N            prints candidates instead of building them

A mutant changes one token of the C in src/compiler, src/device/cpu and src/source: a comparison, an operator, a
constant, a condition. Each folder gets its share of the mutants by its lines. The same seed and sources give the same
mutants. One that does not compile, or whose object file has the bytes of the unchanged one, makes way for the next.

FOLDER gets list.tsv (number, place, change, line) and for each mutant a folder NN with what takes the place of the build's
files: lib/ and, where unit tests contain the mutant's object, tests/. The build must have no lib/smelt-cc1, which would
compile in place of the mutant: -DSMELT_CC1=OFF.
"""
import argparse
import json
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDERS = ("compiler/simd", "compiler/ptx", "compiler", "compiler/passes", "compiler/cpu", "device/cpu", "source")
LEAST = 6  # mutants of a folder
TOKEN = re.compile(r"""(?P<skip>//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n\\]|\\.)*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<name>[A-Za-z_]\w*)|(?P<number>(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*)(?![\w.])
    |(?P<sign><<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[^\s\w])""", re.M | re.S | re.X)
SWAPS = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",),
         "&&": ("||",), "||": ("&&",), "+": ("-",), "-": ("+",), "*": ("/", "+"), "/": ("*",), "%": ("/",), "<<": (">>",),
         ">>": ("<<",), "&": ("|",), "|": ("&",), "+=": ("-=",), "-=": ("+=",), "|=": ("&=",), "&=": ("|=",),
         "*=": ("/=",), "/=": ("*=",), "<<=": (">>=",), ">>=": ("<<=",)}
# The unit tests that contain the objects of libsmelt and are near these folders.
UNIT_TESTS = {"source": "balance program rewrite signature token",
              "cpu": "engine gang image interrupt isolation kernel_errors kernel_log machine shape"}


def folder_of(path):
    """The one of FOLDERS that a path, from the root on, lies in; the longest of several."""
    fitting = [folder for folder in FOLDERS if str(path).startswith(f"src/{folder}/")]
    return max(fitting, key=len, default=None)


def files_of(folder):
    paths = [path.relative_to(ROOT) for path in sorted((ROOT / "src" / folder).rglob("*.c"))]
    return [path for path in paths if folder_of(path) == folder] or sys.exit(f"sample.py: there is no C in src/{folder}")


class Mutant:
    """`text[begin:end]` of the file becomes `new`."""

    def __init__(self, path, text, begin, end, new):
        self.path, self.text, self.begin, self.end, self.new = path, text, begin, end, new

    def place(self):
        return f"{self.path}:{self.text.count(chr(10), 0, self.begin) + 1}"

    def change(self):
        old = " ".join(self.text[self.begin:self.end].split())
        return f"!{old}" if self.new.startswith("(!") else f"{old} → {self.new or 'nothing'}"

    def line(self):
        return self.text[self.text.rfind("\n", 0, self.begin) + 1:self.text.find("\n", self.end)].strip()

    def mutated(self):
        return self.text[:self.begin] + self.new + self.text[self.end:]


# ---- Where a file can be changed.


def closing(tokens, at):
    """The index of the parenthesis that closes tokens[at]."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[i].group(), 0)
        if depth == 0:
            return i
    return len(tokens) - 1


def of_messages(tokens):
    """Indices of the tokens in calls that are given a sentence: what they change is a text."""
    found = set()
    for i, token in enumerate(tokens[:-1]):
        if token.lastgroup != "name" or tokens[i + 1].group() != "(":
            continue
        end = closing(tokens, i + 1)
        depth, sentence = 0, False
        for t in tokens[i + 1:end]:
            depth += {"(": 1, ")": -1}.get(t.group(), 0)
            sentence = sentence or (depth == 1 and t.group().startswith('"') and " " in t.group())
        if sentence and token.group() not in ("if", "while", "for", "switch", "return"):
            found.update(range(i, end + 1))
    return found


def number_swaps(text):
    digits = re.match(r"0[xX][0-9a-fA-F]+|\d+", text).group()
    suffix, value = text[len(digits):], int(digits, 16 if digits[:2].lower() == "0x" else 10)
    return [f"{new}{suffix}" for new in sorted({value + 1, value - 1, 0} - {value}) if new >= 0]


def is_binary(text, token):
    """clang-format writes binary operators between blanks, pointers and signs not."""
    return text[token.start() - 1] in " \n" and text[token.end()] in " \n"


def swaps(text, tokens, i):
    """Triples: begin, end, new text."""
    token, word = tokens[i], tokens[i].group()
    begin, end = token.span()
    if token.lastgroup == "number":
        return [(begin, end, new) for new in number_swaps(word)]
    if word in ("true", "false"):
        return [(begin, end, "false" if word == "true" else "true")]
    if word == "if" and tokens[i + 1].group() == "(":
        open_, close = tokens[i + 1].start(), tokens[closing(tokens, i + 1)].end()
        return [(open_, close, f"(!{text[open_:close]})")]
    if word == "!" and token.lastgroup == "sign":
        return [(begin, end, "")]
    if token.lastgroup == "sign" and word in SWAPS and is_binary(text, token):
        return [(begin, end, new) for new in SWAPS[word]]
    return []


def sites(path):
    """For each token that can be changed the mutants that do."""
    text = (ROOT / path).read_text(encoding="utf-8")
    everything = list(TOKEN.finditer(text))
    tokens = [t for t in everything if t.lastgroup != "skip" or t.group().startswith('"')]
    left_out = of_messages(tokens)
    found = []
    for i, token in enumerate(tokens):
        changes = [] if i in left_out or token.lastgroup == "skip" else swaps(text, tokens, i)
        if changes:
            found.append([Mutant(path, text, *change) for change in changes])
    return found


def shares(lines, count):
    """How many mutants each folder gets: by lines, and at least LEAST."""
    total = sum(lines.values())
    exact = {folder: max(LEAST, count * n / total) for folder, n in lines.items()}
    result = {folder: int(value) for folder, value in exact.items()}
    for folder in sorted(exact, key=lambda f: result[f] - exact[f])[:max(0, count - sum(result.values()))]:
        result[folder] += 1
    return result


def candidates(folder, generator):
    """The folder's mutants, shuffled; at most one a token."""
    places = [site for path in files_of(folder) for site in sites(path)]
    generator.shuffle(places)
    return (generator.choice(site) for site in places)


# ---- Building.


class Build:
    """A build of the unchanged sources, whose objects all mutants share but for one."""

    def __init__(self, folder, scratch):
        self.folder, self.scratch = folder.resolve(), scratch
        commands = json.loads((self.folder / "compile_commands.json").read_text())
        self.compiles = {str(pathlib.Path(c["file"]).relative_to(ROOT)): shlex.split(c["command"]) for c in commands
                         if re.search(r" -o CMakeFiles/smelt_(compiler_)?objects\.dir/src/", c["command"])}
        self.links = {}

    def compile(self, path, text):
        """The object file of the text, None if it does not compile. Its name and command are always the same."""
        command = list(self.compiles[str(path)])
        source, target = self.scratch / path.name, self.scratch / (path.name + ".o")
        source.write_text(text, encoding="utf-8")
        target.unlink(missing_ok=True)
        command[command.index("-o") + 1], command[command.index("-c") + 1] = str(target), str(source)
        command = [word for word in command if word != "-Werror"] + ["-w", f"-I{(ROOT / path).parent}"]
        subprocess.run(command, cwd=self.folder, capture_output=True, check=False, timeout=300)
        return target.read_bytes() if target.exists() else None

    def link_command(self, target):
        if target not in self.links:
            done = subprocess.run(["ninja", "-C", self.folder, "-t", "commands", "-s", target], capture_output=True, text=True,
                                  check=True)
            self.links[target] = done.stdout.strip().splitlines()[-1]
        return self.links[target]

    def link(self, target, mutant, out):
        """The library or program with the scratch object in the place of the mutant's; the build's own stays."""
        compile_, command = self.compiles[str(mutant.path)], self.link_command(target)
        original = compile_[compile_.index("-o") + 1]
        if original not in command:
            return False
        command = command.replace(original, str(self.scratch / (mutant.path.name + ".o")))
        command = command.replace(f"-o {target}", f"-o {out.resolve()}")
        out.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(command, cwd=self.folder, shell=True, check=True, capture_output=True)
        subprocess.run(["strip", "--strip-unneeded", out], check=True)
        return True


def differs(build, mutant):
    """Whether it compiles, and to something else."""
    unchanged = build.compile(mutant.path, mutant.text)
    if unchanged is None:
        sys.exit(f"{mutant.path}: the unchanged file does not compile")
    changed = build.compile(mutant.path, mutant.mutated())
    return changed is not None and changed != unchanged


def save(build, mutant, folder):
    (folder / "patch").mkdir(parents=True, exist_ok=True)
    (folder / "patch" / mutant.path.name).write_text(mutant.mutated(), encoding="utf-8")
    for library in ("lib/libsmelt_compiler.so", "lib/libsmelt.so"):
        build.link(library, mutant, folder / library)
    for test in UNIT_TESTS.get(pathlib.Path(folder_of(mutant.path)).name, "").split():
        build.link(f"tests/unit_{test}", mutant, folder / f"tests/unit_{test}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", type=int, nargs="+", metavar="NUMBER", help="save these mutants only")
    parser.add_argument("--list", action="store_true", help="print the first candidates of each folder, build nothing")
    options = parser.parse_args()
    lines = {f: sum((ROOT / path).read_text().count("\n") for path in files_of(f)) for f in FOLDERS}
    rows, number, passed_over = [], 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        build = None if options.list else Build(options.build, pathlib.Path(scratch))
        for folder, share in shares(lines, options.count).items():
            drawn = candidates(folder, random.Random(f"{options.seed} {folder}"))
            while share:
                mutant = next(drawn)
                if not options.list and not differs(build, mutant):
                    passed_over += 1
                    continue
                number, share = number + 1, share - 1
                rows.append(f"{number:02}\t{mutant.place()}\t{mutant.change()}\t{mutant.line()}\n".replace("\n", " ").strip() + "\n")
                print(rows[-1], end="", flush=True)
                if not options.list and (not options.only or number in options.only):
                    save(build, mutant, options.folder / f"{number:02}")
    if not options.list:
        (options.folder / "list.tsv").write_text("".join(rows), encoding="utf-8")
        print(f"{number} mutants; {passed_over} were passed over: they do not compile or change nothing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
