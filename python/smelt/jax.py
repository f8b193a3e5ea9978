"""smelt in JAX: kernels, and functions written with smelt's operations, as functions of JAX arrays.

`metal_kernel` is smelt.metal_kernel for JAX, and `function` turns a function of smelt arrays into one of JAX arrays, with
the derivatives that smelt derives. Both work under jit, grad, vmap and scan: for each combination of dtypes and shapes a
graph is compiled, which XLA calls through jax.ffi, on CPUs and NVIDIA GPUs. On a GPU, errors of a call are raised by
whatever waits for its results."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise ImportError("smelt.jax needs JAX; install it with: pip install jax", name="jax") from error

import numpy as np

from smelt import _smelt
from smelt.graph import Graph, TensorType
from smelt.kernel import metal_kernel as _smelt_kernel
from smelt.transforms import vjp as _vjp

__all__ = ["Function", "MetalKernel", "function", "metal_kernel"]

_TARGET = "smelt_graph"
_Types = tuple[tuple[str, tuple[int, ...]], ...]


@functools.cache
def _register() -> None:
    for platform in ("cpu", "CUDA"):
        jax.ffi.register_ffi_target(_TARGET, _smelt.jax_handler(platform), platform=platform)


def _device() -> str:
    """Where functions will most likely run: their code is compiled for it when they are traced."""
    return {"cpu": "cpu", "gpu": "cuda:0", "cuda": "cuda:0"}.get(jax.default_backend(), "")


def _types(arrays: Sequence[Any]) -> _Types:
    return tuple((np.dtype(a.dtype).name, tuple(a.shape)) for a in arrays)


def _is_float(dtype: str) -> bool:
    return "float" in dtype


class _Program:
    """A function of flat lists of arrays as graphs: one for each combination of types. `call` is differentiable."""

    def __init__(self, f: Callable[..., Sequence[Any]], name: str):
        self.f, self.name = f, name
        self.calls: dict[_Types, Callable[..., list[Any]]] = {}
        self._backward: dict[_Types, _Program] = {}

    def __call__(self, *arrays: Any) -> list[Any]:
        types = _types(arrays)
        if types not in self.calls:
            self.calls[types] = self._differentiable(types)
        return self.calls[types](*arrays)

    def _trace(self, types: _Types) -> tuple[int, _Types]:
        """The number of the graph, and the types of its outputs."""
        graph = Graph(self.name, [TensorType(dtype, shape) for dtype, shape in types])
        made = list(self.f(*graph.inputs))
        for i, value in enumerate(made):
            if not isinstance(value, _smelt.array):
                raise TypeError(f"smelt.jax: '{self.name}' returned {type(value).__name__} as output {i}; expected arrays of smelt")
        graph.output(*made)
        _register()
        return _smelt.jax_graph(graph.handle, len(types), len(made), _device()), _types_of_smelt(made)

    def _differentiable(self, types: _Types) -> Callable[..., list[Any]]:
        number, outputs = self._trace(types)
        results = [jax.ShapeDtypeStruct(shape, jnp.dtype(dtype)) for dtype, shape in outputs]
        call = jax.ffi.ffi_call(_TARGET, results, vmap_method="sequential")

        def launch(*arrays: Any) -> list[Any]:
            return call(*arrays, graph=np.int64(number))

        run: Any = jax.custom_vjp(launch)

        def forward(*arrays: Any) -> tuple[list[Any], tuple[Any, ...]]:
            return run(*arrays), arrays

        def backward(arrays: tuple[Any, ...], cotangents: list[Any]) -> tuple[Any, ...]:
            given = [c for c, (dtype, _) in zip(cotangents, outputs) if _is_float(dtype)]
            gradients = iter(self._derivative(types, outputs)(*arrays, *given))
            return tuple(next(gradients) if _is_float(dtype) else np.zeros(shape, jax.dtypes.float0)
                         for dtype, shape in types)

        run.defvjp(forward, backward)
        return run

    def _derivative(self, types: _Types, outputs: _Types) -> _Program:
        """The gradients by float inputs, from all inputs and the cotangents of float outputs."""
        if types not in self._backward:
            floats = [i for i, (dtype, _) in enumerate(types) if _is_float(dtype)]
            wanted = [i for i, (dtype, _) in enumerate(outputs) if _is_float(dtype)]

            def gradients(*arrays: Any) -> list[Any]:
                inputs, cotangents = arrays[:len(types)], arrays[len(types):]

                def part(*variables: Any) -> list[Any]:
                    given = list(inputs)
                    for i, variable in zip(floats, variables):
                        given[i] = variable
                    made = list(self.f(*given))
                    return [made[i] for i in wanted]

                return _vjp(part, [inputs[i] for i in floats], list(cotangents))[1]

            self._backward[types] = _Program(gradients, f"{self.name}_vjp")
        return self._backward[types]


def _types_of_smelt(arrays: Sequence[Any]) -> _Types:
    return tuple((a.dtype.name, tuple(a.shape)) for a in arrays)


class Function:
    """What `smelt.jax.function` returns: f for JAX arrays, or trees of them."""

    def __init__(self, f: Callable):
        if not callable(f):
            raise TypeError(f"smelt.jax.function: f is {f!r}, expected a function of smelt arrays")
        functools.update_wrapper(self, f)
        self.f = f
        self._name = str(getattr(f, "__name__", "function"))
        self._programs: dict[Any, tuple[_Program, list[Any]]] = {}

    def __call__(self, *args: Any) -> Any:
        flat, tree = jax.tree_util.tree_flatten(args)
        arrays = [jnp.asarray(x) for x in flat]
        if tree not in self._programs:
            form: list[Any] = []

            def of_lists(*leaves: Any) -> list[Any]:
                made, made_tree = jax.tree_util.tree_flatten(self.f(*jax.tree_util.tree_unflatten(tree, leaves)))
                form[:] = [made_tree]
                return made

            self._programs[tree] = _Program(of_lists, self._name), form
        program, form = self._programs[tree]
        results = program(*arrays)
        return jax.tree_util.tree_unflatten(form[0], results)

    def __repr__(self) -> str:
        return f"<smelt.jax.Function '{self._name}'>"


def function(f: Callable) -> Function:
    """f, a function of smelt arrays, as a function of JAX arrays; a decorator.

        @smelt.jax.function
        def normalise(x, w):
            return smelt.rms_norm(x, w, 1e-5)

    f is called once for each combination of dtypes and shapes, with values of a graph (smelt.graph), and may use smelt's
    operations, kernels and custom functions. Arguments and results are arrays or trees of them; other values belong into
    a closure. Gradients are those that smelt derives, or those of a smelt.custom_function; they can be differentiated
    again. Kernels outside of custom functions have none, and say so when one is needed. jax.vmap calls f for one element
    after the other."""
    return Function(f)


# ---- Kernels.


def _sizes(what: str, values: Any) -> tuple[int, ...]:
    try:
        return tuple(operator.index(value) for value in values)
    except TypeError:
        raise TypeError(f"{what} is {values!r}; expected a sequence of integers") from None


def _dtype(what: str, value: Any) -> _smelt.Dtype:
    if isinstance(value, _smelt.Dtype):
        return value
    try:
        return _smelt.Dtype(jnp.dtype(value).name)
    except TypeError:
        raise TypeError(f"{what} is {value!r}; expected a dtype") from None


def _array(value: Any) -> Any:
    """Python's numbers as MLX's kernels take them: bool, int32, float32."""
    dtypes = {bool: jnp.bool_, int: jnp.int32, float: jnp.float32}
    return jnp.asarray(value, dtypes.get(type(value)))


class MetalKernel:
    """What `smelt.jax.metal_kernel` returns."""

    def __init__(self, *args: Any, **kwargs: Any):
        self._kernel = _smelt_kernel(*args, **kwargs)
        self.name = self._kernel.name
        self._programs: dict[str, _Program] = {}

    def __call__(
        self,
        *,
        inputs: Sequence[Any],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[Any],
        grid: Sequence[int],
        threadgroup: Sequence[int],
        template: Sequence[tuple[str, Any]] | None = None,
        init_value: float | None = None,
    ) -> list[Any]:
        """Runs the kernel: a list of JAX arrays.

        Args:
            inputs: JAX arrays, traced ones too, and numbers (float32, int32, bool), one per input name.
            output_shapes, output_dtypes: a shape and a dtype for each output.
            grid: threads in up to three dimensions; threadgroup: threads of a threadgroup, 1024 at most.
            template: pairs of a name and a dtype, int or bool.
            init_value: what fills the outputs before the run.

        A kernel has no derivative; jax.custom_vjp gives one to a function that calls it. jax.vmap runs it for one element
        after the other. What is wrong with the arguments is said when the call is traced, errors of the kernel's text
        when it first runs (jax.errors.JaxRuntimeError)."""
        name = f"kernel '{self.name}'"
        pairs = [(str(key), value if isinstance(value, (bool, int)) else _dtype(f"{name}: template '{key}'", value))
                 for key, value in template or ()]
        settings: dict[str, Any] = {
            "output_shapes": [_sizes(f"{name}: a shape in output_shapes", shape) for shape in output_shapes],
            "output_dtypes": [_dtype(f"{name}: an entry of output_dtypes", dtype) for dtype in output_dtypes],
            "grid": _sizes(f"{name}: grid", grid), "threadgroup": _sizes(f"{name}: threadgroup", threadgroup),
            "template": pairs, "init_value": init_value,
        }
        key = repr(settings)
        if key not in self._programs:
            def run(*arrays: Any) -> list[Any]:
                return self._kernel(inputs=list(arrays), **settings)
            self._programs[key] = _Program(run, self.name)
        return list(self._programs[key](*[_array(x) for x in inputs]))

    def __repr__(self) -> str:
        return f"<smelt.jax.MetalKernel '{self.name}' ({', '.join(self._kernel.input_names)}) -> " \
               f"({', '.join(self._kernel.output_names)})>"


def metal_kernel(name: str, input_names: Sequence[str], output_names: Sequence[str], source: str, header: str = "",
                 ensure_row_contiguous: bool = True, atomic_outputs: bool = False,
                 compile_options: dict[str, str] | None = None) -> MetalKernel:
    """A kernel from the body of a Metal function, as of mx.fast.metal_kernel, for JAX arrays. The arguments are those of
    smelt.metal_kernel; calls are described at MetalKernel."""
    return MetalKernel(name, input_names, output_names, source, header, ensure_row_contiguous, atomic_outputs, compile_options)
