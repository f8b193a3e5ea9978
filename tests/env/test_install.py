#!/usr/bin/env python3
"""`cmake --install`: what lies where, that it works from there, and that programs in C and C++ find it."""
import os
import re
import shutil
import subprocess

from elf import dynamic, elf_files, search_paths
from support import COMPILER, EXP_BODY, FULL, HAS_CC1, SMELT, SONAME, entries, expect, expect_equal, expect_exp, run_tests

BUILD = os.path.dirname(os.path.dirname(SMELT))
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.dirname(os.path.dirname(HERE))
HOST = os.path.join(HERE, "install")
CACHE = os.environ.get("SMELT_CACHE_DIR")

TREE = {
    "bin/smelt", "lib/libsmelt.so", f"lib/{SONAME}", "lib/libsmelt.so.VERSION", f"lib/smelt/{COMPILER}",
    "lib/pkgconfig/smelt.pc", "lib/cmake/smelt/smeltConfig.cmake", "lib/cmake/smelt/smeltConfigVersion.cmake",
    "lib/cmake/smelt/smeltTargets.cmake", "lib/cmake/smelt/smeltTargets-CONFIGURATION.cmake", "share/man/man1/smelt.1",
    "share/bash-completion/completions/smelt", "share/zsh/site-functions/_smelt", "share/fish/vendor_completions.d/smelt.fish",
    "share/doc/smelt/CHANGELOG.md", "share/doc/smelt/CONTRIBUTING.md", "share/doc/smelt/LICENSE",
    "share/doc/smelt/README.md", "share/smelt/metal/smelt/layout", "share/smelt/metal/smelt/tensor",
}
PRELUDES = {"metal-safe.pch", "mlx-safe.pch"} if HAS_CC1 else set()


def setting(name):
    """A variable of the build's CMake cache."""
    with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as file:
        found = re.search(rf"^{name}:\w+=(.*)$", file.read(), flags=re.MULTILINE)
    return found[1] if found else ""


