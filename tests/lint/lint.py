#!/usr/bin/env python3
"""Runs one tool over the tracked sources. Exit status 77, with a sentence, where the tool is not installed.

    lint.py TOOL BUILD_FOLDER        TOOL: clang_format, clang_tidy, clang_tidy_cc1, clang_tidy_analyzer, cppcheck, docs, mypy, ruff
"""
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

import together

SOURCES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIPPED = 77


def tracked(*patterns):
    files = subprocess.run(["git", "ls-files", "--", *patterns], cwd=SOURCES, capture_output=True, text=True, check=False).stdout.split()
    return [file for file in files if os.path.exists(os.path.join(SOURCES, file))]


def skip(sentence):
    print(sentence)
    sys.exit(SKIPPED)


def program(build, *names):
    found = shutil.which(names[0], path=os.path.join(build, "venv", "bin")) or next(filter(None, map(shutil.which, names)), None)
    return found or skip(f"{names[0]} is not installed: its checks are not run")


def run(command, files):
    if not files:
        skip("git lists no files here: nothing is checked")
    return subprocess.run([*command, *files], cwd=SOURCES, check=False).returncode


# The one version whose output .clang-format was written for: others break lines elsewhere.
def clang_format(build):
    sources = [file for file in tracked("*.c", "*.h", "*.cpp", "*.hpp") if not file.startswith("prelude/")]
    return run([program(build, "clang-format-19"), "--dry-run", "--Werror"], sources)


def read(file):
    with open(os.path.join(SOURCES, file), "rb") as stream:
        return stream.read()


def one_by_one(files):
    return [([file], [file], []) for file in files]


def in_groups(written, together_at_most=1):
    """Batches for run_where_changed of what together.write wrote: so many groups in a run, of which each is next run by
    itself, and then its files."""
    groups = [([file], group, one_by_one(group) if len(group) > 1 else []) for file, group in written]
    batches = [groups[i:i + together_at_most] for i in range(0, len(groups), together_at_most)]
    return [batch[0] if len(batch) == 1 else
            ([file for files, _, _ in batch for file in files], [file for _, group, _ in batch for file in group], batch)
            for batch in batches]


def run_where_changed(name, build, command, files, options, batches):
    """Runs a slow tool over the files (path: how it is compiled) that have changed since it found nothing in them: they
    themselves, or any header or file of options. Two runs at a time. `batches` divides the changed files: the arguments of a
    run, the files that it checks, and the smaller batches that take its place if it finds something."""
    stamps = os.path.join(build, "lint", name)
    os.makedirs(stamps, exist_ok=True)
    common = hashlib.sha256("\0".join(command).encode() + subprocess.run([command[0], "--version"], capture_output=True, check=True).stdout)
    for file in tracked("*.h", "*.hpp", *options):
        common.update(read(file))

    def stamp_of(file):
        digest = common.copy()
        digest.update(f"{file}\0{files[file]}\0".encode() + read(file))
        return os.path.join(stamps, digest.hexdigest())
    changed = [file for file in files if not os.path.exists(stamp_of(file))]

    def check(batch):
        arguments, files_there, smaller = batch
        done = subprocess.run([*command, *arguments], cwd=SOURCES, capture_output=True, text=True, check=False)
        if done.returncode and smaller:
            # Findings count only if the tool reports them for a file by itself.
            return [result for part in smaller for result in check(part)]
        for file in files_there if done.returncode == 0 else []:
            with open(stamp_of(file), "w", encoding="ascii"):
                pass
        return [done]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for done in (result for results in pool.map(check, batches(changed)) for result in results):
            if done.returncode:
                failed += 1
                print(done.stdout + ("" if "error:" in done.stdout else done.stderr), end="")
    print(f"{len(changed)} of {len(files)} files are new or changed")
    return failed


# The one file that includes clang's own headers. clang-tidy checks all of them with it: a minute of a processor, where other
# files take a tenth of a second.
CC1 = "src/cc1/cc1.cpp"


def checks_of(options):
    """The value of Checks in a file of options for clang-tidy."""
    return re.search("^Checks: '(.*)'$", read(options).decode(), re.MULTILINE)[1]


def clang_tidy(build, name="clang_tidy", checks="-clang-analyzer-*", chosen=lambda file: file != CC1):
    """Runs on groups of files, each read as one file (together.py), since reading the headers takes most of the time, and on
    eight groups at a time, since clang-tidy takes a while to start."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = {os.path.relpath(entry["file"], SOURCES): entry["command"] for entry in json.load(file)}
    sources = {file: commands[file] for file in tracked("*.c", "*.cpp") if file in commands and chosen(file)}
    checker = [program(build, "clang-tidy-19"), "--quiet", "--config-file=.clang-tidy"]
    failed = 0
    for tests in (False, True):
        here = {file: command for file, command in sources.items() if file.startswith("tests/") == tests}
        folder = os.path.join(build, "lint", name + "_tests" if tests else name)
        own = f"{checks_of('tests/.clang-tidy')},{checks}" if tests else checks
        failed |= run_where_changed(name, build, [*checker, "-p", folder, "--checks=" + own], here, [".clang-tidy", "tests/.clang-tidy"],
                                    lambda changed, folder=folder, here=here: in_groups(together.write(
                                        folder, SOURCES, {path: here[path] for path in changed}), 8))
    return failed


def clang_tidy_cc1(build):
    """The same checks of the file that clang_tidy leaves out (make check-long)."""
    return clang_tidy(build, chosen=lambda file: file == CC1)


def clang_tidy_analyzer(build):
    """With clang's static analyzer, which takes many minutes (make analyze)."""
    return clang_tidy(build, "clang_tidy_analyzer", "", lambda _: True)


