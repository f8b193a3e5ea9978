"""Compile errors name the lines of the file, or notebook cell, in which the kernel's text is a literal."""
import linecache
import os
import subprocess
import sys
import textwrap
import types

import numpy as np
import pytest

import smelt

RUN = """
import smelt

def run(kernel, count=1):
    try:
        kernel(inputs=[smelt.zeros((4,))], output_shapes=[(4,)] * count, output_dtypes=["float32"] * count, grid=(4, 1, 1),
               threadgroup=(4, 1, 1))
    except smelt.Error as error:
        return str(error).split("\\n")
"""


def errors_of(code, file=None):
    """What a program says whose text is that of a file, or (without one) a text that nobody can look up. Its kernels are
    made by `make(source)` and run by `run`; `found` is what is returned."""
    namespace = {"__name__": "program"}
    exec(RUN, namespace)
    exec(compile(code, str(file) if file else "<string>", "exec"), namespace)
    return namespace["found"]


def notes(lines):
    return [line for line in lines if line.startswith("note: ")]


@pytest.fixture
def program(tmp_path):
    """Writes a program, runs it, and returns its notes with the file's name left out, as ("note …", "LINE:COLUMN")."""
    def write(code, name="program.py"):
        file = tmp_path / name
        file.write_text(code)
        linecache.checkcache()
        return [note.replace(str(file), "FILE") for note in notes(errors_of(code, file))]
    return write


MAKE = 'k = smelt.metal_kernel("k", ["x"], ["out"], '
LITERAL = MAKE + '''"""
    uint i = thread_position_in_grid.x;
    out[i] = x[i] + nothing;
    """)
found = run(k)
'''


def test_a_literal_of_several_lines(program):
    assert program(LITERAL) == ["note: k.body:3 is FILE:3:21"]
    assert program("import smelt\n\n" + LITERAL) == ["note: k.body:3 is FILE:5:21"]


def test_the_first_line_stays_as_it_was():
    lines = errors_of(LITERAL)
    assert lines[0] == "k.body:3:21: error: use of undeclared identifier 'nothing'" and not notes(lines)


@pytest.mark.parametrize("wrapped", ["textwrap.dedent(S)", "textwrap.dedent(S).strip()", "S.strip()", "inspect.cleandoc(S)"])
def test_text_that_was_dedented_or_stripped(program, wrapped):
    made = LITERAL.replace('"""', 'S = """', 1).replace(MAKE, "").replace('    """)', '    """')
    code = "import inspect, textwrap\n" + made.replace("found =", MAKE + wrapped + ")\nfound =")
    (note,) = program(code)
    assert note.endswith(" is FILE:4:21")


def test_a_text_in_one_line(program):
    assert program(MAKE + '"out[0] = nothing;")\nfound = run(k)') == [f"note: k.body:1 is FILE:1:{len(MAKE) + 11}"]
    assert program("\n" + MAKE + '"\\n\\nout[0] = nothing;")\nfound = run(k)') == ["note: k.body:3 is FILE:2"]


def test_a_literal_behind_a_backslash_and_with_escapes(program):
    code = MAKE + '''"""\\
  // a tab \\t and a line end \\\\n in it
  out[0] = nothing;""")
found = run(k)
'''
    assert program(code) == ["note: k.body:2 is FILE:3:12"]


def test_header_and_body_and_several_errors(program):
    code = MAKE + '''"""
  out[0] = f(1);
  out[1] = there;
  out[2] = isnt;
""", header="""
inline float f(float x) {
  return g(x);
}
""")
found = run(k)
'''
    assert program(code) == ["note: k.header:3 is FILE:7:10", "note: k.body:3 is FILE:3:12", "note: k.body:4 is FILE:4:12"]