def do(command, **changes):
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **changes})
    expect(done.returncode == 0, f"{command} ended with status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def install(folder):
    do(["cmake", "--install", BUILD, "--prefix", folder])
    return folder


def installed(scratch):
    """A tree that has been moved since it was installed."""
    first = install(os.path.join(scratch.path, "first"))
    return shutil.move(first, os.path.join(scratch.path, "moved"))


def version():
    with open(os.path.join(SOURCES, "include", "smelt", "smelt.h"), encoding="utf-8") as file:
        return ".".join(re.findall(r"^#define SMELT_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", file.read(), flags=re.MULTILINE))


def files_below(folder):
    return {os.path.relpath(os.path.join(place, name), folder) for place, _, names in os.walk(folder) for name in names}


def names_in(*place):
    return {os.path.join(*place[1:], name) for name in os.listdir(os.path.join(SOURCES, *place))}


CODES = "lib/smelt/smelt-codes/"  # what `make codes` wrote, if it did


def test_everything_lies_in_the_gnu_directories(scratch):
    found = files_below(install(scratch.path + "/tree"))
    configuration = setting("CMAKE_BUILD_TYPE").lower()
    wanted = {name.replace("VERSION", version()).replace("CONFIGURATION", configuration) for name in TREE}
    wanted |= {"lib/smelt/" + name for name in PRELUDES}
    wanted |= {"share/doc/smelt/licenses/" + name for name in os.listdir(os.path.join(SOURCES, "licenses"))}
    wanted |= {os.path.join("include", name) for name in names_in("include", "smelt")}
    wanted |= {os.path.join("share/doc/smelt/docs", name) for name in os.listdir(os.path.join(SOURCES, "docs"))}
    expect_equal(sorted(wanted - found), [], "what is missing")
    rest = [name for name in found - wanted if not name.startswith(("share/doc/smelt/examples/", CODES))]
    expect_equal(sorted(rest), [], "what nobody expects")


def test_a_staged_tree_lies_below_destdir(scratch):
    stage = os.path.join(scratch.path, "stage")
    do(["cmake", "--install", BUILD], DESTDIR=stage)
    expect(os.path.exists(stage + setting("CMAKE_INSTALL_PREFIX") + "/bin/smelt"), f"{files_below(stage)}")


def test_installed_files_look_for_libraries_in_their_prefix_only(scratch):
    tree = installed(scratch)
    files = elf_files(tree)
    expect_equal(len(files), 3, "the number of programs and libraries")
    expect_equal(search_paths(files), [(os.path.join(tree, "bin/smelt"), "$ORIGIN/../lib")], "where they look for libraries")
    expect_equal([name for name in dynamic(files)[os.path.join(tree, "bin/smelt")]["NEEDED"] if "smelt" in name],
                 [SONAME], "what the command needs of smelt")


def test_a_moved_tree_runs_kernels(scratch):
    tree = installed(scratch)
    for command in (os.path.join(tree, "bin/smelt"), os.path.join(scratch.path, "link")):
        if not os.path.exists(command):
            os.symlink(os.path.join(tree, "bin/smelt"), command)
        done, output = scratch.run_exp(name=os.path.basename(command), smelt=command, SMELT_CACHE_DIR=CACHE or scratch.cache,
                                       body=EXP_BODY + f"// {scratch.path} {command}\n")
        expect_exp(done, output, command)


def test_a_linked_library_finds_the_compiler(scratch):
    """A program whose lib folder holds a link to the library, and nothing else."""
    tree = installed(scratch)
    for folder in ("own/bin", "own/lib"):
        os.makedirs(os.path.join(scratch.path, folder))
    command = shutil.copy(os.path.join(tree, "bin/smelt"), os.path.join(scratch.path, "own/bin"))
    os.symlink(os.path.join(tree, "lib", SONAME), os.path.join(scratch.path, "own/lib", SONAME))
    done, output = scratch.run_exp(smelt=command, SMELT_CACHE_DIR=CACHE or scratch.cache, body=EXP_BODY + f"// {scratch.path}\n")
    expect_exp(done, output)


def preludes_compiled(scratch, tree, what, *options):
    """How many preludes the first kernel compiles, with an installed tree and an empty cache."""
    scratch.cache = os.path.join(scratch.path, what.replace(" ", "-"))
    done, output = scratch.run_exp(smelt=os.path.join(tree, "bin/smelt"), extra=options)
    expect_exp(done, output, what)
    return len(entries(scratch, "pch"))


def test_the_installed_prelude_is_used(scratch):
    if not PRELUDES:
        return "skipped: this build has no smelt-cc1"
    tree = installed(scratch)
    expect_equal(preludes_compiled(scratch, tree, "the default mode"), 0, "the number of preludes compiled with it in place")
    expect_equal(preludes_compiled(scratch, tree, "fast math", "--math", "fast"), 1, "the number of preludes compiled for fast math")


def test_an_installed_prelude_that_does_not_fit_is_not_used(scratch):
    if not PRELUDES:
        return "skipped: this build has no smelt-cc1"
    tree = installed(scratch)
    mlx, metal = (os.path.join(tree, "lib/smelt", name) for name in ("mlx-safe.pch", "metal-safe.pch"))
    kept = shutil.copy(mlx, scratch.out)
    damages = [("another prelude's image", lambda: shutil.copy(metal, mlx)), ("an empty file", lambda: os.truncate(mlx, 0)),
               ("a flipped bit", lambda: flip(mlx, 5000)), ("a cut", lambda: os.truncate(mlx, 1 << 20)),
               ("no file", lambda: os.unlink(mlx))]
    for what, damage in damages if FULL else damages[::2]:  # each compiles a prelude
        shutil.copy(kept, mlx)
        damage()
        expect_equal(preludes_compiled(scratch, tree, what), 1, f"the number of preludes compiled after {what}")


def flip(path, position):
    with open(path, "r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 16]))


def test_the_installed_prelude_is_the_same_from_every_build(scratch):
    """It depends neither on folders nor on who builds it."""
    if not PRELUDES:
        return "skipped: this build has no smelt-cc1"
    for name in ("here/prelude", "here/lib", "out/images"):
        os.makedirs(os.path.join(scratch.path, name))
    program = shutil.copy(os.path.join(BUILD, "prelude/smelt_precompile"), os.path.join(scratch.path, "here/prelude"))
    shutil.copy(os.path.join(BUILD, "lib/smelt-cc1"), os.path.join(scratch.path, "here/lib"))
    images = os.path.join(scratch.out, "images")
    done = subprocess.run([program, images], cwd=scratch.out, env={"HOME": "/nowhere"}, capture_output=True, text=True, check=False)
    expect_equal((done.returncode, done.stderr), (0, ""), "status and messages of smelt_precompile")
    for name in sorted(PRELUDES):
        with open(os.path.join(images, name), "rb") as first, open(os.path.join(BUILD, "prelude/images", name), "rb") as second:
            expect(first.read() == second.read(), f"{name} differs from the build's")


def sanitizer():
    flags = setting("SMELT_SANITIZE")
    return [f"-fsanitize={flags}"] if flags else []


def expect_host(command, tree):
    variables = {"LD_LIBRARY_PATH": os.path.join(tree, "lib")} | ({"SMELT_CACHE_DIR": CACHE} if CACHE else {})
    expect_equal(do([command], **variables), f"smelt {version()}: 14\n", f"the output of {command}")


def test_programs_find_it_by_pkg_config(scratch):
    tree = installed(scratch)
    folder = {"PKG_CONFIG_PATH": os.path.join(tree, "lib/pkgconfig")}
    expect_equal(do(["pkg-config", "--modversion", "smelt"], **folder).strip(), version(), "the version")
    flags = do(["pkg-config", "--cflags", "--libs", "smelt"], **folder).split()
    for compiler, source in (("cc", "host.c"), ("c++", "host.cpp")):
        program = os.path.join(scratch.path, source + ".out")
        do([compiler, "-Wall", "-Wextra", "-Werror", *sanitizer(), os.path.join(HOST, source), *flags, "-o", program])
        expect_host(program, tree)


def test_programs_find_it_by_cmake(scratch):
    tree, build = installed(scratch), os.path.join(scratch.path, "build")
    do(["cmake", "-G", "Ninja", "-S", HOST, "-B", build, f"-DCMAKE_PREFIX_PATH={tree}", f"-DCMAKE_C_FLAGS={''.join(sanitizer())}",
        f"-DCMAKE_CXX_FLAGS={''.join(sanitizer())}"])
    do(["cmake", "--build", build])
    for program in ("host_c", "host_cpp"):
        expect_host(os.path.join(build, program), tree)


def manual_text():
    """The manual page without roff's marks."""
    with open(os.path.join(BUILD, "man", "smelt.1"), encoding="ascii") as file:
        text = file.read()
    text = re.sub(r"\\\[u([0-9A-F]+)\]", lambda found: chr(int(found[1], 16)), text)
    for mark, character in ((r"\(aq", "'"), (r"\(ga", "`"), (r"\(ha", "^"), (r"\(ti", "~"), (r"\&", ""), (r"\-", "-"), (r"\e", "\\")):
        text = text.replace(mark, character)
    return text.splitlines()


def test_the_manual_page_says_what_help_says(_):
    lines = set(manual_text())
    overview = do([SMELT, "--help"])
    commands = re.findall(r"^  (\w+) {2,}", overview, flags=re.MULTILINE)
    expect("run" in commands and "bench" in commands, f"--help lists {commands}")
    for command in ([], *([name] for name in commands)):
        missing = [line for line in do([SMELT, *command, "--help"]).splitlines() if line and line not in lines]
        expect_equal(missing, [], f"what the manual page lacks of smelt {' '.join(command)} --help")
    with open(os.path.join(SOURCES, "docs", "environment.md"), encoding="utf-8") as file:
        variables = re.findall(r"^\| `(SMELT_\w+)`", file.read(), flags=re.MULTILINE)
    expect_equal([name for name in variables if f".B {name}" not in lines], [], "variables that the manual page lacks")


run_tests(globals())
