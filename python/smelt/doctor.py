"""What smelt finds on this machine, its problems and their remedies: `python -m smelt.doctor`.

`report()` is the same as a dictionary. A problem is what keeps kernels from running, or makes them slower than they
could be; each comes with its remedy. A missing GPU or PyTorch is not a problem."""

import glob
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import time
from typing import Any

from smelt import _smelt
from smelt.kernel import metal_kernel

# Sources of arrays: the distributions that provide them, and their use.
PACKAGES = {
    "numpy": (["numpy"], "arrays on the host: pip install numpy"),
    "ml_dtypes": (["ml_dtypes"], "bfloat16 in NumPy's arrays: pip install ml_dtypes"),
    "torch": (["torch"], "PyTorch's tensors"),
    "mlx": (["mlx"], "MLX's arrays"),
    "jax": (["jax"], "JAX's arrays"),
    "cupy": (["cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x", "cupy"], "CuPy's arrays"),
}
VECTORS = {512: "AVX-512", 256: "AVX2", 128: "SSE2"}
COMPILERS = {
    "smelt-cc1": "smelt-cc1, which is part of this package; the system's clang and LLVM are not used",
    "clang and smelt-cc1": "the clang that SMELT_CLANG names, and smelt-cc1",
    "clang and LLVM": "the system's clang and LLVM; this package was built without smelt-cc1",
    None: "none",
}
NVIDIA = "0x10de"  # as PCI numbers vendors

PROBE_SECONDS = 120
PROBE_THREADS = 1024
PROBE_GROUP = 64
PROBE_BODY = """// {nonce}
uint i = thread_position_in_grid.x;
threadgroup uint held[GROUP];
held[thread_position_in_threadgroup.x] = i * i;
threadgroup_barrier(mem_flags::mem_threadgroup);
out[i] = held[GROUP - 1 - thread_position_in_threadgroup.x];
"""


def _first_line(path: str, pattern: str) -> str | None:
    """The pattern's group in the first line of a file that has it."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return next((match[1] for line in file if (match := re.search(pattern, line))), None)
    except OSError:
        return None


def _found(find: Any) -> dict[str, str | None]:
    """Path and version of the compiler, or the reason why it is missing."""
    try:
        path, version = find()
    except (RuntimeError, OSError) as error:
        return {"path": None, "version": None, "reason": str(error)}
    return {"path": os.path.normpath(path), "version": version, "reason": None}


def _compiler(clang: dict[str, str | None], llvm: dict[str, str | None]) -> str | None:
    """Which compiler is used, by the files that were found."""
    if clang["path"] is None or llvm["path"] is None:
        return None
    own = [os.path.basename(path) == "smelt-cc1" for path in (clang["path"], llvm["path"])]
    return "smelt-cc1" if all(own) else "clang and smelt-cc1" if any(own) else "clang and LLVM"


def _cache() -> dict[str, Any]:
    try:
        path, entries, size = _smelt.cache_usage()
    except (RuntimeError, OSError) as error:
        return {"path": None, "entries": 0, "bytes": 0, "reason": str(error)}
    return {"path": path, "entries": entries, "bytes": size, "reason": None}


def _packages() -> dict[str, str | None]:
    """Versions from pip's metadata: nothing is imported."""
    versions: dict[str, str | None] = {}
    for name, (distributions, _) in PACKAGES.items():
        versions[name] = None
        for distribution in distributions:
            try:
                versions[name] = importlib.metadata.version(distribution)
                break
            except importlib.metadata.PackageNotFoundError:
                pass
    return versions


def _has_nvidia_gpu() -> bool:
    """Whether a display or compute card of NVIDIA's is in this machine, with a driver or without."""
    for folder in glob.glob("/sys/bus/pci/devices/*"):
        vendor, kind = (_first_line(os.path.join(folder, name), r"(\S+)") for name in ("vendor", "class"))
        if vendor == NVIDIA and kind and kind.startswith("0x03"):
            return True
    return False


