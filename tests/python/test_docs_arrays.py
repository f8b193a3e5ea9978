"""docs/python-arrays.md does what it says."""
import pytest
from snippets import run_page

pytest.importorskip("numpy")


def test_the_page_runs():
    run_page("docs/python-arrays.md")
