#!/usr/bin/env python3
"""`smelt completion SHELL`: what it prints loads in the shell, and completes commands, options and their values."""
import shutil
import subprocess

from support import SMELT, expect, expect_equal, run_tests


def script(scratch, shell):
    done = scratch.run(["completion", shell])
    expect_equal((done.returncode, done.stderr), (0, ""), f"status and messages for {shell}")
    path = f"{scratch.path}/completion.{shell}"
    with open(path, "w", encoding="utf-8") as file:
        file.write(done.stdout)
    return path


def completed(path, *words):
    """What bash offers for the last word."""
    ask = f'. {path}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _smelt; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", ask, "bash", "smelt", *words], capture_output=True, text=True, check=False)
    expect_equal((done.returncode, done.stderr), (0, ""), f"bash with {words}")
    return done.stdout.split()


def test_bash_completes(scratch):
    path = script(scratch, "bash")
    for words, wanted in (
            (["bu"], ["build"]),
            (["run", "--math", ""], ["safe", "relaxed", "fast"]),
            (["run", "a.metal", "--threadg"], ["--threadgroup-memory", "--threadgroup"]),
            (["show", "--stage", "r"], ["rewritten"]),
            (["build", "--thr"], ["--threadgroup"]),
            (["bench", "cpu", "softmax-"], ["softmax-tree", "softmax-simd", "softmax-rows", "softmax-row"]),
            (["bench", "--ag"], ["--against"]),
            (["completion", ""], ["bash", "zsh", "fish"]),
            (["run", "x"], [])):
        expect_equal(sorted(completed(path, *words)), sorted(wanted), f"what is offered for {words}")


def test_every_option_of_help_is_completed(scratch):
    path = script(scratch, "bash")
    for command in ("run", "show", "build", "bench", "cache"):
        text = subprocess.run([SMELT, command, "--help"], capture_output=True, text=True, check=True).stdout
        options = {line.split()[0] for line in text.splitlines() if line.startswith("  -")}
        expect_equal(options - set(completed(path, command, "-")), set(), f"options of {command} that are not completed")


def test_zsh_and_fish_load(scratch):
    paths = {shell: script(scratch, shell) for shell in ("zsh", "fish")}
    absent = [shell for shell in paths if not shutil.which(shell)]
    for shell in sorted(set(paths) - set(absent)):
        done = subprocess.run([shell, "-n", paths[shell]], capture_output=True, text=True, check=False)
        expect_equal((done.returncode, done.stderr), (0, ""), f"what {shell} says")
    expect("--grid[threads]" in open(paths["zsh"], encoding="utf-8").read(), "zsh has no --grid")
    expect("-l grid -r -d 'threads'" in open(paths["fish"], encoding="utf-8").read(), "fish has no --grid")
    return f"passed, but {' and '.join(absent)} not installed: what they load was not tried" if absent else None


run_tests(globals())
