"""Functions of matrices, exponential and square root, and the Schur form that they are computed by.

Part of `numjet.scipy.linalg`, which shows these names.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.derivatives.custom import jvp_of_arrays
from numjet.core import dtypes
from numjet.numpy import lax_names as lax, linalg
from numjet.numpy.creation import taking_lists
from numjet.numpy.elementwise import add, divide, multiply, negative, subtract
from numjet.numpy.factorizations import adjoint, matrices
from numjet.numpy.functional import vectorize
from numjet.numpy.indexing import getitem
from numjet.numpy.joining import concatenate, stack
from numjet.numpy.logic import where
from numjet.numpy.products import matmul
from numjet.numpy.promote import as_arrays, broadcast, cast, one_array, promote_inexact, strong
from numjet.numpy.ranges import arange, eye, triu
from numjet.numpy.reductions import any as any_, max as max_, sum as sum_
from numjet.numpy.shape import expand_dims, reshape
from numjet.ops import linalg as core
from numjet.ops.cond import cond
from numjet.ops.while_loop import fori_loop


def refuse_integers(name: str, x: Any, error: type[Exception] = TypeError) -> None:
    """Raise `error` where the array x has integers, which these functions do not convert."""
    if not dtypes.is_inexact(x.aval.dtype):
        raise error(
            f"{name} does not accept dtype {x.aval.dtype}: data type not inexact. Accepted dtypes "
            "are subtypes of floating and complexfloating. Convert with .astype()."
        )


def schur(a: Any, output: str = "real") -> list[Any]:
    """The Schur form: [t, z] with a = z t zᴴ, z unitary.

    a: [..., n, n]; integers become complex, and are refused for 'real' (TypeError). output: 'real',
    t with 2 by 2 blocks for pairs of complex eigenvalues, or 'complex', t upper triangular
    (ValueError for others). No derivative is known (NotImplementedError). Raises ValueError for
    matrices that are not square. Computed by `lax.linalg.schur`. SciPy's `sort`, `lwork`,
    `overwrite_a` and `check_finite` are not taken.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))[0]
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise ValueError(f"schur: output must be 'real' or 'complex', got {output!r}.")
    given = one_array("schur", a)
    x = matrices("schur", given, True, TypeError)
    if output == "real":
        refuse_integers("schur", given)
    if output == "complex" and not dtypes.is_complex(x.aval.dtype):
        x = cast(x, dtypes.complex_of(x.aval.dtype))
    return core.schur(x)


# Coefficients of the (13, 13) and (7, 7) Padé approximants, and the norms up to which they are true
# to rounding in double and in single precision (Higham 2005).
_DOUBLE_BOUND, _SINGLE_BOUND = 5.371920351148152, 3.925724783138660
_PADE7 = (17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1)
_PADE = (
    64764752532480000,
    32382376266240000,
    7771770303897600,
    1187353796428800,
    129060195264000,
    10559470521600,
    670442572800,
    33522128640,
    1323241920,
    40840800,
    960960,
    16380,
    182,
    1,
)

# Larger matrices are squared in a loop, as often as the largest norm asks for (100 by 100: 257 us,
# sixteen times 654); smaller ones as often as may be, in one kernel.
_UNROLLED = 16


