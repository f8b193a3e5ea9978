"""MLX without Metal: `smelt.mlx.install()` lets `mx.fast.metal_kernel` run its kernels through smelt."""

from __future__ import annotations

import operator
import os
import re
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

try:
    import mlx.core as mx
except ImportError as error:
    raise ImportError("smelt.mlx needs MLX; install it with: pip install 'mlx[cpu]'", name="mlx") from error

from smelt.kernel import metal_kernel as _smelt_kernel

__all__ = ["Installation", "MetalKernel", "install", "installed", "uninstall"]

_DEVICES = ("cpu", "cpu-scalar")
_STREAMS = tuple(getattr(mx, name) for name in ("Stream", "Device", "DeviceType", "ThreadLocalStream")
                 if hasattr(mx, name))
_TRACED = "during function transformations"  # in MLX's messages about arrays without values

# Outputs of the kernel that runs now, on their way through the function that ties them to its inputs.
_passing = threading.local()


class MetalKernel:
    """What `mx.fast.metal_kernel` returns while smelt is installed. Called with MLX's keyword arguments it runs the
    kernel and returns a list of MLX arrays. Unlike MLX it runs at once: inputs that are still to be computed are
    computed first."""

    def __init__(self, name: str, input_names: Sequence[str], output_names: Sequence[str], source: str, header: str,
                 ensure_row_contiguous: bool, atomic_outputs: bool, compile_options: dict[str, str] | None,
                 device: str):
        # Names in the wild hold numbers with a point, which no function of Metal can have in its name.
        identifier = re.sub(r"\W", "_", name, flags=re.ASCII) if isinstance(name, str) else name
        self._kernel = _smelt_kernel(identifier, input_names, output_names, source, header, ensure_row_contiguous,
                                     atomic_outputs, compile_options)
        self.name = name
        self._device = device
        self._tie = _tie(name)

    def __call__(
        self,
        *,
        inputs: Sequence[Any],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[mx.Dtype],
        grid: tuple[int, int, int],
        threadgroup: tuple[int, int, int],
        template: Sequence[tuple[str, Any]] | None = None,
        init_value: float | None = None,
        verbose: bool = False,
        stream: Any = None,
    ) -> list[mx.array]:
        """Runs the kernel.

        Args:
            inputs: MLX arrays of any dtype, shape and layout, and numbers (float32, int32, bool), one a name.
            output_shapes, output_dtypes: a shape and an MLX dtype for each output.
            grid: threads in three dimensions; threadgroup: threads of a threadgroup, 1024 at most.
            template: pairs of a name and an MLX dtype, int or bool.
            init_value: what fills the outputs before the run; 0 if not given, which Metal does not promise.
            verbose: print the function made of the body.
            stream: an MLX stream or device; there is one processor to run on, so that it chooses nothing.

        Returns new arrays, row-contiguous. Raises ValueError and TypeError where MLX does, RuntimeError inside
        mx.compile, mx.export_function and mx.vmap, whose arrays have no values, and what smelt.metal_kernel raises."""
        name = self.name
        _check_types(name, output_dtypes, template, verbose, stream)
        shapes = [_integers(f"kernel '{name}': a shape in output_shapes", shape) for shape in output_shapes]
        arrays = [x if isinstance(x, mx.array) else _array(name, x) for x in inputs]
        # Where the numbers of shapes and dtypes differ, it is for smelt to say which is wrong. Checked runs take no
        # arrays to write into: these would count as the caller's, with values of their own.
        outputs: list[mx.array] | None = None
        if os.environ.get("SMELT_CHECK") != "1":
            outputs = _blank(name, shapes, output_dtypes) if len(shapes) == len(output_dtypes) else []
        _compute(name, arrays)
        results = self._kernel(inputs=arrays, output_shapes=shapes, output_dtypes=output_dtypes,
                               grid=_integers(f"kernel '{name}': grid", grid, 3),
                               threadgroup=_integers(f"kernel '{name}': threadgroup", threadgroup, 3),
                               template=template, init_value=_initial(name, init_value), verbose=verbose,
                               device=self._device, out=outputs, output_kind="mlx")
        if outputs is None:
            outputs = list(results)
        if not arrays:
            return outputs
        _passing.outputs = outputs
        return self._tie(*arrays)

    def __repr__(self) -> str:
        names = f"({', '.join(self._kernel.input_names)}) -> ({', '.join(self._kernel.output_names)})"
        return f"<smelt.mlx.MetalKernel '{self.name}' {names}>"


