"""The registry of node types as an object: `tree_util.default_registry`.

There is one, that of `tree_registry`; this gives it JAX's methods. For `numjet.tree_util`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numjet.base import tree
from numjet.base.class_names import shown_as

# What a path is made of: anything whose str() is a step.
KeyEntry = TypeVar("KeyEntry", bound=Any)


@shown_as("PyTreeRegistry")
class Registry:
    """The types that are nodes of pytrees, and how they come apart."""

    def flatten(self, value: Any, is_leaf: Callable | None = None) -> tuple[list, Any]:
        """Leaves and structure, as `tree_flatten`."""
        return tree.tree_flatten(value, is_leaf)

    def flatten_with_path(self, value: Any, is_leaf: Callable | None = None) -> tuple[list, Any]:
        """(path, leaf) pairs and structure, as `tree_flatten_with_path`."""
        return tree.tree_flatten_with_path(value, is_leaf)

    def flatten_one_level(self, value: Any) -> tuple[Any, Any] | None:
        """Children and static data of a node; None for a leaf."""
        return tree.flatten_one_level(value) if tree.is_tree_node(type(value)) else None

    def flatten_one_level_with_keys(self, value: Any) -> tuple[Any, Any] | None:
        """(key, child) pairs and static data of a node; None for a leaf."""
        return tree.flatten_one_level_with_keys(value) if tree.is_tree_node(type(value)) else None

    def is_node(self, typ: type) -> bool:
        """Whether objects of exactly this type are nodes."""
        return tree.is_tree_node(typ)

    def register_node(self, typ: type, flatten: Callable, unflatten: Callable,
                      flatten_with_keys: Callable | None = None) -> None:  # fmt: skip
        """`register_pytree_node`."""
        tree.register_pytree_node(typ, flatten, unflatten, flatten_with_keys)

    def register_dataclass_node(self, typ: type, data_fields: Any, meta_fields: Any) -> None:
        """`register_dataclass`."""
        tree.register_dataclass(typ, data_fields, meta_fields)


default_registry = Registry()
