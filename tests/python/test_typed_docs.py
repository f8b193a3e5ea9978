"""The docs' code blocks, and every public name, as a type checker sees them: a user's names are found and typed."""
import os
import subprocess
import sys

from snippets import ROOT, snippets

import smelt

PAGES = ("docs/python.md", "docs/python-arrays.md")


def names_not_found(folder, build_folder, texts):
    """For each text mypy's errors about names that are not there."""
    files = []
    for i, text in enumerate(texts):
        files.append(folder / f"page_{i}.py")
        files[-1].write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), *map(str, files)],
        capture_output=True, text=True, check=False, cwd=os.path.join(build_folder, "python"),
        env={**os.environ, "MYPY_CACHE_DIR": os.path.join(build_folder, "mypy-cache")})
    errors = [line for line in done.stdout.splitlines() if "[attr-defined]" in line or "[name-defined]" in line]
    return [[line for line in errors if file.name in line] for file in files]


def test_every_name_is_found(build_folder, tmp_path):
    names = "import smelt\n" + "".join(f"smelt.{name}\n" for name in smelt.__all__)
    names += "from smelt import *\n" + "".join(f"{name}\n" for name in smelt.__all__)
    names += "smelt.torch.op\nsmelt.mlx.install\nsmelt.launch.suggest_launch\nsmelt.doctor.report\n"
    pages = ["".join(snippet.code for snippet in snippets((ROOT / page).read_text())) for page in PAGES]
    wrong, public, *documented = names_not_found(tmp_path, build_folder, ["import smelt\nsmelt.nothing\n", names, *pages])
    assert len(wrong) == 1 and 'no attribute "nothing"' in wrong[0]
    assert public == [] and documented == [[] for _ in pages]


def test_modules_come_when_they_are_named():
    """`import smelt` brings neither torch nor MLX; naming smelt.torch does, and says what is missing."""
    code = ("import sys, smelt\nassert not {'torch', 'mlx', 'smelt.torch', 'smelt.mlx', 'smelt.launch'} & set(sys.modules)\n"
            "smelt.launch.suggest_launch((4,)); smelt.mlx.install; smelt.doctor.report\n"
            "try: smelt.torch.op\nexcept ImportError as error: print(error)\n"
            "try: smelt.nothing\nexcept AttributeError as error: print(error)\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)})
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "module 'smelt' has no attribute 'nothing'"
    assert lines[:-1] in ([], ["smelt.torch needs PyTorch; install it with: pip install torch"])
