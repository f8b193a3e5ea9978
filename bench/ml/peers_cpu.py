"""The jobs of `smelt bench ml` in PyTorch, float32, on the CPU. Reads lines from standard input:

    run JOB COUNT     does the job COUNT times; answers "ok SECONDS", the time of one, or a sentence why not
    forget JOB 0      drops the job's data; answers "ok"

At the start it says "ready", or "absent" and why.
"""
import sys
import time

try:
    import torch
except Exception as problem:  # whatever is wrong with the installation
    print("absent", "PyTorch cannot be used: " + " ".join(str(problem).split()), flush=True)
    sys.exit(0)

QUICK = sys.argv[1] == "quick"
ROTATED = 2 if QUICK else 5  # weights of 64 MiB


def rotate(jobs):
    state = {"turn": 0}

    def run():
        state["turn"] = (state["turn"] + 1) % len(jobs)
        return jobs[state["turn"]]()
    return run


def matvec():
    rows, columns = (256, 1024) if QUICK else (4096, 4096)
    x = torch.rand(columns)
    return rotate([lambda w=torch.rand(rows, columns): torch.mv(w, x) for _ in range(ROTATED)])


def matmat():
    rows, columns, tokens = (128, 128, 64) if QUICK else (1024, 1024, 512)
    w, x = torch.rand(rows, columns), torch.rand(tokens, columns)
    return lambda: torch.nn.functional.linear(x, w)


def attention():
    heads, queries, keys = (2, 64, 128) if QUICK else (8, 256, 1024)
    q, k, v = torch.rand(1, heads, queries, 64), torch.rand(1, heads, keys, 64), torch.rand(1, heads, keys, 64)
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)


def rows(function):
    def prepare():
        x = torch.rand(*((128, 1024) if QUICK else (4096, 4096)))
        y = torch.empty_like(x)
        return lambda: function(x, y)
    return prepare


JOBS = {
    "matvec": matvec,
    "matmat": matmat,
    "attention": attention,
    "softmax-rows": rows(lambda x, y: torch.softmax(x, -1, out=y)),
    "rms-norm": rows(lambda x, y: torch.nn.functional.rms_norm(x, x.shape[-1:], None, 1e-5)),
}
prepared = {}


def run(name, count):
    if name not in prepared:
        prepared[name] = JOBS[name]()
        for _ in range(3):
            prepared[name]()
    job = prepared[name]
    start = time.perf_counter()
    for _ in range(count):
        job()
    return (time.perf_counter() - start) / count


print("ready", flush=True)
for line in sys.stdin:
    verb, name, count = line.split()
    try:
        if verb == "forget":
            prepared.pop(name, None)
            print("ok", flush=True)
        else:
            with torch.no_grad():
                print(f"ok {run(name, int(count)):.9g}", flush=True)
    except Exception as problem:
        print("PyTorch:", " ".join(str(problem).split())[:400], flush=True)
