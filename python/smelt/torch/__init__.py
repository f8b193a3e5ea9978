"""Kernels as operations of PyTorch.

`op` registers a function of tensors, with its VJP, as a custom operation that autograd, torch.compile, torch.export and
torch.func know; `TorchMetalKernel` does so for Metal source with a reference written in PyTorch; `from_kernel` for one
kernel. `autograd_function` makes a torch.autograd.Function, without registering anything. `scaled_dot_product_attention`
is attention as such an operation; smelt.torch.transformers gives it to models of Hugging Face, and `optimize` replaces
other parts of them as well.

Kernels run on the tensors' device: on the CPU, or on their GPU, on torch's current stream."""

from typing import TYPE_CHECKING

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("smelt.torch needs PyTorch; install it with: pip install torch", name="torch") from error

from smelt.torch.attention import scaled_dot_product_attention
from smelt.torch.exporting import export
from smelt.torch.kernel import TorchMetalKernel, Verification
from smelt.torch.operation import Op, _traced_call, autograd_function, from_kernel, op  # noqa: F401
from smelt.torch.optimizing import Report, optimize
from smelt.torch.quantised import QuantizedLinear

__all__ = ["Op", "QuantizedLinear", "Report", "TorchMetalKernel", "Verification", "autograd_function", "export", "from_kernel", "op",
           "optimize", "scaled_dot_product_attention"]

if TYPE_CHECKING:
    from smelt.torch import transformers as transformers
else:
    def __getattr__(name):
        """transformers is imported when it is first named: it needs another library."""
        if name != "transformers":
            raise AttributeError(f"module 'smelt.torch' has no attribute {name!r}")
        import importlib

        return importlib.import_module("smelt.torch.transformers")
