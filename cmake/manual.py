#!/usr/bin/env python3
"""Writes the manual page smelt(1): what the command's --help says, and the table of environment variables.

Usage: manual.py SMELT ENVIRONMENT.md OUT"""
import re
import subprocess
import sys


def help_of(smelt, *command):
    return subprocess.run([smelt, *command, "--help"], capture_output=True, text=True, check=True).stdout


def roff(text):
    """Text as it is to be read: no character means anything to roff."""
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga").replace("^", r"\(ha")
    text = re.sub(r"^\.", r"\\&.", text.replace("~", r"\(ti"), flags=re.MULTILINE)
    return re.sub(r"[^\x00-\x7f]", lambda character: rf"\[u{ord(character[0]):04X}]", text)


def as_it_is(text):
    return f".nf\n{roff(text.strip(chr(10)))}\n.fi\n"


def commands_of(text):
    """Names and descriptions from the list in `smelt --help`."""
    return re.findall(r"^  (\w+) {2,}(.+)$", text, flags=re.MULTILINE)


def variables_of(path):
    """Name, default and meaning of each row of the table, without its marks."""
    with open(path, encoding="utf-8") as file:
        rows = re.findall(r"^\| `(SMELT_\w+)` \| (.+?) \| (.+) \|$", file.read(), flags=re.MULTILINE)
    plain = [[re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", cell.replace("`", "")) for cell in row] for row in rows]
    if not plain:
        sys.exit(f"manual.py: {path} has no table of variables")
    return plain


def page(smelt, environment):
    overview = help_of(smelt)
    commands = commands_of(overview)
    version = re.search(r"smelt (\d+\.\d+\.\d+)", overview)[1]
    parts = [f'.TH SMELT 1 "" "smelt {version}" "User Commands"\n', ".SH NAME\n",
             roff("smelt - run Metal compute kernels on machines without Metal\n"), ".SH SYNOPSIS\n",
             "".join(f".B smelt {name}\n\\&\\[u2026]\n.br\n" for name, _ in commands),
             ".SH DESCRIPTION\n", as_it_is(overview)]
    for name, _ in commands:
        parts += [f".SH SMELT {name.upper()}\n", as_it_is(help_of(smelt, name))]
    parts.append(".SH ENVIRONMENT\n")
    for name, default, meaning in variables_of(environment):
        parts.append(f".TP\n.B {name}\n{roff(meaning)} (default: {roff(default)}).\n")
    parts += [".SH FILES\n", ".TP\n.I \\(ti/.cache/smelt\nThe cache of compiled kernels.\n"]
    return "".join(parts)


if __name__ == "__main__":
    with open(sys.argv[3], "w", encoding="ascii") as out:
        out.write(page(sys.argv[1], sys.argv[2]))
