"""docs/python-segmenter.md does what it says."""
import pytest
from snippets import ROOT, run_page

pytest.importorskip("torch")
pytest.importorskip("PIL.Image")


def test_the_page_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    run_page("docs/python-segmenter.md")
