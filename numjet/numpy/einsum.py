"""einsum: sums of products by subscripts. Two operands at a time become one dot_general; more are
ordered by opt_einsum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.api.compiled.jit_arguments import hashable
from numjet.api.compiled.shown import FLAG, wanted, written_apart
from numjet.api.placement.reshard import laid_out
from numjet.core import dtypes, structural
from numjet.core.dims import any_symbolic
from numjet.core.memo import remembered
from numjet.numpy import lax_names as lax
from numjet.numpy.elementwise import multiply
from numjet.numpy.index_tricks import strided_diagonal
from numjet.numpy.products import check_options, contract
from numjet.numpy.promote import as_arrays, canonical_dtype, cast, promote_dtypes, refuse
from numjet.numpy.reductions import sum as sum_
from numjet.numpy.shape import reshape
from numjet.ops.dot import dot_general

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@written_apart
def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: Any = None,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: Any = None,
    _dot_general: Callable = dot_general,
    out_sharding: Any = None,
) -> Any:
    """The sum of products that `subscripts` describes: 'ij,jk->ik' multiplies matrices.

    subscripts: letters for the axes of each operand, those of the result behind an arrow; what is
    not there is summed over. Without an arrow the result has the letters that come once, in their
    order. '...' stands for axes that broadcast; a letter twice in one operand takes the diagonal.
    operands: arrays, which promote; they may also come with lists of axis numbers instead of
    letters: einsum(x, [0, 1], y, [1, 2], [0, 2]). optimize: the order of contractions, as
    opt_einsum takes it; for more than two operands. precision, preferred_element_type: as in
    `matmul`. out_sharding: the layout of the result. _dot_general: what multiplies two operands,
    called as `lax.dot_general`. ValueError for subscripts that do not fit; `out` raises
    NotImplementedError.

    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> jnp.einsum("ij,jk->ik", x, x), jnp.einsum("ii", x)
    (Array([[ 7, 10],
           [15, 22]], dtype=int32), Array(5, dtype=int32))
    """
    refuse("einsum", out=out)
    if out_sharding is not None:
        return laid_out(
            lambda: einsum(
                subscripts, *operands, optimize=optimize, precision=precision,
                preferred_element_type=preferred_element_type, _dot_general=_dot_general,
            ),
            out_sharding,
            "einsum",
        )  # fmt: skip
    if precision is not None or preferred_element_type is not None:
        check_options("einsum", precision, preferred_element_type)
    hashable(_dot_general, "argument '_dot_general'", "einsum")
    subscripts, arrays = _explicit(subscripts, operands)
    labels, output, units = _parse(subscripts, tuple([x.aval for x in arrays]))
    inputs = list(labels)
    for i, gone in units:
        arrays[i] = lax.squeeze(arrays[i], gone)
    if preferred_element_type is None:
        arrays = promote_dtypes(*arrays)
    if len(arrays) <= 2:
        result = _contract(
            inputs, output, arrays, precision, preferred_element_type, _dot_general
        )
    else:
        for left, right, joined, step_in in _path(inputs, output, arrays, optimize):
            pair = [arrays[i] for i in (left, right)] if right is not None else [arrays[left]]
            names = [inputs[i] for i in step_in]
            if FLAG.uses and wanted() and len(names) == 2:
                joined = _turned_labels(names[0], names[1], joined)
            made = _contract(names, joined, pair, precision, preferred_element_type, _dot_general)
            for i in sorted(step_in, reverse=True):
                del arrays[i], inputs[i]
            arrays.append(made)
            inputs.append(joined)
        result = _contract(
            inputs, output, arrays, precision, preferred_element_type, _dot_general
        )
    if preferred_element_type is None:
        return result
    return cast(result, canonical_dtype(preferred_element_type, "einsum"))


def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "auto") -> tuple[Any, Any]:
    """(path, report): the order of contractions that `einsum` would take, found by opt_einsum.

    subscripts, operands: as in `einsum`; only shapes matter. optimize: which search; True is
    'optimal', False contracts all at once. path: pairs of positions in the list of operands,
    results being put at its end. NumPy's path has the word 'einsum_path' before these.

    >>> jnp.einsum_path("ij,jk,k", jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4))[0]
    [(1, 2), (0, 1)]
    """
    subscripts, arrays = _explicit(subscripts, operands)
    if isinstance(optimize, bool):
        optimize = "optimal" if optimize else [tuple(range(len(arrays)))]
    return _contract_path(subscripts, [a.aval.shape for a in arrays], optimize)


def _contract_path(subscripts: str, shapes: Sequence[tuple], optimize: Any) -> tuple[Any, Any]:
    """(path, report) by opt_einsum, whose version 3.3 divides costs of 0 where nothing is to do."""
    import decimal

    import opt_einsum

    with decimal.localcontext(decimal.Context(traps=[])):
        return opt_einsum.contract_path(subscripts, *shapes, shapes=True, optimize=optimize)


# ------------------------------------------------------------------ parsing
def _explicit(subscripts: Any, operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """Subscripts as a string, and the operands as arrays."""
    if isinstance(subscripts, str):
        if not operands:
            raise TypeError("einsum: needs at least one operand beside the subscripts.")
        return subscripts.replace(" ", ""), as_arrays("einsum", *operands)
    every = [subscripts, *operands]
    pairs, rest = every[: len(every) // 2 * 2], every[len(every) // 2 * 2 :]
    # Letters in the order of the labels, which an implicit result is in.
    used = {v for part in [*pairs[1::2], *rest] for v in part if v is not Ellipsis}
    letters = dict(zip(sorted(used), _LETTERS, strict=False))

    def text(labels: Any) -> str:
        return "".join(["..." if label is Ellipsis else letters[label] for label in labels])

    labels = [text(p) for p in pairs[1::2]]
    written = ",".join(labels)
    if rest:
        written += "->" + text(rest[0])
    return written, as_arrays("einsum", *pairs[0::2])


@remembered("subscripts of einsum", 4096)
def _parse(
    subscripts: str, avals: tuple
) -> tuple[tuple[str, ...], str, tuple[tuple[int, tuple[int, ...]], ...]]:
    """Letters for every axis of every operand (ellipses written out) and of the result, and which
    axes of which operands to squeeze before."""
    left, arrow, output = subscripts.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(avals):
        raise ValueError(
            f"Number of einsum subscripts, {len(inputs)}, must be equal to the number of operands, "
            f"{len(avals)}: {subscripts!r}."
        )
    for c in left + output:
        if c in "->":
            raise ValueError(f"einsum: {subscripts!r} has a {c!r} that is not of its one '->'.")
    used = set(left + output)
    spare = [c for c in _LETTERS if c not in used]
    widest = 0
    for i, (labels, x) in enumerate(zip(inputs, avals)):
        if "..." in labels:
            widest = max(widest, x.ndim - len(labels) + 3)
        elif len(labels) != x.ndim:
            raise ValueError(
                f"einsum: {labels!r} of {subscripts!r} does not contain the correct number of "
                f"indices for operand {i}: it names {len(labels)} axes of {x}."
            )
    dots = "".join(spare[:widest])
    for i, (labels, x) in enumerate(zip(inputs, avals)):
        if "..." in labels:
            n = x.ndim - len(labels) + 3
            if n < 0:
                raise ValueError(f"einsum: {labels!r} names more axes than operand {i} ({x}) has.")
            inputs[i] = labels.replace("...", dots[len(dots) - n :])
    if not arrow:
        once = [
            c
            for c in sorted(set("".join(inputs)))
            if "".join(inputs).count(c) == 1 and c not in dots
        ]
        output = dots + "".join(once)
    else:
        output = output.replace("...", dots)
    for c in output:
        if c not in "".join(inputs) or output.count(c) > 1:
            raise ValueError(
                f"einsum: output subscript {c!r} of {subscripts!r} must appear in an "
                "input, and once in the output."
            )
    units = _drop_units(inputs, avals, subscripts)
    return tuple(inputs), output, units


def _drop_units(
    inputs: list[str], avals: tuple, subscripts: str
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Axes of size 1 that another operand has larger are broadcast: their letters go."""
    sizes: dict[str, int] = {}
    for place, (labels, x) in enumerate(zip(inputs, avals)):
        for c, n in zip(labels, x.shape):
            if sizes.get(c, 1) == 1:
                sizes[c] = n
            elif n not in (1, sizes[c]):
                if any_symbolic((n, sizes[c])):
                    raise AssertionError(
                        f"Incompatible reduction dimensions: label {c!r} stands for the sizes "
                        f"{sizes[c]} and {n}: einsum {subscripts!r} of "
                        f"{[a.str_short() for a in avals]}."
                    )
                raise ValueError(
                    f"Size of label {c!r} for operand {place} ({n}) does not match previous terms "
                    f"({sizes[c]}): einsum {subscripts!r} of {[a.str_short() for a in avals]}. "
                    "Transpose an operand, or give the axes different labels."
                )
    squeezed = []
    for i, (labels, x) in enumerate(zip(inputs, avals)):
        units = tuple([k for k, (c, n) in enumerate(zip(labels, x.shape)) if n != sizes[c]])
        if units:
            squeezed.append((i, units))
            inputs[i] = "".join([c for k, c in enumerate(labels) if k not in units])
    return tuple(squeezed)