def cppcheck(build):
    """One configuration of each file: others are of other systems. Groups of files are read as one file (together.py), since
    reading the headers takes much of the time."""
    folder = os.path.join(build, "lint", "cppcheck_files")
    return run_where_changed("cppcheck", build, [
        program(build, "cppcheck"), "--enable=warning,performance", "--inline-suppr", "--std=c17", "--quiet", "--library=python",
        "--max-configs=1", "-D__linux__", "-D__x86_64__", "-D_GNU_SOURCE", "--error-exitcode=1",
        "--suppressions-list=tests/lint/cppcheck.suppressions", f"--relative-paths={SOURCES}", "-I", "include", "-I", "src",
        "-I", ".", "-I", "cli"],
        {file: "" for file in tracked("*.c")}, ["tests/lint/cppcheck.suppressions"],
        lambda changed: in_groups(together.write(folder, SOURCES, dict.fromkeys(changed, ""))))


# Tests of the package call it wrongly on purpose: of those, attributes are checked.
MISUSE = ("arg-type", "call-arg", "call-overload", "assignment", "operator", "has-type", "method-assign", "override",
          "func-returns-value", "empty-body", "list-item", "return-value", "name-defined")
# python_types checks these.
TYPED = ("python/smelt/", "tests/python/typed_program.py")


def groups_of_folders(files):
    """Programs find the modules of their own folder. In a group no two files have one name, as modules of one run may not."""
    groups = []
    for folder in sorted({os.path.dirname(file) for file in files} - {"tests/python"}):
        here = [file for file in files if os.path.dirname(file) == folder]
        names = set(map(os.path.basename, here))
        group = next((g for g in groups if names.isdisjoint(map(os.path.basename, g))), None)
        if group is None:
            groups.append(here)
        else:
            group += here
    return [*groups, [file for file in files if os.path.dirname(file) == "tests/python"]]


def mypy(build):
    checker = [program(build, "mypy"), "--config-file", "tests/lint/mypy.ini", "--no-error-summary", "--cache-dir",
               os.path.join(build, "lint", "mypy")]
    wrong = False
    # The groups share a cache, so that the libraries that they import are analysed once. It only serves runs with the same
    # options, so the errors that tests of the package may have are removed from mypy's output.
    for files in groups_of_folders([file for file in tracked("*.py") if not file.startswith(TYPED)]):
        os.environ["MYPYPATH"] = ":".join([os.path.join(build, "python"), *sorted({os.path.dirname(file) for file in files})])
        done = subprocess.run([*checker, *files], cwd=SOURCES, capture_output=True, text=True, check=False)
        allowed = tuple(f"[{code}]" for code in MISUSE) if files[0].startswith("tests/python/") else ()
        errors = [line for line in done.stdout.splitlines() if ": error: " in line and not (allowed and line.endswith(allowed))]
        failed = bool(errors) or done.returncode > 1 or (done.returncode == 1 and ": error: " not in done.stdout)
        print("\n".join(errors) if errors else done.stdout + done.stderr if failed else "", end="\n" if errors else "")
        wrong |= failed
    return wrong


def ruff(build):
    return run([program(build, "ruff"), "check", "--no-cache", "--output-format", "concise"], tracked("*.py"))


# Paths of this repository, as docs and comments name them; one with NAME in it stands for many.
PATH = re.compile(r"(?<![\w/.$}~-])(?:src|include|cli|python|bench|prelude|kernels|tests|examples|docs|cmake)/[\w./-]*\w(?![\w*])")
LINK = re.compile(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)")
COLUMNS = 100


def missing_paths(page):
    """Lines of a page or source that name a file or folder that is not there."""
    folder = os.path.dirname(page)
    with open(os.path.join(SOURCES, page), encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            linked = [os.path.join(folder, link) for link in LINK.findall(line)] if page.endswith(".md") else []
            yield from (f"{page}:{number}: {path} does not exist" for path in PATH.findall(line) + linked
                        if "NAME" not in path and not os.path.exists(os.path.join(SOURCES, path)))


def wide_lines(page):
    """Lines of prose beyond the last column; tables and code may be wider."""
    code = False
    with open(os.path.join(SOURCES, page), encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            code ^= line.lstrip().startswith("```")
            if not code and len(line) > COLUMNS + 1 and " " in line.strip() and not line.startswith(("|", "    ")):
                yield f"{page}:{number}: {len(line) - 1} columns, expected at most {COLUMNS}"


def docs(_build):
    pages = tracked("docs/*.md", "README.md", "CONTRIBUTING.md")
    sources = tracked("src", "include", "cli", "bench", "kernels", "prelude", "python")
    wrong = [line for page in pages for line in (*missing_paths(page), *wide_lines(page))]
    wrong += [line for source in sources for line in missing_paths(source)]
    print("\n".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(1 if globals()[sys.argv[1]](os.path.abspath(sys.argv[2])) else 0)
