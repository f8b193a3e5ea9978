"""`python -m smelt.doctor` says what is there, what is wrong, and what to do about it."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy
import pytest

import smelt
from smelt import doctor


def ask(*arguments, **changes):
    """Runs the doctor; a change to None takes a variable away."""
    environment = {name: value for name, value in {**os.environ, **changes}.items() if value is not None}
    return subprocess.run([sys.executable, "-m", "smelt.doctor", *arguments], env=environment, capture_output=True,
                          text=True, check=False)


def ask_for_report(status, **changes):
    done = ask("--json", **changes)
    assert done.returncode == status, done.stdout + done.stderr
    return json.loads(done.stdout)


def remedies(found):
    return [problem["remedy"] for problem in found["problems"]]


@pytest.fixture
def without_cc1(tmp_path):
    """A folder for LD_LIBRARY_PATH with libsmelt and the compiler library, as a build without smelt-cc1 has them."""
    build = pathlib.Path(os.environ["SMELT_BUILD"])
    shutil.copy(build / "lib" / "libsmelt.so.1", tmp_path)
    (tmp_path / "libsmelt_compiler.so").symlink_to(build / "lib" / "libsmelt_compiler.so")
    return str(tmp_path)


@pytest.fixture(scope="module")
def healthy():
    return doctor.report()


def test_a_healthy_machine_has_no_problem_but_perhaps_a_gpu_without_a_driver(healthy):
    assert healthy["ok"]
    assert [problem for problem in healthy["problems"] if "NVIDIA GPU" not in problem["what"]] == []


def test_it_says_where_smelt_lies(healthy):
    assert healthy["smelt"] == {"version": smelt.__version__, "path": os.path.dirname(smelt.__file__)}


def test_it_names_clang_and_llvm(healthy):
    assert os.access(healthy["clang"]["path"], os.X_OK)
    assert "clang version 19." in healthy["clang"]["version"]
    assert healthy["llvm"]["version"].startswith("19.")
    assert os.path.basename(healthy["llvm"]["path"]) in ("smelt-cc1", "libsmelt_compiler.so")


def test_it_says_which_compiler_is_used(without_cc1):
    own = (pathlib.Path(os.environ["SMELT_BUILD"]) / "lib" / "smelt-cc1").exists()
    for changes, wanted in (({"SMELT_CLANG": None}, "smelt-cc1" if own else "clang and LLVM"),
                            ({"SMELT_CLANG": "clang-19"}, "clang and smelt-cc1" if own else "clang and LLVM"),
                            ({"SMELT_CLANG": None, "LD_LIBRARY_PATH": without_cc1}, "clang and LLVM")):
        assert ask_for_report(0, **changes)["compiler"] == wanted
    assert ask_for_report(1, SMELT_CLANG="/no/such/clang")["compiler"] is None
    line = next(line for line in ask(SMELT_CLANG="clang-19").stdout.splitlines() if line.startswith("  compiler "))
    assert line.startswith("  compiler   the clang that SMELT_CLANG names, and smelt-cc1" if own else "  compiler   the system's clang and LLVM")


def test_it_names_the_cache_in_use(healthy):
    cache = healthy["cache"]
    if "SMELT_CACHE_DIR" in os.environ:
        assert cache["path"] == os.environ["SMELT_CACHE_DIR"]
    assert cache["entries"] >= 0 and cache["bytes"] >= 0 and cache["reason"] is None


def test_each_usable_device_has_run_a_kernel(healthy):
    devices = {device["name"]: device for device in healthy["devices"]}
    assert [name for name, device in devices.items() if not device["reason"]] == smelt.devices()
    for name in smelt.devices():
        kernel = devices[name]["kernel"]
        assert kernel["ok"] and kernel["compile_seconds"] > 0 and kernel["seconds"] > 0, kernel
    assert devices["cpu"]["vector_bits"] in doctor.VECTORS
    assert devices["cpu"]["threads"] >= 1


def test_versions_of_packages_are_theirs(healthy):
    assert healthy["packages"]["numpy"] == numpy.__version__
    assert set(healthy["packages"]) == set(doctor.PACKAGES)


def test_the_report_is_readable_and_ends_with_the_verdict():
    done = ask()
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"smelt {smelt.__version__}"
    assert lines[-1] == "Kernels run."
    assert any(line.startswith("  cpu ") and "compiled in" in line for line in lines)
    assert max(map(len, lines)) < 300


def test_an_unknown_argument_is_refused():
    done = ask("--loud")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--loud" in done.stderr


def test_without_the_named_clang_the_remedy_names_the_variable():
    found = ask_for_report(1, SMELT_CLANG="/no/such/clang")
    assert found["clang"]["path"] is None
    assert found["clang"]["reason"] == "SMELT_CLANG is '/no/such/clang', which is not an executable program"
    assert remedies(found) == ["apt-get install clang-19; unset SMELT_CLANG or name a clang 19 in it"]
    assert not found["ok"] and not found["devices"][0]["kernel"]["ok"]


# Each starts two processes that compile with the system's LLVM: SMELT_TEST_FULL=1 tries all.
@pytest.mark.parametrize("path", ["", "/no/such/folder", None] if "SMELT_TEST_FULL" in os.environ else [None])
def test_without_clang_in_path_the_remedy_names_the_package(path, without_cc1):
    found = ask_for_report(1, PATH=path, SMELT_CLANG=None, LD_LIBRARY_PATH=without_cc1)
    assert remedies(found) == ["apt-get install clang-19; or name one in SMELT_CLANG"]
    text = ask(PATH=path, SMELT_CLANG=None, LD_LIBRARY_PATH=without_cc1)
    assert text.returncode == 1
    assert "  Remedy: apt-get install clang-19" in text.stdout
    assert text.stdout.splitlines()[-1] == "Kernels do not run on every device: see above."


def test_an_old_clang_is_named_with_its_version(tmp_path):
    old = tmp_path / "clang"
    old.write_text("#!/bin/sh\necho 'clang version 14.0.6'\n", encoding="utf-8")
    old.chmod(0o755)
    found = ask_for_report(1, SMELT_CLANG=str(old))
    assert "clang version 14.0.6" in found["clang"]["reason"] and len(found["problems"]) == 1


def test_when_compiling_is_off_the_remedy_is_to_turn_it_on():
    found = ask_for_report(1, SMELT_COMPILE="0")
    assert remedies(found) == ["unset SMELT_COMPILE"]


def test_an_unusable_cache_is_a_problem_although_kernels_run(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    found = ask_for_report(0, SMELT_CACHE_DIR=str(tmp_path / "file" / "cache"))
    assert found["ok"] and found["cache"]["path"] is None
    problem, = found["problems"]
    assert problem["what"].startswith("kernels are compiled anew in each process: ")
    assert "SMELT_CACHE_DIR" in problem["remedy"]


def test_the_width_of_vectors_is_the_one_in_use():
    found = ask_for_report(0, SMELT_CPU="sse2")
    assert found["devices"][0]["vector_bits"] == 128


def test_a_gpu_s_driver_that_is_not_there_is_said(tmp_path):
    found = ask_for_report(0, SMELT_CUDA_DRIVER=str(tmp_path / "libcuda.so.1"))
    gpu = found["devices"][-1]
    assert gpu["name"] == "cuda" and str(tmp_path) in gpu["reason"] and gpu["kernel"] is None


def test_a_gpu_whose_kernels_do_nothing_is_found_out(build_folder):
    """The tests' driver takes all calls and runs no kernel."""
    driver = os.path.join(build_folder, "tests", "libfakecuda.so")
    assert os.path.exists(driver)
    found = ask_for_report(1, SMELT_CUDA_DRIVER=driver)
    gpu = found["devices"][-1]
    assert (gpu["name"], gpu["driver_version"], gpu["vector_bits"]) == ("cuda:0", 13000, 0)
    assert gpu["total_bytes"] > 0
    assert not gpu["kernel"]["ok"] and "of its 1024 results are wrong" in gpu["kernel"]["message"]
    assert found["devices"][0]["kernel"]["ok"]
    problem, = found["problems"]
    assert problem["what"].startswith("no kernel runs on cuda:0: ")
    assert "CUDA 13.0" in ask(SMELT_CUDA_DRIVER=driver).stdout
