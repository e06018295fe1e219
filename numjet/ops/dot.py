"""dot_general: products with contracting and batch axes, under every matmul, einsum and tensordot.

16-bit floats accumulate in float32 and are rounded once. Integer and boolean products are exact as
in NumPy.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from numjet.base import config
from numjet.base.errors import InternalError
from numjet.core import dtypes, hooks
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.lowering import Kernel
from numjet.core.memo import remembered
from numjet.core.primitive import Linear, Primitive, Zero
from numjet.core.structural import add_tangents, convert, to_integer, transpose
from numjet.ops.dot_algorithms import EXACTNESS, OPERANDS, DotAlgorithmPreset, algorithm_of

Dimensions = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


class Precision(enum.Enum):
    """How exact a product is on hardware that offers a choice; CPUs always compute in the full
    dtype. `Precision(name)` knows the names that products take; None means DEFAULT.

    >>> from numjet import lax, numpy as jnp
    >>> print(lax.dot(jnp.ones(2), jnp.ones(2), precision=lax.Precision.HIGHEST))
    2.0
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name

    @classmethod
    def _missing_(cls, value: Any) -> Precision | None:
        return cls.DEFAULT if value is None else _PRECISIONS.get(value)


# Types of arguments, as annotations name them.
DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]
PrecisionLike = (
    None | str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithmPreset
)

_PRECISIONS = {
    "default": Precision.DEFAULT,
    "fastest": Precision.DEFAULT,
    "bfloat16": Precision.DEFAULT,
    "high": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH,
    "tensorfloat32": Precision.HIGH,
    "highest": Precision.HIGHEST,
    "float32": Precision.HIGHEST,
}


def canonical_precision(precision: Any) -> Any:
    """A pair of `Precision` from a name, a Precision or a pair of them; from None what the flag
    `default_matmul_precision` says: None, too, where it names an algorithm or nothing."""
    if precision is None or (
        isinstance(precision, tuple | list) and all(p is None for p in precision)
    ):
        usual = _PRECISIONS.get(config.default_matmul_precision.value or "")
        return usual and (usual, usual)
    if not isinstance(precision, tuple | list):
        precision = (precision, precision)
    if len(precision) == 2:
        found = tuple(
            [
                p if isinstance(p, Precision) or not isinstance(p, str) else _PRECISIONS.get(p)
                for p in precision
            ]
        )
        if all(isinstance(p, Precision) for p in found):
            return found
    raise ValueError(
        f"Precision argument must be one of: None, a string in {sorted(_PRECISIONS)}, a "
        f"lax.Precision value, or a pair of those; but got {precision!r}."
    )


def turned_precision(precision: Any) -> Any:
    """The precision of a product whose operands change places."""
    return precision[::-1] if type(precision) is tuple else precision


def _free(ndim: int, *used: tuple) -> list[int]:
    taken = {axis for axes in used for axis in axes}
    return [axis for axis in range(ndim) if axis not in taken]


def _abstract(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    dimension_numbers: Dimensions,
    precision: Any,
    preferred_element_type: Any,
) -> ShapedArray:
    (lc, rc), (lb, rb) = dimension_numbers
    own, other = lb + lc, rb + rc
    shape, across = lhs.shape, rhs.shape
    left = [axis for axis in range(len(shape)) if axis not in own]
    right = [axis for axis in range(len(across)) if axis not in other]
    if (
        len(lc) != len(rc)
        or len(lb) != len(rb)
        # One less for each axis that is there and named once.
        or len(left) != len(shape) - len(own)
        or len(right) != len(across) - len(other)
        or [shape[a] for a in own] != [across[a] for a in other]
    ):
        _refuse(lhs, rhs, dimension_numbers)
    weak = lhs.weak_type or rhs.weak_type
    if lhs.dtype is dtypes.float32 and rhs.dtype is dtypes.float32 and not weak:
        dtype = dtypes.float32  # most are; the first promotion of a process takes 30 us
    else:
        _refuse_keys(lhs, rhs)
        dtype, _ = dtypes.join((lhs.dtype, False), (rhs.dtype, False))
        weak = lhs.weak_type and rhs.weak_type
    sizes = (*[shape[a] for a in lb + tuple(left)], *[across[a] for a in right])
    if preferred_element_type is None:
        return ShapedArray(sizes, dtype, weak)
    return ShapedArray(sizes, preferred_element_type)


