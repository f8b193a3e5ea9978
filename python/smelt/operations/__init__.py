"""Operations on arrays, by family; smelt has them all under their own names. docs/operations.md has what they compute."""
from smelt.operations.creation import *
from smelt.operations.elementwise import *
from smelt.operations.indexing import *
from smelt.operations.products import *
from smelt.operations.reductions import *
from smelt.operations.shapes import *
from smelt.operations import creation, elementwise, indexing, products, reductions, shapes

__all__ = [
    name for module in (creation, elementwise, indexing, products, reductions, shapes) for name in module.__all__
    if name not in ("getitem", "setitem")
]
