"""docs/host-tensors.md does what it says."""
import pytest
from snippets import run_page

pytest.importorskip("numpy")


def test_the_page_runs(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    run_page("docs/host-tensors.md")
