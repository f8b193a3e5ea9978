"""Steps of a decoder as CUDA graphs, which are captured once and replayed: `capture_steps`."""

from __future__ import annotations

import functools
import inspect
import types
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import nn

from smelt.torch.plans import is_watched

__all__ = ["capture_steps"]

_MOST = 8  # graphs per cache, each with memory of its own; those used last are kept
_EAGER = 2  # steps of a kind that run uncaptured first: kernels are compiled, and libraries allocate their memory
_STEPS = "_smelt_steps"  # the attribute of a model that has its graphs
_VALUES = (type(None), bool, int, float, str, torch.dtype)


def capture_steps(model: nn.Module) -> None:
    """Changes the model in place: calls that decode one token with a static cache replay a CUDA graph.

    A call is replayed if all of this holds; other calls run as before:
    - the model is in eval mode and on one GPU; gradients, autocast, torch's modes and transforms, tracing and the profiler
      are off;
    - the cache is a StaticCache of transformers whose layers are all StaticLayer and are initialised, and the other
      arguments are tensors on that GPU, numbers, strings, and lists and dicts of these;
    - two calls of the same kind came before: with the same cache, stream, dtypes and shapes, and equal arguments otherwise.

    Results are copies, which later calls do not change. Weights may be changed in place, and moved. If a call cannot be
    captured, for example because it waits for the GPU, there is a warning, and calls of its kind run as before. Python code
    (hooks, print) runs only when a graph is captured. After replacing a module or a Parameter by another, call this again.
    TypeError for anything but a module."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"capture_steps: model is of type {type(model).__name__}; expected a torch.nn.Module")
    setattr(model, _STEPS, _Steps(model))
    if "forward" in vars(model) and getattr(model.forward, "_captures", False):
        return
    stock = model.forward

    @functools.wraps(stock)
    def forward(self: Any, *args: Any, **named: Any) -> Any:
        # Bound again, since a copy of the model is another self. Libraries such as accelerate put other callables here.
        call: Callable = functools.partial(stock.__func__, self) if isinstance(stock, types.MethodType) else stock
        if torch.compiler.is_compiling() or torch.is_grad_enabled() or self.training:
            return call(*args, **named)
        return getattr(self, _STEPS).call(call, args, named)

    forward.__signature__ = inspect.signature(stock)  # type: ignore[attr-defined]
    forward._captures = True  # type: ignore[attr-defined]
    model.forward = types.MethodType(forward, model)


class _Uncapturable(Exception):
    """An argument whose value a graph would keep."""


class _Steps:
    """The graphs of a model, by cache. A copy of the model starts with none."""

    def __init__(self, model: nn.Module):
        self._model = weakref.ref(model)
        self._of_caches: weakref.WeakKeyDictionary[Any, dict[tuple, Any]] = weakref.WeakKeyDictionary()

    def __reduce__(self) -> Any:
        return _Steps, (self._model(),)

    def call(self, forward: Callable, args: tuple, named: dict[str, Any]) -> Any:
        """The result of forward(*args, **named), by a graph if that is right."""
        tensors: list[torch.Tensor] = []
        caches: list[Any] = []
        try:
            key = _describe((args, named), tensors, caches)
        except _Uncapturable:
            return forward(*args, **named)
        if len(caches) != 1 or not tensors or not _is_step(named, args) or not _is_static(caches[0], tensors) or is_watched():
            return forward(*args, **named)
        device = tensors[0].device
        if torch.is_autocast_enabled(device.type) or _is_capturing(device):
            return forward(*args, **named)
        key = (key, torch.is_inference_mode_enabled(), _stream(device))
        graphs = self._of_caches.setdefault(caches[0], {})
        state = graphs.pop(key, 0)  # Put back as the last: the first was not used for longest.
        if isinstance(state, _Graph):
            if state.fits():
                graphs[key] = state
                return state.replay(tensors)
            state = 0
        if state is None:
            graphs[key] = None
            return forward(*args, **named)
        if state < _EAGER:
            graphs[key] = state + 1
            if len(graphs) > _MOST:
                graphs.pop(next(iter(graphs)))
            return _warm_up(device, functools.partial(forward, *args, **named)) if state else forward(*args, **named)
        try:
            graph = _Graph(self._model(), forward, args, named, tensors, caches[0])
        except (RuntimeError, TypeError) as error:
            graphs[key] = None
            warnings.warn(f"smelt.torch: a step of {type(self._model()).__name__} cannot be captured as a CUDA graph and "
                          f"runs as before: {error}", RuntimeWarning, stacklevel=3)
            return forward(*args, **named)
        graphs[key] = graph
        return graph.replay(tensors)


class _Graph:
    """A captured call: it reads copies of the tensors among its arguments, and writes the cache."""

    def __init__(self, model: Any, forward: Callable, args: tuple, named: dict[str, Any], tensors: Sequence[torch.Tensor],
                 cache: Any):
        # What the graph reads where it lies, which must still be there when it is replayed.
        self._read = [*model.parameters(), *model.buffers(), *_memory(cache)]
        self._places = [x.data_ptr() for x in self._read]
        self._layers = [(weakref.ref(layer), _of_layer(layer)) for layer in cache.layers]
        if any(x.device != tensors[0].device for x in self._read):
            raise RuntimeError("the model is not on one GPU")
        self._inputs = [x.clone() for x in tensors]
        left = iter(self._inputs)
        args, named = _with_tensors((args, named), left)
        self._recorded, self._made = _record(functools.partial(forward, *args, **named), tensors[0].device)
        self._cache = weakref.ref(cache)
        self._made = _forget(self._made, cache)

    def fits(self) -> bool:
        """Is all that it reads where it was?"""
        for reference, tensors in self._layers:
            layer = reference()
            if layer is None or any(now is not then for now, then in zip(_of_layer(layer), tensors)):
                return False
        return _same_places(self._read, self._places)

    def replay(self, tensors: Sequence[torch.Tensor]) -> Any:
        for own, given in zip(self._inputs, tensors):
            own.copy_(given)
        self._recorded.replay()
        return _copied(self._made, self._cache())


# ---- Arguments and results.

def _describe(value: Any, tensors: list, caches: list) -> Any:
    """What a call depends on, except the elements of its tensors. Tensors and caches are added to the lists."""
    if isinstance(value, torch.Tensor):
        if type(value) not in (torch.Tensor, nn.Parameter) or (tensors and value.device != tensors[0].device):
            raise _Uncapturable
        tensors.append(value)
        return value.shape, value.stride(), value.dtype, value.device
    if isinstance(value, _VALUES):
        return type(value), value
    if type(value) in (tuple, list):
        return type(value), *(_describe(each, tensors, caches) for each in value)
    if type(value) is dict:
        return dict, *((name, _describe(each, tensors, caches)) for name, each in value.items())
    if hasattr(value, "layers") and hasattr(value, "get_seq_length"):
        caches.append(value)
        return "cache"
    raise _Uncapturable


def _with_tensors(value: Any, left: Iterator[torch.Tensor]) -> Any:
    """The arguments with other tensors, in the order of _describe."""
    if isinstance(value, torch.Tensor):
        return next(left)
    if type(value) in (tuple, list):
        return type(value)(_with_tensors(each, left) for each in value)
    if type(value) is dict:
        return {name: _with_tensors(each, left) for name, each in value.items()}
    return value


class _TheCache:
    """Stands for the cache in a kept result, which must not keep the cache alive."""


def _map(value: Any, of_tensor: Callable, of_other: Callable) -> Any:
    if isinstance(value, torch.Tensor):
        return of_tensor(value)
    if type(value) in (tuple, list):
        return type(value)(_map(each, of_tensor, of_other) for each in value)
    if isinstance(value, dict):  # transformers' ModelOutput, too
        mapped = {name: _map(each, of_tensor, of_other) for name, each in value.items()}
        return mapped if type(value) is dict else type(value)(**mapped)
    return of_other(value)


def _forget(made: Any, cache: Any) -> Any:
    def of_other(value: Any) -> Any:
        if value is cache:
            return _TheCache
        if isinstance(value, _VALUES):
            return value
        raise TypeError(f"its result has a {type(value).__name__}")
    return _map(made, lambda x: x, of_other)


def _copied(made: Any, cache: Any) -> Any:
    return _map(made, torch.clone, lambda value: cache if value is _TheCache else value)


# ---- What can be captured.

def _is_step(named: dict[str, Any], args: tuple) -> bool:
    """One token per row."""
    given = args[0] if args else named.get("input_ids")
    given = named.get("inputs_embeds") if given is None else given
    return isinstance(given, torch.Tensor) and given.ndim > 1 and given.shape[1] == 1


def _is_static(cache: Any, tensors: Sequence[torch.Tensor]) -> bool:
    """Does a step with the cache depend on nothing but the cache's memory on the tensors' GPU?"""
    device = tensors[0].device
    return _is_gpu(device) and all(
        type(layer).__name__ == "StaticLayer" and layer.is_initialized
        and all(isinstance(x, torch.Tensor) and x.device == device for x in _of_layer(layer)) for layer in cache.layers)


def _is_gpu(device: torch.device) -> bool:
    return device.type == "cuda"


def _of_layer(layer: Any) -> list:
    # Layers of older versions of transformers lack a length: there, positions are an argument.
    return [layer.keys, layer.values, *([layer.cumulative_length] if hasattr(layer, "cumulative_length") else [])]


def _memory(cache: Any) -> list[torch.Tensor]:
    return [x for layer in cache.layers for x in _of_layer(layer)]


def _same_places(tensors: list[torch.Tensor], places: list[int]) -> bool:
    return [x.data_ptr() for x in tensors] == places


# ---- CUDA.

def _is_capturing(device: torch.device) -> bool:
    return torch.cuda.is_current_stream_capturing()


def _stream(device: torch.device) -> int:
    return torch.cuda.current_stream(device).cuda_stream


@functools.cache
def _streams(device: torch.device) -> tuple[torch.cuda.Stream, torch.cuda.Stream]:
    """The streams for warming up and for capturing. Always the same ones, since cuBLAS keeps memory for each stream."""
    return torch.cuda.Stream(device), torch.cuda.Stream(device)


def _warm_up(device: torch.device, work: Callable) -> Any:
    """work() on another stream, as when it is captured, in order with the current one."""
    here = torch.cuda.current_stream(device)
    side, _ = _streams(device)
    side.wait_stream(here)
    with torch.cuda.stream(side):
        made = work()
    here.wait_stream(side)
    _map(made, lambda x: x.record_stream(here), lambda value: value)
    return made


def _record(work: Callable, device: torch.device) -> tuple[Any, Any]:
    """A graph of what work() launches, which does not run now, and its result, whose elements each replay sets."""
    graph = torch.cuda.CUDAGraph()
    # torch's own stream for captures belongs to the GPU of the process's first capture. The current stream is set again
    # because older versions of torch leave the capture's stream current when a capture fails.
    with (torch.cuda.device(device), torch.cuda.stream(torch.cuda.current_stream(device)),
          torch.cuda.graph(graph, stream=_streams(device)[1])):
        made = work()
    return graph, made