def _refuse(lhs: ShapedArray, rhs: ShapedArray, dimension_numbers: Dimensions) -> NoReturn:
    """Say why the axes do not fit."""
    (lc, rc), (lb, rb) = dimension_numbers
    for side, aval, contracting, batch in (("lhs", lhs, lc, lb), ("rhs", rhs, rc, rb)):
        axes = contracting + batch
        if any(not 0 <= a < aval.ndim for a in axes) or len(set(axes)) != len(axes):
            told = f"{side}_batch of {batch} and {side}_contracting of {contracting}"
            twice = [n for n in (contracting, batch) if len(set(n)) != len(n)]
            want = (
                f"{'contracting' if twice[0] is contracting else 'batch'} dimensions to be distinct"
                if twice
                else "batch dimensions to be disjoint from contracting dimensions"
                if all(0 <= a < aval.ndim for a in axes)
                else "dimension numbers to be nonnegative and less than the number of axes of the "
                f"{side} value"
            )
            raise TypeError(
                f"dot_general requires {side} {want}, got {told} for {side} of rank {aval.ndim}."
            )
    if len(lc) != len(rc) or len(lb) != len(rb):
        raise TypeError(
            f"dot_general: lhs and rhs must name equally many contracting and batch axes, got "
            f"{dimension_numbers}."
        )
    for what, left, right in (("contracting", lc, rc), ("batch", lb, rb)):
        for i, j in zip(left, right, strict=True):
            if lhs.shape[i] != rhs.shape[j]:
                remedy = (
                    "Transpose one side, or contract other axes."
                    if what == "contracting"
                    else ("Broadcast one side first, or vmap over it.")
                )
                named = what
                if what == "batch":
                    named = "lhs batch dimensions and rhs batch"
                raise TypeError(
                    f"dot_general requires {named} dimensions to have the same shape, got "
                    f"{tuple([lhs.shape[a] for a in left])} and "
                    f"{tuple([rhs.shape[a] for a in right])}: sizes differ, lhs {lhs.str_short()} "
                    f"axis {i} is {lhs.shape[i]}, rhs {rhs.str_short()} axis {j} is "
                    f"{rhs.shape[j]}. {remedy}"
                )
    raise InternalError(f"dot_general refused {dimension_numbers}, which fit")


def _check_preferred(lhs: ShapedArray, rhs: ShapedArray, preferred: Any) -> None:
    """TypeError for results narrower than integers and complex numbers are."""
    both = lhs.dtype, rhs.dtype
    if any([dtypes.is_floating(x) for x in both]) and not any([dtypes.is_complex(x) for x in both]):
        return  # floats, or what joins with none, such as int4 with float8_e5m2
    own = dtypes.join((lhs.dtype, False), (rhs.dtype, False))[0]
    if dtypes.is_integer(own) or dtypes.is_complex(own):
        narrower = dtypes.bits(preferred) < dtypes.bits(dtypes.real_of(own))
        if narrower or dtypes.is_bool(preferred):
            raise TypeError(
                f"dot_general: preferred_element_type {preferred} is narrower than the operands' "
                f"{own}. Convert the result with .astype()."
            )


def _refuse_keys(lhs: ShapedArray, rhs: ShapedArray) -> None:
    for aval in (lhs, rhs):
        if dtypes.is_key(aval.dtype):
            raise TypeError(
                "dot_general: PRNG keys have no products; got "
                f"lhs {lhs.str_short()}, rhs {rhs.str_short()}."
            )


def product_dtypes(lhs: np.dtype, rhs: np.dtype, preferred: Any) -> tuple[np.dtype, np.dtype]:
    """The dtype of a product of operands of these, and that in which it is formed and summed."""
    dtype = lhs if lhs == rhs else dtypes.join((lhs, False), (rhs, False))[0]
    out = work = dtype if preferred is None else preferred
    if dtypes.is_complex(dtype) and not dtypes.is_complex(work):
        work = dtype
    if dtypes.is_floating(work) and work.itemsize <= 2:
        work = dtypes.float32
    if dtypes.is_floating(dtype) and not dtypes.is_inexact(work):
        work = dtypes.float32 if dtype.itemsize <= 2 else dtype
    return np.dtype(out), np.dtype(work)


