"""Names that kernels written for MLX look for under `mx.fast`."""

from smelt.kernel import metal_kernel

__all__ = ["metal_kernel"]
