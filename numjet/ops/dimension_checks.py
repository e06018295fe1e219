"""Checks of the dimension numbers of gathers and scatters.

Called by the abstract rules in `gather.py` and `scatter.py`. Each sentence names the field that is
wrong and what it may hold: these records are written by hand, and a wrong axis would read or write
other elements than were meant. Answers are kept by shapes and numbers, as loops ask the same again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numjet.core.memo import remembered

if TYPE_CHECKING:
    from numjet.ops.indexing import GatherDimensionNumbers, ScatterDimensionNumbers


def _distinct(op: str, name: str, axes: tuple, n: int, ordered: bool = True) -> None:
    """Raise for axes that repeat, that do not rise, or that lie outside of [0, n)."""
    if len(set(axes)) != len(axes):
        raise TypeError(f"{name} in {op} op must not repeat; got {axes}.")
    if ordered and list(axes) != sorted(axes):
        raise TypeError(f"{name} in {op} op must be sorted; got {axes}.")
    for axis in axes:
        if not 0 <= axis < n:
            raise TypeError(
                f"Invalid {name} set in {op} op; valid range is [0, {n}), got {axis} in {axes}."
            )


def _disjoint(op: str, name: str, axes: tuple, batching: tuple) -> None:
    if not set(axes).isdisjoint(batching):
        raise TypeError(
            f"{name} and operand_batching_dims in {op} op must be disjoint; got {axes} and "
            f"{batching}."
        )


def _batching(
    op: str, operand: tuple, indices: tuple, own: tuple, theirs: tuple, name: str
) -> None:
    """The axes that operand and indices share: as many of both, of the same sizes."""
    _distinct(op, name, theirs, len(indices), ordered=False)
    if len(indices) - 1 in theirs:
        raise TypeError(
            f"{op.capitalize()} op cannot have the index vector dimension as a batching dimension; "
            f"got {theirs}, and the components of an index lie along axis {len(indices) - 1}."
        )
    if len(own) != len(theirs):
        raise TypeError(
            f"{op.capitalize()} op requires equal numbers of operand_batching_dims and {name}, got "
            f"{own} and {theirs}."
        )
    sizes = tuple([operand[d] for d in own]), tuple([indices[d] for d in theirs])
    if sizes[0] != sizes[1]:
        raise TypeError(
            f"{op.capitalize()} op requires operand batching dimensions and indices batching "
            f"dimensions to have the same shape, got {sizes[0]} and {sizes[1]}."
        )


def _components(op: str, name: str, places: tuple, indices: tuple, n: int) -> None:
    """One component of the indices for each of `places`, which are axes of the operand."""
    if indices[-1] != len(places):
        raise TypeError(
            f"{op.capitalize()} op has {len(places)} elements in {name} and the bound of dimension "
            f"index_vector_dim={len(indices) - 1} of indices is {indices[-1]}. These two numbers "
            "must be equal."
        )
    for component, axis in enumerate(places):
        if not 0 <= axis < n:
            raise TypeError(
                f"Invalid {name} mapping, Invalid {name}; domain is [0, {n}), got {component} -> "
                f"{axis}."
            )
    if len(set(places)) != len(places):
        raise TypeError(f"{name} in {op} op must not repeat; got {places}.")


@remembered("dimension numbers of gathers", 1024)
def gather_numbers(
    operand: tuple, indices: tuple, numbers: GatherDimensionNumbers, slice_sizes: tuple
) -> None:
    """Raise TypeError where numbers or sizes do not fit the shapes of operand and indices."""
    offset, collapsed, batching = (
        numbers.offset_dims, numbers.collapsed_slice_dims, numbers.operand_batching_dims
    )  # fmt: skip
    n, out = len(operand), len(offset) + len(indices) - 1
    for i, d in enumerate(offset):
        if not 0 <= d < out:
            raise TypeError(
                f"Offset dimension {i} in gather op is out of bounds; got {d}, which is none of "
                f"the result's {out} axes."
            )
    _distinct("gather", "offset_dims", offset, out)
    _components("gather", "start_index_map", numbers.start_index_map, indices, n)
    _distinct("gather", "collapsed_slice_dims", collapsed, n)
    _distinct("gather", "operand_batching_dims", batching, n)
    _disjoint("gather", "collapsed_slice_dims", collapsed, batching)
    _disjoint("gather", "start_index_map", numbers.start_index_map, batching)
    _batching("gather", operand, indices, batching, numbers.start_indices_batching_dims,
              "start_indices_batching_dims")  # fmt: skip
    if len(slice_sizes) != n:
        raise TypeError(
            f"Gather op must have one slice size for every input dimension; got {slice_sizes} for "
            f"an operand of shape {operand}."
        )
    if n != len(offset) + len(collapsed) + len(batching):
        raise TypeError(
            "All components of the offset index in a gather op must either be a offset dimension "
            f"or explicitly collapsed/batching; got slice_sizes {slice_sizes}, offset_dims "
            f"{offset}, collapsed_slice_dims {collapsed}, operand_batching_dims {batching}."
        )
    for axis, size in enumerate(slice_sizes):
        if not 0 <= size <= operand[axis] and (size < 0 or 0 not in indices):
            raise TypeError(
                f"Slice size at index {axis} in gather op is out of range, must be within [0, "
                f"{operand[axis]}], got {size}."
            )
    for axes, what in ((collapsed, "collapse slice dims with bound 1"),
                       (batching, "have operand batching dims with bound 0/1")):  # fmt: skip
        for i, axis in enumerate(axes):
            if slice_sizes[axis] > 1:
                raise TypeError(
                    f"Gather op can only {what}, but bound is {slice_sizes[axis]} for index {axis} "
                    f"at position {i}."
                )


@remembered("dimension numbers of scatters", 1024)
def scatter_numbers(
    operand: tuple, indices: tuple, updates: tuple, numbers: ScatterDimensionNumbers
) -> None:
    """Raise TypeError where the numbers do not fit the shapes of the three operands."""
    windows, inserted, batching = (
        numbers.update_window_dims, numbers.inserted_window_dims, numbers.operand_batching_dims
    )  # fmt: skip
    places, n = numbers.scatter_dims_to_operand_dims, len(operand)
    rank = len(windows) + len(indices) - 1
    if len(updates) != rank:
        raise TypeError(
            f"Updates tensor must be of rank {rank}; got {len(updates)}. It has the axes of the "
            "indices without the last, and those in update_window_dims."
        )
    _distinct("scatter", "update_window_dims", windows, rank)
    _distinct("scatter", "inserted_window_dims", inserted, n)
    _distinct("scatter", "operand_batching_dims", batching, n)
    _disjoint("scatter", "inserted_window_dims", inserted, batching)
    _disjoint("scatter", "scatter_dims_to_operand_dims", places, batching)
    _batching("scatter", operand, indices, batching, numbers.scatter_indices_batching_dims,
              "scatter_indices_batching_dims")  # fmt: skip
    size = len(windows) + len(inserted) + len(batching)
    if size != n:
        raise TypeError(
            f"Scatter op has window of size {size}; doesn't match operand of rank {n}. An axis of "
            "the operand is one of the window, an inserted one or a batching one."
        )
    _components("scatter", "scatter_dims_to_operand_dims", places, indices, n)
    kept = [d for d in range(n) if d not in inserted and d not in batching]
    for d, axis in zip(windows, kept):
        if updates[d] > operand[axis] and 0 not in updates:
            raise TypeError(
                "Bounds of the window dimensions of updates must not exceed the bounds of the "
                f"corresponding dimensions of operand. For dimension {d}, updates bound is "
                f"{updates[d]}, operand bound is {operand[axis]}."
            )
    others = tuple([updates[d] for d in range(rank) if d not in windows])
    if others != indices[:-1]:
        raise TypeError(
            "Bounds of the scatter dimensions of updates must be the same as the bounds of the "
            f"corresponding dimensions of scatter indices, got {others} and {indices[:-1]}."
        )
