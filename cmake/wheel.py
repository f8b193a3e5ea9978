#!/usr/bin/env python3
"""Builds the wheel that is published: it contains the compiler, and needs nothing but glibc at run time.

Usage: wheel.py FOLDER [CODES]

CODES is the folder that `make codes` wrote; the wheel then contains it.

FOLDER receives the wheel, tagged by auditwheel with the oldest glibc that it runs on, which depends on the machine that builds
it; FOLDER/venv has the tools of python/requirements-wheel.txt, and FOLDER/build the build, whose log is FOLDER/wheel.log. The
same commit, with the same compilers and Debian packages, gives the same bytes wherever and whenever it is built: times are
those of the commit, or of SOURCE_DATE_EPOCH. Exit status 1: it cannot be built; standard error says why."""
import os
import pathlib
import re
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT / "python" / "requirements-wheel.txt"
START_OF_ZIP = "315532800"  # 1980: what a zip archive can say first


class Failure(Exception):
    """Says what went wrong."""


def run(command, log, environment=None):
    with open(log, "a", encoding="utf-8") as file:
        file.write("$ " + " ".join(map(str, command)) + "\n")
        file.flush()
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              check=False)
    if done.returncode != 0:
        tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]
        raise Failure("\n".join([f"{command[0]} ended with status {done.returncode}; the end of {log}:", *tail]))


def make_tools(venv, log):
    """An environment with exactly the tools that are required."""
    stamp = venv / "requirements.txt"
    wanted = REQUIREMENTS.read_text(encoding="utf-8") + sys.version
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        run([sys.executable, "-m", "venv", "--clear", venv], log)
        run([venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", REQUIREMENTS], log)
        stamp.write_text(wanted, encoding="utf-8")
    return venv / "bin"


def time_of_commit():
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else START_OF_ZIP


def environment_with(tools):
    """Nothing of the caller's that could change a byte, except which compilers are used (CC, CXX)."""
    kept = {name: value for name, value in os.environ.items()
            if name not in ("CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "PYTHONPATH") and not name.startswith("SKBUILD")}
    return {**kept, "PATH": f"{tools}:{kept.get('PATH', '')}", "LC_ALL": "C.UTF-8", "TZ": "UTC",
            "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH") or time_of_commit()}


def build(folder, codes, tools, log):
    """The wheel as the build makes it, without a tag that a package index takes."""
    raw = folder / "raw"
    for old in raw.glob("*.whl"):
        old.unlink()
    run([tools / "python", "-m", "build", "--wheel", "--no-isolation", "--outdir", raw, f"-Cbuild-dir={folder / 'build'}",
         f"-Ccmake.define.SMELT_CODES={codes}", ROOT],
        log, environment_with(tools))
    wheel, = raw.glob("*.whl")
    return wheel


def check_compiler(wheel, log):
    if "smelt/lib/smelt-cc1" in zipfile.ZipFile(wheel).namelist():
        return
    reason = re.search(r"smelt-cc1 is left out.*", log.read_text(encoding="utf-8"))
    raise Failure(f"the wheel would not contain the compiler: {reason[0] if reason else f'see {log}'}")


def tag(wheel, folder, tools, log):
    """The published wheel: tagged by what auditwheel finds it to need."""
    environment, tagged = environment_with(tools), folder / "tagged"
    for old in (*folder.glob("*.whl"), *tagged.glob("*.whl")):
        old.unlink()
    run([tools / "auditwheel", "repair", "--wheel-dir", tagged, wheel], log, environment)
    source, = tagged.glob("*.whl")
    target = folder / source.name
    run([tools / "python", ROOT / "cmake" / "pack_wheel.py", source, target, environment["SOURCE_DATE_EPOCH"]], log, environment)
    return target


def main(arguments):
    if len(arguments) not in (1, 2):
        print("usage: wheel.py FOLDER [CODES]", file=sys.stderr)
        return 2
    if len(arguments) == 2 and not os.path.isdir(arguments[1]):
        print(f"wheel.py: codes {arguments[1]}: there is no such folder; expected the one that `make codes` wrote", file=sys.stderr)
        return 2
    os.umask(0o022)
    folder = pathlib.Path(arguments[0]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "wheel.log"
    log.unlink(missing_ok=True)
    try:
        tools = make_tools(folder / "venv", log)
        codes = pathlib.Path(arguments[1]).resolve() if len(arguments) == 2 else folder / "no-codes"
        raw = build(folder, codes, tools, log)
        check_compiler(raw, log)
        wheel = tag(raw, folder, tools, log)
    except Failure as failure:
        print(f"no wheel: {failure}", file=sys.stderr)
        return 1
    print(f"{os.path.relpath(wheel)}: {wheel.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