def _tie(name: str) -> Callable[..., list[mx.array]]:
    """A function of the kernel's inputs that returns the outputs left in `_passing`. To MLX's transformations it is
    what connects them, so that a gradient through the kernel is an error, as on Metal, and not 0."""

    def tie(*inputs: mx.array) -> list[mx.array]:
        outputs, _passing.outputs = _passing.outputs, None
        return outputs

    def refuse(what: str, decorator: str) -> Callable[..., Any]:
        def no_derivative(*_: Any) -> Any:
            raise ValueError(f"kernel '{name}' has no {what} of its own; call it in a function wrapped in "
                             f"mx.custom_function, and define that function's with .{decorator}")
        return no_derivative

    tied: Any = mx.custom_function(tie)
    tied.vjp(refuse("gradient", "vjp"))
    tied.jvp(refuse("forward derivative", "jvp"))
    tied.vmap(refuse("rule for mx.vmap", "vmap"))
    return tied


def _integers(what: str, values: Any, count: int | None = None) -> tuple[int, ...]:
    """Integers, also NumPy's and arrays with one of them, as ints; TypeError for others, or another count."""
    try:
        integers = tuple(operator.index(value) for value in values)
    except TypeError:
        integers = None
    if integers is None or count not in (None, len(integers)):
        raise TypeError(f"{what} is {values!r}; expected {'a sequence of' if count is None else count} integers")
    return integers


def _initial(name: str, value: Any) -> float | None:
    if value is None or hasattr(value, "__float__") or hasattr(value, "__index__"):
        return None if value is None else float(value)
    raise TypeError(f"kernel '{name}': init_value is {value!r}; expected a number")


def _check_types(name: str, dtypes: Any, template: Any, verbose: Any, stream: Any) -> None:
    """What smelt takes and MLX does not."""
    for dtype in dtypes:
        if not isinstance(dtype, mx.Dtype):
            raise TypeError(f"kernel '{name}': output_dtypes holds {dtype!r} ({type(dtype).__name__}); expected "
                            "MLX dtypes")
    for pair in template or ():
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(f"kernel '{name}': template holds {pair!r}; expected pairs of a name and a value")
        if not isinstance(pair[1], (mx.Dtype, int)):  # a bool is an int
            raise ValueError(f"kernel '{name}': template '{pair[0]}' is {pair[1]!r} ({type(pair[1]).__name__}); "
                             "expected an MLX dtype, int or bool")
    if not isinstance(verbose, bool):
        raise TypeError(f"kernel '{name}': verbose is {verbose!r}; expected True or False")
    if stream is not None and not isinstance(stream, _STREAMS):
        raise TypeError(f"kernel '{name}': stream is {stream!r} ({type(stream).__name__}); expected an MLX stream or "
                        "device")


def _array(name: str, value: Any) -> mx.array:
    if isinstance(value, (list, tuple)):
        raise ValueError(f"kernel '{name}': an input is a {type(value).__name__}; expected MLX arrays and numbers")
    return mx.array(value)


def _blank(name: str, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[mx.Dtype]) -> list[mx.array]:
    """New MLX arrays, whose memory the kernel writes: MLX copies arrays that come from elsewhere."""
    for shape in shapes:
        if any(n < 0 for n in shape):
            raise ValueError(f"kernel '{name}': output_shapes holds {shape!r}; sizes cannot be negative")
    outputs = [mx.zeros(shape, dtype=dtype, stream=mx.cpu) for shape, dtype in zip(shapes, dtypes)]
    mx.eval(outputs)
    return outputs


