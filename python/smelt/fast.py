"""Names that kernels written for MLX look for under `mx.fast`."""

from smelt.kernel import metal_kernel
from smelt.operations import scaled_dot_product_attention

__all__ = ["metal_kernel", "scaled_dot_product_attention"]
