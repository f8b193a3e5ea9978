"""Kernels from bodies: `smelt.metal_kernel` and the object it returns."""

from __future__ import annotations

import html
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

from smelt import _origin, _smelt
from smelt._signature import CallSignature, bound_signature, kernel_signature
from smelt._smelt import BoundKernel

_MATH_MODES = ("safe", "relaxed", "fast")

# Kernels are often created inside the function that calls them. Those of one description share compiled code.
_RECENT_COUNT = 256
_recent: OrderedDict[tuple, "Kernel"] = OrderedDict()
_recent_lock = threading.Lock()


setattr(BoundKernel, "__signature__", CallSignature(bound_signature))


class Launch(NamedTuple):
    """What a launch of a kernel was. Sizes are counted in threads, times in seconds."""

    device: str
    grid: tuple[int, int, int]
    threadgroup: tuple[int, int, int]  # threads of a full threadgroup, as clamped to the grid
    groups: tuple[int, int, int]
    seconds: float | None  # of the launch alone; None on a GPU, where the launch was not waited for
    compile_seconds: float  # 0.0 when the code was at hand
    cache_hit: bool  # the code came from the disk cache
    threadgroup_bytes: int  # threadgroup memory of one group
    private_bytes: int  # private arrays of one thread
    quick: bool = False  # quick code ran, as the best was not compiled yet: Kernel.wait


class Kernel(_smelt.Kernel):
    """A kernel from the body of a Metal function, from `smelt.metal_kernel`.

    Call it with keyword arguments to run it; the call returns a list of arrays, one for each output name:

    - `inputs`: a list of arrays (NumPy's, PyTorch's, JAX's, CuPy's, MLX's, `smelt.array`, or anything with
      `__dlpack__` or a buffer) and numbers, one for each input name. A number is an array without dimensions: a
      float is float32, an int int32.
    - `output_shapes`, `output_dtypes`: a shape and a dtype for each output name.
    - `grid`: how many threads run, in up to three dimensions; `threadgroup`: how many of them form a threadgroup,
      at most 1024.
    - `template`: a list of pairs of a name and a dtype, int or bool: the template parameters of the function.
    - `init_value`: a number that fills the outputs before the run, or a list of one for each. Without it they hold
      anything where the kernel does not write.
    - `verbose`: print the function that is made of the body, and the sizes of the launch.
    - `device`: "cpu", "cpu-scalar", "cuda:0" …; by default the GPU on which the first input that is on one lies,
      else the CPU. `stream`: a stream of that GPU (PyTorch's, CuPy's, or the address of a CUstream); by default the
      current one of the library whose arrays are given.
    - `check=True`: every access of memory is checked; CheckError names what is wrong (docs/checking.md). On a GPU,
      only the first access that is out of bounds or misaligned is found. On a CPU, a string looks for more: words of
      "not-finite", "unsigned", "divergent", "conversions", "advice", "all", separated by commas.
    - `timeout`: seconds after which the run is ended (TimeoutError). `profile="apple"`: the limits of an Apple GPU.
    - `ensure_row_contiguous`: for this call, instead of what the kernel was made with.
    - `out`: a list of arrays to write into instead of new ones; shapes and dtypes may then be left out.
    - `output_kind`: "numpy", "torch", "jax", "cupy", "mlx" or "smelt". By default the outputs are of the kind of
      the first input that is neither a number nor NumPy's; NumPy's if all arrays are; `smelt.array` if no input is
      an array, or if it is of no library named here.

    Raises ValueError or TypeError for arguments that are wrong, and smelt.Error's subclasses for what goes wrong
    after that (CompileError, BarrierError, FaultError …).
    """

    __signature__ = CallSignature(kernel_signature)
    _origin: _origin.Origin | None = None

    def bind(self, *, out: Sequence[Any] | None = None, **arguments: Any) -> BoundKernel:
        """Checks and compiles a call once: takes what the call takes, returns an object whose call does nothing but
        launch. It keeps the arrays: each launch sees the contents they have then. With `out` it writes into those
        arrays each time and returns them; without, each launch makes new ones. `bound(a, b)` takes other inputs of
        the same dtypes and shapes, `bound(out=[…])` writes into others once."""
        return self._bind(out=out, **arguments)

    def show(self, stage: str = "source", **arguments: Any) -> str:
        """The text of one stage on the way from the body to code, for the call with these arguments (grid and
        threadgroup may be left out): "source" (the function that is made of the body), "rewritten" (what clang is
        given), "ir", "simd" and "why" (the SIMD engine's code, and why it is not plain), "asm", "ptx"; "time" (a table of how long each stage takes).
        """
        return self._show(stage, **arguments)

    @property
    def last_run(self) -> Launch | None:
        """The latest launch of this object, or None."""
        last = super().last_run
        return None if last is None else Launch(**last)

    def _description(self) -> dict[str, Any]:
        """The arguments of `metal_kernel` that make an equal kernel."""
        return {
            "name": self.name,
            "input_names": self.input_names,
            "output_names": self.output_names,
            "source": self.source,
            "header": self.header,
            "ensure_row_contiguous": self.ensure_row_contiguous,
            "atomic_outputs": self.atomic_outputs,
            "compile_options": {"math_mode": self.math_mode},
            "include_paths": self.include_paths,
            "metal_version": _version_text(self.metal_version),
        }

    def __reduce__(self) -> tuple:
        return _from_description, (self._description(),)

    def __repr__(self) -> str:
        return f"<smelt.Kernel '{self.name}' ({', '.join(self.input_names)}) -> ({', '.join(self.output_names)})>"

    def _last_text(self) -> str:
        last = self.last_run
        if last is None:
            return "not run yet"
        took = "" if last.seconds is None else f", {last.seconds * 1e6:.1f} µs"
        grid, groups, size = (" × ".join(map(str, sizes)) for sizes in (last.grid, last.groups, last.threadgroup))
        return f"last run on {last.device}: {grid} threads in {groups} threadgroups of {size}{took}"

    def _repr_markdown_(self) -> str:
        header = f"```cpp\n{self.header.strip()}\n```\n\n" if self.header.strip() else ""
        names = f"({', '.join(self.input_names)}) → ({', '.join(self.output_names)})"
        return f"**{self.name}** {names}, {self._last_text()}\n\n{header}```cpp\n{self.source.strip()}\n```\n"

    def _repr_html_(self) -> str:
        names = f"({', '.join(self.input_names)}) → ({', '.join(self.output_names)})"
        texts = [text.strip("\n") for text in (self.header, self.source) if text.strip()]
        blocks = "".join(f"<pre>{html.escape(text)}</pre>" for text in texts)
        return f"<div><b>{html.escape(self.name)}</b> {names}<br>{html.escape(self._last_text())}{blocks}</div>"