def _reference(
    lhs: np.ndarray,
    rhs: np.ndarray,
    *,
    dimension_numbers: Dimensions,
    precision: Any,
    preferred_element_type: Any,
) -> np.ndarray:
    (lc, rc), (lb, rb) = dimension_numbers
    out_dtype, work = product_dtypes(lhs.dtype, rhs.dtype, preferred_element_type)
    if lhs.dtype != work:
        lhs = lhs.astype(work)
    if rhs.dtype != work:
        rhs = rhs.astype(work)
    if not lb and lhs.ndim == 2 and rhs.ndim == 2 and lc == (1,) and rc == (0,):
        out = _product(lhs, rhs)
    else:
        out = _contract(lhs, rhs, lc, rc, lb, rb)
    if out.dtype == out_dtype:
        return out
    if dtypes.is_integer(out_dtype) and dtypes.is_inexact(out.dtype):
        return to_integer(out, out_dtype)  # saturates, as in programs
    real = out.dtype.kind == "c" and not dtypes.is_complex(out_dtype)
    return (out.real if real else out).astype(out_dtype)


def _contract(
    lhs: np.ndarray, rhs: np.ndarray, lc: tuple, rc: tuple, lb: tuple, rb: tuple
) -> np.ndarray:
    lf, rf = _free(lhs.ndim, lc, lb), _free(rhs.ndim, rc, rb)
    batch = [lhs.shape[a] for a in lb]
    left, right, depth = (
        [lhs.shape[a] for a in lf],
        [rhs.shape[a] for a in rf],
        [lhs.shape[a] for a in lc],
    )
    rows, cols, inner = math.prod(left), math.prod(right), math.prod(depth)
    x = lhs.transpose(*lb, *lf, *lc).reshape(*batch, rows, inner)
    y = rhs.transpose(*rb, *rc, *rf).reshape(*batch, inner, cols)
    return _product(x, y).reshape((*batch, *left, *right))


# From so many depths on a product with few vectors is one of parts of this depth, which are added
# up in 64 bits: BLAS adds one number after the other there, and NumPy where it cannot use it.
_LONG_DEPTH, _PART_DEPTH, _FEW = 1 << 16, 1 << 12, 4
_DOUBLES = {np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}


def is_long(left: tuple, right: tuple) -> bool:
    """Whether a product of these shapes, of few vectors on one side, is one of parts."""
    if left[-1] < _LONG_DEPTH:
        return False
    return math.prod(left[-2:-1]) <= _FEW or len(right) == 1 or right[-1] <= _FEW


