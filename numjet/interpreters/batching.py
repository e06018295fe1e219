"""Batching rules of primitives, and what rules need.

`primitive_batchers[p]` is `rule(operands, dims, **params) -> (out, out_dim)`, where dims holds the
position of the mapped axis of each operand, or None. `fancy_primitive_batchers[p]` is
`rule(axis_data, operands, dims, **params)` and `axis_primitive_batchers[p]` is `rule(axis_size,
axis_name, None, operands, dims, **params)`; these two run under every vmap. Rules may be registered
for primitives of numjet too. What would break it: see `extend.primitive`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numjet.api.compiled.jit import clear_caches
from numjet.api.maps.vmappable import TABLE as vmappables
from numjet.core.array import as_array
from numjet.core.primitive import Primitive
from numjet.core.structural import broadcast_in_dim, moveaxis as _moveaxis
from numjet.extend.primitive import AxisData, Rules
from numjet.ops.shape import reshape
from numjet.transforms.batch import (
    Axis,
    BatchTrace as BatchTrace,
    BatchTracer as BatchTracer,
    to_front,
)

not_mapped = None


def _is_users(primitive: Primitive) -> bool:
    return primitive.expansion is not None


def _rule(primitive: Any) -> Callable | None:
    return primitive.batch_rule if _is_users(primitive) else _Ours(primitive)


def _set_rule(primitive: Any, rule: Callable | None) -> None:
    if _is_users(primitive):
        primitive.batch_rule = rule
        return
    if rule is None:
        raise TypeError(f"The batching rule of {primitive.name} is numjet's own: it stays.")
    if isinstance(rule, _Ours):
        primitive.batch = rule.primitive.batch
    else:
        primitive.batch = lambda axis, args, dims, **params: rule(args, dims, **params)
    clear_caches()


class _Ours:
    """The rule of one of our primitives, without the axis."""

    __slots__ = ("primitive", "batch")

    def __init__(self, primitive: Primitive) -> None:
        self.primitive, self.batch = primitive, primitive.batch

    def __call__(self, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> tuple:
        sizes = [x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None]
        if not sizes:
            raise ValueError(f"batching {self.primitive.name}: no operand is mapped.")
        return self.batch(Axis(sizes[0]), tuple(args), tuple(dims), **params)


def _fancy(primitive: Any) -> Callable | None:
    return primitive.fancy_batch_rule if _is_users(primitive) else None


def _with_axis(primitive: Any) -> Callable | None:
    return primitive.axis_batch_rule if _is_users(primitive) else None


def _set_fancy(primitive: Any, rule: Callable | None) -> None:
    if not _is_users(primitive):
        primitive.batch = lambda axis, args, dims, **params: rule(  # type: ignore[misc]
            AxisData(axis.name, axis.size, axis.spmd), args, dims, **params
        )
        clear_caches()
        return
    primitive.fancy_batch_rule = rule
    primitive.every_map = bool(rule or primitive.axis_batch_rule)


def _set_with_axis(primitive: Any, rule: Callable | None) -> None:
    if not _is_users(primitive):
        primitive.batch = lambda axis, args, dims, **params: rule(  # type: ignore[misc]
            axis.size, axis.name, None, args, dims, **params
        )
        clear_caches()
        return
    primitive.axis_batch_rule = rule
    primitive.every_map = bool(rule or primitive.fancy_batch_rule)


primitive_batchers = Rules("batching.primitive_batchers", _rule, _set_rule)
fancy_primitive_batchers = Rules("batching.fancy_primitive_batchers", _fancy, _set_fancy)
axis_primitive_batchers = Rules("batching.axis_primitive_batchers", _with_axis, _set_with_axis)


# ------------------------------------------------------------------ making rules
def defvectorized(prim: Primitive) -> None:
    """Give a primitive that works element by element on operands of one shape its batching rule.

    prim: the primitive.

    >>> from numjet.extend.core import Primitive
    >>> from numjet.interpreters import batching
    >>> next_p = Primitive("next")
    >>> _ = next_p.def_impl(lambda x: x + 1)
    >>> batching.defvectorized(next_p)
    >>> nj.vmap(next_p.bind)(jnp.arange(3))
    Array([1, 2, 3], dtype=int32)
    """

    def rule(args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> tuple:
        mapped = {d for d in dims}
        if len(mapped) == 1:
            return prim.bind(*args, **params), dims[0]
        size = _size(args, dims)
        values = [to_front(as_array(x), d, size) for x, d in zip(args, dims, strict=True)]
        return prim.bind(*values, **params), 0

    primitive_batchers[prim] = rule


def defbroadcasting(prim: Primitive) -> None:
    """Give a primitive that works element by element on operands of one rank, axes of size 1 being
    repeated, its batching rule.

    prim: the primitive.

    >>> from numjet.extend.core import Primitive
    >>> from numjet.interpreters import batching
    >>> plus_p = Primitive("plus")
    >>> _ = plus_p.def_impl(lambda x, y: x + y)
    >>> batching.defbroadcasting(plus_p)
    >>> nj.vmap(plus_p.bind, in_axes=(0, None))(jnp.arange(3), 10)
    Array([10, 11, 12], dtype=int32)
    """

    def rule(args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> tuple:
        values = [as_array(x) for x in args]
        if len({(x.shape, d) for x, d in zip(values, dims, strict=True)}) == 1:
            return prim.bind(*args, **params), dims[0]
        rank = max([x.ndim - (d is not None) for x, d in zip(values, dims, strict=True)])
        values = [_aligned(x, d, rank) for x, d in zip(values, dims, strict=True)]
        return prim.bind(*values, **params), 0

    primitive_batchers[prim] = rule


def _aligned(x: Any, dim: int | None, rank: int) -> Any:
    """`x` with the mapped axis first (size 1 where there is none) and an example of `rank`."""
    if dim is not None:
        x = _moveaxis(x, dim, 0)
    shape = x.shape if dim is not None else (1, *x.shape)
    wanted = (shape[0], *shape[1:], *[1] * (rank + 1 - len(shape)))
    return x if wanted == x.shape else reshape(x, wanted)


def defreducer(prim: Primitive) -> None:
    """Give a primitive that reduces its one operand its batching rule.

    prim: the primitive; its param `axes` is a tuple of axes.

    >>> from numjet.extend.core import Primitive
    >>> from numjet.interpreters import batching
    >>> total_p = Primitive("total")
    >>> _ = total_p.def_impl(lambda x, axes: x.sum(axes))
    >>> batching.defreducer(total_p)
    >>> nj.vmap(lambda x: total_p.bind(x, axes=(0,)))(jnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)
    """

    def rule(
        args: Sequence[Any], dims: Sequence[int], *, axes: Sequence[int], **params: Any
    ) -> tuple:
        (x,), (dim,) = args, dims
        moved = tuple([a + (a >= dim) for a in axes])
        out = prim.bind(x, axes=moved, **params)
        return out, dim - sum([a < dim for a in moved])

    primitive_batchers[prim] = rule


def _size(args: Sequence[Any], dims: Sequence[int | None]) -> int:
    return next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)


# ------------------------------------------------------------------ what rules need
def moveaxis(x: Any, src: int, dst: int) -> Any:
    """`x` with axis `src` at `dst`.

    >>> from numjet.interpreters import batching
    >>> batching.moveaxis(jnp.ones((2, 3, 4)), 0, 2).shape
    (3, 4, 2)
    """
    return _moveaxis(x, src, dst)


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """`x` with its mapped axis first.

    bdim: where it is, or None: x is repeated `size` times. mesh_axis: JAX's name for a mesh's axis,
    not used.

    >>> from numjet.interpreters import batching
    >>> batching.bdim_at_front(jnp.ones((2, 3)), 1, 3).shape
    (3, 2)
    """
    return to_front(as_array(x), bdim, size)


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any = None) -> Any:
    """`x` repeated `sz` times along a new axis at `axis`.

    mesh_axis: JAX's name for a mesh's axis, not used.

    >>> from numjet.interpreters import batching
    >>> batching.broadcast(jnp.ones(2), 3, 0).shape
    (3, 2)
    """
    x = as_array(x)
    shape = (*x.shape[:axis], sz, *x.shape[axis:])
    return broadcast_in_dim(x, shape, tuple([i + (i >= axis) for i in range(x.ndim)]))


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable,
    from_elt: Callable,
    make_iota: Callable | None,
) -> None:
    """Have `vmap` map values of `data_type` as a whole, by rules, whether they are pytrees or not.

    spec_type: the type of what in_axes and out_axes say of such values: int, or one of its own.
    axis_size_type: the type of the axis' size, int. to_elt(cont, _, value, axis): what the mapped
    function gets for a value; `cont(array, axis)` is an array of it in the map, without the axis.
    from_elt(cont, axis_size, value, axis): what the caller gets for a value that the function
    returns; `cont(axis_size, array, axis)` is an array of it with the axis. Arrays that a rule does
    not hand to `cont` are not mapped. make_iota: kept. The rules may not depend on what arrays
    hold.

    >>> from numjet import vmap
    >>> from numjet.interpreters import batching
    >>> class Rows:
    ...     def __init__(self, data): self.data = data
    >>> batching.register_vmappable(
    ...     Rows, int, int, lambda cont, _, x, axis: Rows(cont(x.data, axis)),
    ...     lambda cont, size, x, axis: Rows(cont(size, x.data, axis)), None)
    >>> print(vmap(lambda x: Rows(x.data * 2))(Rows(jnp.arange(3))).data)
    [0 2 4]
    >>> batching.unregister_vmappable(Rows)
    """
    vmappables[data_type] = (spec_type, axis_size_type, to_elt, from_elt, make_iota)


def unregister_vmappable(data_type: type) -> None:
    """Forget what `register_vmappable` noted. Raises KeyError for what is not registered.

    data_type: the type.

    >>> from numjet.interpreters import batching
    >>> class Rows: pass
    >>> batching.register_vmappable(Rows, int, int, None, None, None)
    >>> batching.unregister_vmappable(Rows)
    >>> Rows in batching.vmappables
    False
    """
    del vmappables[data_type]
