"""One training step of examples/python/train_grid_sample.py next to the same step of PyTorch, compiled by torch.compile.

    PYTHONPATH=build/python python bench/python/training_step.py [DEVICE] [--json]

A step consists of forward pass, gradients and Adam's update. PyTorch runs it in three ways: compiled as one function,
the same with CUDA graphs ("reduce-overhead", on GPUs), and as a compiled loss, backward() and a fused optimizer. The
ways take turns. `step` is the time per step of many that are enqueued and then waited for; `host` is the time of the
call that enqueues one.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys
import time
from typing import Any

import numpy as np

import smelt
from smelt.graph import Graph, InferenceSession, TensorType

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples/python"))
import train_grid_sample as example  # noqa: E402

STEPS = 100  # of one measurement


def initial(seed=0):
    """Parameters, images and targets as NumPy arrays."""
    numbers = np.random.default_rng(seed)
    teacher, parameters = example.random_parameters(numbers), example.random_parameters(numbers)
    shape = (example.BATCH, example.SIZE // 3, example.SIZE // 3, example.CHANNELS)
    images = np.repeat(np.repeat(numbers.standard_normal(shape, dtype=np.float32), 3, 1), 3, 2)
    targets = example.network(teacher, smelt.array(images))
    return [np.asarray(p) for p in parameters], images, np.asarray(targets)


def smelt_step(device, parameters, images, targets):
    """A function that enqueues one step, and one that waits for it and returns the loss."""
    state = [smelt.array(p) for p in parameters]
    state += [smelt.zeros(p.shape) for p in parameters] * 2 + [smelt.array(0.0)]
    fixed = [smelt.array(images), smelt.array(targets)]
    graph = Graph.of(example.step, *map(TensorType.of, [*state, *fixed]))
    model = InferenceSession([device]).load(graph)
    sets = [[a.to(device) if device != "cpu" else a + 0 for a in state] for _ in range(2)]
    value = [smelt.array(0.0).to(device) if device != "cpu" else smelt.array(0.0) for _ in range(2)]
    fixed = [a.to(device) if device != "cpu" else a for a in fixed]
    turn = [0]

    def run():
        here, there = sets[turn[0] % 2], sets[1 - turn[0] % 2]
        model.run([*here, *fixed], into=[*there, value[turn[0] % 2]])
        turn[0] += 1

    return run, lambda: value[(turn[0] - 1) % 2].item()


def torch_steps(device, parameters, images, targets):
    """{name: a function that compiles this way of PyTorch, and returns the same two as smelt_step}"""
    import torch
    import torch.nn.functional as F
    place = device if device.startswith("cuda") else "cpu"
    torch.set_float32_matmul_precision("highest")
    x, y = (torch.tensor(a, device=place) for a in (images, targets))

    def loss(p, images, targets):
        points, w1, b1, w2, b2 = p
        grid = torch.tanh(points).expand(len(images), -1, -1, -1)
        samples = F.grid_sample(images.permute(0, 3, 1, 2), grid, align_corners=False)
        samples = samples.permute(0, 2, 3, 1).reshape(len(images), -1)
        return ((F.silu(samples @ w1 + b1) @ w2 + b2 - targets) ** 2).mean()

    gradient = torch.func.grad_and_value(loss)

    def step(p, first, second, number, images, targets):
        g, value = gradient(p, images, targets)
        number = number + 1
        rate = 0.01 * torch.sqrt(1 - 0.999 ** number) / (1 - 0.9 ** number)
        first = [0.9 * m + 0.1 * g for m, g in zip(first, g)]
        second = [0.999 * v + 0.001 * g * g for v, g in zip(second, g)]
        p = [p - rate * m / (torch.sqrt(v) + 1e-8) for p, m, v in zip(p, first, second)]
        return p, first, second, number, value

    def functional(mode):
        compiled = torch.compile(step, mode=mode)
        p = [torch.tensor(a, device=place) for a in parameters]
        state = [p, [torch.zeros_like(a) for a in p], [torch.zeros_like(a) for a in p], torch.zeros((), device=place)]
        last: list[Any] = [None]

        def run():
            made = compiled(*state, x, y)
            if mode:  # the next step overwrites what CUDA graphs return
                for old, new in zip([*state[0], *state[1], *state[2], state[3]], [*made[0], *made[1], *made[2], made[3]]):
                    old.copy_(new)
            else:
                state[:] = made[:4]
            last[0] = made[4]
        return run, lambda: last[0].item()

    def usual():
        p = [torch.tensor(a, device=place, requires_grad=True) for a in parameters]
        optimizer = torch.optim.Adam(p, lr=0.01, fused=True)
        compiled, last = torch.compile(loss), list[Any]([None])

        def run():
            value = compiled(p, x, y)
            value.backward()
            optimizer.step()
            optimizer.zero_grad()
            last[0] = value.detach()
        return run, lambda: last[0].item()

    ways = {"torch.compile, one function": lambda: functional(None), "torch.compile, backward and fused Adam": usual}
    if place != "cpu":
        ways["torch.compile, reduce-overhead"] = lambda: functional("reduce-overhead")
    return ways


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", nargs="?", default="cpu")
    parser.add_argument("--rounds", type=int, default=9, help="measurements of %d steps each, at least 1" % STEPS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds is {options.rounds}; expected at least 1")
    inputs = initial()
    jobs = {"smelt": smelt_step(options.device, *inputs)}
    try:
        ways = torch_steps(options.device, *inputs)
    except ImportError as error:
        ways = {}
        print(f"PyTorch cannot be used: {error}", file=sys.stderr)
    for name, way in ways.items():
        try:
            jobs[name] = way()
            jobs[name][0]()
            jobs[name][1]()
        except Exception as error:  # a version of PyTorch may not compile all of them
            jobs.pop(name, None)
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
    times, hosts = {name: [] for name in jobs}, {name: [] for name in jobs}
    for _ in range(options.rounds + 1):
        for name, (run, wait) in jobs.items():
            run()
            wait()
            start = time.perf_counter()
            for _ in range(STEPS):
                run()
            hosts[name].append((time.perf_counter() - start) / STEPS)
            wait()
            times[name].append((time.perf_counter() - start) / STEPS)
    losses = {name: wait() for name, (_, wait) in jobs.items()}
    rows = [{"job": "training-step", "variant": name, "step_s": statistics.median(times[name][1:]),
             "host_s": statistics.median(hosts[name][1:]), "loss": losses[name]} for name in jobs]
    if options.json:
        print(json.dumps(rows))
        return
    for row in rows:
        ratio = row["step_s"] / rows[0]["step_s"]
        print(f"{row['variant']:40} step {row['step_s'] * 1e6:9.1f} us  host {row['host_s'] * 1e6:9.1f} us  "
              f"{ratio:5.2f} of smelt's time  loss {row['loss']:.5f}")


if __name__ == "__main__":
    main()