def _run_kernel(device: str) -> dict[str, Any]:
    """Compiles a kernel that nobody compiled before, runs it twice, and looks at its results."""
    values = [(i ^ (PROBE_GROUP - 1)) ** 2 for i in range(PROBE_THREADS)]
    kernel = metal_kernel("doctor", [], ["out"], PROBE_BODY.format(nonce=time.time_ns()))

    def run() -> list[int]:
        return kernel(inputs=[], output_shapes=[(PROBE_THREADS,)], output_dtypes=["uint32"], grid=(PROBE_THREADS,),
                      threadgroup=(PROBE_GROUP,), template=[("GROUP", PROBE_GROUP)], device=device)[0].tolist()

    try:
        run()
        compiled = kernel.last_run
        began = time.perf_counter()
        found = run()
        seconds = time.perf_counter() - began
    except (RuntimeError, OSError, ValueError, MemoryError) as error:
        return {"ok": False, "compile_seconds": None, "seconds": None, "message": str(error)}
    wrong = [i for i in range(PROBE_THREADS) if found[i] != values[i]]
    message = None
    if wrong:
        message = (f"{len(wrong)} of its {PROBE_THREADS} results are wrong, the first at {wrong[0]}: {found[wrong[0]]}, "
                   f"expected {values[wrong[0]]}")
    return {"ok": not wrong, "compile_seconds": compiled.compile_seconds if compiled else None, "seconds": seconds,
            "message": message}


def _probe(device: str) -> dict[str, Any]:
    """_run_kernel in a process of its own: a GPU that is lost, or a driver that ends the process, harms nobody."""
    program = f"import json; from smelt import doctor; print(json.dumps(doctor._run_kernel({device!r})))"
    # The package that was imported here is the one that is asked.
    path = os.pathsep.join(filter(None, [os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                         os.environ.get("PYTHONPATH")]))
    failed = {"ok": False, "compile_seconds": None, "seconds": None}
    try:
        done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {**failed, "message": str(error)}
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:]
        return {**failed, "message": f"its process ended with status {done.returncode}: {''.join(last)}"}
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _device_problems(device: dict[str, Any], known: list[str]) -> list[dict[str, str]]:
    """What is wrong with a device, unless its kernel failed for a reason that is known already."""
    kernel, name = device["kernel"], device["name"]
    if kernel and not kernel["ok"]:
        if any(reason and reason in kernel["message"] for reason in known):
            return []
        remedy = ("what the message says; if it says nothing of use, please report it with this whole text"
                  if name.startswith("cpu") else
                  "nvidia-smi shows whether the GPU is well; a new driver, or another process that lets go of it, may help")
        return [{"what": f"no kernel runs on {name}: {kernel['message']}", "remedy": remedy}]
    if device["reason"] and _has_nvidia_gpu():
        return [{"what": f"there is an NVIDIA GPU, which kernels cannot use: {device['reason']}",
                 "remedy": "install NVIDIA's driver (on Debian the packages nvidia-driver and libcuda1); in a container, start it "
                           "with the GPU and the driver's libraries (--gpus all)"}]
    return []


def _problems(found: dict[str, Any]) -> list[dict[str, str]]:
    """The problems, each cause before its consequences."""
    problems = []
    clang, llvm, cache = found["clang"], found["llvm"], found["cache"]
    if clang["reason"]:
        named = "unset SMELT_CLANG or name a clang 19 in it" if os.environ.get("SMELT_CLANG") else "or name one in SMELT_CLANG"
        problems.append({"what": f"there is no compiler: {clang['reason']}", "remedy": f"apt-get install clang-19; {named}"})
    elif not clang["version"]:
        problems.append({"what": f"'{clang['path']}' does not say its version", "remedy": "apt-get install --reinstall clang-19"})
    if llvm["reason"]:
        unset = "SMELT_COMPILE" in llvm["reason"]
        problems.append({"what": f"nothing can be compiled: {llvm['reason']}",
                         "remedy": "unset SMELT_COMPILE" if unset else "apt-get install libllvm19, or install smelt again"})
    if cache["reason"]:
        problems.append({"what": f"kernels are compiled anew in each process: {cache['reason']}",
                         "remedy": "name a folder that is yours alone in SMELT_CACHE_DIR"})
    for device in found["devices"]:
        problems += _device_problems(device, [clang["reason"], llvm["reason"]])
    return problems


