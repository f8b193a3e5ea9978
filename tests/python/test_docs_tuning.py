"""docs/tuning.md does what it says."""
from snippets import run_page


def test_page():
    run_page("docs/tuning.md")
