"""PTX for every target, assembled for the GPUs that get it, newer ones too, where there is a `ptxas` that knows them.
Run as `test_targets.py SMELT`."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SMELT = os.path.abspath(sys.argv[1])
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets.metal")
# What is made, and the GPUs that run it as it is.
ASSEMBLED = {"sm_80": ["sm_80"], "sm_86": ["sm_86"], "sm_87": ["sm_87"], "sm_89": ["sm_89"],
             "sm_90": ["sm_90", "sm_100", "sm_120"], "sm_90a": ["sm_90a"]}


def ptx_for(target, source=SOURCE, arguments=()):
    shown = subprocess.run([SMELT, "show", source, *arguments, "--stage", "ptx", "--target", target, "--threadgroup", "64"],
                           capture_output=True, text=True, check=False)
    assert shown.returncode == 0, f"{target}: {shown.stderr}"
    assert re.search(rf"^\.target {target}\b", shown.stdout, re.M), f"{target}: the PTX is of another target"
    return shown.stdout


def known_to(assembler):
    said = subprocess.run([assembler, "--help"], capture_output=True, text=True, check=False).stdout
    return set(re.findall(r"'(sm_\d+a?)'", said))


def assemble(assembler, text, gpu, folder):
    path = os.path.join(folder, "kernel.ptx")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    made = subprocess.run([assembler, f"-arch={gpu}", path, "-o", os.path.join(folder, "kernel.cubin")], capture_output=True,
                          text=True, check=False)
    assert made.returncode == 0, f"{gpu}: {made.stderr}"


def main():
    assembler = shutil.which("ptxas")
    known = known_to(assembler) if assembler else set()
    with tempfile.TemporaryDirectory() as folder:
        for target, gpus in ASSEMBLED.items():
            text = ptx_for(target)
            for gpu in gpus:
                if gpu in known:
                    assemble(assembler, text, gpu, folder)
                elif assembler:
                    print(f"{target}: not assembled for {gpu}, which this ptxas does not know")
        # The oldest targets declare PTX 7.4, and movmatrix needs 7.8.
        text = ptx_for("sm_80", os.path.join(os.path.dirname(SOURCE), "strides.metal"), ("product", "--bytes", "3=uint32:24"))
        assert "movmatrix" in text and re.search(r"^\.version 7\.8$", text, re.M), f"product: expected movmatrix, and PTX 7.8:\n{text}"
        if "sm_80" in known:
            assemble(assembler, text, "sm_80", folder)
    print("assembled" if assembler else "not assembled: there is no ptxas")


main()
