"""Does jobs in PyTorch for bench/peers.c. Started with "quick" or "full" and a script, whose JOBS maps each job's name to
a function that prepares its data and returns the function to time. The script may have `on_gpu(name)`, whether a job is
timed by the GPU's own clock, or `timed(job, count)`, which returns the seconds of one of `count`. Reads lines from
standard input:

    run JOB COUNT     does the job COUNT times; answers "ok SECONDS", the time of one, or a sentence why not
    forget JOB 0      drops the job's data; answers "ok"

At the start it says "ready", or "absent" and why.
"""
import sys
import time


def timed_on_cpu(job, count):
    start = time.perf_counter()
    for _ in range(count):
        job()
    return (time.perf_counter() - start) / count


def timed_on_gpu(job, count):
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(count):
        job()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1000 / count


def in_a_line(problem):
    return " ".join(str(problem).split())[:400]


script = {}
try:
    import torch
    exec(sys.argv[2], script)
except Exception as problem:  # whatever is wrong with the installation
    print("absent", "PyTorch cannot be used:", in_a_line(problem), flush=True)
    sys.exit(0)
jobs, prepared = script["JOBS"], {}


def timed(name, count):
    by_script, on_gpu = script.get("timed"), script.get("on_gpu", lambda name: False)
    time_job = by_script or (timed_on_gpu if on_gpu(name) else timed_on_cpu)
    return time_job(prepared[name], count)


def run(name, count):
    if name not in jobs:
        raise NotImplementedError(f"{name} is not in PyTorch")
    if name not in prepared:
        prepared[name] = jobs[name]()
        timed(name, 3)
    return timed(name, count)


print("ready", flush=True)
for line in sys.stdin:
    verb, name, count = line.split()
    try:
        if verb == "forget":
            prepared.pop(name, None)
            if torch.cuda.is_initialized():
                torch.cuda.empty_cache()
            print("ok", flush=True)
        else:
            with torch.no_grad():
                print(f"ok {run(name, int(count)):.9g}", flush=True)
    except Exception as problem:
        print("PyTorch:", in_a_line(problem), flush=True)
