"""Captures: a file that says what ran."""
import json
import subprocess
import sys

import numpy as np
import pytest
import smelt

kernel = smelt.metal_kernel(name="captured", input_names=["a"], output_names=["o"],
                            source="uint i = thread_position_in_grid.x; o[i] = a[i] + 1;")


def run(count):
    a = np.zeros(count, np.float32)
    return kernel(inputs=[a], output_shapes=[a.shape], output_dtypes=[np.float32], grid=(count, 1, 1), threadgroup=(32, 1, 1))


def launches(path):
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    return [event for event in events if event.get("ph") == "X" and "captured" in event["name"] and "grid" in event.get("args", {})]


def test_a_capture_has_each_launch(tmp_path):
    path = tmp_path / "trace.json"
    run(100)
    with smelt.metal.capture(path):
        run(100)
        run(64)
        assert not path.exists()
    run(32)
    found = launches(path)
    assert [str(event["args"]["grid"]) for event in found] and len(found) == 2
    assert all(event["dur"] >= 0 for event in found)
    assert "100" in str(found[0]["args"]["grid"]) and "64" in str(found[1]["args"]["grid"])


def test_errors(tmp_path):
    with pytest.raises(ValueError):
        smelt.metal.stop_capture()
    with pytest.raises(OSError):
        smelt.metal.start_capture(tmp_path / "no" / "folder.json")
    smelt.metal.start_capture(tmp_path / "one.json")
    with pytest.raises(ValueError):
        smelt.metal.start_capture(tmp_path / "two.json")
    smelt.metal.stop_capture()
    assert (tmp_path / "one.json").exists() and not (tmp_path / "two.json").exists()
    assert smelt.metal.is_available() is False


def test_a_capture_that_nobody_stops_is_written_at_the_end(tmp_path):
    path = tmp_path / "trace.json"
    done = subprocess.run([sys.executable, "-c", f"import smelt; smelt.metal.start_capture({str(path)!r})"], check=False)
    assert done.returncode == 0 and "traceEvents" in json.loads(path.read_text())
