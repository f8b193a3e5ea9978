"""`make docs`: the API reference is generated without a warning, and names what the headers and the package have."""
import importlib.util
import os
import shutil
import subprocess
import sys
import types

import pytest

import smelt


def reference(kind, source_folder, folder):
    """The text of all pages of one kind."""
    script = os.path.join(source_folder, "cmake", "api_reference.py")
    done = subprocess.run([sys.executable, "-B", script, kind, folder], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    pages = (folder / "docs" / kind).rglob("*.html")
    return "".join(page.read_text(encoding="utf-8") for page in pages)


@pytest.mark.skipif(not shutil.which("doxygen"), reason="doxygen is not installed; make docs installs it")
def test_of_the_headers(source_folder, tmp_path):
    text = reference("c", source_folder, tmp_path)
    for name in ("smelt_kernel_run", "SMELT_ERROR_FAULT", "smelt_apply", "smelt_array_from_dlpack", "CustomKernelFunction"):
        assert name in text, name
    assert "Checks the descriptor and keeps a copy" in text  # comments are documentation


@pytest.mark.skipif(not importlib.util.find_spec("pdoc"), reason="pdoc is not installed; make docs installs it")
def test_of_the_python_package(source_folder, tmp_path):
    text = reference("python", source_folder, tmp_path)
    modules = [name for name in smelt.__all__ if isinstance(getattr(smelt, name), types.ModuleType)]  # pages of their own
    assert [name for name in smelt.__all__ if name not in modules and f'id="{name}"' not in text] == []
    assert [name for name in (*modules, "doctor", "launch") if f"<title>smelt.{name} API documentation" not in text] == []
