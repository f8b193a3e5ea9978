"""examples/python/segmenter/segmenter.ipynb runs, and prints what it shows."""

import contextlib
import io
import json

import pytest
from snippets import ROOT

pytest.importorskip("torch")
pytest.importorskip("PIL.Image")

FOLDER = ROOT / "examples" / "python" / "segmenter"


def test_the_notebook_runs(monkeypatch):
    monkeypatch.chdir(FOLDER)
    names = {"__name__": "__main__"}
    cells = [cell for cell in json.loads((FOLDER / "segmenter.ipynb").read_text())["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
        shown = "".join("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream")
        assert printed.getvalue() == shown, f"cell {number}"
    assert len(cells) > 4
