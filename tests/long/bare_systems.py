#!/usr/bin/env python3
"""Tries a clone of this checkout on fresh Debian systems: its suite, the Debian package it makes, and the wheel.

    tests/long/bare_systems.py [--release bookworm|trixie]… [--part suite|package|wheel]… [--only REGEX] [--folder FOLDER]
                               [--jobs N] [--wheel FILE]

Needs root, debootstrap and a network. Each system is bootstrapped with nothing but apt. `suite` clones the last commit
there, with nothing next to it, and runs `make check` (with --only: the tests whose names fit). `package` runs `make deb`,
installs the result on another fresh system with what it depends on and nothing else, and tries it there. `wheel` installs
the wheel (FILE, or what `make wheel` gives on the older release) with pip on a system with nothing but python3 and
python3-venv, and runs the README's first kernel. The mirror, the name servers and pip's settings are this machine's. Systems are kept in FOLDER for the next run, where one is given, with
the log of each step. Mounts live in a namespace of their own and go with the last process.
Exit status: 0 all is well, 1 something failed, 77 it cannot be tried here.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

SOURCES = pathlib.Path(__file__).resolve().parents[2]
RELEASES = ("bookworm", "trixie")
# The new root's own /proc and processes; /dev is this machine's.
ENTER = ('mount --make-rprivate / && mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && '
         'exec chroot "$0" sh -c "$1"')
SMOKE = r"""set -eu
cd /tmp
printf 'uint i = thread_position_in_grid.x;\nout[i] = metal::exp(T(inp[i])) + simd_sum(1.0f);\n' > exp.body
smelt devices
for device in cpu cpu-scalar; do
    smelt run --body exp.body -i inp=zeros:float32:64 -o out:float32:64 -t T=float32 --grid 64 --threadgroup 32 \
        --device $device | grep -F 'min 33, max 33, mean 33'
done
printf 'kernel void twice(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] *= 2; }\n' > twice.metal
smelt build twice.metal -o twice.smeltlib --target cpu,sm_80
smelt run twice.smeltlib -b 0:out:float32:4 --grid 4 | grep -F '[0, 0, 0, 0]'
clang-19 -Wall -Wextra -Werror host.c -lsmelt -o host_c && ./host_c
clang-19 -Wall -Wextra -Werror -std=c++17 -x c++ host.cpp -lsmelt -lstdc++ -o host_cpp && ./host_cpp
test -s /usr/share/man/man1/smelt.1
test -s /usr/share/doc/smelt/copyright
apt-get purge -y smelt
left=$(find /usr/include /usr/lib /usr/bin /usr/share -name '*smelt*')
test -z "$left" || { echo "left behind: $left"; exit 1; }
echo 'the package works'
"""

WHEEL_SMOKE = r"""set -eu
for tool in cc gcc clang clang-19 ld; do
    ! command -v $tool || { echo "$tool is there: the system is not bare"; exit 1; }
