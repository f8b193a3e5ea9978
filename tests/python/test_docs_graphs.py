"""docs/graphs.md does what it says."""
from snippets import run_page


def test_page():
    run_page("docs/graphs.md")
