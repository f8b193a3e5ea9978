"""The place of a kernel's text in the caller's own file or notebook cell: compile errors name its lines.

Creating a kernel only records the callers' places; their files are read when there is an error to report."""
from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Iterator, Sequence
from types import FrameType

_MOST_CALLERS = 8
_MOST_NOTES = 10


class Origin:
    """Where a kernel or library was created, and its texts by their names in messages."""

    __slots__ = ("places", "texts")

    def __init__(self, places: tuple[tuple[str, int], ...], texts: dict[str, str]):
        self.places = places  # file and line of the callers, the nearest first
        self.texts = texts


def origin_of(texts: dict[str, str]) -> Origin:
    """The origin of texts that smelt was just given; callers within smelt are left out."""
    frame: FrameType | None = sys._getframe(1)
    places: list[tuple[str, int]] = []
    while frame is not None and len(places) < _MOST_CALLERS:
        name = frame.f_globals.get("__name__")
        if not (isinstance(name, str) and name.partition(".")[0] == "smelt"):
            places.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return Origin(tuple(places), texts)


def locate(origin: Origin, error: BaseException) -> None:
    """Adds to the message of `error` where the lines are that it names, if a caller's file holds the text as a
    literal. It never fails: missing places are left out."""
    try:
        message = str(error.args[0])
        notes = list(_notes(origin, message))
        if notes:
            error.args = ("\n".join([message, *notes]), *error.args[1:])
    except Exception:  # the error itself is what matters
        pass


def _notes(origin: Origin, message: str) -> Iterator[str]:
    labels = "|".join(re.escape(label) for label, text in origin.texts.items() if text.strip())
    places: dict[tuple[str, int], int] = {}  # the column that is named first of each line
    for label, line, column in re.findall(rf"(?<![^\s(])({labels}):(\d+)(?::(\d+))?", message) if labels else ():
        places.setdefault((label, int(line)), int(column or 0))
    literals: dict[str, _Literal | None] = {}
    for (label, line), column in list(places.items())[:_MOST_NOTES]:
        if label not in literals:
            literals[label] = _find(origin.places, origin.texts[label])
        literal = literals[label]
        place = literal.place_of(line, column) if literal else None
        if place:
            yield f"note: {label}:{line} is {place}"


class _Literal:
    """A string literal in a file whose lines are those of a kernel's text."""

    def __init__(self, file: str, first: int, shifts: list[int | None], single: bool):
        self.file = file
        self.first = first  # the file's line that has the text's first line
        self.shifts = shifts  # the offset of columns, for each line of the text; None: unknown
        self.single = single  # the whole literal is on one line of the file

    def place_of(self, line: int, column: int) -> str | None:
        """The place of a line and column (0: not known) of the text, as a message writes it."""
        if not 1 <= line <= len(self.shifts):
            return None
        at = self.first if self.single else self.first + line - 1
        shift = self.shifts[line - 1]
        cell = _cell_name(self.file)
        if cell:
            return f"{cell}, line {at}"
        return f"{self.file}:{at}:{column + shift}" if column and shift is not None else f"{self.file}:{at}"


def _cell_name(file: str) -> str | None:
    """IPython's name for a cell, "cell In[3]"; None for files."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return None
    named = getattr(shell.compile, "format_code_name", lambda name: None)(file)
    return f"{named[0].lower()} {named[1]}" if named else None


def _find(places: Sequence[tuple[str, int]], text: str) -> _Literal | None:
    """The literal, in the first caller's file that has it; of several the one nearest to the call."""
    seen = set()
    for file, call in places:
        if file in seen:
            continue
        seen.add(file)
        linecache.checkcache(file)
        lines = linecache.getlines(file)
        if not lines:
            continue
        try:
            tree = ast.parse("".join(lines))
        except (SyntaxError, ValueError):  # a cell with IPython's own syntax, a file that has changed
            continue
        found = [literal for node in ast.walk(tree)
                 if isinstance(node, ast.Constant) and isinstance(node.value, str)
                 and (literal := _match(node, node.value, file, lines, text))]
        if found:
            return min(found, key=lambda literal: abs(literal.first - call))
    return None


def _stripped(text: str) -> list[str]:
    """Its lines without indentation and blank ends: what textwrap.dedent, str.strip and the like leave alone."""
    return [line.strip() for line in text.strip().split("\n")]


def _blank_lines(text: str) -> int:
    return text[:len(text) - len(text.lstrip())].count("\n")


def _match(node: ast.Constant, literal: str, file: str, lines: list[str], text: str) -> _Literal | None:
    if literal != text and _stripped(literal) != _stripped(text):
        return None
    last = node.end_lineno or node.lineno
    count = text.count("\n") + 1
    if last == node.lineno:
        shift = lines[last - 1].find(text) if count == 1 else -1
        return _Literal(file, last, [shift if shift >= 0 else None] * count, True)
    # A literal of several lines begins on its own first line, or on the next one behind a backslash.
    value = literal.split("\n")
    skipped = last - node.lineno + 1 - len(value)
    if skipped not in (0, 1) or not _agrees(value, lines, node.lineno - 1 + skipped):
        return None
    # Of blank lines at the start the text may have lost some.
    first = node.lineno + skipped + _blank_lines(literal) - _blank_lines(text)
    shifts = [_shift(lines[first - 1 + i], line) if first - 1 + i < len(lines) else None
              for i, line in enumerate(text.split("\n"))]
    return _Literal(file, first, shifts, False)


def _agrees(value: list[str], lines: list[str], start: int) -> bool:
    """Are the literal's lines those of the file from `start`? With escapes a line may be another one."""
    for i, line in enumerate(value):
        if start + i >= len(lines):
            return False
        written = lines[start + i]
        if line.strip() not in written and "\\" not in written:
            return False
    return True


def _shift(written: str, line: str) -> int | None:
    """How many columns further right the file has the line."""
    at = written.find(line.strip())
    return at - (len(line) - len(line.lstrip())) if at >= 0 and line.strip() else None