def _product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x @ y of stacks of matrices."""
    if not is_long(x.shape, y.shape) or not dtypes.is_inexact(x.dtype):
        return np.matmul(x, y)
    (*batch, rows, depth), columns = x.shape, y.shape[-1]
    parts = depth // _PART_DEPTH
    whole = parts * _PART_DEPTH
    left = x[..., :whole].reshape(*batch, rows, parts, _PART_DEPTH).swapaxes(-3, -2)
    right = y[..., :whole, :].reshape(*batch, parts, _PART_DEPTH, columns)
    total = np.matmul(left, right).sum(axis=-3, dtype=_DOUBLES.get(x.dtype))
    if whole < depth:
        total += np.matmul(x[..., whole:], y[..., whole:, :])
    return total.astype(x.dtype, copy=False)


def _jvp(primals: tuple, tangents: tuple, **params: Any) -> tuple:
    lhs, rhs = primals
    out = dot_general_p.bind(lhs, rhs, **params)
    total: Any = Zero(out.aval.tangent())
    if not dtypes.is_inexact(out.aval.dtype):
        return out, total
    typed = {**params, "preferred_element_type": params["preferred_element_type"] or out.aval.dtype}
    if config.jax_form():
        typed = params
    if dtypes.is_inexact(lhs.aval.dtype) and type(tangents[0]) is not Zero:
        total = dot_general_p.bind(tangents[0], rhs, **typed)
    if dtypes.is_inexact(rhs.aval.dtype) and type(tangents[1]) is not Zero:
        total = add_tangents(total, dot_general_p.bind(lhs, tangents[1], **typed))
    return out, total


@remembered("transposes of products", 1000)
def _turned(numbers: Dimensions, mine: int, other: int, ct: int, left: bool) -> tuple:
    """How a product is transposed for its left or right operand, the ranks being `mine` (of that
    operand), `other` and `ct`: the dimension numbers of ct · other, and the permutation after it.
    """
    contract, batch = (numbers[0], numbers[1]) if left else (numbers[0][::-1], numbers[1][::-1])
    (my_contract, other_contract), (my_batch, other_batch) = contract, batch
    # The axes of `ct` that came from the other operand.
    if left:
        start, stop = mine - len(my_contract), ct
    else:
        start, stop = len(my_batch), other - len(other_contract)
    free = tuple(_free(other, other_contract, other_batch))
    turned = ((tuple(range(start, stop)), free), (tuple(range(len(my_batch))), other_batch))
    # Axes of the result: batch, my free ones, then the other side's contracting ones, rising.
    order = [
        *my_batch,
        *_free(mine, my_contract, my_batch),
        *[my_contract[other_contract.index(a)] for a in sorted(other_contract)],
    ]
    return turned, tuple([order.index(a) for a in range(mine)])


def _transpose(
    ct: Any,
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Dimensions,
    precision: Any,
    preferred_element_type: Any,
) -> list:
    left = type(lhs) is Linear
    if left and type(rhs) is Linear:
        raise AssertionError(
            "dot_general: both operands depend on the input, so the function is not linear in it. "
            "Differentiate with vjp or grad instead of linear_transpose."
        )
    if left:
        aval, other = lhs.aval, rhs
    else:
        aval, other = rhs.aval, lhs
        precision = turned_precision(precision)
    numbers, order = _turned(dimension_numbers, aval.ndim, other.aval.ndim, ct.aval.ndim, left)
    result = None
    if _narrow(ct.aval, other.aval):  # the product was given another dtype than its operands'
        ct, other, result = _widened(ct, other, None)
    if result is None and config.jax_form():
        result = preferred_element_type
    out = dot_general_p.bind(
        ct, other, dimension_numbers=numbers, precision=precision, preferred_element_type=result
    )
    out = transpose(out, order)
    if out.aval.dtype != aval.dtype:
        if dtypes.is_complex(out.aval.dtype) and not dtypes.is_complex(aval.dtype):
            out = convert(out, dtypes.real_of(out.aval.dtype))
        out = convert(out, aval.dtype, aval.weak_type)
    return [out, None] if left else [None, out]


def _batch(
    axis: Any, args: tuple, dims: tuple, *, dimension_numbers: Dimensions, **params: Any
) -> tuple:
    (lhs, rhs), (ld, rd) = args, dims
    (lc, rc), (lb, rb) = dimension_numbers

    def up(axes: tuple, dim: int | None) -> tuple:
        return axes if dim is None else tuple([a + (a >= dim) for a in axes])

    lc, lb, rc, rb = up(lc, ld), up(lb, ld), up(rc, rd), up(rb, rd)
    if ld is not None and rd is not None:
        numbers, out_dim = ((lc, rc), ((ld, *lb), (rd, *rb))), 0
    else:
        numbers = ((lc, rc), (lb, rb))
        if ld is not None:
            out_dim = len(lb) + _free(lhs.ndim, lc, lb).index(ld)
        else:
            out_dim = lhs.ndim - len(lc) + _free(rhs.ndim, rc, rb).index(rd)
    return dot_general_p.bind(lhs, rhs, dimension_numbers=numbers, **params), out_dim


dot_general_p = Primitive(
    "dot_general",
    linear=True,
    abstract=_abstract,
    reference=_reference,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    loops=Kernel("dot_general"),
)


def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Σ lhs · rhs over the contracting axes, for each element of the batch axes.

    lhs, rhs: arrays; dtypes promote, and of a float of 8 bits or fewer and another dtype the result
    has the one of the wider range. dimension_numbers: ((lhs contracting, rhs contracting), (lhs
    batch, rhs batch)), tuples of axes that pair up. precision: None, a Precision, a DotAlgorithm or
    its preset, or a pair; CPUs compute floats in their own width or wider. preferred_element_type:
    the dtype that sums and result have. out_sharding: the layout of the result. Result: the batch
    axes, the other axes of lhs, the other axes of rhs. Linear in both operands. Raises TypeError
    when sizes differ.

    >>> from numjet import lax, numpy as jnp
    >>> lhs, rhs = jnp.ones((2, 3, 4)), jnp.ones((2, 4, 5))
    >>> lax.dot_general(lhs, rhs, (((2,), (1,)), ((0,), (0,)))).shape
    (2, 3, 5)
    """
    if out_sharding is not None:
        return hooks.laid_out(
            functools.partial(
                dot_general, lhs, rhs, dimension_numbers, precision, preferred_element_type
            ),
            out_sharding,
        )
    if dimension_numbers is None:
        raise ValueError("dot_general: dimension_numbers must be given.")
    (lc, rc), (lb, rb) = dimension_numbers
    numbers = ((_axes(lc), _axes(rc)), (_axes(lb), _axes(rb)))
    if preferred_element_type is not None:
        preferred_element_type = dtypes.canonical(preferred_element_type)
        dtypes.check_supported(preferred_element_type)
    lhs, rhs = as_array(lhs), as_array(rhs)
    if preferred_element_type is not None:
        _check_preferred(lhs.aval, rhs.aval, preferred_element_type)
    if _narrow(lhs.aval, rhs.aval):
        lhs, rhs, preferred_element_type = _widened(lhs, rhs, preferred_element_type)
    if precision is None:
        precision = config.default_matmul_precision.value
    if precision is not None:
        algorithm = algorithm_of(precision)
        if algorithm is not None:
            return _product_by(algorithm, lhs, rhs, numbers, preferred_element_type)
    return dot_general_p.bind(
        lhs,
        rhs,
        dimension_numbers=numbers,
        precision=None if precision is None else canonical_precision(precision),
        preferred_element_type=preferred_element_type,
    )