def _compute(name: str, arrays: list[mx.array]) -> None:
    """Computes pending arrays; RuntimeError for arrays without values."""
    try:
        mx.eval(arrays)
    except ValueError as error:
        if _TRACED not in str(error):
            raise
        raise RuntimeError(
            f"kernel '{name}': its inputs have no values inside mx.compile or mx.vmap (or mx.export_function), and "
            "smelt runs a kernel when it is called; turn mx.compile off with mx.disable_compile() "
            "(smelt.mlx.install does so unless it is given disable_compile=False); a function that is mapped or "
            "exported cannot call a kernel") from error


# ---- Installing.


class Installation:
    """What `install` returns. As a context manager it ends at the end of the block: what was installed before it, if
    anything, is there again. `active` says whether kernels run through smelt, `why` why not."""

    def __init__(self, active: bool, why: str, before: dict[str, Any] | None):
        self.active = active
        self.why = why
        self._before = before

    def __enter__(self) -> "Installation":
        return self

    def __exit__(self, *_: Any) -> None:
        if self._before == _options:
            return
        uninstall()
        if self._before is not None:
            install(**self._before)

    def __repr__(self) -> str:
        return f"<smelt.mlx.Installation {'active' if self.active else 'inactive: ' + self.why}>"


_lock = threading.RLock()
_options: dict[str, Any] | None = None  # install's arguments; None: not installed
_replaced: list[tuple[Any, str, Any]] = []  # module, name, former value
_compile_was_on = False


def install(*, pretend_metal: bool = False, disable_compile: bool = True, device: str = "cpu",
            force: bool = False) -> Installation:
    """Makes `mx.fast.metal_kernel` run kernels through smelt. Install before importing packages that make kernels
    when they are imported: those made before keep MLX's own way.

    Args:
        pretend_metal: also let MLX say that there is Metal and that the GPU is the default device, as packages ask
            before they choose their kernels. See docs/python-mlx.md for what is replaced.
        disable_compile: turn mx.compile off (functions run as they are written), as kernels need values.
        device: "cpu", or "cpu-scalar", the slow engine that others are compared with.
        force: install also where MLX has Metal.

    Again with the same options it changes nothing; with others, these hold. Where MLX has Metal it warns and does
    nothing. Returns an Installation, for use in a `with` statement if wanted."""
    global _options
    if device not in _DEVICES:
        raise ValueError(f"smelt.mlx.install: device is {device!r}; expected one of {', '.join(map(repr, _DEVICES))}")
    options = {"pretend_metal": bool(pretend_metal), "disable_compile": bool(disable_compile), "device": device,
               "force": bool(force)}
    with _lock:
        before = _options
        if options == before:
            return Installation(True, "", before)
        if before is not None:
            uninstall()
        if mx.metal.is_available() and not force:
            why = "MLX has Metal here and runs its own kernels (force=True installs anyway)"
            warnings.warn(f"smelt.mlx.install: {why}", stacklevel=2)
            return Installation(False, why, before)
        _replace(mx.fast, "metal_kernel", _replacement(device))
        if pretend_metal:
            for module, name, value in _pretended():
                _replace(module, name, value)
        if disable_compile:
            _turn_compile_off()
        _options = options
        return Installation(True, "", before)


def uninstall() -> None:
    """Undoes `install`, if it was called. Kernels created in between keep working."""
    global _options, _compile_was_on
    with _lock:
        while _replaced:
            module, name, value = _replaced.pop()
            setattr(module, name, value)
        if _compile_was_on:
            mx.enable_compile()
        _compile_was_on = False
        _options = None


def installed() -> bool:
    """Whether `mx.fast.metal_kernel` makes kernels that smelt runs."""
    return _options is not None


def _replace(module: Any, name: str, value: Any) -> None:
    _replaced.append((module, name, getattr(module, name)))
    setattr(module, name, value)


