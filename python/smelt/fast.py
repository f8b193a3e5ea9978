"""Names that kernels written for MLX look for under `mx.fast`."""

from smelt.kernel import metal_kernel
from smelt.operations import layer_norm, rms_norm, rope, scaled_dot_product_attention

__all__ = ["layer_norm", "metal_kernel", "rms_norm", "rope", "scaled_dot_product_attention"]
