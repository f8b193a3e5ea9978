"""The jobs of `smelt bench gpu` in PyTorch. Reads lines from standard input:

    run JOB COUNT     does the job COUNT times; answers "ok SECONDS", the device's time for one, or a sentence why not
    forget JOB 0      drops the job's data; answers "ok"

At the start it says "ready", or "absent" and why.
"""
import sys

try:
    import torch
    if not torch.cuda.is_available():
        raise RuntimeError("PyTorch is installed but cannot use a GPU")
except Exception as problem:  # whatever is wrong with the installation
    print("absent", "PyTorch cannot be used: " + " ".join(str(problem).split()), flush=True)
    sys.exit(0)

QUICK = sys.argv[1] == "quick"
GPU = "cuda"
torch.backends.cuda.matmul.allow_tf32 = False


def elementwise(function):
    def prepare():
        x = torch.rand(2 ** (16 if QUICK else 28), device=GPU) * 8 - 4
        y = torch.empty_like(x)
        return lambda: function(x, y)
    return prepare


def rows(function):
    def prepare():
        x = torch.randn((64 if QUICK else 16384), 8192, device=GPU, dtype=torch.bfloat16)
        w = torch.rand(8192, device=GPU, dtype=torch.bfloat16)
        return lambda: function(x, w)
    return prepare


def sample_data(last):
    side, points = (64, 16) if QUICK else (1024, 256)
    x = torch.rand(8, side, side, 64, device=GPU) * 2 - 1
    x = x.permute(0, 3, 1, 2)  # channels last in memory
    if not last:
        x = x.contiguous()
    grid = torch.rand(8, points, points, 2, device=GPU) * 2 - 1
    return x, grid


def sample(last):
    def prepare():
        x, grid = sample_data(last)
        return lambda: torch.nn.functional.grid_sample(
            x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    return prepare


def sample_vjp(last):
    def prepare():
        x, grid = sample_data(last)
        y = torch.nn.functional.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
        g = torch.rand_like(y)
        return lambda: torch.ops.aten.grid_sampler_2d_backward(g, x, grid, 0, 0, False, [True, True])
    return prepare


def inverse():
    a = torch.rand((64 if QUICK else 16384), 64, 64, device=GPU) * 0.2 - 0.1
    identity = torch.eye(64, device=GPU).expand_as(a).contiguous()
    return lambda: torch.linalg.solve_triangular(a, identity, upper=False, unitriangular=True)


def matmul(dtype):
    def prepare():
        n = 256 if QUICK else 4096
        a, b = (torch.randn(n, n, device=GPU, dtype=dtype) for _ in range(2))
        c = torch.empty_like(a)
        return lambda: torch.mm(a, b, out=c)
    return prepare


JOBS = {
    "copy": elementwise(lambda x, y: y.copy_(x)),
    "exp": elementwise(lambda x, y: torch.exp(x, out=y)),
    "softmax": rows(lambda x, w: torch.softmax(x, -1)),
    "rms-norm": rows(lambda x, w: torch.nn.functional.rms_norm(x, (8192,), w, 1e-5)),
    "grid-sample": sample(True),
    "grid-sample-nchw": sample(False),
    "grid-sample-vjp": sample_vjp(True),
    "grid-sample-vjp-nchw": sample_vjp(False),
    "inverse": inverse,
    "matmul-f32": matmul(torch.float32),
    "matmul-f16": matmul(torch.float16),
    "matmul-bf16": matmul(torch.bfloat16),
}
prepared = {}


def run(name, count):
    if name not in prepared:
        prepared[name] = JOBS[name]()
        for _ in range(3):
            prepared[name]()
        torch.cuda.synchronize()
    job = prepared[name]
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(count):
        job()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1000 / count


print("ready", flush=True)
for line in sys.stdin:
    verb, name, count = line.split()
    try:
        if verb == "forget":
            prepared.pop(name, None)
            torch.cuda.empty_cache()
            print("ok", flush=True)
        else:
            with torch.no_grad():
                print(f"ok {run(name, int(count)):.9g}", flush=True)
    except Exception as problem:
        print("PyTorch:", " ".join(str(problem).split())[:400], flush=True)
