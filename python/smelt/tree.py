"""Arrays in lists, tuples and dictionaries."""
from collections.abc import Callable
from typing import Any

__all__ = ["leaves", "tree_map", "unflatten"]


def leaves(tree: Any) -> list:
    """What a tree holds, in its order; None is nothing."""
    if isinstance(tree, (list, tuple)):
        return [leaf for item in tree for leaf in leaves(item)]
    if isinstance(tree, dict):
        return [leaf for item in tree.values() for leaf in leaves(item)]
    return [] if tree is None else [tree]


def tree_map(function: Callable, tree: Any) -> Any:
    """The tree with function(leaf) for each leaf."""
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(tree_map(function, item) for item in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(tree_map(function, item) for item in tree)
    if isinstance(tree, dict):
        return {key: tree_map(function, item) for key, item in tree.items()}
    return None if tree is None else function(tree)


def unflatten(tree: Any, values: list) -> Any:
    """The tree with these leaves instead of its own."""
    left = iter(values)
    return tree_map(lambda leaf: next(left), tree)
