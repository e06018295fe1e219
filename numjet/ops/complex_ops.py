"""Complex numbers: real, imag, conj and the construction from parts; and negation, which they
need."""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.lowering import elementwise_loops
from numjet.core.primitive import Linear, Primitive, Zero
from numjet.core.structural import linear_jvp, zeros
from numjet.ops.families import NUMERIC, align_batched, elementwise, pair, refusal, unbroadcast


def _part(name: str, reference: Any, transpose: Any, loops: Any) -> Primitive:
    primitive: Primitive

    def abstract(x: ShapedArray) -> ShapedArray:
        if not dtypes.is_complex(x.dtype):
            raise TypeError(
                refusal(name, x.dtype, "complexfloating")
                + f" numjet.numpy.{name} takes any dtype."
            )
        return ShapedArray(x.shape, dtypes.real_of(x.dtype), x.weak_type)

    primitive = Primitive(
        name,
        elementwise=True,
        linear=True,
        abstract=abstract,
        reference=reference,
        jvp=linear_jvp(lambda: primitive),
        transpose=transpose,
        batch=lambda axis, args, dims: (primitive.bind(*args), dims[0]),
        loops=elementwise_loops(loops),
    )
    return primitive


# The pairing of transposition is bilinear (no conjugation): Re(z) = z . 1, Im(z) = z . (-i) on real
# cotangents.
real_p = _part("real", np.real, lambda ct, x: [complex(ct, zeros(ct.aval.strong()))],
              lambda e, x: e.real(x))  # fmt: skip
imag_p = _part(
    "imag", np.imag, lambda ct, x: [complex(zeros(ct.aval.strong()), neg(ct))],
    lambda e, x: e.imag(x),
)


def _complex_abstract(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    for place, z in enumerate((x, y)):
        if z.dtype not in (dtypes.float32, dtypes.float64):
            raise TypeError(
                f"complex does not accept dtype {dtypes.long_name(z.dtype)} at position {place}. "
                f"Accepted dtypes at position {place} are subtypes of float32, float64."
            )
    if x.dtype != y.dtype:
        raise TypeError(
            "lax.complex requires arguments to have the same dtypes, got "
            f"{x.str_short()}, {y.str_short()}."
        )
    if x.shape != y.shape:
        if x.shape and y.shape:
            raise TypeError(
                f"complex takes operands of one shape, got {x.str_short()} and {y.str_short()}."
            )
    return ShapedArray(x.shape or y.shape, dtypes.complex_of(x.dtype), x.weak_type and y.weak_type)


def _complex_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    out = np.empty(np.broadcast_shapes(x.shape, y.shape), dtypes.complex_of(x.dtype))
    out.real, out.imag = x, y
    return out


def _complex_jvp(primals: tuple, tangents: tuple) -> tuple:
    out = complex_p.bind(*primals)
    if all(type(t) is Zero for t in tangents):
        return out, Zero(out.aval)
    x, y = [zeros(t.aval) if type(t) is Zero else t for t in tangents]
    return out, complex_p.bind(x, y)


def _complex_transpose(ct: Any, x: Any, y: Any) -> list:
    return [
        unbroadcast(real(ct), x) if type(x) is Linear else None,
        unbroadcast(neg(imag(ct)), y) if type(y) is Linear else None,
    ]


def _complex_batch(axis: Any, args: tuple, dims: tuple) -> tuple:
    aligned, dim = align_batched(axis, args, dims)
    return complex_p.bind(*aligned), dim


complex_p = Primitive(
    "complex",
    elementwise=True,
    linear=True,
    abstract=_complex_abstract,
    reference=_complex_reference,
    jvp=_complex_jvp,
    transpose=_complex_transpose,
    batch=_complex_batch,
    loops=elementwise_loops(lambda e, x, y: e.complex(x, y)),
)

# neg stands here because arithmetic needs this file for the magnitude of complex numbers.
neg_p = elementwise(
    "neg",
    accepts=NUMERIC,
    reference=np.negative,
    jvp=lambda t, out, x: neg(t),
    linear=True,
    transpose=lambda ct, x: [neg(ct)],
    loops=lambda e, x: e.neg(x),
)


def _conj_transpose(ct: Any, x: Any, *, input_dtype: Any) -> list:
    return [conj(ct) if dtypes.is_complex(x.aval.dtype) else real(conj(ct))]


conj_p = Primitive(
    "conj",
    elementwise=True,
    linear=True,
    abstract=lambda x, *, input_dtype: ShapedArray(
        x.shape, dtypes.complex_of(x.dtype), x.weak_type
    ),
    reference=lambda x, *, input_dtype: np.conj(x).astype(dtypes.complex_of(x.dtype), copy=False),
    jvp=linear_jvp(lambda: conj_p),
    transpose=_conj_transpose,
    batch=lambda axis, args, dims, **p: (conj_p.bind(*args, **p), dims[0]),
    loops=elementwise_loops(lambda e, x, *, input_dtype: e.conj(x)),
)


def real(x: Any) -> Any:
    """The real part of x.

    x: a complex array. Result: its shape, float32 for complex64, float64 for complex128. Raises
    TypeError for real x; `numpy.real` takes any dtype.

    >>> from numjet import lax, numpy as jnp
    >>> lax.real(jnp.array([1 + 2j]))
    Array([1.], dtype=float32)
    """
    return real_p.bind(as_array(x))


def imag(x: Any) -> Any:
    """The imaginary part of x.

    x: a complex array. Result: its shape, float32 for complex64, float64 for complex128. Raises
    TypeError for real x; `numpy.imag` takes any dtype.

    >>> from numjet import lax, numpy as jnp
    >>> lax.imag(jnp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    return imag_p.bind(as_array(x))


def neg(x: Any) -> Any:
    """-x. Unsigned integers wrap around.

    x: an integer, floating or complex array, of any shape, or a Python number. Result: x's shape
    and dtype. Derivative: -1. Raises TypeError for other dtypes; `numpy` promotes.

    >>> from numjet import lax, numpy as jnp
    >>> lax.neg(jnp.array([1.0, -2.0]))
    Array([-1.,  2.], dtype=float32)
    """
    return neg_p.bind(as_array(x))


def conjugate(x: Any) -> Any:
    """The conjugate of a complex array; real ones stay as they are."""
    return conj(x) if dtypes.is_complex(x.aval.dtype) else x


def complex(x: Any, y: Any) -> Any:
    """x + iy."""
    return complex_p.bind(*pair(x, y))


def conj(x: Any) -> Any:
    """The complex conjugate of x.

    x: a floating or complex array; a real one becomes complex. Result: x's shape, complex. Linear,
    with itself as its transpose up to conjugation. Raises TypeError for integers; `numpy.conj`
    leaves real arrays as they are.

    >>> from numjet import lax, numpy as jnp
    >>> lax.conj(jnp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    x = as_array(x)
    if not dtypes.is_inexact(x.dtype) or x.dtype in dtypes.NARROW_FLOATS:
        name = dtypes.short_name(x.dtype)
        raise TypeError(f"conj does not accept dtype {name}: convert to a float with .astype().")
    return conj_p.bind(x, input_dtype=x.dtype)