done
cd /tmp
python3 -m venv environment
environment/bin/pip install --quiet --disable-pip-version-check ./smelt-*.whl numpy
environment/bin/python first.py > found.txt
diff found.txt wanted.txt
environment/bin/python -m smelt.doctor > doctor.txt || { cat doctor.txt; exit 1; }
grep -F smelt-cc1 doctor.txt
left=$(find /root/.cache/smelt -name '*.pch')
test -z "$left" || { echo "the prelude was compiled: $left"; exit 1; }
printf 'kernel void twice(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] *= 2; }\n' > twice.metal
environment/bin/smelt run twice.metal -b 0:out:float32:4 --grid 4 | grep -F '[0, 0, 0, 0]'
environment/bin/smelt build twice.metal -o twice.smeltlib --target cpu,sm_80
environment/bin/pip uninstall --quiet --yes smelt
left=$(find environment -name '*smelt*')
test -z "$left" || { echo "left behind: $left"; exit 1; }
echo 'the wheel works'
"""


class Failure(Exception):
    """A step that went wrong; its log says how."""


def host_codename():
    text = pathlib.Path("/etc/os-release").read_text(encoding="utf-8")
    found = re.search(r"^VERSION_CODENAME=(\w+)", text, flags=re.MULTILINE)
    return found[1] if found else ""


def host_sources():
    """(address, suite) of each archive of this machine's own release, in either of apt's notations."""
    own, found = host_codename(), []
    for path in sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*.sources")):
        for part in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
            fields = dict(re.findall(r"^(\w[\w-]*): *(.*)$", part, flags=re.MULTILINE))
            found += [(address, suite) for address in fields.get("URIs", "").split() for suite in fields.get("Suites", "").split()]
    lists = [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*.list"))]
    for path in filter(pathlib.Path.exists, lists):
        found += re.findall(r"^deb (?:\[[^]]*\] )?(\S+) (\S+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [(address, suite[len(own):]) for address, suite in found if suite == own or suite.startswith(own + "-")]


PIP_FILES = ("/etc/pip.conf", "/root/.config/pip/pip.conf", "/root/.pip/pip.conf")
CERTIFICATES = "/etc/host-certificates.crt"  # of its own: Debian's package of certificates writes the usual one


def pip_certificates():
    """The file of certificates that pip trusts on this machine, if it was told one."""
    text = "".join(pathlib.Path(path).read_text(encoding="utf-8") for path in PIP_FILES if os.path.exists(path))
    named = [os.environ.get("PIP_CERT", ""), *re.findall(r"^cert *= *(\S+)", text, flags=re.MULTILINE)]
    return next(filter(os.path.exists, named), None)


def settings():
    """This machine's way to the network, for programs that run in a system."""
    kept = {name: value for name, value in os.environ.items()
            if name.lower().endswith("_proxy") or (name.startswith("PIP_") and name not in ("PIP_FIND_LINKS", "PIP_CERT"))}
    if pip_certificates():
        kept["PIP_CERT"] = CERTIFICATES
    return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8", **kept}


def give_settings(root):
    """The files that name servers and pip's settings are in."""
    copies = {path: path for path in ("/etc/resolv.conf", *PIP_FILES) if os.path.exists(path)}
    if pip_certificates():
        copies[pip_certificates()] = CERTIFICATES
    for path, place in copies.items():
        copy = pathlib.Path(str(root) + place)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def step(log, command, **options):
    """Runs a command with all it says in a log."""
    with open(log, "w", encoding="utf-8") as file:
        code = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False,
                              **options).returncode
    if code != 0:
        tail = "".join(f"    {line}\n" for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[-60:])
        raise Failure(f"status {code}, {log}:\n{tail}")


def enter(root, log, script):
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, str(root), script]
    step(log, command, env=settings())


def bootstrap(folder, release):
    """The folder of a fresh system, made once."""
    base, done = folder / f"{release}.base", folder / f"{release}.done"
    if done.exists():
        return base
    sources = host_sources()
    mirror = next((address for address, suite in sources if suite == ""), None)
    if mirror is None:
        raise Failure(f"/etc/apt names no archive of '{host_codename()}', so that no mirror is known")
    shutil.rmtree(base, ignore_errors=True)
    step(folder / f"{release}.debootstrap.log", ["debootstrap", "--variant=minbase", release, str(base), mirror])
    lines = [f"deb {address} {release}{suite} main\n" for address, suite in sources]
    (base / "etc/apt/sources.list").write_text("".join(lines), encoding="utf-8")
    done.touch()
    return base


def fresh(folder, release, name):
    """A system of one part's own."""
    root = folder / f"{release}.{name}"
    base = bootstrap(folder, release)
    shutil.rmtree(root, ignore_errors=True)
    step(folder / f"{release}.{name}.copy.log", ["cp", "-a", "--reflink=auto", str(base), str(root)])
    give_settings(root)
    return root


