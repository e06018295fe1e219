"""Public namespace `numjet.tree`: pytrees by their short names (see also `numjet.tree_util`).

A list of names, nothing else; the functions live in `numjet.base.tree`.
"""
from .base.tree import static_field as static
from .base.tree import tree_all as all
from .base.tree import tree_broadcast as broadcast
from .base.tree import tree_flatten as flatten
from .base.tree import tree_flatten_with_path as flatten_with_path
from .base.tree import tree_leaves as leaves
from .base.tree import tree_leaves_with_path as leaves_with_path
from .base.tree import tree_map as map
from .base.tree import tree_map_with_path as map_with_path
from .base.tree import tree_reduce as reduce
from .base.tree import tree_reduce_associative as reduce_associative
from .base.tree import tree_structure as structure
from .base.tree import tree_transpose as transpose
from .base.tree import tree_unflatten as unflatten

__all__ = [
    "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map",
    "map_with_path", "reduce", "reduce_associative", "static", "structure", "transpose",
    "unflatten",
]
