"""Structures of pytrees in JSON files, and futures of pytrees: for `pytree_serialization`."""

from __future__ import annotations

import base64
from collections.abc import Generator
from concurrent.futures import Future
from typing import Any

from numjet.base.treedef import PyTreeDef
from numjet.experimental.array_serialization import tree_bytes
from numjet.export import register_pytree_node_serialization as register_pytree_node_serialization

_TREE_REPR_KEY, _LEAF_IDS_KEY = "__jax_pytreedef_repr", "__jax_leaf_ids"


class PyTreeFuture:
    """What writing or reading a pytree will have given; `pytree`: a tree of ShapeDtypeStructs.

    It can be awaited, and has the methods of a `concurrent.futures.Future`.

    future: the work under way.

    >>> import concurrent.futures
    >>> from numjet.experimental.array_serialization import pytree_serialization_utils as utils
    >>> with concurrent.futures.ThreadPoolExecutor() as pool:
    ...     utils.PyTreeFuture(pool.submit(int, "3")).result()
    3
    """

    def __init__(self, future: Future) -> None:
        self._future = future
        self.pytree: Any = None

    def done(self) -> bool:
        """Whether it has ended."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> Any:
        """What it gave, when it has ended; raises what it raised."""
        return self._future.result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What it raised, when it has ended; None where it raised nothing."""
        return self._future.exception(timeout)

    def __await__(self) -> Generator[Any, None, Any]:
        while not self._future.done():
            yield None
        return self._future.result()


def serialize_pytreedef(node: PyTreeDef) -> dict[str, Any]:
    """A structure as a value of JSON.

    node: a structure. Its leaves are numbered in their order. Raises ValueError for nodes of
    classes that are not registered with `export.register_pytree_node_serialization`.

    >>> import numjet as nj
    >>> from numjet.experimental.array_serialization import pytree_serialization_utils as utils
    >>> told = utils.serialize_pytreedef(nj.tree.structure({"a": 1}))
    >>> utils.deserialize_pytreedef(told)
    PyTreeDef({'a': *})
    """
    text = base64.b64encode(tree_bytes.written(node)).decode()
    return {_TREE_REPR_KEY: text, _LEAF_IDS_KEY: list(range(node.num_leaves))}


def deserialize_pytreedef(pytreedef_repr: dict[str, Any]) -> PyTreeDef:
    """The structure that `serialize_pytreedef` wrote down.

    pytreedef_repr: a value of JSON.

    >>> from numjet.experimental.array_serialization import pytree_serialization_utils as utils
    >>> utils.deserialize_pytreedef({"__jax_pytreedef_repr": "CAAAAAQABAAEAAAA"})
    PyTreeDef(*)
    """
    return tree_bytes.read(base64.b64decode(pytreedef_repr[_TREE_REPR_KEY]))