# What an order of contractions takes a symbolic size for.
_SYMBOLIC = 8


def _path(inputs: list[str], output: str, arrays: list[Any], optimize: Any) -> Any:
    """Steps (left, right, labels of the product, operands to join) until two operands are left."""
    shapes = tuple([
        tuple([n if type(n) is int else _SYMBOLIC for n in x.aval.shape]) for x in arrays
    ])  # fmt: skip
    found = _known_plan if isinstance(optimize, (bool, str)) else _planned
    return found(tuple(inputs), output, shapes, optimize)


def _planned(inputs: tuple[str, ...], output: str, shapes: tuple, optimize: Any) -> list:
    if optimize is False:
        path: Any = [(0, 1)] * (len(shapes) - 1)
    else:
        kind = "optimal" if optimize is True else optimize
        path, _ = _contract_path(",".join(inputs) + "->" + output, shapes, kind)
    names = list(inputs)
    steps = []
    for step in path:
        step = tuple(sorted(step))
        if len(names) <= 2:
            break
        if len(step) > 2:
            # More than two at once: pair the first two again and again.
            step = step[:2]
        joined = "".join([names[i] for i in step])
        rest = output + "".join([n for i, n in enumerate(names) if i not in step])
        labels = "".join(dict.fromkeys([c for c in joined if c in rest]))
        steps.append((step[0], step[1] if len(step) > 1 else None, labels, step))
        for i in sorted(step, reverse=True):
            del names[i]
        names.append(labels)
    return steps


