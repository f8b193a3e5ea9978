#!/usr/bin/env python3
"""run_suite.py, with a CPU in the GPU's place and with programs that fail in known ways in the place of tests.

Usage: test_run_suite.py BUILD_FOLDER
"""
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile

SUITE = pathlib.Path(__file__).resolve().parent / "run_suite.py"
failures = 0


def check(what, holds, shown=""):
    global failures
    if not holds:
        failures += 1
        print(f"{what}: {shown}")


def run(build, *arguments, **environment):
    """Without the seeds' texts, which not every machine has: their tests are skipped."""
    done = subprocess.run([sys.executable, "-B", str(SUITE), str(build), *arguments], capture_output=True, text=True,
                          check=False, timeout=1500, env={**os.environ, "SMELT_TEST_SEEDS": "/no seeds", **environment})
    return done.returncode, done.stdout + done.stderr


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_real_build(build):
    status, output = run(build, "--device", "cpu", "--only", "kernel_exp$|kernel_simd_votes|seeds_elementwise|library_pack$")
    check("a part of the suite on a CPU", status == 0 and re.search(r"passed 7, failed 0, skipped 2\n$", output), output)
    status, output = run(build, "--device", "gpu:7", "--only", "kernel_exp")
    check("a device that is not there", status == 77 and "no GPU: smelt devices lists none called 'gpu:7'" in output, output)


def test_copied_build(build, folder):
    """Stripped, in another place, without a home, the sources found where the suite's own file lies."""
    copy = folder / "a copy"
    for _ in range(2):  # the second time into what is there
        bundle = subprocess.run([str(SUITE.parent / "bundle.sh"), str(build), str(copy)], capture_output=True, text=True,
                                check=False)
        check("bundle.sh", bundle.returncode == 0, bundle.stdout + bundle.stderr)
    size = sum(file.stat().st_size for file in copy.rglob("*") if file.is_file())
    compiler = copy / "lib" / "smelt-cc1"  # with all of clang and LLVM
    size -= compiler.stat().st_size if compiler.exists() else 0
    # Each of the unit tests has the library within it.
    check("the size of a bundle but for smelt-cc1", size <= 96 << 20, size)
    home = folder / "home"
    home.mkdir()
    status, output = run(copy, "--device", "cpu", "--only", "kernel_exp$|ml_random|seeds_elementwise", HOME=str(home))
    check("a copy of the build", status == 0 and re.search(r"passed 13, failed 0, skipped 2\n$", output), output)


def test_failures(folder):
    """Each way to fail, a line each."""
    build = folder / "fake"
    program(build / "bin/smelt", 'case "$1" in devices) echo "cuda:0  a GPU"; exit 0;; esac\necho "smelt: no" >&2\nexit 1\n')
    program(build / "tests/ml_rope", 'echo "[ RUN      ] good"\necho "[       OK ] good"\necho "[ RUN      ] bad"\n'
            'echo "[  ERROR   ] --- 1 is not 2"\necho "[   LINE   ] --- f.c:1: error: Failure!"\necho "[  FAILED  ] bad"\n'
            'echo "[ RUN      ] later"\necho "no file"\necho "[  SKIPPED ] later"\necho "[  FAILED  ] 1 test(s), listed below:"\n'
            'echo "[  FAILED  ] bad"\nexit 1\n')
    program(build / "tests/ml_scan", 'echo "[ RUN      ] first"\nkill -SEGV $$\n')
    program(build / "tests/ml_norm", 'echo "[ RUN      ] endless"\nexec sleep 100\n')
    program(build / "tests/ml_gemm", 'echo "a reason"\nexit 77\n')
    program(build / "fuzz/fuzz_kernels", 'echo "checking"\necho "FAILURE: the kernel of seed 3 differs."\nexit 1\n')
    status, output = run(build, "--only", "ml_(rope|scan|norm|gemm|conv)$|kernel_exp$|fuzz_1$", "--limit", "2")
    check("status of failures", status == 1, status)
    for line in ("FAILED ml_rope: bad: 1 is not 2 (and 1 more lines)", "skipped ml_rope: later: no file",
                 "FAILED ml_scan: ended by signal 11: ", "FAILED ml_norm: no end after 2 seconds in endless",
                 "skipped ml_gemm: a reason", "was not built or not brought here",
                 "FAILED kernel_exp: exp.body on cuda: exit status 1: smelt: no",
                 "FAILED fuzz_1: FAILURE: the kernel of seed 3 differs.", "passed 1, failed 5, skipped 3"):
        check(f"expected '{line}' in", line in output, output)
    status, output = run(build, "--only", "ml_(rope|gemm)$", "--seconds", "0")
    check("no time left", (status, output.splitlines()[-1]) == (1, "passed 0, failed 0, skipped 0, not run 2")
          and "not run ml_rope" in output, output)
    program(build / "bin/smelt", 'echo "cpu   a CPU"\necho "cuda         (not usable: no driver)"\n')
    status, output = run(build)
    check("a device that cannot be used", (status, output) == (77, "no GPU: no driver\n"), output)


def test_comparison(build, folder):
    """A device whose results are others than the CPU's by one bit, or by a NaN's sign, within the case's tolerance."""
    wrapper = folder / "smelt"
    program(wrapper, f'''for a; do case "$a" in out:*=*) file=${{a##*=}};; esac; done
case " $* " in *" --device cpu "*) exec "{build}/bin/smelt" "$@";; esac
"{build}/bin/smelt" "$@" || exit 1
{sys.executable} -c "
import os, sys
data = bytearray(open('$file', 'rb').read())
data[-4] ^= int(os.environ['FLIP'])
open('$file', 'wb').write(data)"
''')
    case = SUITE.parent.parent / "kernels/exp.body"
    for flip, wanted in ((0, 0), (1, 1)):
        done = subprocess.run([sys.executable, "-B", str(case.parent / "run_case.py"), str(wrapper), str(case)],
                              capture_output=True, text=True, check=False,
                              env={**os.environ, "FLIP": str(flip), "SMELT_CASE_DEVICES": "cpu-scalar", "SMELT_CASE_COMPARE": "cpu"})
        said = done.stdout + done.stderr
        check(f"flip {flip}", done.returncode == wanted and ("on cpu; 1 of 16 values differ" in said) == bool(wanted), said)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        test_real_build(build)
        test_copied_build(build, folder)
        test_failures(folder)
        test_comparison(build, folder)
    finally:
        shutil.rmtree(folder)
    sys.exit(1 if failures else 0)


main()