def report() -> dict[str, Any]:
    """What there is, as a dictionary of plain values (json.dumps takes it).

    smelt, python: version and path. clang, llvm: path, version, reason (why it is not there, or None). compiler: which of
    the two ways of compiling is used, "smelt-cc1" (smelt's own program is both), or "clang and LLVM" of the system; with its
    own clang replaced by SMELT_CLANG, "clang and smelt-cc1"; None where nothing can be compiled. cache: path,
    entries, bytes, reason. cpu: the processor's name. driver: the version of NVIDIA's driver, or None. devices: one
    dictionary each, as _smelt.device_table gives it, with `kernel`: what came of a kernel that was compiled and run on
    it (ok, compile_seconds, seconds, message), None on devices that cannot be used. packages: versions or None.
    problems: what and remedy of each. ok: a kernel ran on every device that can be used.

    Takes about a second; with a GPU, several."""
    found: dict[str, Any] = {
        "smelt": {"version": _smelt.__version__, "path": os.path.dirname(os.path.abspath(__file__))},
        "python": {"version": platform.python_version(), "path": sys.executable},
        "clang": _found(_smelt.find_clang),
        "llvm": _found(_smelt.find_llvm),
        "cache": _cache(),
        "cpu": _first_line("/proc/cpuinfo", r"^model name\s*:\s*(.*)") or platform.processor(),
        "driver": _first_line("/proc/driver/nvidia/version", r"Kernel Module.*?\s(\d+\.[\d.]+)"),
        "devices": _smelt.device_table(),
        "packages": _packages(),
    }
    found["compiler"] = _compiler(found["clang"], found["llvm"])
    for device in found["devices"]:
        device["kernel"] = None if device["reason"] else _probe(device["name"])
    found["problems"] = _problems(found)
    found["ok"] = all(device["kernel"]["ok"] for device in found["devices"] if device["kernel"])
    return found


def _bytes(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"


def _describe_device(device: dict[str, Any], found: dict[str, Any]) -> str:
    if device["reason"]:
        return f"not usable: {device['reason']}"
    words = [device["description"]]
    if device["threads"]:
        words += [found["cpu"], f"{device['threads']} thread{'s' if device['threads'] > 1 else ''}"]
    if bits := device["vector_bits"]:
        words.append(f"{bits}-bit vectors ({VECTORS[bits]})")
    if version := device["driver_version"]:
        words.append(f"{_bytes(device['free_bytes'])} free")
        words.append(f"driver {found['driver'] or 'of unknown version'}, CUDA {version // 1000}.{version % 1000 // 10}")
    return ", ".join(words)


def _describe_kernel(kernel: dict[str, Any]) -> str:
    if not kernel["ok"]:
        return f"FAILED: {kernel['message']}"
    return f"compiled in {kernel['compile_seconds'] * 1e3:.0f} ms, a run with its results read back takes {kernel['seconds'] * 1e6:.0f} µs"


def _lines(found: dict[str, Any]) -> list[str]:
    """The report for people."""
    sections: list[tuple[str, list[tuple[str, str]]]] = []
    tools = [(name, f"{found[key]['version']} ({found[key]['path']})" if not found[key]["reason"] else
              f"missing: {found[key]['reason']}") for name, key in (("clang", "clang"), ("LLVM", "llvm"))]
    tools.insert(0, ("compiler", COMPILERS[found["compiler"]]))
    cache = found["cache"]
    tools.append(("cache", f"none: {cache['reason']}" if cache["reason"] else
                  f"{cache['path']}: {cache['entries']} entries, {_bytes(cache['bytes'])}"))
    sections.append((f"smelt {found['smelt']['version']}", [
        ("package", found["smelt"]["path"]), ("Python", f"{found['python']['version']} ({found['python']['path']})")]))
    sections.append(("What compiles", tools))
    sections.append(("Devices", [(d["name"], _describe_device(d, found)) for d in found["devices"]]))
    sections.append(("Packages whose arrays kernels take", [
        (name, version or f"not installed ({PACKAGES[name][1]})") for name, version in found["packages"].items()]))
    sections.append(("A new kernel", [(d["name"], _describe_kernel(d["kernel"])) for d in found["devices"] if d["kernel"]]))
    lines = []
    for title, rows in sections:
        lines += [title, *(f"  {name:<10} {text}" for name, text in rows)]
    for problem in found["problems"]:
        lines += [f"Problem: {problem['what']}", f"  Remedy: {problem['remedy']}"]
    lines.append("Kernels run." if found["ok"] else "Kernels do not run on every device: see above.")
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Prints the report; `--json` prints it as JSON. The exit status: 0 if kernels run, 1 otherwise, 2 for a bad argument."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments not in ([], ["--json"]):
        print(f"usage: python -m smelt.doctor [--json]; got {' '.join(arguments)}", file=sys.stderr)
        return 2
    found = report()
    print(json.dumps(found, indent=2) if arguments else "\n".join(_lines(found)))
    return 0 if found["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
