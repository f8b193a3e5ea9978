"""Attention for Hugging Face transformers: after `register()`, models have the attention implementation "smelt".

    smelt.torch.transformers.register()
    model.set_attn_implementation("smelt")
"""

from __future__ import annotations

import importlib
from typing import Any

import torch

try:
    import transformers
except ImportError as error:
    raise ImportError("smelt.torch.transformers needs transformers; install it with: pip install transformers",
                      name="transformers") from error

from smelt.torch.attention import attention_over_lines, scaled_dot_product_attention

__all__ = ["attention_forward", "register"]


def register(name: str = "smelt") -> None:
    """Adds the attention implementation `name` to transformers, for model.set_attn_implementation(name) and for
    attn_implementation=name where a model is made. Masks are those of "sdpa"; SAM's image encoder, which has attention
    of its own, is included. Registering twice is not an error."""
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, sdpa_mask
    transformers.AttentionInterface.register(name, attention_forward)
    ALL_MASK_ATTENTION_FUNCTIONS.register(name, sdpa_mask)
    _register_sam(name)


def attention_forward(
    module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
    attention_mask: torch.Tensor | None, dropout: float = 0.0, scaling: float | None = None,
    is_causal: bool | None = None, position_bias: torch.Tensor | None = None, **others: Any,
) -> tuple[torch.Tensor, None]:
    """What transformers calls: query (B, N_q, T_q, D), key and value (B, N_kv, T_kv, D); returns (B, T_q, N_q, D), None.

    ValueError for dropout, a soft cap, attention sinks (s_aux) and paged caches, which are not supported."""
    if dropout:
        raise ValueError(f"attention 'smelt': dropout is {dropout}; expected 0, as the kernel has no dropout: set "
                         "attention_dropout to 0 in the model's config, or call model.eval()")
    for what in ("softcap", "s_aux", "cache"):
        if others.get(what) is not None:
            raise ValueError(f"attention 'smelt': {what} is given; expected none, as it is not supported: choose another "
                             "implementation, such as attn_implementation=\"eager\"")
    rows, keys = query.shape[2], key.shape[2]
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
    # A mask includes causality; one row is the last, which sees all keys.
    causal = rows > 1 and attention_mask is None and causal
    if causal and keys > rows:
        # The prefill of a static cache: the keys after the rows are not set yet.
        key, value = key[:, :, :rows], value[:, :, :rows]
        position_bias = None if position_bias is None else position_bias[..., :rows]
    mask = attention_mask
    if position_bias is not None:
        mask = _with_bias(position_bias, attention_mask)
    out = scaled_dot_product_attention(query, key, value, scale=scaling, mask=mask, causal=causal)
    return out.transpose(1, 2).contiguous(), None


def _with_bias(bias: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """One mask of floats."""
    if mask is None:
        return bias
    return bias.masked_fill(~mask, -float("inf")) if mask.dtype == torch.bool else bias + mask


# ---- SAM: its image encoder does not call AttentionInterface, but chooses a class by the implementation's name.

def _register_sam(name: str) -> None:
    try:
        sam = importlib.import_module("transformers.models.sam.modeling_sam")
        stock = sam.SamVisionAttention
        classes = sam.SAM_VISION_ATTENTION_CLASSES
    except (ImportError, AttributeError):  # a version that has no such classes
        return
    if name in classes:
        return

    class SamVisionSmeltAttention(stock):  # type: ignore[misc, valid-type]
        """SAM's attention with relative positions, which are a mask of floats to the kernel."""

        def forward(self, hidden_states: torch.Tensor, output_attentions: Any = None) -> tuple[torch.Tensor, None]:
            batches, height, width, _ = hidden_states.shape
            heads, rows = self.num_attention_heads, height * width
            qkv = self.qkv(hidden_states).reshape(batches, rows, 3, heads, -1).permute(2, 0, 3, 1, 4)
            query, key, value = qkv.unbind(0)
            dropout = self.dropout if self.training else 0.0
            self.is_causal = False
            if not self.use_rel_pos or dropout:
                out, _ = attention_forward(self, query, key, value, None, dropout, self.scale)
                return self.proj(out.reshape(batches, height, width, -1)), None
            # One product with all relative positions, which reads the queries where they lie.
            table = torch.cat((_relative(self, height, self.rel_pos_h), _relative(self, width, self.rel_pos_w)))
            table = torch.nn.functional.pad(table, (0, 0, 0, -len(table) % 8))  # products of whole vectors are faster
            products = torch.bmm(query.transpose(0, 1).reshape(heads, batches * rows, -1), table.t().expand(heads, -1, -1))
            products = products.view(heads, batches, height, width, -1).transpose(0, 1)
            lines, columns = _of_keys(products, 2, 0), _of_keys(products, 3, 2 * height - 1)
            out = attention_over_lines(query, key, value, lines.reshape(batches, heads, rows, -1),
                                       columns.reshape(batches, heads, rows, -1), scale=self.scale).transpose(1, 2)
            return self.proj(out.reshape(batches, height, width, -1)), None

    classes[name] = SamVisionSmeltAttention
    _follow_changes(sam, classes)


def _relative(attention: Any, size: int, positions: torch.Tensor) -> torch.Tensor:
    """(2 size - 1, C): the embeddings of a query's line, or column, relative to a key's, from 1 - size on."""
    if positions.shape[0] == 2 * size - 1:
        return positions
    pairs = attention.get_rel_pos(size, size, positions)
    return torch.cat((pairs[0].flip(0), pairs[1:, 0]))


def _of_keys(products: torch.Tensor, axis: int, first: int) -> torch.Tensor:
    """(B, heads, H, W, size of the axis): of each query's products with all embeddings, from `first` on, those with the
    lines, or columns, of the keys. axis: that of the query's line or column."""
    size = products.shape[axis]
    keys = torch.arange(size, device=products.device)
    at = keys[:, None] - keys + (first + size - 1)
    shape = [1, 1, 1, 1, size]
    shape[axis] = size
    return products.gather(4, at.view(shape).expand(*products.shape[:4], size))


def _follow_changes(sam: Any, classes: dict) -> None:
    """Makes set_attn_implementation change the class of the image encoder's attention, too."""
    model = sam.SamPreTrainedModel
    if "set_attn_implementation" in vars(model):
        return

    def set_attn_implementation(self: Any, attn_implementation: Any, *args: Any, **named: Any) -> None:
        super(model, self).set_attn_implementation(attn_implementation, *args, **named)
        for encoder in self.modules():
            if not isinstance(encoder, sam.SamVisionEncoder):
                continue
            chosen = classes.get(encoder.config._attn_implementation)
            for module in encoder.modules():
                if chosen is not None and isinstance(module, sam.SamVisionAttention):
                    module.__class__ = chosen

    model.set_attn_implementation = set_attn_implementation
