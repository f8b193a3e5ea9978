"""Where kernels run and what they are given, on a GPU: on the tests' own driver, whose launches do nothing, so that it
can be asked everywhere. What kernels compute on a GPU is asked of a real one where there is one."""
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import smelt

GPU = next((device for device in smelt.devices() if device.startswith("cuda")), None)
EXP = smelt.metal_kernel("expo", ["a"], ["out"], "uint i = thread_position_in_grid.x; out[i] = metal::exp(a[i]);")


def on_the_fake_driver(build_folder, program):
    """Runs a program on the fake driver; what is asserted in it holds."""
    driver = os.path.join(build_folder, "tests", "libfakecuda.so")
    if not os.path.exists(driver):
        pytest.skip(f"{driver} is not built")
    start = """
        import os
        import numpy as np, smelt
        kernel = smelt.metal_kernel("expo", ["a"], ["out"],
                                    "uint i = thread_position_in_grid.x; out[i] = metal::exp(a[i]);")
        a = np.ones(100, np.float32)
        x = smelt.array(a).to("cuda")
        made = dict(output_shapes=[(100,)], output_dtypes=[smelt.float32], grid=(100,), threadgroup=(32,))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(start) + textwrap.dedent(program)], text=True,
                          capture_output=True, timeout=100, check=False,
                          env=os.environ | {"SMELT_CUDA_DRIVER": driver,
                                            "PYTHONPATH": os.path.dirname(os.path.dirname(smelt.__file__))})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_inputs_say_where_a_kernel_runs(build_folder):
    on_the_fake_driver(build_folder, """
        out, = kernel(inputs=[x], init_value=4, **made)
        assert type(out) is smelt.array and out.device == "cuda:0", out
        assert np.asarray(out).tolist() == [4] * 100
        assert kernel.last_run == smelt.Launch("cuda:0", (100, 1, 1), (32, 1, 1), (4, 1, 1), None, 0.0, False, 0, 0)
        out, = kernel(inputs=[x], device="cpu", **made)
        assert out.device == "cpu" and abs(np.asarray(out) - np.exp(1)).max() < 1e-5
        out, = kernel(inputs=[a], **made)
        assert type(out) is np.ndarray and abs(out - np.exp(1)).max() < 1e-5
    """)


def test_numpy_arrays_go_there_and_come_back(build_folder):
    on_the_fake_driver(build_folder, """
        out, = kernel(inputs=[a], device="cuda", init_value=3, **made)
        assert type(out) is np.ndarray and out.tolist() == [3] * 100
        assert kernel.last_run.device == "cuda:0"
        bound = kernel.bind(inputs=[a], device="cuda", init_value=5, **made)
        assert type(bound()[0]) is np.ndarray and bound()[0].tolist() == [5] * 100
    """)


def test_outputs_must_lie_there(build_folder):
    on_the_fake_driver(build_folder, """
        into = smelt.array(np.zeros(100, np.float32)).to("cuda")
        for call in (kernel, lambda **arguments: kernel.bind(**arguments)()):
            out, = call(inputs=[a], out=[into], grid=(100,), threadgroup=(32,), init_value=7)
            assert out is into and np.asarray(into).tolist() == [7] * 100
            try:
                call(inputs=[x], out=[a], grid=(100,), threadgroup=(32,))
            except ValueError as error:
                assert "is on 'cpu'; the kernel runs on 'cuda:0'" in str(error), error
            else:
                raise AssertionError("an array of the host was taken")
    """)


def test_streams(build_folder):
    on_the_fake_driver(build_folder, """
        class Torch:
            cuda_stream = 0
        class Cupy:
            ptr = 0
        class Protocol:
            def __cuda_stream__(self):
                return (0, 0)
        for stream in (0, Torch(), Cupy(), Protocol(), None, "cuda", "gpu"):
            assert kernel(inputs=[x], stream=stream, init_value=2, **made)[0].device == "cuda:0"
        assert kernel(inputs=[x], stream="cpu", **made)[0].device == "cpu"
        for stream in (2.5, object()):
            try:
                kernel(inputs=[x], stream=stream, **made)
            except TypeError as error:
                assert "expected a stream of torch or CuPy" in str(error), error
            else:
                raise AssertionError("it is no stream")
    """)


def test_functions_of_libraries(build_folder):
    on_the_fake_driver(build_folder, """
        lib = smelt.library("kernel void f(device float *o, constant float &b, uint i [[thread_position_in_grid]]) "
                            "{ o[i] = b; }")
        lib.f(x, 3.0)
        assert lib.f.last_run["device"] == "cuda:0" and lib.f.last_run["groups"] == (1, 1, 1)
        lib.f(a, 3.0, device="cuda")
        assert a.tolist() == [1] * 100
    """)


def test_a_forked_child_says_that_it_has_no_gpu_and_runs_on_the_cpu(build_folder):
    printed = on_the_fake_driver(build_folder, """
        kernel(inputs=[x], **made)
        child = os.fork()
        if child == 0:
            try:
                kernel(inputs=[a], device="cuda", **made)
            except smelt.NoDeviceError as error:
                print(error, flush=True)
            os._exit(0 if abs(kernel(inputs=[a], **made)[0] - np.exp(1)).max() < 1e-5 else 1)
        assert os.waitpid(child, 0)[1] == 0
    """)
    assert "cannot be used in this process: it was forked from" in printed


@pytest.mark.skipif(GPU is None, reason="there is no GPU here")
def test_a_real_gpu_computes():
    a = np.random.default_rng().standard_normal(1000).astype(np.float32)
    made = {"output_shapes": [(1000,)], "output_dtypes": [smelt.float32], "grid": (1000,), "threadgroup": (128,)}
    np.testing.assert_allclose(EXP(inputs=[a], device=GPU, **made)[0], np.exp(a), rtol=1e-5)
    x = smelt.array(a).to(GPU)
    into = smelt.array(np.zeros(1000, np.float32)).to(GPU)
    bound = EXP.bind(inputs=[x], out=[into], grid=(1000,), threadgroup=(128,))
    for _ in range(100):
        bound()
    np.testing.assert_allclose(np.asarray(into), np.exp(a), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(EXP(inputs=[x], **made)[0]), np.exp(a), rtol=1e-5)


@pytest.mark.skipif(GPU is None, reason="there is no GPU here")
def test_torch_on_a_real_gpu():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        a = torch.randn(1 << 20, device="cuda").add_(1).mul_(0.5)
        out, = EXP(inputs=[a], output_shapes=[a.shape], output_dtypes=[a.dtype], grid=(a.numel(),), threadgroup=(256,))
        result = out + 1
        expected = torch.exp(a) + 1
    stream.synchronize()
    assert out.device == a.device and torch.allclose(result, expected, rtol=1e-5)


def test_a_functions_first_call_compiles_once(build_folder):
    """The parameters are learnt from the code that the launch runs, which depends on the numbers and small arrays passed."""
    on_the_fake_driver(build_folder, """
        import json, tempfile
        lib = smelt.library('''
        #include <metal_stdlib>
        struct shape { int n[5]; };
        kernel void axpy(device float *y [[buffer(0)]], constant float &a [[buffer(1)]], constant shape &s [[buffer(2)]],
                         constant float3 &v [[buffer(3)]], constant int &unused [[buffer(4)]],
                         uint i [[thread_position_in_grid]]) { y[i] += a * v.x + s.n[1]; }
        ''')
        with tempfile.NamedTemporaryFile() as file:
            smelt.metal.start_capture(file.name)
            lib.axpy(x, 2.5, np.arange(5, dtype=np.int32).view(np.uint8), [1.0, 2.0, 3.0], 7, threads=100, group_size=32)
            smelt.metal.stop_capture()
            events = json.load(open(file.name))["traceEvents"]
        assert [event["name"] for event in events if event.get("name", "").startswith("compile ")] == ["compile axpy"]
    """)