def _narrow(lhs: ShapedArray, rhs: ShapedArray) -> bool:
    """Whether the dtypes differ and one is a float of 8 bits or fewer, which join with few."""
    if lhs.dtype == rhs.dtype or lhs.weak_type or rhs.weak_type:
        return False
    return any([dtypes.is_floating(x.dtype) and x.dtype.itemsize == 1 for x in (lhs, rhs)])


def _widened(lhs: Any, rhs: Any, preferred: Any) -> tuple[Any, Any, Any]:
    """Operands of such dtypes in one that holds the values of both, and the result's dtype."""
    _refuse_keys(lhs.aval, rhs.aval)
    ranges = [
        float(dtypes.finfo(x.dtype).max) if dtypes.is_inexact(x.dtype) else 0.0 for x in (lhs, rhs)
    ]
    if ranges[0] == ranges[1] and preferred is None:
        raise TypeError(
            f"dot_general: {lhs.dtype} and {rhs.dtype} have the same range; say the dtype of the "
            "result as preferred_element_type."
        )
    widest = (lhs if ranges[0] > ranges[1] else rhs).dtype
    work = widest if widest.itemsize >= 4 else dtypes.float32
    return convert(lhs, work), convert(rhs, work), widest if preferred is None else preferred


def _product_by(algorithm: DotAlgorithmPreset, lhs: Any, rhs: Any, numbers: Any,
               preferred: Any) -> Any:
    """The dot_general of operands converted as `algorithm` says; the result has the dtype that it
    would have without."""
    both = lhs.aval.dtype, rhs.aval.dtype
    result = preferred or dtypes.promote((both[0], False), (both[1], False))[0]
    if config.jax_form() or _as_they_are(algorithm, both, result):
        return dot_general_p.bind(
            lhs, rhs, dimension_numbers=numbers, precision=algorithm, preferred_element_type=result
        )
    operands = OPERANDS.get(algorithm.name)
    if operands is not None:
        lhs, rhs = convert(lhs, operands), convert(rhs, operands)
    elif algorithm.accumulation_type is not None:
        lhs, rhs = (convert(x, algorithm.accumulation_type) for x in (lhs, rhs))
    exact = Precision[EXACTNESS.get(algorithm.name, "DEFAULT")]
    made = dot_general(lhs, rhs, numbers, exact, algorithm.accumulation_type)
    return convert(made, result)


