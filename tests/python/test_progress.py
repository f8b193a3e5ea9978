"""A compile that takes long is shown on the terminal of a Python program, too."""
import os
import pty
import re
import subprocess
import sys

PROGRAM = """
import smelt
kernel = smelt.metal_kernel(name="probe", input_names=[], output_names=["out"], source="out[0] = 7;")
(out,) = kernel(inputs=[], grid=(1, 1, 1), threadgroup=(1, 1, 1), output_shapes=[(1,)], output_dtypes=["float32"], output_kind="smelt")
print(out.tolist())
"""
ERASE = "\r\x1b[K"


def run(tmp_path, **changes):
    """What the program prints, and what the terminal on its standard error shows."""
    clang = tmp_path / "slow-clang"
    clang.write_text('#!/bin/sh\ncase "$*" in *--version*) ;; *) sleep 2.5 ;; esac\nexec clang-19 "$@"\n', encoding="utf-8")
    clang.chmod(0o755)
    environment = {**os.environ, "TERM": "xterm", "SMELT_CLANG": str(clang), "SMELT_CACHE_DIR": str(tmp_path / "cache"), **changes}
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=theirs, text=True, env=environment) as process:
        os.close(theirs)
        output = process.stdout.read()
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        shown += piece
        if not piece:
            break
    os.close(ours)
    assert (process.returncode, output) == (0, "[7.0]\n"), shown
    return shown.decode()


def test_a_long_compile_is_shown_and_erased(tmp_path):
    shown = run(tmp_path).split(ERASE)
    assert (shown[0], shown[-1]) == ("", "")
    assert any(re.fullmatch(r"compiling 'probe': clang, [1-9]\d* s", line) for line in shown), shown


def test_nothing_is_shown_if_progress_is_off(tmp_path):
    assert run(tmp_path, SMELT_PROGRESS="0") == ""
