"""Operations on arrays, by family; smelt has them all under their own names. docs/operations.md has what they compute.

A family's `__all__` lists its functions: nothing else names them."""
from smelt.operations import creation, elementwise, indexing, products, reductions, shapes
from smelt.operations.creation import *
from smelt.operations.elementwise import *
from smelt.operations.indexing import *
from smelt.operations.indexing import getitem as getitem, setitem as setitem  # for the extension module
from smelt.operations.products import *
from smelt.operations.reductions import *
from smelt.operations.shapes import *

__all__: list[str] = []
__all__ += creation.__all__
__all__ += elementwise.__all__
__all__ += indexing.__all__
__all__ += products.__all__
__all__ += reductions.__all__
__all__ += shapes.__all__
