"""Runs the Python on a page of the docs: its ```python blocks in order, in one namespace, as a reader would type them.

A block of another language (or none) marked ```text right behind one is what it prints, compared line by line; `...`
in it stands for any text. A block that ends in an exception is right if what is printed ends with the exception, as
Python reports it: "ValueError: shape: …". Warnings are printed too, as "FallbackWarning: …"."""

from __future__ import annotations

import contextlib
import io
import pathlib
import re
import traceback
import warnings
from dataclasses import dataclass
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclass
class Snippet:
    """A block of code, the line of the page it begins on (from 1), and what it prints (None: the page does not say)."""

    code: str
    line: int
    expected: str | None = None


def snippets(page: str) -> list[Snippet]:
    """The ```python blocks in the text of a page, with the ```text blocks that follow them."""
    found: list[Snippet] = []
    lines = page.split("\n")
    index, fresh = 0, False  # fresh: nothing but blank lines and prose since the last Python block
    while index < len(lines):
        fence = re.fullmatch(r"(```+)\s*(\w*).*", lines[index])
        if not fence:
            index += 1
            continue
        end = next((i for i in range(index + 1, len(lines)) if lines[i].strip() == fence[1]), None)
        if end is None:
            raise ValueError(f"line {index + 1}: the block has no end")
        text = "\n".join(lines[index + 1:end]) + "\n"
        if fence[2] == "python":
            found.append(Snippet(text, index + 2))
        elif fence[2] == "text" and fresh:
            found[-1].expected = text
        fresh = fence[2] == "python"
        index = end + 1
    return found


def run_page(path: str, namespace: dict[str, Any] | None = None) -> dict[str, Any]:
    """Runs all snippets of docs page `path`, relative to the source tree, and returns their namespace. AssertionError,
    naming the page and the line, for one that fails or prints something else; also for a page without any."""
    file = ROOT / path
    found = snippets(file.read_text())
    assert found, f"{path}: no ```python block"
    namespace = {"__name__": "__page__"} if namespace is None else namespace
    for snippet in found:
        run_snippet(snippet, path, namespace)
    return namespace


def run_snippet(snippet: Snippet, path: str, namespace: dict[str, Any]) -> None:
    """Runs one snippet and compares what it prints; AssertionError as run_page."""
    where = f"{path}:{snippet.line}"
    printed, raised = io.StringIO(), None
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("always")
        for quiet in (ResourceWarning, ImportWarning, PendingDeprecationWarning):  # as Python has it
            warnings.simplefilter("ignore", quiet)
        warnings.showwarning = lambda message, category, *_: print(f"{category.__name__}: {message}", file=printed)
        try:
            # Lines are counted from the top of the page, so that a traceback points into it.
            exec(compile("\n" * (snippet.line - 1) + snippet.code, path, "exec"), namespace)
        except Exception as error:
            raised = error
            printed.write("".join(traceback.format_exception_only(error)))
    actual = printed.getvalue()
    if raised and snippet.expected is None:
        raise AssertionError(f"{where}: the snippet raised an exception:\n{actual}") from raised
    if snippet.expected is not None and not matches(actual, snippet.expected):
        raise AssertionError(f"{where}: expected\n{snippet.expected}got\n{actual}") from raised


def matches(actual: str, expected: str) -> bool:
    """Whether the texts are the same but for blanks at the ends of lines, where `...` in expected is any text. An
    exception's name may stand without its module."""
    def lines(text: str) -> list[str]:
        return [line.rstrip() for line in text.rstrip().split("\n")]

    shown = "\n".join(re.escape(line).replace(r"\.\.\.", "(?s:.*?)") for line in lines(expected))
    bare = re.sub(r"^(?:\w+\.)+(\w+: )", r"\1", actual, flags=re.M)
    return any(re.fullmatch(shown, "\n".join(lines(text))) for text in (actual, bare))
