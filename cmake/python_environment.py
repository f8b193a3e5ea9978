#!/usr/bin/env python3
"""Makes BUILD/venv: a virtual environment with what the Python tests need, and this build's smelt.

Usage: python_environment.py [--check | --lenient] BUILD REQUIREMENTS.txt…

Makes it, or adds what is new; where there is nothing to do it needs no network and takes milliseconds. The environment
imports BUILD/python and has BUILD/bin/smelt as its command, so a new build needs no new environment. --check only says
whether it is complete. Exit status 1 if it is not (with --lenient 0): pip's own words are then on standard error and in
BUILD/venv.log."""
import argparse
import hashlib
import os
import subprocess
import sys

# Paths of files that the environment has no bytecode for: tests rarely import them.
NOT_IMPORTED = r"/(tests?|mypyc?|pip|setuptools|pkg_resources|f2py|lexers|backend)/"
REMEDY = "The Python tests cannot run without it. Once pip can reach its package index, run make again."


def stamp_of(path):
    """What says that the environment has what a file requires, for this interpreter."""
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read() + sys.version.encode() + sys.base_prefix.encode()).hexdigest()
    return os.path.basename(path) + ".stamp", digest


def is_installed(venv, requirements):
    name, digest = stamp_of(requirements)
    try:
        with open(os.path.join(venv, name), encoding="utf-8") as file:
            return file.read() == digest
    except OSError:
        return False


def run(arguments, log):
    """Runs a step; True if it ended well. What it says goes to the log."""
    with open(log, "a", encoding="utf-8") as file:
        file.write("$ " + " ".join(arguments) + "\n")
        file.flush()
        return subprocess.run(arguments, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              check=False).returncode == 0


def complain(what, log):
    print(f"{what}:", file=sys.stderr)
    with open(log, encoding="utf-8") as file:
        for line in file.read().splitlines()[-12:]:
            print("    " + line, file=sys.stderr)
    print(f"All of it is in {log}. {REMEDY}", file=sys.stderr)
    return False


def create(build, venv, log):
    """The environment itself: made anew where there is none, or one of another interpreter."""
    python = os.path.join(venv, "bin", "python")
    version = [python, "-c", "import sys; print(sys.version.encode().hex() + sys.base_prefix)"]
    wanted = sys.version.encode().hex() + sys.base_prefix
    try:
        if subprocess.run(version, capture_output=True, text=True, check=False).stdout.strip() == wanted:
            return True
    except OSError:
        pass
    if not run([sys.executable, "-m", "venv", "--clear", venv], log):
        return complain(f"{venv} cannot be made (on Debian it needs the package python3-venv)", log)
    packages = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                              capture_output=True, text=True, check=True).stdout.strip()
    with open(os.path.join(packages, "smelt.pth"), "w", encoding="utf-8") as file:
        file.write(os.path.relpath(os.path.join(build, "python"), os.path.realpath(packages)) + "\n")
    os.symlink(os.path.join("..", "..", "bin", "smelt"), os.path.join(venv, "bin", "smelt"))
    return True


def install(venv, requirements, log):
    if is_installed(venv, requirements):
        return True
    print(f"Installing {os.path.basename(requirements)} into {venv}", flush=True)
    pip = [os.path.join(venv, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
           "--no-input", "--retries", "1", "--no-compile", "-r", requirements]
    if not run(pip, log):
        return complain(f"pip cannot install {os.path.basename(requirements)} into {venv}", log)
    # Instead of by pip, which would compile all files, among them the packages' own tests.
    run([os.path.join(venv, "bin", "python"), "-m", "compileall", "-q", "-x", NOT_IMPORTED, os.path.join(venv, "lib")], log)
    name, digest = stamp_of(requirements)
    with open(os.path.join(venv, name), "w", encoding="utf-8") as file:
        file.write(digest)
    return True


def check(build, venv, files):
    missing = [path for path in files if not is_installed(venv, path)]
    if not missing:
        print(f"{venv} is complete")
        return True
    log = os.path.join(build, "venv.log")
    what = f"{venv} lacks what {', '.join(map(os.path.basename, missing))} names"
    if os.path.exists(log):
        return complain(what, log)
    print(f"{what}: run make, which installs it", file=sys.stderr)
    return False


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--lenient", action="store_true")
    parser.add_argument("build")
    parser.add_argument("requirements", nargs="+")
    options = parser.parse_args(arguments)
    build, files = os.path.realpath(options.build), options.requirements
    venv, log = os.path.join(build, "venv"), os.path.join(build, "venv.log")
    if options.check:
        return check(build, venv, files)
    if all(is_installed(venv, path) for path in files):
        return True
    with open(log, "w", encoding="utf-8"):
        pass  # what an earlier attempt said is gone
    done = create(build, venv, log) and all(install(venv, path, log) for path in files)
    if done:
        os.unlink(log)
    return done or options.lenient


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
