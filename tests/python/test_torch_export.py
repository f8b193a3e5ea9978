"""Models with smelt's operations, exported by torch.export and compiled ahead of time, run in a fresh process."""

import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import smelt.torch  # noqa: E402

scale_rows = smelt.torch.TorchMetalKernel(
    name="exporttest::scale_rows",
    source="uint i = thread_position_in_grid.x; out[i] = x[i] * factor[i / x_shape[1]];",
    inputs=["x", "factor"], results=["out"], torch_defn=lambda x, factor: x * factor[:, None],
    threads_per_grid=lambda x, factor: (x.numel(),), threads_per_threadgroup=(64,))

LOADING = """
import sys
sys.path.insert(0, sys.argv[2])
import torch
{definitions}
inputs, expected = torch.load(sys.argv[1] + "/example.pt")
found = torch._inductor.aoti_load_package(sys.argv[1] + "/model.pt2")(*inputs)
torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
print("equal")
"""


class Attending(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.project = torch.nn.Linear(24, 72)

    def forward(self, x):
        q, k, v = self.project(x).reshape(*x.shape[:2], 3, 2, 12).permute(2, 0, 3, 1, 4).unbind(0)
        return torch.tanh(smelt.torch.scaled_dot_product_attention(q, k, v))


class Scaling(torch.nn.Module):
    def forward(self, x, factor):
        return scale_rows(torch.sin(x), factor) + 1


def fresh_process(folder, definitions):
    script = LOADING.format(definitions=definitions)
    here = str(pathlib.Path(__file__).parent)
    return subprocess.run([sys.executable, "-c", script, str(folder), here], capture_output=True, text=True)


@pytest.mark.parametrize("model, inputs, definitions", [
    (Attending, lambda: (torch.randn(2, 19, 24),), "import smelt.torch"),
    (Scaling, lambda: (torch.randn(5, 7), torch.randn(5)), "import test_torch_export"),
], ids=["attention", "a kernel of one's own"])
@torch.no_grad()
def test_an_archive_runs_in_a_fresh_process(tmp_path, model, inputs, definitions):
    model, inputs = model().eval(), inputs()
    program = torch.export.export(model, inputs)
    torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "model.pt2"))
    # Other inputs than those of the export.
    inputs = tuple(torch.randn_like(x) for x in inputs)
    torch.save((inputs, model(*inputs)), tmp_path / "example.pt")
    done = fresh_process(tmp_path, definitions)
    assert done.returncode == 0 and done.stdout == "equal\n", done.stderr
    # The kernel is inside: without its definition there is nothing to call.
    done = fresh_process(tmp_path, "")
    assert done.returncode != 0 and ("smelt" in done.stderr or "exporttest" in done.stderr), done.stderr
