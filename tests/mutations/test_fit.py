#!/usr/bin/env python3
"""Each mutation fits today's sources: its text occurs exactly once in its file, and the tests that it names exist. One that
does not fit would test nothing; such rows are refused. So are folders without C from which sample.py would draw mutants.
"""
import contextlib
import io
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import mutate
import sample

ROW = {"list": "mutations.toml", "name": "a row", "file": "file.c", "text": "once", "replacement": "never", "tests": "exp"}
REFUSED = (({"text": "gone"}, "its text occurs 0 times in file.c, and must occur once"),
           ({"text": "twice"}, "its text occurs 2 times in file.c, and must occur once"),
           ({"file": "moved.c"}, "there is no file moved.c"),
           ({"replacement": "once"}, "its replacement is its text"),
           ({"tests": "exp unit_gone ptx_gone gone"}, "there is no test unit_gone, ptx_gone, gone"))


def check_refused(root):
    """Of rows that do not fit, each is refused with its sentence."""
    (root / "tests/kernels").mkdir(parents=True)
    (root / "tests/kernels/exp.metal").touch()
    (root / "file.c").write_text("once twice twice")
    rows = [{**ROW, **change} for change, _ in REFUSED]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        count = mutate.verify([ROW, *rows], root)
    wanted = [f"mutations.toml: a row: {why}" for _, why in REFUSED]
    if count == len(REFUSED) and said.getvalue().splitlines() == wanted:
        return 0
    print(f"expected {wanted}\nnot {said.getvalue().splitlines()}")
    return 1


def main():
    with tempfile.TemporaryDirectory() as folder:
        wrong = check_refused(pathlib.Path(folder))
    files = sum(len(sample.files_of(folder)) for folder in sample.FOLDERS)
    mutations = mutate.read_mutations([]) + mutate.read_mutations([], "ptx.toml")
    wrong += mutate.verify(mutations, mutate.ROOT)
    print(f"{len(mutations)} mutations, {wrong} complaints; {files} files to draw from")
    return 1 if wrong else 0


sys.exit(main())