def apt(packages):
    return ("export DEBIAN_FRONTEND=noninteractive; apt-get -q update && "
            f"apt-get -q install -y --no-install-recommends {packages} && ")


def clone(root):
    """The last commit, with nothing next to it; make is all it takes to begin."""
    step(root.parent / f"{root.name}.clone.log", ["git", "clone", "-q", "--no-hardlinks", f"file://{SOURCES}", f"{root}/smelt"])


def try_suite(folder, release, options):
    root = fresh(folder, release, "suite")
    clone(root)
    check = "make check"
    if options.only:
        check = f"make && ctest --test-dir build --output-on-failure -j {options.jobs} -R '{options.only}'"
    log = folder / f"{release}.suite.log"
    enter(root, log, apt("make") + f"cd /smelt && {check}")
    return re.findall(r"^\d+% tests passed.*|^Total Test time.*", log.read_text(encoding="utf-8"), flags=re.MULTILINE)


def try_package(folder, release, _):
    builder = fresh(folder, release, "build")
    clone(builder)
    enter(builder, folder / f"{release}.deb.log", apt("make") + "cd /smelt && make deb")
    package, = (builder / "smelt/build-deb").glob("smelt_*.deb")
    root = fresh(folder, release, "package")
    for path in (package, SOURCES / "tests/env/install/host.c", SOURCES / "tests/env/install/host.cpp"):
        shutil.copy(path, root / "tmp")
    enter(root, folder / f"{release}.package.log", apt(f"/tmp/{package.name}") + SMOKE)
    return [package.name]


def build_wheel(folder):
    """The wheel, built once, on the older release."""
    kept = folder / "wheel"
    if not list(kept.glob("*.whl")):
        builder = fresh(folder, RELEASES[0], "wheel-build")
        clone(builder)
        enter(builder, folder / "wheel-build.log", apt("git make") + "cd /smelt && make wheel")
        built, = (builder / "smelt/build-wheel").glob("*.whl")
        kept.mkdir(exist_ok=True)
        shutil.copy(built, kept)
    wheel, = kept.glob("*.whl")
    return wheel


def first_kernel():
    """The README's first program, and what the README says it prints."""
    text = (SOURCES / "README.md").read_text(encoding="utf-8")
    return re.search(r"```python\n(.*?)```\n```text\n(.*?)```", text, flags=re.DOTALL).groups()


def try_wheel(folder, release, options):
    wheel = options.wheel or build_wheel(folder)
    root = fresh(folder, release, "wheel")
    shutil.copy(wheel, root / "tmp")
    for name, text in zip(("first.py", "wanted.txt"), first_kernel()):
        (root / "tmp" / name).write_text(text, encoding="utf-8")
    enter(root, folder / f"{release}.wheel.log", apt("python3 python3-venv") + WHEEL_SMOKE)
    return [wheel.name]


PARTS = {"suite": try_suite, "package": try_package, "wheel": try_wheel}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--release", action="append", choices=RELEASES)
    parser.add_argument("--part", action="append", choices=list(PARTS))
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--wheel", type=pathlib.Path, metavar="FILE")
    return parser.parse_args()


def run(folder, options):
    failed = 0
    for release in options.release or RELEASES:
        for part in options.part or PARTS:
            start = time.monotonic()
            try:
                words = f"passed: {'; '.join(PARTS[part](folder, release, options))}"
            except Failure as failure:
                failed, words = failed + 1, f"FAILED: {failure}"
            print(f"{release} {part}: {time.monotonic() - start:.0f} s, {words}", flush=True)
    return 1 if failed else 0


def main():
    options = parse()
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        print("bare systems take root and debootstrap (the Debian package of that name)")
        return 77
    if options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
        return run(options.folder.resolve(), options)
    with tempfile.TemporaryDirectory(prefix="smelt-bare-") as folder:
        return run(pathlib.Path(folder), options)


if __name__ == "__main__":
    sys.exit(main())
