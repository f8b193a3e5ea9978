"""docs/linalg.md: every snippet runs and prints what the page says."""

import snippets


def test_the_page_runs():
    snippets.run_page("docs/linalg.md")