def _from_description(description: dict[str, Any]) -> Kernel:
    return metal_kernel(**description)


def _version_text(version: int) -> str | None:
    return f"{version // 100}.{version // 10 % 10}" if version else None


# As __METAL_VERSION__ has them.
_METAL_VERSIONS = (100, 110, 120, 200, 210, 220, 230, 240, 300, 310, 320, 400, 410)


def version_number(what: str, version: Any) -> int:
    """"3.2" as the C API has it; `what` begins messages."""
    if version is None:
        return 0
    parts = str(version).split(".")
    if len(parts) > 2 or not all(part.isdigit() for part in parts) or len(parts[-1]) > 1:
        raise ValueError(f"{what}: metal_version is {version!r}; expected a version of Metal, such as \"3.2\"")
    number = int(parts[0]) * 100 + (int(parts[1]) * 10 if len(parts) == 2 else 0)
    if number and number not in _METAL_VERSIONS:
        known = ", ".join(f"{v // 100}.{v // 10 % 10}" for v in _METAL_VERSIONS)
        raise ValueError(f"{what}: metal_version is {version!r}; expected one of {known}")
    return number


def math_mode_number(what: str, options: Any) -> int:
    """The math mode of compile_options as the C API has it; `what` begins messages."""
    if options is None:
        return 0
    if not isinstance(options, dict):
        raise TypeError(f"{what}: compile_options is {options!r} ({type(options).__name__}); expected a dict")
    for key in options:
        if key != "math_mode":
            raise ValueError(f"{what}: compile_options has {key!r}; the only option is \"math_mode\"")
    mode = options.get("math_mode", "safe")
    if mode not in _MATH_MODES:
        raise ValueError(f"{what}: math_mode is {mode!r}; expected \"safe\", \"relaxed\" or \"fast\"")
    return _MATH_MODES.index(mode)


def _like(description: tuple) -> Kernel | None:
    """A kernel of this description, if there is one; also None for what only Kernel can say is wrong with it."""
    try:
        with _recent_lock:
            return _recent.get(description)
    except TypeError:
        return None


def _truth(kernel: str, argument: str, value: Any) -> bool:
    """A bool, also NumPy's, or 0 or 1; other objects are mistakes, as "no" would be true."""
    if isinstance(value, int) and value in (0, 1) or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise TypeError(f"kernel '{kernel}': {argument} is {value!r} ({type(value).__name__}); expected True or False")


def metal_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: str,
    header: str = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool | Sequence[bool] = False,
    compile_options: dict[str, str] | None = None,
    *,
    include_paths: Sequence[str] = (),
    metal_version: str | float | None = None,
) -> Kernel:
    """Makes a kernel of the body of a Metal function. The function's signature is generated from the names, the
    arrays of each call, and the attributes (`thread_position_in_grid` …) that the body mentions. Nothing is compiled
    before the first call.

    Args:
        name: an identifier; the function is called `custom_kernel_<name>`.
        input_names, output_names: identifiers; at least one output.
        source: the body, without a signature.
        header: text before the function: includes, helper functions.
        ensure_row_contiguous: copy inputs that are not row-contiguous. If False the body is given them as they are
            and uses `<input>_strides`.
        atomic_outputs: make all outputs `device atomic<T>*`, or those for which a list says so.
        compile_options: {"math_mode": "safe" | "relaxed" | "fast"}.
        include_paths: folders in which `#include` looks.
        metal_version: "3.2" (the default), "4.0" …: what `__METAL_VERSION__` is.

    Raises ValueError for names and options that cannot be, TypeError for arguments of the wrong type.
    """
    if isinstance(atomic_outputs, Sequence) and not isinstance(atomic_outputs, str):
        atomic_outputs = tuple(_truth(name, f"atomic_outputs[{i}]", one) for i, one in enumerate(atomic_outputs))
    else:
        atomic_outputs = _truth(name, "atomic_outputs", atomic_outputs)
    paths = tuple(map(str, include_paths)) if not isinstance(include_paths, str) else include_paths
    description = (
        name, input_names if isinstance(input_names, str) else tuple(input_names),
        output_names if isinstance(output_names, str) else tuple(output_names), source, header,
        not _truth(name, "ensure_row_contiguous", ensure_row_contiguous), atomic_outputs, math_mode_number(f"kernel '{name}'", compile_options),
        version_number(f"kernel '{name}'", metal_version), paths,
    )
    kernel = Kernel(*description, _like(description))
    kernel._origin = _origin.origin_of({f"{name}.body": source, f"{name}.header": header})
    with _recent_lock:
        _recent[description] = kernel
        _recent.move_to_end(description)
        while len(_recent) > _RECENT_COUNT:
            _recent.popitem(last=False)
    return kernel
