"""The Python in the README does what the page says."""
import snippets


def test_the_readme_s_first_kernel():
    snippets.run_page("README.md")
