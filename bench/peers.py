"""Does jobs in PyTorch for bench/peers.c. Started with "quick" or "full" and a script, whose JOBS maps each job's name to
a function that prepares its data and returns the function to time. The script may have `timed(job, count)`, which
returns the seconds of one of `count`, and `forgotten()`, called after a job's data was dropped. Reads lines from
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


def in_a_line(problem):
    return " ".join(str(problem).split())[:400]


script = {}
try:
    import torch
    exec(sys.argv[2], script)
except Exception as problem:  # whatever is wrong with the installation
    print("absent", "PyTorch cannot be used:", in_a_line(problem), flush=True)
    sys.exit(0)
jobs, timed = script["JOBS"], script.get("timed", timed_on_cpu)
prepared = {}


def run(name, count):
    if name not in jobs:
        raise NotImplementedError(f"{name} is not in PyTorch")
    if name not in prepared:
        prepared[name] = jobs[name]()
        timed(prepared[name], 3)
    return timed(prepared[name], count)


print("ready", flush=True)
for line in sys.stdin:
    verb, name, count = line.split()
    try:
        if verb == "forget":
            prepared.pop(name, None)
            script.get("forgotten", lambda: None)()
            print("ok", flush=True)
        else:
            with torch.no_grad():
                print(f"ok {run(name, int(count)):.9g}", flush=True)
    except Exception as problem:
        print("PyTorch:", in_a_line(problem), flush=True)
