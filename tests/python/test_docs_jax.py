"""docs/python-jax.md does what it says."""
import pytest
from snippets import run_page

pytest.importorskip("jax")


def test_the_page_runs():
    run_page("docs/python-jax.md")
