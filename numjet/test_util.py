"""numjet.test_util: derivatives checked against differences of values.

Each check draws one direction for every argument from a fixed seed, and raises AssertionError with
the figures where derivative and central difference disagree.

>>> import numjet.numpy as jnp
>>> from numjet.test_util import check_grads
>>> check_grads(jnp.sin, (1.0,), order=2)
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numjet.api.derivatives.autodiff import jvp
from numjet.api.derivatives.pullbacks import vjp
from numjet.api.flat import check_callable
from numjet.base import tree
from numjet.core import dtypes
from numjet.core.array import as_array

# Of values and derivatives, absolute and relative: a central difference with the step below is off
# by the step's square and by rounding over the step.
_TOLERANCES = {2: 0.1, 4: 1e-2, 8: 1e-5}


def _real_size(dtype: Any) -> int:
    return dtype.itemsize // (2 if dtypes.is_complex(dtype) else 1)


def _least_size(values: Any) -> int:
    """Bytes of the narrowest real or complex numbers in a tree (8 if there are none)."""
    kinds = [as_array(x).dtype for x in tree.tree_leaves(values)]
    return min([_real_size(d) for d in kinds if dtypes.is_inexact(d)], default=8)


def _step(size: int) -> float:
    return float(2.0 ** round(math.log2({2: 1e-3, 4: 6e-8, 8: 1e-16}[size]) / 3))


def _direction(rng: np.random.Generator, x: Any) -> Any:
    """A tangent for one leaf, of numbers around 1; float0 for integers."""
    x = as_array(x)
    if not dtypes.is_inexact(x.dtype):
        return np.zeros(x.shape, dtypes.float0)
    out = rng.standard_normal(x.shape)
    if dtypes.is_complex(x.dtype):
        out = out + 1j * rng.standard_normal(x.shape)
    return as_array(np.asarray(out).astype(x.dtype))


def _directions(rng: np.random.Generator, values: Any) -> Any:
    return tree.tree_map(functools.partial(_direction, rng), values)


def _moved(args: Any, tangents: Any, step: float) -> Any:
    def one(x: Any, t: Any) -> Any:
        x = as_array(x)
        return x + (step * t).astype(x.dtype) if dtypes.is_inexact(x.dtype) else x

    return tree.tree_map(one, args, tangents)


def _difference(f: Callable, args: tuple, tangents: tuple, eps: float | None) -> Any:
    """The central difference of f's values along `tangents`, in double precision. Equal infinities
    do not differ."""
    step = _step(_least_size(args)) if eps is None else eps

    def one(above: Any, below: Any) -> Any:
        above, below = (np.asarray(x) for x in (above, below))
        if not dtypes.is_inexact(above.dtype):
            return np.zeros(above.shape)
        wide = np.complex128 if dtypes.is_complex(above.dtype) else np.float64
        above, below = above.astype(wide), below.astype(wide)
        same = np.isinf(above) & (above == below)
        return np.subtract(above, below, where=~same, out=np.zeros_like(above)) / (2 * step)

    ends = (f(*_moved(args, tangents, k)) for k in (step, -step))
    return tree.tree_map(one, *ends)


def _numbers(values: Any) -> list[np.ndarray]:
    """The leaves of a tree of values or tangents; zeros for float0."""
    found = [np.asarray(x) for x in tree.tree_leaves(values)]
    return [np.zeros(x.shape) if x.dtype == dtypes.float0 else x for x in found]


def _agree(what: str, got: Any, want: Any, atol: float | None, rtol: float | None, size: int,
           message: str) -> None:  # fmt: skip
    default = _TOLERANCES[size]
    for x, y in zip(_numbers(got), _numbers(want), strict=True):
        wide = np.result_type(y, np.float64)
        np.testing.assert_allclose(
            x.astype(wide), y,
            atol=default if atol is None else atol, rtol=default if rtol is None else rtol,
            err_msg=f"{message}{what} disagrees with the central difference of values.",
        )  # fmt: skip


def check_jvp(
    f: Callable,
    f_jvp: Callable,
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = 1e-4,
    err_msg: str = "",
) -> None:
    """Check a forward derivative against differences of the function.

    f: a function. f_jvp(args, tangents) -> (value, tangent). args: a tuple of arguments, pytrees of
    arrays. atol, rtol: how far they may be apart, by dtype unless given. eps: the step of the
    difference; None for the cube root of the dtype's precision. err_msg: begins the message. Raises
    AssertionError.

    >>> import numjet as nj
    >>> from numjet import test_util, numpy as jnp
    >>> test_util.check_jvp(jnp.sin, lambda xs, ts: nj.jvp(jnp.sin, xs, ts), (1.0,))
    """
    check_callable("check_jvp", f)
    args, message = tuple(args), f"{err_msg} " if err_msg else ""
    tangents = _directions(np.random.default_rng(0), args)
    value, tangent = f_jvp(args, tangents)
    size = min(_least_size(args), _least_size(value))
    _agree("The value of the JVP function", value, f(*args), atol, rtol, size, message)
    want = _difference(f, args, tangents, eps)
    _agree("The JVP", tangent, want, atol, rtol, size, message)


def check_vjp(
    f: Callable,
    f_vjp: Callable,
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = 1e-4,
    err_msg: str = "",
) -> None:
    """Check a reverse derivative against differences of the function.

    f: a function. f_vjp(*args) -> (value, function of cotangents). args: a tuple of arguments,
    pytrees of arrays. atol, rtol, eps, err_msg: as of `check_jvp`. Raises AssertionError.

    >>> import numjet as nj
    >>> from numjet import test_util, numpy as jnp
    >>> test_util.check_vjp(jnp.sin, lambda x: nj.vjp(jnp.sin, x), (1.0,))
    """
    check_callable("check_vjp", f)
    args, message = tuple(args), f"{err_msg} " if err_msg else ""
    rng = np.random.default_rng(0)
    tangents = _directions(rng, args)
    value, pull = f_vjp(*args)
    size = min(_least_size(args), _least_size(value))
    _agree("The value of the VJP function", value, f(*args), atol, rtol, size, message)
    cotangents = _directions(rng, value)
    got = _product(pull(cotangents), tangents)
    want = _product(cotangents, _difference(f, args, tangents, eps))
    # Errors grow with what is added up.
    scale = max(1.0, math.sqrt(sum(x.size for x in _numbers(value))))
    atol = (_TOLERANCES[size] if atol is None else atol) * scale
    _agree("The VJP", got, want, atol, rtol, size, message)


def _product(one: Any, two: Any) -> np.ndarray:
    """The real part of the sum of products."""
    pairs = zip(_numbers(one), _numbers(two), strict=True)
    wide = np.complex128
    return np.asarray(sum([(x.astype(wide) * y.astype(wide)).sum() for x, y in pairs])).real


def check_grads(
    f: Callable,
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Check a function's derivatives against differences, and modes against each other.

    f: a function of pytrees of arrays. args: a tuple of arguments. order: derivatives up to this
    one. modes: "fwd", "rev" or both. atol, rtol: how far they may be apart, by dtype unless given.
    eps: the step of the differences. Raises AssertionError where they disagree, ValueError for
    modes or orders that there are not.

    >>> from numjet import test_util, numpy as jnp
    >>> test_util.check_grads(jnp.sin, (1.0,), order=2)
    """
    check_callable("check_grads", f)
    if order < 1:
        raise ValueError(f"check_grads: order must be at least 1, got {order}.")
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    if not modes or set(modes) - {"fwd", "rev"}:
        raise ValueError(f"check_grads: modes are 'fwd' and 'rev', got {modes}.")
    args = tuple(args)
    rng = np.random.default_rng(1)
    tangents, cotangents = _directions(rng, args), None
    if "fwd" in modes:
        check_jvp(f, functools.partial(jvp, f), args, atol, rtol, eps)
    if "rev" in modes:
        check_vjp(f, functools.partial(vjp, f), args, atol, rtol, eps)
        cotangents = _directions(rng, f(*args))
    if order == 1:
        return
    rest: tuple = (order - 1, modes, atol, rtol, eps)
    if "fwd" in modes:
        check_grads(lambda *xs: jvp(f, xs, tangents)[1], args, *rest)
    if "rev" in modes:
        check_grads(lambda *xs: _inexact(vjp(f, *xs)[1](cotangents)), args, *rest)


def _inexact(values: Any) -> list[Any]:
    """The leaves that are numbers, without the float0 of integers."""
    return [x for x in tree.tree_leaves(values) if x.dtype != dtypes.float0]


__all__ = ["check_grads", "check_jvp", "check_vjp"]


def __dir__() -> list[str]:
    return [*__all__]
