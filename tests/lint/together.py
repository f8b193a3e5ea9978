"""Groups C files that a tool may read as one file, so that it reads their common headers once."""
import json
import os
import re
import shlex

COMMENT_OR_STRING = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"", re.DOTALL)
INCLUDE = re.compile(r"^# *include *([<\"].*?[>\"])", re.MULTILINE)
INLINE = re.compile(r"^static inline [^\n(]*?(\w+)\(", re.MULTILINE)
MACRO = re.compile(r"^# *define\s+(\w+)", re.MULTILINE)
ATTRIBUTE = re.compile(r"__attribute__\(\(.*?\)\)\s*")
# The name in a declaration that begins in the first column, or after a closing brace there.
DEFINED = re.compile(r"^(?=[A-Za-z_])[^\n]*?\b([A-Za-z_]\w*)\s*(?=[(=\[;{])|^\}[ \t]*(\w+)", re.MULTILINE)
CONSTANTS = re.compile(r"^(?:typedef )?enum\b[^;{(]*\{.*?\}", re.MULTILINE | re.DOTALL)
# Structures that a file takes from a header: no other file of its group may define their names.
TAG = re.compile(r"\b(?:struct|union|enum)\s+([A-Za-z_]\w*)")
TAG_DEFINED = re.compile(TAG.pattern + r"\s*\{")
FIELD = re.compile(r"(?:\.|->) *([A-Za-z_]\w*)")
WORD = re.compile(r"[A-Za-z_]\w*")
KEYWORDS = {"enum", "struct", "union", "sizeof", "_Static_assert"}
MOST_FILES = 16


class _File:
    """What a file includes and defines, and the names of the fields and of headers' structures that it uses."""

    def __init__(self, path):
        with open(path, encoding="utf-8", errors="replace") as stream:
            text = stream.read()
        self.headers = INCLUDE.findall(text)
        text = ATTRIBUTE.sub("", COMMENT_OR_STRING.sub("", text))
        self.macros = sorted(set(MACRO.findall(text)))
        self.defined = {name for found in DEFINED.findall(text) for name in found if not name.isupper()} - {""}
        for enumeration in CONSTANTS.findall(text):
            self.defined.update(name for name in WORD.findall(enumeration) if name.isupper())
        self.defined = self.defined - KEYWORDS | {"main"}
        self.fields = set(FIELD.findall(text))
        self.tags = set(TAG.findall(text)) - set(TAG_DEFINED.findall(text))


def _meet(one, other):
    """Whether both define a name that cannot be renamed because a field also has it, or one defines
    a name of a header's structure that the other uses."""
    return one.defined & other.defined & (one.fields | other.fields) or one.defined & other.tags or other.defined & one.tags


def _options(command):
    """The options of a command, without the compiler, the input and the output. Second, the option that defines the macro
    whose value differs for each file of tests/ml."""
    words = shlex.split(command)
    start = next((i for i, word in enumerate(words) if word.startswith("-")), 0)
    ends = [i for i, word in enumerate(words) if word in ("-o", "-c")]
    words = [word for i, word in enumerate(words) if i >= start and i not in ends and i - 1 not in ends]
    own = [word for word in words if word.startswith("-DSMELT_ML_NAME")]
    return tuple(word for word in words if word not in own), own


def _names_in_headers(folder):
    """The macros and inline functions that the folder's headers define."""
    names = set()
    for header in os.listdir(folder):
        if header.endswith(".h"):
            with open(os.path.join(folder, header), encoding="utf-8", errors="replace") as stream:
                text = stream.read()
            names.update(MACRO.findall(text) + INLINE.findall(text))
    return names


def groups(sources, commands):
    """Groups of files of one folder that are compiled with the same options. Each is a list of pairs: a path and its _File."""
    result = []
    alike = {}
    folders = {os.path.dirname(path) for path in commands}
    in_headers = {folder: _names_in_headers(os.path.join(sources, folder)) for folder in folders}
    for path in sorted(commands):
        file = _File(os.path.join(sources, path))
        alone = not path.endswith(".c") or any(header[1:-1].endswith(".c") for header in file.headers)
        if alone or not in_headers[os.path.dirname(path)].isdisjoint({*file.macros, *file.defined}):
            result.append([(path, file)])
            continue
        # Headers in tests/unit define names that other files also define, so files of a group include the same ones.
        beside = [header for header in file.headers if path.startswith("tests/unit/") and "/" not in header]
        here = alike.setdefault((os.path.dirname(path), _options(commands[path])[0], *sorted(beside)), [])
        group = next((g for g in here if len(g) < MOST_FILES and not any(_meet(file, other) for _, other in g)), None)
        if group is None:
            here.append([(path, file)])
        else:
            group.append((path, file))
    return result + [group for here in alike.values() for group in here]


def _text(sources, commands, group):
    """The group as one file: all headers, then each file. Names that other files also define are renamed."""
    lines = []
    for path, file in group:
        folder = os.path.join(sources, os.path.dirname(path))
        for header in file.headers:
            if header.endswith('.inc"'):
                continue  # rows of a table, included where they belong
            beside = os.path.join(folder, header[1:-1])
            lines.append(f"#include \"{beside}\"" if header[0] == "\"" and os.path.exists(beside) else f"#include {header}")
    lines = list(dict.fromkeys(lines))
    for number, (path, file) in enumerate(group):
        others = set().union(*(other.defined for _, other in group if other is not file))
        own = [option[2:].replace("=", " ", 1) for option in _options(commands[path])[1]]
        renamed = [f"{name} {name}_{number}" for name in sorted(file.defined & others)]
        lines += [f"#define {macro}" for macro in (*own, *renamed)]
        lines.append(f"#include \"{os.path.join(sources, path)}\" // NOLINT(bugprone-suspicious-include)")
        lines += [f"#undef {macro.split()[0]}" for macro in (*own, *renamed, *file.macros)]
    return "\n".join(lines) + "\n"


def write(folder, sources, commands):
    """Writes a file for each group into the folder, and a compile_commands.json for these and for each single file. Returns
    pairs: the file that a tool should read, and the files in it."""
    os.makedirs(folder, exist_ok=True)
    entries = []

    def add(name, options):
        entries.append({"directory": sources, "file": name, "arguments": ["cc", *options, "-c", name]})
    result = []
    for number, group in enumerate(groups(sources, commands)):
        for path, _ in group:
            alike, own = _options(commands[path])
            add(os.path.join(sources, path), [*alike, *own])
        name = os.path.join(sources, group[0][0])
        if len(group) > 1:
            name = os.path.join(folder, f"{number}.c")
            with open(name, "w", encoding="utf-8") as stream:
                stream.write(_text(sources, commands, group))
            add(name, alike)
        result.append((name, [path for path, _ in group]))
    with open(os.path.join(folder, "compile_commands.json"), "w", encoding="utf-8") as stream:
        json.dump(entries, stream)
    return result
