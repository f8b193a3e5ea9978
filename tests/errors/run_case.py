#!/usr/bin/env python3
"""Runs one wrong use of the command and compares exit status and message, word for word.

Usage: run_case.py SMELT CASE. The case is a text of sections, each headed by a line of its own:

    run: run --body {dir}/a.body -o out:float33:4 --grid 4    the command's arguments; {dir} is a scratch folder
    env: NAME=VALUE                                           an environment variable (may be repeated; {dir} allowed)
    status: 2                                                 the exit status
    file a.body:                                              a file to be made, up to the next section
    stderr:                                                   the whole of standard error, up to the next section or
                                                              the end; {dir} stands for the folder, {…} for anything
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile

SECTION = re.compile(r"^(run|env|status|file ([\w./-]+)|stderr):\s*(.*)$")


def read_case(path):
    case = {"run": None, "env": [], "status": 0, "files": {}, "stderr": ""}
    target = None
    with open(path, encoding="utf-8") as file:
        for line in file.read().split("\n"):
            section = SECTION.match(line)
            if section:
                word, name, rest = section.group(1).split()[0], section.group(2), section.group(3)
                target = None
                if word == "run":
                    case["run"] = rest
                elif word == "env":
                    case["env"].append(rest)
                elif word == "status":
                    case["status"] = int(rest)
                elif word == "file":
                    target = ("files", name)
                    case["files"][name] = []
                else:
                    target = ("stderr", None)
                    case["stderr"] = [rest] if rest else []
            elif target and target[0] == "files":
                case["files"][target[1]].append(line)
            elif target:
                case["stderr"].append(line)
    return case


def matches(found, wanted):
    pattern = ".*".join(re.escape(piece) for piece in wanted.split("{…}"))
    return re.fullmatch(pattern, found, re.DOTALL) is not None


def main():
    smelt, path = sys.argv[1:3]
    case = read_case(path)
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in case["files"].items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
        environment = dict(os.environ)
        for setting in case["env"]:
            name, _, value = setting.partition("=")
            environment[name] = value.replace("{dir}", folder)
        arguments = [word.replace("{dir}", folder) for word in shlex.split(case["run"])]
        done = subprocess.run([smelt, *arguments], capture_output=True, text=True, env=environment, timeout=300,
                              stdin=subprocess.DEVNULL, check=False)
        found = done.stderr.replace(folder, "{dir}").strip()
    wanted = "\n".join(case["stderr"]).strip()
    failed = False
    if done.returncode != case["status"]:
        print(f"exit status {done.returncode}, expected {case['status']}")
        failed = True
    if not matches(found, wanted):
        print(f"--- standard error was\n{found}\n--- expected\n{wanted}")
        failed = True
    return 1 if failed else 0


sys.exit(main())
