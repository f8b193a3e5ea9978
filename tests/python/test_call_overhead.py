"""The benchmark of calls runs and says what it measured."""
import json
import os
import subprocess
import sys

import smelt


def test_the_benchmark_runs(source_folder):
    script = os.path.join(source_folder, "bench", "python", "call_overhead.py")
    done = subprocess.run([sys.executable, script, "--rounds", "2", "--calls", "20", "--json"], capture_output=True,
                          text=True, check=False,
                          env=os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(smelt.__file__))})
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout[done.stdout.index("\n[\n"):])
    names = {row["job"] for row in rows}
    assert {"numpy.exp", "smelt: call, NumPy", "smelt: bound call, NumPy", "smelt: bound call, out=, NumPy"} <= names
    assert all(0 < row["median_us"] < 10000 for row in rows)
    if not any(device.startswith("cuda") for device in smelt.devices()):
        assert "There is no GPU:" in done.stdout
