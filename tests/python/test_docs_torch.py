"""docs/python-torch.md does what it says."""
import pytest
from snippets import run_page

pytest.importorskip("torch")


def test_the_page_runs():
    run_page("docs/python-torch.md")
