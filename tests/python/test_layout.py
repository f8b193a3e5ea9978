"""Pictures of layouts, from Python and the command."""

import random
import subprocess
import sys

import pytest
import smelt
from smelt._smelt import layout_picture


def offsets(picture):
    """The numbers in the cells, row by row."""
    return [[int(cell) for cell in line.split("|")[1:-1]] for line in picture.splitlines() if "|" in line]


def random_layout(depth=0):
    """A layout in words, its sides, and the offset of an element."""
    rows, columns = random.randint(1, 4), random.randint(1, 4)
    kind = random.choice(["row_major", "column_major", "strided", "blocked" if depth < 2 else "row_major"])
    opening, closing = random.choice([("<", ">()"), ("(", ")")])
    if kind == "row_major":
        return f"row_major{opening}{rows}, {columns}{closing}", rows, columns, lambda r, c: r * columns + c
    if kind == "column_major":
        return f"column_major{opening}{rows},{columns}{closing}", rows, columns, lambda r, c: r + c * rows
    if kind == "strided":
        s, t = random.randint(0, 2000), random.randint(0, 9)
        return f"strided{opening}{rows}, {columns}, {s}, {t}{closing}", rows, columns, lambda r, c: r * s + c * t
    outer, outer_rows, outer_columns, place = random_layout(depth + 1)
    inner, height, width, within = random_layout(depth + 1)
    return (f"blocked({outer}, {inner})", outer_rows * height, outer_columns * width,
            lambda r, c: place(r // height, c // width) * height * width + within(r % height, c % width))


@pytest.mark.parametrize("seed", range(60))
def test_pictures_have_the_offsets(seed):
    random.seed(seed)
    words, rows, columns, offset = random_layout()
    if max(rows, columns) > 64:
        with pytest.raises(ValueError, match="1 to 64 rows and columns"):
            layout_picture(words)
        return
    picture = layout_picture(words)
    assert offsets(picture) == [[offset(r, c) for c in range(columns)] for r in range(rows)], words
    lines = picture.splitlines()
    assert len({len(line) for line in lines[1:]}) == 1 and not any(line.endswith(" ") for line in lines), words


@pytest.mark.parametrize("words, message", [
    ("", "layout '': '' at character 1, expected row_major, column_major, strided or blocked"),
    ("row_major<2>()", "'>[(][)]' at character 12, expected ','"),
    ("row_major<2, 6>", "at character 16, expected '[(][)]'"),
    ("strided<1, 2, 3, -4>()", "'-4>[(][)]' at character 18, expected a size or stride"),
    ("row_major(2, 6) x", "'x' at character 17, expected its end"),
    ("row_major(65, 6)", "pictures have 1 to 64 rows and columns"),
    ("row_major(0, 6)", "pictures have 1 to 64 rows and columns"),
    ("blocked(" * 9 + "row_major(1, 1)", "expected row_major, column_major, strided or blocked")])
def test_wrong_words_get_a_sentence(words, message):
    with pytest.raises(ValueError, match=message):
        layout_picture(words)


def test_it_is_printed(capsys):
    smelt.print_layout("column_major<2, 2>()")
    assert offsets(capsys.readouterr().out) == [[0, 2], [1, 3]]
    command = [sys.executable, "-m", "smelt", "layout"]
    done = subprocess.run([*command, "column_major<2, 2>()"], capture_output=True, text=True, check=False)
    assert (done.returncode, offsets(done.stdout), done.stderr) == (0, [[0, 2], [1, 3]], "")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "smelt: no layout is given, expected one like 'row_major<2, 6>()'\n")
