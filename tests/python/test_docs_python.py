"""docs/python.md does what it says."""
from snippets import run_page


def test_the_page_runs():
    run_page("docs/python.md")