def expm(A: Any, *, upper_triangular: bool = False, max_squarings: int = 16) -> Any:
    """The exponential of square matrices, Σ Aᵏ / k!.

    A: [..., n, n]; integers become floats. upper_triangular: whether A is, which saves work.
    max_squarings: NaN where the norm asks for more. Result: A's shape. Differentiable in both
    modes. By scaling and squaring of a Padé approximant. Raises ValueError for matrices that are
    not square, TypeError for 16-bit floats. Source: Higham, The scaling and squaring method for the
    matrix exponential revisited (2005).

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.expm(jnp.array([[0.0, 1.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    x = matrices("expm", A, True)
    if x.aval.dtype.itemsize < 4:
        raise TypeError(f"expm: A.dtype={x.aval.dtype} is not supported. Give 32 or 64 bits.")
    n = x.aval.shape[-1]
    if not x.aval.size:
        return x
    double = x.aval.dtype in (dtypes.float64, dtypes.complex128)
    bound = _DOUBLE_BOUND if double else _SINGLE_BOUND
    size = max_(sum_(lax.abs(x), -2), -1)
    # Below the bound nothing is squared; the logarithm of zero would be seen by debug_infs.
    steps = lax.ceil(
        lax.div(
            lax.log(lax.max(lax.div(size, bound), 1)),
            lax.full(size.aval.shape, math.log(2), size.aval.dtype),
        )
    )
    scale = lax.exp2(negative(steps))
    x = multiply(x, cast(expand_dims(scale, (-2, -1)), x.aval.dtype))
    one = linalg.identities(x)
    x2 = matmul(x, x)
    x4 = matmul(x2, x2)
    x6 = matmul(x4, x2)
    pade = _PADE if double else _PADE7
    b = [float(v) / pade[0] for v in pade]

    def poly(*c: float) -> Any:
        """c[0] x⁶ + c[1] x⁴ + c[2] x² (+ c[3])."""
        terms = [multiply(k, y) for k, y in zip(c, (x6, x4, x2, one), strict=False)]
        return functools.reduce(add, terms)

    u, v = poly(b[7], b[5], b[3], b[1]), poly(b[6], b[4], b[2], b[0])
    if double:
        u = add(matmul(x6, poly(b[13], b[11], b[9])), u)
        v = add(matmul(x6, poly(b[12], b[10], b[8])), v)
    u = matmul(x, u)
    top, bottom = add(u, v), subtract(v, u)
    if upper_triangular:
        out = core.triangular_solve(bottom, top, left_side=True, lower=False)
    else:
        out = linalg.solve(bottom, top)
    wide = broadcast(expand_dims(steps, (-2, -1)), out.aval.shape)

    def squared(k: Any, out: Any) -> Any:
        return where(lax.gt(wide, broadcast(k, wide.aval.shape)), matmul(out, out), out)

    if type(n) is int and n <= _UNROLLED:
        for k in range(max_squarings):
            out = squared(lax.full((), k, wide.aval.dtype), out)
    else:

        def step(k: Any, out: Any) -> Any:
            k = cast(k, steps.aval.dtype)
            needed = any_(lax.gt(steps, broadcast(k, steps.aval.shape)))
            return cond(needed, lambda out: squared(k, out), lambda out: out, out)

        out = fori_loop(0, max_squarings, step, out)
    return where(
        lax.gt(wide, lax.full(wide.aval.shape, max_squarings, wide.aval.dtype)),
        np.full((), np.nan, out.aval.dtype),  # a number would be converted: seen by debug_nans
        out,
    )


@taking_lists
def expm_frechet(A: Any, E: Any, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """The derivative of expm at A in the direction E.

    A, E: [n, n] of one shape (ValueError) and one dtype, no integers (TypeError). method has no
    effect: it is the corner of expm([[A, E], [0, A]]). compute_expm: False gives the derivative
    alone. Result: (expm(A), derivative). Source: that of `scipy.linalg.expm`; Mathias, A chain rule
    for matrix functions (1996), for the corner. SciPy's `check_finite` is not taken.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.expm_frechet(jnp.zeros((2, 2)), jnp.eye(2), compute_expm=False)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    given, e = as_arrays("expm_frechet", A, E)
    a, e = matrices("expm_frechet", given, True), strong(e)
    if a.aval.shape != e.aval.shape:
        raise ValueError(f"expm_frechet: A and E must have one shape, got {a.aval} and {e.aval}.")
    if given.aval.dtype != e.aval.dtype:
        raise TypeError(
            f"expm_frechet: A and E must have one dtype, got {given.aval} and {e.aval}."
        )
    refuse_integers("expm_frechet", e)
    n = a.aval.shape[-1]
    zero = lax.full(a.aval.shape, 0, a.aval.dtype)
    both = expm(concatenate([concatenate([a, e], -1), concatenate([zero, a], -1)], -2))
    first = getitem(both, (..., slice(0, n), slice(0, n)))
    corner = getitem(both, (..., slice(0, n), slice(n, None)))
    return (first, corner) if compute_expm else corner


@taking_lists
def funm(A: Any, func: Callable, disp: bool = True) -> Any:
    """A function of a matrix, by its eigenvalues: v func(w) v⁻¹.

    A: [n, n], of floats (TypeError for integers), which must be diagonalizable. func: of an array
    of numbers. disp: False gives (result, estimate of the error). Result: complex. Eigenvectors
    have no derivatives (NotImplementedError); `expm` and `sqrtm` have. SciPy uses the Schur form,
    and gives real results where their imaginary parts are small.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.funm(jnp.diag(jnp.array([0.0, 4.0])), jnp.sqrt).real
    Array([[0., 0.],
           [0., 2.]], dtype=float32)
    """
    given = one_array("funm", A)
    x = matrices("funm", given, True)
    refuse_integers("funm", given)
    w, v = linalg.eig(x)
    out = matmul(multiply(v, expand_dims(func(w), -2)), linalg.inv(v))
    if disp:
        return out
    return out, lax.full((), 0, dtypes.real_of(out.aval.dtype))


