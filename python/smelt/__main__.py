"""The `smelt` command: `python -m smelt run …` is `smelt run …`."""

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Replaces itself with the command, a separate program in the package.

    Exit status 3 if it cannot be run."""
    command = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "smelt")
    try:
        os.execv(command, ["smelt", *sys.argv[1:]])
    except OSError as error:
        print(f"smelt: {command} cannot be run: {error.strerror}; install smelt again", file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
