"""Nodes of pytrees: a named tuple, a class with static data, a dataclass with a static field."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import numjet.tree_util as tu

Point = collections.namedtuple("Point", ["x", "y"])


@tu.register_pytree_node_class
class Box:
    """A node class with one child and static data."""

    def __init__(self, value, label):
        self.value, self.label = value, label

    def tree_flatten(self):
        return (self.value,), self.label

    @classmethod
    def tree_unflatten(cls, label, children):
        return cls(*children, label)

    def __eq__(self, other):
        return type(other) is Box and (self.value, self.label) == (other.value, other.label)

    def __repr__(self):
        return f"Box({self.value!r}, {self.label!r})"


@tu.register_dataclass
@dataclasses.dataclass
class Layer:
    weight: Any
    bias: Any
    name: Any = dataclasses.field(default="layer", metadata={"static": True})
