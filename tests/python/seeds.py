"""The seeds' documents, and the code in them: found, not copied, so that no text of theirs is kept here.

Two of them need repair. Document 000 was flattened: every line end is a space, Markdown's characters are escaped with
backslashes, and text between a `<` and the next `>` is gone in places. What can be told from the text itself is put
back: line ends and indentation of Python (relayout_python), the ends of `//` comments in Metal (relayout_metal), and
`#include` lines that lost their names are left out. What was lost stays lost; tests of those places are our own.
Document 003 kept its lines but has no marks around its code (python_regions)."""

from __future__ import annotations

import ast
import os
import pathlib
import re

import pytest

FOLDER = pathlib.Path(os.environ.get("SMELT_TEST_SEEDS")
                      or pathlib.Path(__file__).resolve().parents[3] / "shared" / "seeds")


def document(number: str) -> str:
    """The text of the seed whose file name begins with number ("000"); the test is skipped where it is not here."""
    files = sorted(FOLDER.glob(f"{number}_*.txt"))
    if not files:
        pytest.skip(f"the seeds' document {number} is not in {FOLDER}")
    return files[0].read_text()


def with_smelt(code: str) -> str:
    """The code, importing smelt where it imported MLX."""
    return code.replace("import mlx.core as mx", "import smelt as mx")


# ---- Flattened Markdown.


def fenced_blocks(text: str) -> list[str]:
    """The Python blocks of flattened Markdown in the order of the text, without its escapes, still flat: see
    relayout_python."""
    return re.findall(r"```python (.*?) ```", re.sub(r"\\+", "", text), re.S)


def find_block(blocks: list[str], *needles: str) -> str:
    """The one block that contains all needles."""
    found = [block for block in blocks if all(needle in block for needle in needles)]
    assert len(found) == 1, f"{len(found)} blocks contain {needles}"
    return found[0]


