"""The package as the build leaves it."""
import os
import subprocess
import sys

import smelt


def test_the_build_s_own_smelt_is_imported(build_folder):
    assert os.path.dirname(smelt.__file__) == os.path.join(os.path.realpath(build_folder), "python", "smelt")


def test_the_environment_s_command_is_the_build_s():
    command = os.path.join(sys.prefix, "bin", "smelt")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()[-1:]) == (0, [smelt.__version__]), done.stderr


def test_the_cpu_is_a_device():
    assert smelt.devices()[0] == "cpu"