_known_plan = remembered("orders of einsum", 4096)(_planned)



# ------------------------------------------------------------------ contraction
def _diagonals(labels: str, x: Any) -> tuple[str, Any]:
    """Letters that come twice: the diagonal of their axes."""
    for c in dict.fromkeys(labels):
        while labels.count(c) > 1:
            i = labels.index(c)
            j = labels.index(c, i + 1)
            x = strided_diagonal(x, 0, i, j)
            labels = labels[:i] + labels[i + 1 : j] + labels[j + 1 :] + c
    return labels, x


def _widened(x: Any, dtype: Any) -> Any:
    """x in the dtype that its own and `dtype` promote to; as it is where they do not."""
    if dtypes.NARROW.isdisjoint((x.aval.dtype, dtype)):
        return cast(x, dtypes.join_standard(x.aval.dtype, dtype))
    return x


def _sum_out(labels: str, x: Any, kept: str, preferred: Any) -> tuple[str, Any]:
    """Letters that occur nowhere else are summed, in the wider of x's dtype and the asked one."""
    gone = tuple([i for i, c in enumerate(labels) if c not in kept])
    if not gone:
        return labels, x
    if preferred is not None:
        x = _widened(x, canonical_dtype(preferred, "einsum"))
    total = sum_(x, gone, dtype=x.aval.dtype)
    return "".join([c for c in labels if c in kept]), cast(total, x.aval.dtype, x.aval.weak_type)


