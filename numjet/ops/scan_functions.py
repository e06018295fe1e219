"""Loops made of other primitives: `map`, `associative_scan`, `platform_dependent`.

Used by `lax` and above.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.base import config, tree
from numjet.base.tracebacks import boundary
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.dims import is_symbolic
from numjet.core.hooks import Remote
from numjet.core.remote import platform_of
from numjet.core.structural import convert, scalar
from numjet.core.trace import current_trace
from numjet.ops.arithmetic import add
from numjet.ops.bodies import flattened, name_of
from numjet.ops.scan import scan
from numjet.ops.shape import canonical_axis, concatenate, pad_p, reshape, rev
from numjet.ops.slicing import slice_in_dim, slice_p
from numjet.transforms.batch import Axis, all_to_front, batch_call


# ------------------------------------------------------------------ map
@boundary
def map(f: Callable, xs: Any, *, batch_size: int | None = None) -> Any:  # noqa: A001 - lax's name
    """f of each row of `xs`, one after the other, the results stacked.

    f: a function of one pytree. xs: a pytree of arrays of one leading size. batch_size: take that
    many rows at once, vectorized; 0 and None: one. Differentiable in both modes. Raises ValueError
    where sizes differ, IndexError for a row without axes, TypeError for a negative batch_size.
    Python's `map` gives an iterator; `vmap` takes all rows at once.

    >>> from numjet import lax, numpy as jnp
    >>> lax.map(lambda x: x * x, jnp.arange(4))
    Array([0, 1, 4, 9], dtype=int32)
    """
    if not callable(f):
        raise TypeError(f"map: the first argument must be a function, got {f!r}.")
    if batch_size is None or batch_size == 0:
        return scan(lambda _, x: ((), f(x)), (), xs)[1]
    leaves, treedef = tree.tree_flatten(xs)
    rows = [as_array(x) for x in leaves]
    if not rows or any(x.aval.shape[:1] != rows[0].aval.shape[:1] for x in rows):
        raise ValueError(
            f"map of {name_of(f)}: xs must be arrays of one leading size, got "
            f"{', '.join(x.aval.str_short() for x in rows) or 'none'}."
        )
    if batch_size < 1:
        raise TypeError(f"map: batch_size must be at least 1, got {batch_size}.")
    n = rows[0].aval.shape[0]
    whole = n // batch_size * batch_size

    def batched(block: Any) -> Any:
        return _vectorized(f, block)

    def part(x: Any, start: int, stop: int) -> Any:
        return slice_in_dim(x, start, stop)

    def rest(rows: list) -> Any:
        return batched(tree.tree_unflatten(treedef, rows))

    if not whole:
        return rest([part(x, 0, n) for x in rows])
    blocks = [
        reshape(part(x, 0, whole), (whole // batch_size, batch_size, *x.aval.shape[1:]))
        for x in rows
    ]
    last = [part(x, whole, n) for x in rows] if whole < n else None
    out = map(batched, tree.tree_unflatten(treedef, blocks))
    behind = None if last is None else rest(last)
    out = tree.tree_map(lambda x: reshape(x, (whole, *x.aval.shape[2:])), out)
    if last is None:
        return out
    return tree.tree_map(lambda a, b: concatenate([a, b], 0), out, behind)


def _vectorized(f: Callable, block: Any) -> Any:
    """`f` over the leading axis of all leaves, by batching."""
    leaves, treedef = tree.tree_flatten((block,))
    size = leaves[0].aval.shape[0]
    flat, out_trees = flattened(f, treedef, "map")
    outs, dims = batch_call(flat, Axis(size), leaves, [0] * len(leaves))
    return tree.tree_unflatten(out_trees[0], all_to_front(outs, dims, size))


# ------------------------------------------------------------------ associative_scan
@boundary
def associative_scan(fn: Callable, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Running combinations with an associative `fn(a, b)`, in about log₂ n steps that are parallel.

    fn: takes and returns pytrees of arrays, and works elementwise along the axis. elems: a pytree
    of arrays of one size along `axis`. reverse: from the end. Result: elems' structure, shapes and
    dtypes; element i combines elements 0 to i. Differentiable where fn is. Raises ValueError where
    sizes differ, TypeError for what is no function, AttributeError for numbers and IndexError for
    nothing as elems. Source: Blelloch, Prefix sums and their
    applications (1990).

    >>> from numjet import lax, numpy as jnp
    >>> lax.associative_scan(lax.mul, jnp.arange(1, 6))
    Array([  1,   2,   6,  24, 120], dtype=int32)
    """
    leaves, treedef = tree.tree_flatten(elems)
    if not callable(fn):
        raise TypeError(f"lax.associative_scan: fn argument should be callable, got {fn!r}.")
    if not leaves:
        raise IndexError("associative_scan: elems must have at least one array.")
    for x in leaves:
        if not hasattr(x, "ndim"):
            raise AttributeError(f"associative_scan: elems must be arrays; {x!r} has no 'ndim'.")
    xs = [as_array(x) for x in leaves]
    places = [canonical_axis(axis, x.aval.ndim) for x in xs]
    sizes = [x.aval.shape[a] for x, a in zip(xs, places, strict=True)]
    if len(set(sizes)) != 1:
        raise ValueError(
            "Array inputs to associative_scan must have the same first dimension, the size along "
            f"axis {axis}. (saw: {[x.shape for x in xs]})"
        )
    place = places[0]
    if is_symbolic(sizes[0]):
        raise NotImplementedError(
            f"associative_scan: its steps depend on the size of axis {axis}, which is of dimension "
            f"variables: {sizes[0]}. lax.scan and the cumulative operations take such axes."
        )

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        out = fn(tree.tree_unflatten(treedef, a), tree.tree_unflatten(treedef, b))
        outs, out_tree = tree.tree_flatten(out)
        if out_tree != treedef:
            raise TypeError(
                f"associative_scan: fn must return the structure it takes, {treedef}, got "
                f"{out_tree}."
            )
        return [as_array(x) for x in outs]

    if reverse:
        xs = [rev(x, (place,)) for x in xs]
    if sizes[0] > 1:
        xs = [convert(x, x.aval.dtype) for x in xs]  # more than one element are joined: strong
    xs = _running(combine, xs, place)
    if reverse:
        xs = [rev(x, (place,)) for x in xs]
    return tree.tree_unflatten(treedef, xs)


