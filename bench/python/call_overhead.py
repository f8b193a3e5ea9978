"""What a call of a kernel costs from Python, next to other ways to call one.

    PYTHONPATH=build/python python bench/python/call_overhead.py [--rounds N] [--json]

Every job is an elementwise function of 64 floats, one threadgroup: next to nothing but the call. All jobs of a table
take turns, a few hundred calls each a round; a row is the median over the rounds of one call's time, and its ratio to
the table's first row. On a GPU the calls' own time is measured: they enqueue, and what they enqueued is waited for
between the rounds. CuPy and PyTorch are compared with where they are installed.
"""

import argparse
import json
import statistics
import time

import numpy as np

import smelt

COUNT = 64
BODY = "uint i = thread_position_in_grid.x; out[i] = metal::exp(a[i]);"
CUDA_TEXT = 'extern "C" __global__ void exponential(const float* a, float* out) { int i = threadIdx.x; out[i] = expf(a[i]); }'


def measure(jobs, rounds, calls, wait):
    """Median microseconds of one call of each job: {name: (median, interquartile range)}."""
    times = {name: [] for name in jobs}
    for round_ in range(rounds + 1):
        for name, job in jobs.items():
            wait()
            start = time.perf_counter()
            for _ in range(calls):
                job()
            took = (time.perf_counter() - start) / calls * 1e6
            if round_:  # the first is not counted
                times[name].append(took)
    wait()
    result = {}
    for name, list_ in times.items():
        quarters = statistics.quantiles(list_, n=4)
        result[name] = (statistics.median(list_), quarters[2] - quarters[0])
    return result


def kernel_and_arguments(a):
    """The kernel, and what its call takes in addition to inputs and outputs."""
    kernel = smelt.metal_kernel("exponential", ["a"], ["out"], BODY)
    return kernel, {"grid": (COUNT, 1, 1), "threadgroup": (COUNT, 1, 1)}


def smelt_jobs(a, into, like):
    """Calls of smelt on one kind of array: `like` names it."""
    kernel, sizes = kernel_and_arguments(a)
    made = {"output_shapes": [(COUNT,)], "output_dtypes": [smelt.float32]}
    template = [("T", smelt.float32), ("N", 3)]
    bound, bound_into = kernel.bind(inputs=[a], **made, **sizes), kernel.bind(inputs=[a], out=[into], **sizes)
    return {
        f"smelt: bound call, out=, {like}": bound_into,
        f"smelt: bound call, {like}": bound,
        f"smelt: call, {like}": lambda: kernel(inputs=[a], **made, **sizes),
        f"smelt: call with a template, {like}": lambda: kernel(inputs=[a], template=template, **made, **sizes),
    }


def cpu_jobs():
    a, into = np.random.default_rng(0).random(COUNT, np.float32), np.empty(COUNT, np.float32)
    lib = smelt.library("kernel void exponential(device float *out, const device float *a, uint i "
                        "[[thread_position_in_grid]]) { out[i] = metal::exp(a[i]); }")
    jobs = {"numpy.exp": lambda: np.exp(a)} | smelt_jobs(a, into, "NumPy")
    jobs["smelt: function of a library, NumPy"] = lambda: lib.exponential(into, a, threads=COUNT)
    return jobs


def installed(name):
    """The module, or None with a line that says so."""
    try:
        return __import__(name)
    except ImportError:
        print(f"{name} is not installed: it is not measured")
        return None


def gpu_jobs(device):
    """Jobs on a GPU, and what waits for them."""
    jobs, waits = {}, []
    host = np.random.default_rng(0).random(COUNT, np.float32)
    cupy, torch = installed("cupy"), installed("torch")
    if cupy:
        raw = cupy.RawKernel(CUDA_TEXT, "exponential")
        a, into = cupy.asarray(host), cupy.empty(COUNT, cupy.float32)
        jobs["CuPy: RawKernel"] = lambda: raw((1,), (COUNT,), (a, into))
        jobs["CuPy: RawKernel and cupy.empty"] = lambda: raw((1,), (COUNT,), (a, cupy.empty(COUNT, cupy.float32)))
        waits.append(cupy.cuda.get_current_stream().synchronize)
    x, y = smelt.array(host).to(device), smelt.array(np.zeros(COUNT, np.float32)).to(device)
    jobs |= smelt_jobs(x, y, "smelt.array")
    waits.append(lambda: np.asarray(y))
    if torch and torch.cuda.is_available():
        t, o = torch.from_numpy(host).to(device), torch.empty(COUNT, device=device)
        jobs["torch.exp, out="] = lambda: torch.exp(t, out=o)
        jobs["torch.exp"] = lambda: torch.exp(t)
        try:
            jobs |= smelt_jobs(t, o, "torch")
        except Exception as failure:  # noqa: BLE001 - the other rows are worth having
            print(f"tensors of torch could not be used: {failure}")
        waits.append(torch.cuda.synchronize)
    elif torch:
        print("torch has no GPU: it is not measured")

    def wait():
        for one in waits:
            one()

    return jobs, wait


def show(title, result, table):
    print(f"\n{title}\n")
    first = next(iter(result.values()))[0]
    print("| call | median, µs | interquartile range | over the first |\n|---|---|---|---|")
    for name, (median, spread) in result.items():
        print(f"| {name} | {median:.2f} | {spread:.2f} | {median / first:.2f} |")
        table.append({"table": title, "job": name, "median_us": median, "iqr_us": spread, "ratio": median / first})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--calls", type=int, default=300, help="a round and job; a GPU's queue must hold them")
    parser.add_argument("--json", action="store_true", help="at the end the numbers once more, as JSON")
    options = parser.parse_args()
    table = []
    show("On the CPU", measure(cpu_jobs(), options.rounds, options.calls, lambda: None), table)
    gpus = [device for device in smelt.devices() if device.startswith("cuda")]
    if gpus:
        jobs, wait = gpu_jobs(gpus[0])
        show(f"On {gpus[0]}", measure(jobs, options.rounds, options.calls, wait), table)
    else:
        print("\nThere is no GPU: its calls are not measured.")
    if options.json:
        print(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
