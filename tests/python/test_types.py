"""Types and docstrings of everything public: the stub of the extension module is compared with the module, the package
and a user's program are type-checked, and nothing public is without a docstring."""
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys

import pytest

import smelt
from smelt import _smelt

FOLDER = os.path.dirname(os.path.abspath(__file__))


@pytest.fixture(scope="module")
def mypy(build_folder):
    """Runs one of mypy's programs over the built package, with a cache in the build folder."""
    def run(program, *arguments):
        command = [sys.executable, "-m", program, *arguments]
        # Away from the source tree, where a folder could be taken for a package.
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=os.path.join(build_folder, "python"),
                              env={**os.environ, "MYPY_CACHE_DIR": os.path.join(build_folder, "mypy-cache")})
    return run


def test_the_stub_of_the_extension_is_what_it_has(mypy):
    done = mypy("mypy.stubtest", "--concise", "--allowlist", os.path.join(FOLDER, "stubtest_allowlist.txt"),
                "--ignore-unused-allowlist", "--mypy-config-file", os.path.join(FOLDER, "stubtest.ini"), "smelt._smelt")
    assert done.returncode == 0, f"python/smelt/_smelt.pyi and the extension differ:\n{done.stdout}{done.stderr}"


def test_the_package_is_typed_strictly(mypy, source_folder):
    done = mypy("mypy", "--config-file", os.path.join(source_folder, "pyproject.toml"), "-p", "smelt")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_user_s_program_is_checked(mypy, source_folder):
    """Lines marked `expect: CODE` are the mistakes that mypy must find, and no others."""
    program = os.path.join(FOLDER, "typed_program.py")
    with open(program, encoding="utf-8") as file:
        wanted = {(number, mark[1]) for number, line in enumerate(file, 1) if (mark := re.search(r"# expect: (\S+)", line))}
    # With the package's settings, whose results are in mypy's cache.
    done = mypy("mypy", "--config-file", os.path.join(source_folder, "pyproject.toml"), program)
    found = {(int(number), code) for number, code in re.findall(r":(\d+): error: .*\[(\S+)\]$", done.stdout, re.MULTILINE)}
    assert found == wanted, done.stdout + done.stderr


def public_modules():
    """The package's modules; those whose library is not installed are left out."""
    modules = [smelt, _smelt]
    for info in pkgutil.walk_packages(smelt.__path__, "smelt."):
        if any(part.startswith("_") for part in info.name.split(".")):
            continue
        try:
            modules.append(importlib.import_module(info.name))
        except ImportError as error:
            assert error.name and not error.name.startswith("smelt"), f"{info.name}: {error}"
    return modules


def public_members(owner):
    """Name and object of what is public in a module or class and made by smelt."""
    for name, member in vars(owner).items():
        if name.startswith("_") or inspect.ismodule(member):
            continue
        made_by = getattr(member, "__module__", None) or getattr(owner, "__module__", None) or owner.__name__
        if made_by.split(".")[0] == "smelt":
            yield name, member


def undocumented(owner, path):
    for name, member in public_members(owner):
        if not (inspect.isroutine(member) or inspect.isclass(member) or inspect.isdatadescriptor(member)):
            continue
        if not (inspect.getdoc(member) or "").strip():
            yield f"{path}.{name}"
        if inspect.isclass(member) and not issubclass(member, tuple):
            yield from undocumented(member, f"{path}.{name}")


def test_everything_public_has_a_docstring():
    modules = public_modules()
    missing = [module.__name__ for module in modules if not (module.__doc__ or "").strip()]
    for module in modules:
        missing += undocumented(module, module.__name__)
    assert missing == []


def test_docstrings_are_found_to_be_missing():
    """The search itself: a class without docstrings of its own, which it says are missing."""
    class Plain:
        """Has one."""
        def bare(self):
            pass

        @property
        def value(self):
            return 1

    Plain.__module__ = "smelt.example"
    for function in (Plain.bare,):
        function.__module__ = "smelt.example"
    assert sorted(undocumented(Plain, "Plain")) == ["Plain.bare", "Plain.value"]


def test_all_names_what_is_there():
    assert sorted(smelt.__all__) == sorted(set(smelt.__all__))
    missing = [name for name in smelt.__all__ if not hasattr(smelt, name)]
    assert missing == []