def sqrtm(A: Any, blocksize: int = 1) -> Any:
    """A square root of a matrix, complex; infinite or NaN where there is none.

    A: [n, n]; integers become floats. blocksize must be 1 (NotImplementedError). Result: complex
    [n, n], the root whose eigenvalues have positive real parts. Differentiable. By the Schur form,
    whose triangular root is found column by column. Source: Björck and Hammarling, A Schur method
    for the square root of a matrix (1983). Raises ValueError for what is no square matrix. SciPy's
    is real where the root is, and took `disp`. TypeError for less than two axes.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> linalg.sqrtm(jnp.diag(jnp.array([4.0, 9.0]))).real
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    if blocksize != 1:
        raise NotImplementedError("sqrtm: blocksize other than 1 is not supported. Leave it out.")
    x = matrices("sqrtm", A, True, TypeError)
    if not dtypes.is_complex(x.aval.dtype):
        x = cast(x, dtypes.complex_of(x.aval.dtype))
    return _root(x)


@jvp_of_arrays
def _root(x: Any) -> Any:
    t, z = schur(x, output="complex")
    return matmul(matmul(z, _triangular_root(t)), adjoint(z))


@_root.defjvp
def _root_rule(primals: tuple, tangents: tuple) -> tuple:
    """From x x = a: dx x + x dx = da, an equation of triangular matrices in the Schur basis."""
    (x,), (dx,) = primals, tangents
    t, z = schur(x, output="complex")
    r = _triangular_root(t)
    right = matmul(matmul(adjoint(z), dx), z)
    root = matmul(matmul(z, r), adjoint(z))
    return root, matmul(matmul(z, _triangular_sylvester(r, right)), adjoint(z))


@jvp_of_arrays
def right_polar(x: Any) -> tuple[Any, Any]:
    """u with orthonormal columns (or rows) and p, Hermitian and positive semidefinite: x = u p."""
    a, s, bh = linalg.svd(x, full_matrices=False)
    s = expand_dims(cast(s, a.aval.dtype), -2)
    return matmul(a, bh), matmul(multiply(adjoint(bh), s), bh)


@right_polar.defjvp
def _right_polar_rule(primals: tuple, tangents: tuple) -> tuple:
    """Smooth where singular values are equal, whose vectors are not: in their basis du is k with
    s k + k s = m - mᴴ for m = aᴴ dx b, and what dx has outside of it, over s."""
    (x,), (dx,) = primals, tangents
    a, s, bh = linalg.svd(x, full_matrices=False)
    s = cast(s, a.aval.dtype)
    row, column, b = expand_dims(s, -2), expand_dims(s, -1), adjoint(bh)
    m = matmul(adjoint(a), matmul(dx, b))
    inside = divide(subtract(m, adjoint(m)), add(row, column))
    du = matmul(matmul(a, inside), bh)
    rows, columns = x.aval.shape[-2:]
    if rows > columns:
        outside = divide(subtract(matmul(dx, b), matmul(a, m)), row)
        du = add(du, matmul(outside, bh))
    elif rows < columns:
        outside = divide(subtract(matmul(adjoint(a), dx), matmul(m, bh)), column)
        du = add(du, matmul(a, outside))
    u = matmul(a, bh)
    dp = add(matmul(adjoint(u), dx), matmul(adjoint(du), x))
    return (u, matmul(multiply(b, row), bh)), (du, dp)


def _triangular_sylvester(r: Any, c: Any) -> Any:
    """y with r y + y r = c, for upper triangular r: column j solves (r + r_jj) y_j = c_j - (what
    columns before j contribute)."""
    n, dtype = r.aval.shape[-1], r.aval.dtype
    unit, count = eye(n, dtype=dtype), arange(n)

    def column(j: Any, y: Any) -> Any:
        here = count == j
        factors = sum_(where(here, r, 0), -1)
        corner = sum_(where(here, factors, 0), -1)
        # Columns from j on are still 0.
        right = subtract(
            sum_(where(here, c, 0), -1), getitem(matmul(y, expand_dims(factors, -1)), (..., 0))
        )
        matrix = add(r, multiply(expand_dims(corner, (-2, -1)), unit))
        x = core.triangular_solve(matrix, expand_dims(right, -1), left_side=True, lower=False)
        return add(y, where(here, x, 0))

    return fori_loop(0, n, column, lax.full(c.aval.shape, 0, dtype))


def _triangular_root(t: Any) -> Any:
    """The upper triangular r with r r = t: column j of it solves (r + r_jj) x = t_j above j."""
    n, dtype = t.aval.shape[-1], t.aval.dtype
    unit, count = eye(n, dtype=dtype), arange(n)
    diagonal = multiply(lax.sqrt(t), unit)
    numbers = sum_(diagonal, -1)

    def column(j: Any, r: Any) -> Any:
        here, above = count == j, count < j
        mine = reshape(here, (1,) * (t.aval.ndim - 2) + (n,))  # of each row of the batch
        root = sum_(where(mine, numbers, 0), -1)
        divisors = add(numbers, expand_dims(root, -1))
        nothing = divisors == 0
        shift = where(nothing, lax.full((), 1, dtype), subtract(divisors, numbers))
        matrix = add(r, multiply(expand_dims(shift, -1), unit))
        column_of = reshape(here, (1,) * (t.aval.ndim - 1) + (n,))
        over = reshape(above, (1,) * (t.aval.ndim - 2) + (n,))
        right = where(over, sum_(where(column_of, t, 0), -1), 0)
        x = core.triangular_solve(matrix, expand_dims(right, -1), left_side=True, lower=False)
        x = getitem(x, (..., 0))
        x = where(nothing, where(x == 0, 0, np.inf), x)
        return add(r, where(column_of, expand_dims(where(over, x, 0), -1), 0))

    return fori_loop(1, n, column, diagonal)


@taking_lists
def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """A real Schur form made complex, so that T is triangular.

    T: [..., n, n], quasi triangular; Z: [..., n, n], orthogonal; leading axes broadcast.
    check_finite has no effect. Result: (T, Z), complex, with the same Z T Zᴴ: each block of two
    rows is turned by a plane rotation, its eigenvalue above the real axis first, as by SciPy.
    Derivative: that of the rotations, which jump where a block becomes triangular. Source: Golub
    and Van Loan, Matrix Computations, section 7.4. Raises ValueError for what are no matrices of
    these sizes.

    >>> from numjet import numpy as jnp
    >>> from numjet.scipy import linalg
    >>> t, z = linalg.rsf2csf(jnp.array([[0.0, 1.0], [-1.0, 0.0]]), jnp.eye(2))
    >>> jnp.abs(jnp.diag(t)).round(4)
    Array([1., 1.], dtype=float32)
    """
    t, z = promote_inexact(*as_arrays("rsf2csf", T, Z))
    if t.aval.ndim < 2 or t.shape[-1] != t.shape[-2] or z.shape[-2:] != t.shape[-2:]:
        raise ValueError("rsf2csf: T and Z must be square matrices of one size, got "
                         f"{t.aval.str_short()} and {z.aval.str_short()}.")
    kind = t.aval.dtype if dtypes.is_complex(t.aval.dtype) else dtypes.complex_of(t.aval.dtype)
    t, z = cast(t, kind), cast(z, kind)
    return vectorize(_triangular_form, signature="(n,n),(n,n)->(n,n),(n,n)")(t, z)


def _triangular_form(t: Any, z: Any) -> tuple[Any, Any]:
    """`rsf2csf` of one pair of complex matrices."""
    n, kind = t.shape[0], t.aval.dtype
    if n < 2:
        return t, z
    tiny = dtypes.finfo(kind).eps

    def turned(i: Any, both: tuple) -> tuple:
        t, z = both
        above = subtract(n - 2, i)  # rows `above` and `above + 1`, from the last two upwards
        two = lax.dynamic_slice(t, (above, above), (2, 2))
        a, b, c, d = (getitem(two, (k // 2, k % 2)) for k in range(4))
        apart = multiply(subtract(a, d), 0.5)
        root = lax.sqrt(add(multiply(apart, apart), multiply(b, c)))
        shift = add(apart, root)  # an eigenvalue less d
        size, below = lax.abs(shift), lax.abs(c)
        length = lax.sqrt(add(multiply(size, size), multiply(below, below)))
        needed = below > multiply(tiny, add(lax.abs(a), lax.abs(d)))
        length = cast(where(needed, length, 1), kind)
        cosine, sine = (where(needed, divide(x, length), y) for x, y in ((shift, 1), (c, 0)))
        rows = stack([stack([lax.conj(cosine), lax.conj(sine)]), stack([negative(sine), cosine])])
        pair = lax.dynamic_slice(t, (above, 0), (2, n))
        t = lax.dynamic_update_slice(t, matmul(rows, pair), (above, 0))
        columns = adjoint(rows)
        t, z = (
            lax.dynamic_update_slice(
                x, matmul(lax.dynamic_slice(x, (0, above), (n, 2)), columns), (0, above)
            )
            for x in (t, z)
        )
        return t, z

    t, z = fori_loop(0, n - 1, turned, (t, z))
    return triu(t), z
