"""`pallas_call`: a kernel for each point of a grid, on references to blocks.

A loop over the grid: blocks of the operands are cut out and become references, the kernel runs, and
what it left in the results' blocks is put in their place. So every transformation and the compiler
see loops, slices and the kernel's own operations. What would break it: a kernel that relies on
several points of the grid running at once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import ml_dtypes
import numpy as np

from numjet import lax
from numjet.api.compiled.abstract import make_jaxpr
from numjet.api.compiled.jit import jit
from numjet.api.flat import check_callable, name_of
from numjet.base import tree
from numjet.base.record import NamedTuple
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.refs import new_ref
from numjet.core.structural import full
from numjet.experimental.pallas.blocks import (
    Blocked,
    BlockSpec,
    BoundedSlice,
    Element,
    GridSpec,
    Indirect,
    Squeezed,
    no_block_spec,
)

# The indices of the point of the grid that a kernel runs for, and the grid.
_point: ContextVar[tuple[tuple, tuple] | None] = ContextVar("numjet.pallas_point", default=None)


def undefined(shape: Sequence[int], dtype: Any) -> Any:
    """An array whose content nobody may rely on: NaN, the least integer, False."""
    dtype = dtypes.canonical(dtype)
    if dtypes.is_inexact(dtype):
        fill: Any = math.nan
    else:
        fill = False if dtype == np.bool_ else ml_dtypes.iinfo(dtype).min
    return full(tuple(shape), np.asarray(fill, dtype), dtype)


class _Dimension(NamedTuple):
    """One dimension of a block: its elements, whether the kernel sees it, what an index counts
    (`step` elements), and undefined elements before and behind the array."""

    size: int
    seen: bool
    step: int
    before: int
    behind: int


class _Block:
    """Cuts blocks out of an array and puts them back."""

    def __init__(self, spec: Any, shape: tuple, name: str) -> None:
        self.name, self.shape = name, shape
        given = None if spec in (None, no_block_spec) else spec.block_shape
        self.index_map = None if given is None else spec.index_map
        parts = shape if given is None else given
        if len(parts) != len(shape):
            raise ValueError(
                f"Block shape for {name} (= {parts}) must have the same number of dimensions as "
                f"the array shape {shape}."
            )
        self.parts = [self._dimension(p, n) for p, n in zip(parts, shape, strict=True)]
        self.padded = any([p.before or p.behind for p in self.parts])
        self.sizes = [p.size for p in self.parts]
        self.seen = tuple([p.size for p in self.parts if p.seen])

    def _dimension(self, part: Any, n: int) -> _Dimension:
        if part is None or isinstance(part, Squeezed):
            return _Dimension(1, False, 1, 0, 0)
        if isinstance(part, Element):
            return _Dimension(part.block_size, True, 1, *part.padding)
        if isinstance(part, BoundedSlice | Indirect):
            raise NotImplementedError(
                f"BlockSpec of {self.name}: {type(part).__name__} is not there. Read the part in "
                "the kernel, from a reference to the whole array."
            )
        size = part.block_size if isinstance(part, Blocked) else int(part)
        return _Dimension(size, True, size, 0, -n % size)

    def pad(self, x: Any) -> Any:
        """The array with undefined elements around it, so that every block lies inside."""
        if not self.padded:
            return x
        edges = [(p.before, p.behind, 0) for p in self.parts]
        return lax.pad(x, undefined((), x.dtype), edges)

    def unpad(self, x: Any) -> Any:
        """The array again."""
        if not self.padded:
            return x
        starts = [p.before for p in self.parts]
        return lax.slice(x, starts, [a + n for a, n in zip(starts, self.shape, strict=True)])

    def starts(self, point: tuple, scalars: Sequence[Any]) -> list:
        """Where the block of a point of the grid begins."""
        if self.index_map is None:
            return [np.int32(0)] * len(self.parts)
        found = self.index_map(*point, *scalars)
        found = tuple(found) if isinstance(found, tuple | list) else (found,)
        if len(found) != len(self.parts):
            raise ValueError(
                f"Index map function {name_of(self.index_map)} for {self.name} must return "
                f"{len(self.parts)} values to match block_shape={tuple(self.sizes)}. Currently "
                f"returning {len(found)} values."
            )
        return [as_array(i).astype(np.int32) * np.int32(p.step)
                for i, p in zip(found, self.parts, strict=True)]

    def cut(self, x: Any, starts: list) -> Any:
        """The block that begins there, as the kernel sees it."""
        return lax.dynamic_slice(x, starts, self.sizes).reshape(self.seen)

    def put(self, x: Any, block: Any, starts: list) -> Any:
        """The array with this block there."""
        return lax.dynamic_update_slice(x, block.reshape(self.sizes), starts)


def program_id(axis: int) -> Any:
    """The index, along an axis of the grid, of the point that the kernel runs for.

    axis: an integer, which axis of the grid. Result: an int32 scalar. Raises ValueError outside of
    a kernel.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet.experimental import pallas as pl
    >>> def kernel(out):
    ...     out[pl.program_id(0)] = pl.program_id(0) ** 2
    >>> print(pl.pallas_call(kernel, nj.ShapeDtypeStruct((4,), jnp.int32), grid=(4,))())
    [0 1 4 9]
    """
    return _axis_of(0, axis, "program_id")


def num_programs(axis: int) -> Any:
    """How many points the grid has along an axis.

    axis: an integer, which axis of the grid. Raises ValueError outside of a kernel.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet.experimental import pallas as pl
    >>> def kernel(out):
    ...     out[pl.program_id(0)] = jnp.int32(pl.num_programs(0))
    >>> print(pl.pallas_call(kernel, nj.ShapeDtypeStruct((2,), jnp.int32), grid=(2,))())
    [2 2]
    """
    return _axis_of(1, axis, "num_programs")


def _axis_of(which: int, axis: int, name: str) -> Any:
    point = _point.get()
    if point is None:
        raise ValueError(f"{name} was called outside of a kernel. Call it in one that pallas_call "
                         "runs.")
    if not -len(point[1]) <= axis < len(point[1]):
        raise ValueError(f"{name}: the grid {point[1]} has no axis {axis}.")
    return point[which][axis]


def _specs(specs: Any, given: Sequence[Any], what: str) -> list:
    """A BlockSpec (or None) for each leaf of each of the trees `given`."""
    leaf = lambda x: x is None or x is no_block_spec or isinstance(x, BlockSpec)  # noqa: E731
    if leaf(specs) and len(given) != 1:
        specs = [specs] * len(given)
    each = [specs] if leaf(specs) else list(specs)
    if len(each) != len(given):
        raise ValueError(
            f"Pytree for `{what}` and its operands do not match: {len(each)} of the first, "
            f"{len(given)} operands. Give a BlockSpec for each."
        )
    out: list = []
    for spec, value in zip(each, given, strict=True):
        count = len(tree.tree_leaves(value))
        found = [spec] * count if leaf(spec) else tree.tree_leaves(spec, is_leaf=leaf)
        if len(found) != count:
            raise ValueError(
                f"Pytree for `{what}` and its operands do not match: {len(found)} BlockSpecs for "
                f"{count} arrays. Give one for each."
            )
        out += found
    return out


def _as_argument(shape: Any) -> Any:
    """Lists of results become tuples, as their references are arguments of the kernel."""
    return tuple(shape) if isinstance(shape, list) else shape


def pallas_call(
    kernel: Callable,
    out_shape: Any,
    *,
    grid_spec: GridSpec | None = None,
    grid: Any = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: Mapping[int, int] = {},  # noqa: B006
    debug: bool = False,
    interpret: Any = False,
    name: str | None = None,
    compiler_params: Any = None,
    cost_estimate: Any = None,
    metadata: dict[str, str] | None = None,
) -> Callable:
    """A function of arrays that runs `kernel` for each point of a grid.

    kernel: a function of references to blocks: of the arguments, of the results, and scratch; it
    reads and writes them and returns None (ValueError otherwise). out_shape: a tree of what has
    shape and dtype; the result is a tree of such arrays (tuples for lists), undefined where the
    kernel writes nothing. grid: integers, of which the last axis runs fastest; one point unless
    given. in_specs, out_specs: BlockSpec for each array, whole arrays unless given. scratch_shapes:
    buffers that keep their content from point to point. grid_spec: the four in one.
    input_output_aliases: by numbers of arrays, results that begin with an argument's content.
    debug: print the jaxpr. interpret, name, compiler_params, cost_estimate, metadata: for other
    devices. It has the derivatives of what it computes.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet.experimental import pallas as pl
    >>> def add(x, y, out):
    ...     out[...] = x[...] + y[...]
    >>> block = pl.BlockSpec((2,), lambda i: (i,))
    >>> call = pl.pallas_call(add, nj.ShapeDtypeStruct((6,), jnp.float32), grid=(3,),
    ...                       in_specs=[block, block], out_specs=block)
    >>> print(call(jnp.arange(6.0), jnp.ones(6)))
    [1. 2. 3. 4. 5. 6.]
    """
    check_callable("pallas_call", kernel)
    layout = grid_spec or GridSpec(grid, in_specs, out_specs, scratch_shapes)
    out_shape = _as_argument(out_shape)
    aliases = dict(input_output_aliases)
    run = functools.partial(_run, kernel, out_shape, layout, aliases)
    functools.update_wrapper(run, kernel)
    compiled = jit(run)

    @functools.wraps(kernel)
    def call(*args: Any) -> Any:
        if debug:
            print(make_jaxpr(run)(*args))
        return compiled(*args)

    return call


def _run(
    kernel: Callable, out_shape: Any, layout: GridSpec, aliases: Mapping[int, int], *args: Any
) -> Any:
    count = layout.num_scalar_prefetch
    scalars = [tree.tree_map(as_array, x) for x in args[:count]]
    operands, in_tree = tree.tree_flatten(args[count:])
    operands = [as_array(x) for x in operands]
    shapes, out_tree = tree.tree_flatten(out_shape)
    several = isinstance(out_shape, tuple)
    blocks_in = [
        _Block(spec, x.shape, f"args[{i}]")
        for i, (spec, x) in enumerate(
            zip(_specs(layout.in_specs, args[count:], "in_specs"), operands, strict=True))
    ]  # fmt: skip
    told = _specs(layout.out_specs, out_shape if several else [out_shape], "out_specs")
    blocks_out = [_Block(spec, tuple(s.shape), f"outputs[{i}]")
                  for i, (spec, s) in enumerate(zip(told, shapes, strict=True))]
    first = len(tree.tree_leaves(scalars))
    results = [undefined(s.shape, s.dtype) for s in shapes]
    for source, target in aliases.items():
        results[target] = operands[source - first]
    results = [b.pad(x) for b, x in zip(blocks_out, results, strict=True)]
    operands = [b.pad(x) for b, x in zip(blocks_in, operands, strict=True)]
    buffers, scratch_tree = tree.tree_flatten(layout.scratch_shapes)
    scratch = [undefined(s.shape, s.dtype) for s in buffers]

    def at(point: tuple, results: list, scratch: list) -> tuple[list, list]:
        starts_in = [b.starts(point, scalars) for b in blocks_in]
        starts_out = [b.starts(point, scalars) for b in blocks_out]
        read = [new_ref(b.cut(x, s))
                for b, x, s in zip(blocks_in, operands, starts_in, strict=True)]
        written = [new_ref(b.cut(x, s))
                   for b, x, s in zip(blocks_out, results, starts_out, strict=True)]
        kept = [new_ref(x) for x in scratch]
        outs = tree.tree_unflatten(out_tree, written)
        work = tree.tree_unflatten(scratch_tree, kept)
        named = work if isinstance(work, dict) else {}
        token = _point.set((point, layout.grid))
        try:
            given = [tree.tree_map(new_ref, x) for x in scalars]
            value = kernel(*given, *tree.tree_unflatten(in_tree, read),
                           *(outs if several else (outs,)), *(() if named else work), **named)
        finally:
            _point.reset(token)
        if value is not None:
            raise ValueError(
                f"The kernel function in the pallas_call {name_of(kernel)} should return None. It "
                f"returns a PyTree: {tree.tree_structure(value)}. Write results into the "
                "references that it is given."
            )
        results = [b.put(x, r.get(), s) for b, x, r, s in
                   zip(blocks_out, results, written, starts_out, strict=True)]
        return results, [r.get() for r in kept]

    if all([isinstance(n, int) and n == 1 for n in layout.grid]):
        results, scratch = at((np.int32(0),) * len(layout.grid), results, scratch)
    else:
        results, scratch = _over(layout.grid, at, results, scratch)
    found = [b.unpad(x) for b, x in zip(blocks_out, results, strict=True)]
    return tree.tree_unflatten(out_tree, found)


def _over(grid: tuple, at: Callable, results: list, scratch: list) -> tuple[list, list]:
    """All points of the grid, one after the other."""

    def body(k: Any, carry: tuple) -> tuple:
        point, rest = [], as_array(k).astype(np.int32)
        for n in reversed(grid):
            size = as_array(n).astype(np.int32)
            point.append(lax.rem(rest, size))
            rest = lax.div(rest, size)
        return at(tuple(reversed(point)), *carry)

    return lax.fori_loop(0, functools.reduce(lambda a, b: a * b, grid), body, (results, scratch))
