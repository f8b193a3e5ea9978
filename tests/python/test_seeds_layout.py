"""tests/python/seeds.py: code whose line ends were lost is laid out as it was; code between prose is found. On texts of
our own, so that this is tested where the seeds are not."""

import ast

import pytest
import seeds

CODE = '''import math
from functools import partial
@partial
def outer(a: int, *rest, key=None, **more):
    # keep what is there
    key = {} if key is None else key
    def inner(first, second):
        raise ValueError(f"no {first}")
    total, = rest
    rows, _, columns = total.shape
    value = math.sqrt(
        a,  # of the number
        b=[1, -2.5e-3],
    )[0]
    return value
text = """ an ordinary string """
x = outer(3)[::2]
# make it big
y = x * 2
assert x is not None, "so it is"
def last(total, *rest):
    for i in rest:
        if i > 3:
            continue
        total += i
        break
    try:
        return total(*rest)
    finally:
        total.release()
        total.forget(i)
'''


def flat(code: str) -> str:
    return " ".join(code.split())


def structure(code: str) -> str:
    return ast.dump(ast.parse(code))


def test_python_is_laid_out_again():
    assert structure(seeds.relayout_python(flat(CODE))) == structure(CODE)


@pytest.mark.parametrize("code", [
    "def f(x):\n    if x > 1:\n        return 1\n    else:\n        y = 2\n        return y\n",
    "def g(x):\n    try:\n        return h(x)\n    except E:\n        raise KeyError(x)\n    return x\nz = g(1)\n",
    "@f.vjp\ndef g(x):\n    # as above\n    ...\n    return x\n",
])
def test_blocks_end_at_return_and_before_their_second_halves(code):
    assert structure(seeds.relayout_python(flat(code))) == structure(code)


def test_what_cannot_be_laid_out_is_an_error():
    with pytest.raises(ValueError, match="cannot be laid out"):
        seeds.relayout_python("mask = (a = 0) & (b = 1)")


def test_comments_of_metal_end_before_statements():
    body = """uint i = thread_position_in_grid.x; // which element it is, and what (of all) for
float s = 0; // 1) the sum of all there is
for (uint k = 0; k < 3; k++) { // inner loop
s += x[k]; } // sum
out[i] = s; // done
"""
    laid_out = seeds.relayout_metal(flat(body))
    code = [line.split("//")[0].split() for line in laid_out.split("\n")]
    assert sum(code, []) == sum((line.split("//")[0].split() for line in body.split("\n")), [])


def test_includes_without_a_name_are_left_out():
    assert seeds.relayout_metal("#include #include using namespace metal;") == "using namespace metal;"
    assert "#include <metal_math>" in seeds.relayout_metal("#include <metal_math>\n#include using namespace metal;")


def test_fenced_blocks_lose_their_escapes():
    text = r"Words \\\`\\\`\\\`python a\\\_b = c\\\[1\\\] \\\`\\\`\\\` words \`\`\`python d = 1 \`\`\` end"
    assert seeds.fenced_blocks(text) == ["a_b = c[1]", "d = 1"]


def test_code_between_prose_is_found():
    text = '''Skip to main content
Here it is, an example:
import mlx.core as mx

source = """
    uint i = 0;
"""

def f(a):
    return (
        a)

assert f(1)

How It Works

Only pass source. Then:
  • one = 1
value=0  # set it
Useful when
debugging
n = [
    1,
]
Resources
'''
    regions = seeds.python_regions(text)
    assert [region.split("\n")[0] for region in regions] == ["import mlx.core as mx", "value=0  # set it", "n = ["]
    assert regions[0].endswith("assert f(1)\n")
    namespace: dict = {}
    exec(regions[0].replace("import mlx.core as mx", "mx = 1"), namespace)
    assert seeds.with_smelt(regions[0]).startswith("import smelt as mx\n")


def test_a_missing_document_is_skipped(monkeypatch, tmp_path):
    monkeypatch.setattr(seeds, "FOLDER", tmp_path)
    with pytest.raises(pytest.skip.Exception, match="the seeds' document 000 is not in"):
        seeds.document("000")