def _contract(
    inputs: Sequence[str],
    output: str,
    arrays: Sequence[Any],
    precision: Any,
    preferred: Any,
    product: Callable,
) -> Any:
    """One or two operands to the axes of `output`; two by `product`, if that is the user's."""
    if len(arrays) == 1:
        labels, x = inputs[0], arrays[0]
        if FLAG.uses and wanted():
            labels, x = _masked_diagonals(labels, x, output)
        labels, x = _sum_out(*_diagonals(labels, x), output, preferred)
        return _ordered(labels, x, output)
    (first, x), (second, y) = (_diagonals(n, a) for n, a in zip(inputs, arrays))
    if FLAG.uses and wanted() and _turned_labels(second, first, output) != output:
        first, x, second, y = second, y, first, x  # unless the product is in its order already
    first, x = _sum_out(first, x, second + output, preferred)
    second, y = _sum_out(second, y, first + output, preferred)
    shared = [c for c in first if c in second]
    batch = [c for c in shared if c in output]
    summed = [c for c in shared if c not in output]
    own = product is dot_general
    plain = own and preferred is None and not summed
    if plain and len(batch) + len(first) + len(second) == 0:
        return multiply(x, y)
    numbers = (
        (tuple([first.index(c) for c in summed]), tuple([second.index(c) for c in summed])),
        (tuple([first.index(c) for c in batch]), tuple([second.index(c) for c in batch])),
    )
    if plain and not (FLAG.uses and wanted()):
        return _product(first, x, second, y, output)
    if own:
        made = contract(x, y, numbers, precision, preferred)
    else:
        dtype = x.aval.dtype if preferred is None else preferred
        made = product(x, y, numbers, precision, preferred_element_type=dtype)
    labels = "".join(
        [*batch, *[c for c in first if c not in shared], *[c for c in second if c not in shared]]
    )
    return _ordered(labels, made, output)


def _turned_labels(first: str, second: str, kept: str) -> str:
    """The axes of the second times the first operand, as `dot_general` has them."""
    batch = [c for c in second if c in first and c in kept]
    shared = set(first) & set(second)
    parts = [c for c in second + first if c in kept and c not in shared]
    return "".join([*batch, *parts])


def _masked_diagonals(labels: str, x: Any, output: str) -> tuple[str, Any]:
    """Letters that come twice as JAX takes them: by a sum of what a mask leaves."""
    for c in dict.fromkeys(labels):
        if labels.count(c) != 2:
            continue
        axes = (labels.index(c), labels.rindex(c))
        places = [lax.broadcasted_iota(np.dtype(np.uint32), x.aval.shape, i) for i in axes]
        same = lax.eq(*places)
        x = lax.select_n(same, lax.full(x.aval.shape, 0, x.aval.dtype), x)
        gone = axes[:1] if c in output else axes
        x = lax.reduce_sum(x, gone)
        labels = "".join([label for i, label in enumerate(labels) if i not in gone])
    return labels, x


def _product(first: str, x: Any, second: str, y: Any, output: str) -> Any:
    """No letter is summed: an elementwise product of aligned axes."""
    aligned = []
    for labels, v in ((first, x), (second, y)):
        order = "".join([c for c in output if c in labels])
        v = _ordered(labels, v, order)
        sizes = dict(zip(order, v.aval.shape))
        aligned.append(reshape(v, tuple([sizes.get(c, 1) for c in output])))
    return multiply(*aligned)


def _ordered(labels: str, x: Any, output: str) -> Any:
    order = tuple([labels.index(c) for c in output])
    return structural.transpose(x, order)
