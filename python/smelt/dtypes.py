"""Kinds of element types: issubdtype(float16, floating), as NumPy and MLX have them."""
import enum

from smelt._smelt import Dtype

__all__ = [
    "DtypeCategory", "complexfloating", "floating", "generic", "inexact", "integer", "issubdtype", "number",
    "signedinteger", "unsignedinteger",
]

DtypeCategory = enum.Enum("DtypeCategory", [
    "generic", "number", "integer", "signedinteger", "unsignedinteger", "inexact", "floating", "complexfloating",
], module=__name__)

generic, number, integer, signedinteger, unsignedinteger, inexact, floating, complexfloating = DtypeCategory

# What each is part of.
_WIDER = {
    number: generic, integer: number, signedinteger: integer, unsignedinteger: integer, inexact: number, floating: inexact,
    complexfloating: inexact,
}


def _category(dtype: Dtype) -> DtypeCategory:
    """The narrowest category of a dtype."""
    for prefix, category in (("bool", generic), ("uint", unsignedinteger), ("int", signedinteger),
                             ("complex", complexfloating)):
        if dtype.name.startswith(prefix):
            return category
    return floating


def issubdtype(dtype: object, category: object) -> bool:
    """Is a dtype (whatever names one), or a category, part of a category, or the same dtype?

    issubdtype(smelt.float32, smelt.floating) is True. TypeError for what names no dtype.
    """
    if not isinstance(category, DtypeCategory):
        return not isinstance(dtype, DtypeCategory) and Dtype(dtype) == Dtype(category)
    at = dtype if isinstance(dtype, DtypeCategory) else _category(Dtype(dtype))
    while at is not category and at in _WIDER:
        at = _WIDER[at]
    return at is category