def _turn_compile_off() -> None:
    """Notes whether it was on, which MLX does not say: a compiled function is traced once, others run each time."""
    global _compile_was_on
    calls = []

    def probe(x: mx.array) -> mx.array:
        calls.append(x)
        return x

    compiled = mx.compile(probe)
    for _ in range(2):
        compiled(mx.array(0))
    _compile_was_on = len(calls) == 1
    mx.disable_compile()


def _replacement(device: str) -> Callable[..., MetalKernel]:
    def metal_kernel(name: str, input_names: Sequence[str], output_names: Sequence[str], source: str,
                     header: str = "", ensure_row_contiguous: bool = True, atomic_outputs: bool = False,
                     compile_options: dict[str, str] | None = None) -> MetalKernel:
        """mx.fast.metal_kernel as MLX documents it, run by smelt: see smelt.mlx.MetalKernel for the call, and
        smelt.metal_kernel for what the arguments mean."""
        return MetalKernel(name, input_names, output_names, source, header, ensure_row_contiguous, atomic_outputs,
                           compile_options, device)

    return metal_kernel


# ---- Pretending that there is Metal. Everything still runs on the CPU.


def _is_gpu(device: Any) -> bool:
    return device == mx.gpu if isinstance(device, (mx.Device, mx.DeviceType)) else False


class _CpuBlock:
    """`with mx.stream(s)` where default_device() is to say what s is on."""

    def __init__(self, context: Any, gpu: bool, chosen: threading.local):
        self._context, self._gpu, self._chosen = context, gpu, chosen

    def __enter__(self) -> Any:
        self._before = getattr(self._chosen, "gpu", None)
        self._chosen.gpu = self._gpu
        return self._context.__enter__()

    def __exit__(self, *error: Any) -> Any:
        self._chosen.gpu = self._before
        return self._context.__exit__(*error)


def _pretended() -> list[tuple[Any, str, Any]]:
    """What takes the place of MLX's functions that tell or take a device: the GPU is said to be there, and the CPU is
    what they mean by it."""
    real = {name: getattr(mx, name) for name in dir(mx)}
    default = {"gpu": True}  # from set_default_device
    chosen = threading.local()  # from `with mx.stream(...)`

    def as_cpu(device: Any) -> Any:
        return mx.cpu if _is_gpu(device) else device

    def default_device() -> mx.Device:
        here = getattr(chosen, "gpu", None)
        return mx.Device(mx.gpu) if (default["gpu"] if here is None else here) else real["default_device"]()

    def set_default_device(device: Any) -> None:
        real["set_default_device"](as_cpu(device))
        default["gpu"] = _is_gpu(device)

    def stream(s: Any) -> Any:
        gpu = _is_gpu(s) or (not isinstance(s, (mx.Device, mx.DeviceType)) and default_device() == mx.gpu)
        return _CpuBlock(real["stream"](as_cpu(s)), gpu, chosen)

    def of_cpu(name: str) -> Callable[..., Any]:
        def on_the_cpu(*arguments: Any, **keywords: Any) -> Any:
            return real[name](*map(as_cpu, arguments), **{key: as_cpu(value) for key, value in keywords.items()})
        on_the_cpu.__name__, on_the_cpu.__doc__ = name, real[name].__doc__
        return on_the_cpu

    def device_info(*arguments: Any, **keywords: Any) -> dict[str, Any]:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        info = of_cpu("device_info")(*arguments, **keywords)
        return {"memory_size": memory, "max_recommended_working_set_size": memory * 3 // 4,
                "max_buffer_length": memory // 2} | info

    replaced = {
        "default_device": default_device, "set_default_device": set_default_device, "stream": stream,
        "device_info": device_info, "is_available": lambda device: _is_gpu(device) or real["is_available"](device),
        "device_count": of_cpu("device_count"),
    }
    for name in ("default_stream", "new_stream", "new_thread_local_stream", "synchronize"):
        replaced[name] = of_cpu(name)
    found = [(mx, name, value) for name, value in replaced.items() if name in real]
    return [(mx.metal, "is_available", lambda: True), (mx.metal, "device_info", device_info), *found]