def test_a_kernel_made_by_a_helper_of_another_file(tmp_path, monkeypatch):
    (tmp_path / "kernel_helpers.py").write_text(
        'import smelt\ndef make(source):\n    return smelt.metal_kernel("k", ["x"], ["out"], source)\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "uses.py"
    code = 'import kernel_helpers\nk = kernel_helpers.make("""\nout[0] = nothing;\n""")\nfound = run(k)\n'
    file.write_text(code)
    assert notes(errors_of(code, file)) == [f"note: k.body:2 is {file}:3:10"]


def test_of_equal_texts_the_nearest(program):
    text = '"""\nout[0] = nothing;\n"""'
    code = f"A = {text}\n" + "\n" * 20 + MAKE + text + ")\nfound = run(k)\n"
    assert program(code) == ["note: k.body:2 is FILE:25:10"]


@pytest.mark.parametrize("source", [
    '"out[0] =\\n" + " nothing;"', 'f"{1}\\nout[0] = nothing;"',
    '"int a =\\n1;\\n"\n"out[0] = nothing;"',
])
def test_texts_that_are_no_literal_of_the_file(program, source):
    assert program(MAKE + source + ")\nfound = run(k)") == []


def test_a_file_that_is_no_python_any_more_or_gone(tmp_path):
    file = tmp_path / "gone.py"
    assert notes(errors_of(LITERAL, file)) == []
    file.write_text("this is (no Python")
    assert notes(errors_of(LITERAL, file)) == []


def test_libraries(tmp_path):
    file = tmp_path / "uses.py"
    code = '''
lib = smelt.library("""
kernel void f(device float *x [[buffer(0)]]) {
    x[0] = nothing;
}""")
try:
    lib.f(smelt.zeros((1,)))
except smelt.CompileError as error:
    found = str(error).split("\\n")
try:
    smelt.library("""
kernel void f(device float *x [[buffer(0)]]) {
    x[0] = 1;
""", compile=True)
except smelt.CompileError as error:
    found += str(error).split("\\n")
'''
    file.write_text(code)
    assert notes(errors_of(code, file)) == [f"note: library.metal:3 is {file}:4:12", f"note: library.metal:2 is {file}:12:46"]


def test_barrier_errors_bound_kernels_and_show(program):
    code = MAKE + '''"""
  if (thread_position_in_grid.x == 0) { threadgroup_barrier(mem_flags::mem_none); }
  out[0] = 1;""")
found = run(k)
'''
    assert program(code)[:1] == ["note: k.body:2 is FILE:2"]
    call = "(inputs=[smelt.zeros((4,))], output_shapes=[(4,)], output_dtypes=['float32'], grid=(4, 1, 1), threadgroup=(4, 1, 1))"
    for use in ("k.bind" + call, "k.show('ir', " + call[1:]):
        failing = LITERAL.replace("found = run(k)", f"try: {use}\nexcept smelt.Error as e: found = str(e).split(chr(10))")
        assert program(failing) == ["note: k.body:3 is FILE:3:21"]


def test_cells_have_ipython_s_names(monkeypatch):
    """A notebook's cells are in linecache; IPython tells their names."""
    file = "/tmp/ipykernel_1/123.py"
    monkeypatch.setitem(linecache.cache, file, (len(LITERAL), None, LITERAL.splitlines(True), file))
    assert notes(errors_of(LITERAL, file)) == [f"note: k.body:3 is {file}:3:21"]
    shell = types.SimpleNamespace(compile=types.SimpleNamespace(
        format_code_name=lambda name: ("Cell", "In[7]") if name == file else None))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    assert notes(errors_of(LITERAL, file)) == ["note: k.body:3 is cell In[7], line 3"]


def test_a_script_as_python_runs_it(tmp_path):
    file = tmp_path / "script.py"
    file.write_text(RUN + LITERAL + "print(found[-1])\n")
    done = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, check=False, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)})
    line = RUN.count("\n") + 3
    assert done.stdout.strip() == f"note: k.body:3 is {file}:{line}:21", done.stderr


def test_what_is_noted_costs_nothing_worth_mentioning():
    """Kernels that are made and never fail read no file."""
    before = dict(linecache.cache)
    kernel = smelt.metal_kernel("k", ["x"], ["out"], textwrap.dedent("""
        out[thread_position_in_grid.x] = x[thread_position_in_grid.x];"""))
    x = np.ones(4, np.float32)
    kernel(inputs=[x], output_shapes=[(4,)], output_dtypes=["float32"], grid=(4, 1, 1), threadgroup=(4, 1, 1))
    assert linecache.cache == before