def _running(combine: Callable, xs: list[Any], axis: int) -> list[Any]:
    n = xs[0].aval.shape[axis]
    if n < 2:
        return xs

    def take(values: list[Any], start: int, stop: int | None, step: int = 1) -> list[Any]:
        return [slice_in_dim(x, start, stop, step, axis) for x in values]

    numbers = all([dtypes.kind(x.aval.dtype) in "iufc" for x in xs])
    if numbers and config.jax_form() and not current_trace().at_once:
        return _running_in_jax(combine, xs, axis)
    # Pairs are combined and scanned, which gives the odd places; one more combination the even.
    pairs = combine(take(xs, 0, n - n % 2, 2), take(xs, 1, n, 2))
    odd = _running(combine, pairs, axis)
    first = take(xs, 0, 1)
    if n == 2:
        return [concatenate(pair, axis) for pair in zip(first, odd, strict=True)]
    before = odd if n % 2 else take(odd, 0, n // 2 - 1)
    later = combine(before, take(xs, 2, n, 2))
    even = [concatenate(pair, axis) for pair in zip(first, later, strict=True)]
    return [_interleaved(a, b, axis) for a, b in zip(even, odd, strict=True)]


def _running_in_jax(combine: Callable, xs: list[Any], axis: int) -> list[Any]:
    """The same in the operations that JAX makes it of, which `make_jaxpr` shows."""
    n = xs[0].aval.shape[axis]
    if n < 2:
        return xs

    def take(values: list[Any], start: int, stop: int, step: int = 1) -> list[Any]:
        return [_sliced(x, start, stop, step, axis) for x in values]

    odd = _running_in_jax(combine, combine(take(xs, 0, n - 1, 2), take(xs, 1, n, 2)), axis)
    before = odd if n % 2 else take(odd, 0, n // 2 - 1)
    even = combine(before, take(xs, 2, n, 2))
    even = [
        concatenate([_sliced(x, 0, 1, 1, axis), later], axis)
        for x, later in zip(xs, even, strict=True)
    ]
    return [_interleaved_in_jax(a, b, axis) for a, b in zip(even, odd, strict=True)]


def _sliced(x: Any, start: int, stop: int, step: int, axis: int) -> Any:
    shape = x.aval.shape
    begin, end, strides = [0] * len(shape), list(shape), [1] * len(shape)
    begin[axis], end[axis], strides[axis] = start, stop, step
    return slice_p.bind(
        x, start_indices=tuple(begin), limit_indices=tuple(end), strides=tuple(strides)
    )


def _interleaved_in_jax(a: Any, b: Any, axis: int) -> Any:
    zero = scalar(0, a.aval.dtype)
    more = a.aval.shape[axis] - b.aval.shape[axis]
    wide = []
    for x, ends in ((a, (0, 1 - more, 1)), (b, (1, more, 1))):
        config_ = [(0, 0, 0)] * x.aval.ndim
        config_[axis] = ends
        wide.append(pad_p.bind(x, zero, padding_config=tuple(config_)))
    return add(*wide)


def _interleaved(a: Any, b: Any, axis: int) -> Any:
    """a[0], b[0], a[1], b[1], …; `a` may have one more."""
    shape, m = a.aval.shape, b.aval.shape[axis]
    wide = (*shape[:axis], m, 1, *shape[axis + 1 :])
    head = slice_in_dim(a, 0, m, 1, axis)
    both = concatenate([reshape(head, wide), reshape(b, wide)], axis + 1)
    out = reshape(both, (*shape[:axis], 2 * m, *shape[axis + 1 :]))
    if shape[axis] == m:
        return out
    return concatenate([out, slice_in_dim(a, m, m + 1, 1, axis)], axis)


# ------------------------------------------------------------------ platforms
def platform_dependent(
    *args: Any, default: Callable | None = None, **per_platform: Callable
) -> Any:
    """The function for the platform that runs this, applied to args.

    args: pytrees of arrays. per_platform: functions by platform: cpu, cuda, tpu, xla_cpu (where
    there is none for it, that of cpu); default: for the others. A jitted function is traced anew
    for each platform that it runs on. Raises NotImplementedError where there is none for this
    platform, TypeError for what is no function.

    >>> from numjet import lax
    >>> print(lax.platform_dependent(1, cpu=lambda x: x + 1, default=lambda x: x))
    2
    """
    for name, function in (*per_platform.items(), ("default", default)):
        if not callable(function) and (name != "default" or function is not None):
            raise TypeError(
                f"lax.platform_dependent: the {name!r} branch must be a callable, got {function!r}."
            )
    Remote.asked += 1
    platform = platform_of(tree.tree_leaves(args), "platform_dependent")
    chosen = per_platform.get(platform)
    if chosen is None and platform == "xla_cpu":
        chosen = per_platform.get("cpu")
    chosen = default if chosen is None else chosen
    if chosen is None:
        raise NotImplementedError(
            f"platform_dependent: no function for the platform {platform!r} and no default, only "
            f"{', '.join(per_platform) or 'none'}."
        )
    return chosen(*args)
