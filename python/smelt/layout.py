"""Pictures of the layouts of <smelt/layout>."""
from smelt._smelt import layout_picture

__all__ = ["print_layout"]


def print_layout(layout: str) -> None:
    """Prints the offset of each element of a layout, given in the words of the header: "row_major<2, 6>()"."""
    print(layout_picture(layout), end="")