_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<comment>\#)
      | (?P<string>[a-zA-Z]{0,2}(?:\"{3}.*?\"{3}|"[^"]*"|'[^']*'))
      | (?P<word>\w[\w.]*)
      | (?P<open>[(\[{]) | (?P<close>[)\]}])
      | (?P<other>\.\.\.|.)""", re.S | re.X)
# Words after which an expression goes on, or one has yet to come.
_OPERATORS = {"and", "or", "not", "in", "is", "if", "else", "for", "as", "lambda", "from", "import", "def", "class",
              "return", "raise", "assert", "while", "with", "del", "elif", "except", "global", "nonlocal"}
_STATEMENTS = {"import", "from", "def", "class", "return", "raise", "assert", "while", "with", "del", "pass", "break",
               "continue", "global", "nonlocal", "try", "for"}
_HEADERS = {"def", "class", "if", "elif", "else", "for", "while", "try", "finally", "except", "with"}
_SECOND_HALVES = {"else": {"if", "elif", "for", "while", "except", "try"}, "elif": {"if", "elif"},
                  "except": {"try", "except"}, "finally": {"try", "except", "else"}}
_LEAVES = {"return", "raise", "break", "continue"}


def relayout_python(flat: str) -> str:
    """Python whose line ends became spaces, with line ends and indentation again.

    A statement ends where, outside brackets, one operand follows another; a block ends behind return, raise, break and
    continue, and before finally, except, elif and else. A comment ends before the next assignment, `...`, or closing
    bracket that it did not open. That is enough for plain code; what comes out parses, or it is a ValueError."""
    tokens = _tokens(flat)
    lines: list[tuple[int, str]] = []  # indentation and text
    current: list[str] = []
    indent = depth = 0
    ended = False  # whether the last token can end a statement

    def end_line() -> None:
        nonlocal indent, ended
        text = "".join(current).strip()
        if text:
            lines.append((indent, text))
            if text.split("(")[0].split()[0] in _LEAVES and indent:
                indent -= 1
        current.clear()
        ended = False

    for index, (kind, token) in enumerate(tokens):
        if kind == "space":
            current.append(" ")
            continue
        if kind == "comment":
            if depth:
                current.append(token + "\n")
            else:
                end_line()
                lines.append((indent, token))
            continue
        if depth == 0 and ended and _begins_statement(tokens, index, "".join(current)):
            end_line()
        if depth == 0 and token in _SECOND_HALVES and not "".join(current).strip():
            halves = _SECOND_HALVES[token]
            indent = next((at for at, text in reversed(lines)
                           if at <= indent and text.rstrip(":").split()[0] in halves and text.endswith(":")), indent)
        current.append(relayout_metal(token) if kind == "string" and token.endswith('"""') else token)
        depth += (kind == "open") - (kind == "close")
        ended = kind in ("string", "close") or token == "..." or (kind == "word" and token not in _OPERATORS)
        if token == ":" and depth == 0 and re.split(r"\W", "".join(current).strip())[0] in _HEADERS:
            end_line()
            indent += 1
    end_line()
    text = "".join("    " * at + line + "\n" for at, line in lines)
    try:
        ast.parse(text)
    except SyntaxError as error:
        raise ValueError(f"the block cannot be laid out ({error}):\n{text}") from None
    return text


def _tokens(flat: str) -> list[tuple[str, str]]:
    tokens, position = [], 0
    while position < len(flat):
        match = _TOKEN.match(flat, position)
        end = match.end() if match.lastgroup != "comment" else _comment_end(
            flat, position + 1, r"(?<![\w.])[A-Za-z_][\w.]*\s*=(?!=)|\.\.\.|\#|\b(?:return|import)\b")
        tokens.append((match.lastgroup, flat[position:end].strip() or " "))
        position = end
    return tokens


def _comment_end(text: str, start: int, code: str) -> int:
    """Where a comment that begins before start ends: at the first match of code, or bracket that it did not open (but
    that of an item's number: "1)")."""
    match = re.compile(code).search(text, start)
    end, depth = match.start() if match else len(text), 0
    for position in range(start, end):
        numbers = text[position - 1].isdigit() and depth == 0
        depth += (text[position] in "([{") - (text[position] in ")]}" and not numbers)
        if depth < 0:
            return position
    return end


def _begins_statement(tokens: list[tuple[str, str]], index: int, line: str) -> bool:
    """Whether the token, which follows an operand outside brackets, begins a statement."""
    kind, token = tokens[index]
    if token == "@":  # a decorator, not a product of matrices
        return [t for _, t in tokens[index + 2:index + 4]] in ([" ", "def"], ["(", ")"])
    if token in ("if", "else"):
        # In a conditional expression an else comes before the next colon; and an else then has its if.
        behind = [t for _, t in tokens[index + 1:]]
        conditional = "else" in behind[:behind.index(":")] if ":" in behind and token == "if" else " if " in line
        return not conditional
    if token in _STATEMENTS:
        return not (token == "import" and line.lstrip().startswith("from "))
    if token in _SECOND_HALVES:
        return True
    return token == "..." or (kind == "word" and token not in _OPERATORS) or (
        kind == "string" and not line.rstrip().endswith(("'", '"')))


_METAL_CODE = (
    r"//"
    r"|\b(?:(?:u?(?:int|char|short|long)|float|half|bool|auto|size_t|[A-Z])\d?\s+\w+\s*[=;(\[,]|(?:for|if|while)\s*\()"
    r"|(?<![\w.])[A-Za-z_]\w*(?:\[[^\]]*\])?\s*[-+*/|&^]?=(?!=)|\b\w+\([^()]*\)\s*;")


def relayout_metal(flat: str) -> str:
    """Metal whose line ends became spaces: `//` comments end before what looks like a statement, directives are on
    lines of their own, and an `#include` that lost its `<name>` is left out. The rest needs no lines."""
    flat = re.sub(r"#include (?![<\"])", "", flat)
    pieces, position = [], 0
    while (start := flat.find("//", position)) >= 0:
        end = _comment_end(flat, start + 2, _METAL_CODE)
        pieces += [flat[position:start], flat[start:end].rstrip(), "\n"]
        position = end
    return "".join(pieces) + flat[position:]


# ---- Code that stands unmarked in text with its lines.


def python_regions(text: str) -> list[str]:
    """The longest runs of lines that are imports, assignments, definitions and asserts in Python, in order."""
    lines, regions, index = text.split("\n"), [], 0
    while index < len(lines):
        end = _region_end(lines, index)
        if end > index:
            regions.append("\n".join(lines[index:end]) + "\n")
        index = max(end, index + 1)
    return regions


def _region_end(lines: list[str], start: int) -> int:
    """Behind the last line of the longest region from start; start if none begins there."""
    if not re.match(r"(import |from |def |@|assert |[A-Za-z_]\w*\s*=[^=])", lines[start]):
        return start
    best, length = start, 0
    for end in range(start + 1, len(lines) + 1):
        # Prose stands at the margin, and no statement begins like it.
        if length and re.match(r"[A-Z][a-z]+ |\s+•", lines[end - 1]):
            break
        try:
            statements = ast.parse("\n".join(lines[start:end])).body
        except SyntaxError:
            continue
        allowed = (ast.Import, ast.ImportFrom, ast.Assign, ast.FunctionDef, ast.Assert)
        if not all(isinstance(statement, allowed) for statement in statements):
            break
        best, length = end, len(statements)
    while best > start and not lines[best - 1].strip():
        best -= 1
    return best
