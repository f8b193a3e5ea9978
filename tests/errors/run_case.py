#!/usr/bin/env python3
"""Runs wrong uses of the command and compares exit status and message, word for word.

Usage: run_case.py SMELT CASE. The case is a text of sections, each headed by a line of its own:

    run: run --body {dir}/a.body -o out:float33:4 --grid 4    the command's arguments; {dir} is a scratch folder
    env: NAME=VALUE                                           an environment variable (may be repeated; {dir} allowed)
    status: 2                                                 the exit status
    stdout: /dev/full                                         where standard output goes, or `closed`
    file a.body:                                              a file to be made, up to the next section
    stderr:                                                   the whole of standard error, up to the next section or
                                                              the end; {dir} stands for the folder, {…} for anything
    output:                                                   the same for standard output; without it, it is not compared

A case may hold several uses: each `run:` begins one, with a status, stdout, stderr and output of its own; files and
environment are for all. Lines that begin with `# ` are comments, except in files.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile

SECTION = re.compile(r"^(run|env|status|stdout|file ([\w./-]+)|stderr|output):(?:\s+(.*))?$")


class Use:
    def __init__(self, arguments):
        self.arguments, self.status, self.stdout, self.stderr, self.output = arguments, 0, None, [], None


class Case:
    def __init__(self, path):
        self.environment, self.files, self.uses = [], {}, []
        target = []
        with open(path, encoding="utf-8") as file:
            for line in file.read().split("\n"):
                section = SECTION.match(line)
                if not section:
                    target.append(line)
                    continue
                target = self.begin(section.group(1).split()[0], section.group(2), section.group(3) or "")

    def begin(self, word, name, rest):
        """Returns the list that takes the lines of the section."""
        if word == "run":
            self.uses.append(Use(rest))
        elif word == "env":
            self.environment.append(rest)
        elif word == "status":
            self.uses[-1].status = int(rest)
        elif word == "stdout":
            self.uses[-1].stdout = rest
        elif word == "file":
            return self.files.setdefault(name, [])
        else:
            lines = [rest] if rest else []
            setattr(self.uses[-1], word, lines)
            return lines
        return []


def matches(found, wanted):
    pattern = ".*".join(re.escape(piece) for piece in wanted.split("{…}"))
    return re.fullmatch(pattern, found, re.DOTALL) is not None


def text_of(lines):
    return "\n".join(line for line in lines if not line.startswith("# ")).strip()


def execute(smelt, use, folder, environment):
    command = [smelt, *(word.replace("{dir}", folder) for word in shlex.split(use.arguments))]
    if use.stdout == "closed":
        command = ["sh", "-c", 'exec "$0" "$@" >&-', *command]
    target = open(use.stdout, "wb") if use.stdout and use.stdout != "closed" else subprocess.PIPE
    return subprocess.run(command, stdout=target, stderr=subprocess.PIPE, env=environment, timeout=1500,
                          stdin=subprocess.DEVNULL, check=False)


def check(smelt, use, folder, environment):
    done = execute(smelt, use, folder, environment)
    failed = False
    if done.returncode != use.status:
        print(f"smelt {use.arguments}\n--- exit status {done.returncode}, expected {use.status}")
        failed = True
    for name, found, wanted in (("error", done.stderr, use.stderr), ("output", done.stdout, use.output)):
        if wanted is None:
            continue
        found = (found or b"").decode("utf-8", "backslashreplace").replace(folder, "{dir}").strip()
        if not matches(found, text_of(wanted)):
            print(f"smelt {use.arguments}\n--- standard {name} was\n{found}\n--- expected\n{text_of(wanted)}")
            failed = True
    return failed


def main():
    smelt, path = sys.argv[1:3]
    case = Case(path)
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in case.files.items():
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
        environment = dict(os.environ)
        for setting in case.environment:
            name, _, value = setting.partition("=")
            environment[name] = value.replace("{dir}", folder)
        failed = [check(smelt, use, folder, environment) for use in case.uses]
    return 1 if any(failed) or not failed else 0


sys.exit(main())