def _as_they_are(algorithm: DotAlgorithmPreset, operands: tuple, result: Any) -> bool:
    """Whether a product of these dtypes is computed as `algorithm` says without conversions: small
    floats are added up in float32."""
    total = algorithm.accumulation_type
    if total is None:
        return True
    if algorithm.name in OPERANDS:
        return all([x == OPERANDS[algorithm.name] for x in (*operands, result)])
    small = dtypes.float16, dtypes.bfloat16, dtypes.float32
    return total == dtypes.float32 and all([x in small for x in (*operands, result)])


def _axes(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple([int(a) for a in axes])


def dot(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The product of vectors and matrices: contracts the last axis of lhs with the first of rhs.

    lhs: [k] or [m, k]; rhs: [k] or [k, n]; dtypes promote. dimension_numbers: as of `dot_general`,
    whatever the ranks. precision, preferred_element_type, out_sharding: as there. Result: [], [m],
    [n] or [m, n]. Raises ValueError for other ranks and sizes that differ.

    >>> from numjet import lax, numpy as jnp
    >>> lax.dot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
    Array([21, 43], dtype=int32)
    """
    if lhs is None or rhs is None:
        raise ValueError("dot: the operands must be arrays, got None.")
    lhs, rhs = as_array(lhs), as_array(rhs)
    if dimension_numbers is None:
        if lhs.ndim not in (1, 2) or rhs.ndim not in (1, 2):
            raise ValueError(
                "jax.lax.dot: dimension_numbers must be specified when not performing simple un-"
                "batched matrix-matrix, matrix-vector, or vector-vector products; got "
                f"lhs_shape={lhs.shape} rhs_shape={rhs.shape}. Pass dimension_numbers, or "
                "use numjet.numpy.matmul."
            )
        if lhs.shape[-1] != rhs.shape[0]:
            raise ValueError(
                "jax.lax.dot: dimension_numbers must be specified when not performing simple un-"
                "batched matrix-matrix, matrix-vector, or vector-vector products; got "
                f"lhs_shape={lhs.shape} rhs_shape={rhs.shape}: the contracting sizes "
                f"differ, lhs {lhs.aval.str_short()} axis {lhs.ndim - 1} "
                f"is {lhs.shape[-1]}, rhs {rhs.aval.str_short()} axis 0 is {rhs.shape[0]}. "
                "Transpose one side."
            )
        dimension_numbers = (((lhs.ndim - 1,), (0,)), ((), ()))
    return dot_general(
        lhs, rhs, dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding
    )


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Any:
    """The matrix product for each element of the leading axes.

    lhs: [..., m, k], rhs: [..., k, n], with equal leading axes; dtypes promote. precision: as of
    `dot_general`. Result: [..., m, n]. Raises TypeError for sizes that differ; `numpy.matmul`
    broadcasts.

    >>> from numjet import lax, numpy as jnp
    >>> lax.batch_matmul(jnp.ones((2, 1, 3)), jnp.ones((2, 3, 1))).shape
    (2, 1, 1)
    """
    lhs, rhs = as_array(lhs), as_array(rhs)
    if lhs.ndim != rhs.ndim or lhs.ndim < 2:
        raise ValueError(
            f"batch_matmul: operands need equally many axes, at least two; got "
            f"{lhs.aval.str_short()} "
            f"and {rhs.aval.str_short()}."
        )
    n = lhs.ndim
    batch = tuple(range(n - 2))
    return dot_general(lhs, rhs, (((n - 1,), (n - 2,)), (batch, batch)), precision)
