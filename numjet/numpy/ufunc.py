"""ufunc objects: `frompyfunc`, and the methods (reduce, accumulate, at, outer, reduceat) of binary
functions such as `add`.

The binary functions stay plain functions, since those are called the most; their methods are
attributes, attached when numjet.numpy is imported.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.core.array import ArrayImpl, as_array
from numjet.numpy import cumulative, elementwise as el, logic, reductions, unary
from numjet.numpy.creation import array
from numjet.numpy.functional import vectorize
from numjet.numpy.indexing import getitem
from numjet.numpy.joining import concatenate, stack
from numjet.numpy.promote import broadcast, canonical_axis, canonical_dtype, cast, one_array, refuse
from numjet.numpy.shape import expand_dims, moveaxis, ravel, reshape
from numjet.ops.cumulative import cummax, cummin
from numjet.ops.scan import scan


def _rows_first(name: str, a: Any, axis: Any, dtype: Any) -> tuple[Any, int]:
    x = one_array(name, a)
    if dtype is not None:
        x = cast(x, canonical_dtype(dtype, name))
    axis = canonical_axis(axis, x.aval.ndim, name)
    return moveaxis(x, axis, 0), axis


# The functions of this namespace that have a ufunc's methods.
_attached: list[Callable] = []


class _UfuncType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or any([instance is f for f in _attached])


class ufunc(metaclass=_UfuncType):  # noqa: N801 - NumPy's name
    """A function of scalars as a function of arrays, with NumPy's ufunc methods.

    func: of `nin` scalars with `nout` results. name: what it is called; nargs: nin.
    identity: what a reduction of nothing gives. call, reduce, accumulate, at, reduceat: functions
    that do the same quicker. A call takes arrays that broadcast; `out` and `where` raise
    NotImplementedError. Made by `frompyfunc`; `jnp.add` and others have the methods, too.

    >>> jnp.add.reduce(jnp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """

    def __init__(
        self,
        func: Callable,
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Callable | None = None,
        reduce: Callable | None = None,
        accumulate: Callable | None = None,
        at: Callable | None = None,
        reduceat: Callable | None = None,
    ) -> None:
        self.nin, self.nout = operator.index(nin), operator.index(nout)
        self.nargs = self.nin if nargs is None else nargs
        self.identity = identity
        self.__name__ = str(name or getattr(func, "__name__", "ufunc"))
        self.__doc__ = func.__doc__
        self._call = vectorize(func) if call is None else call
        self._own = {"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat}

    def __call__(self, *args: Any, out: Any = None, where: Any = None) -> Any:
        if out is not None or where is not None:
            raise NotImplementedError(
                f"{self.__name__}: out and where are not supported. Use jnp.where."
            )
        if len(args) != self.nin:
            raise TypeError(f"{self.__name__} takes {self.nin} arrays, got {len(args)}.")
        return self._call(*args)

    def __repr__(self) -> str:
        return f"<jnp.ufunc {self.__name__!r}>"

    def _binary(self, method: str) -> None:
        if self.nin != 2 or self.nout != 1:
            raise ValueError(
                f"{self.__name__}.{method}: only functions of two arrays with one result have it."
            )

    def reduce(
        self,
        a: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        """The function folded over `axis`.

        a: an array. axis: an integer, a tuple of them one after another, or None for all. dtype:
        that of the result. keepdims: reduced axes stay with size 1. initial: what it begins with,
        by default the identity. where: which elements count, for `add`, `multiply`, `maximum`,
        `minimum` and the logical functions (NotImplementedError for others). ValueError for
        functions of other than two arrays, and of nothing without an identity; `out` raises
        NotImplementedError.

        >>> jnp.multiply.reduce(jnp.array([[1, 2], [3, 4]]), axis=1)
        Array([ 2, 12], dtype=int32)
        """
        self._binary("reduce")
        refuse(f"{self.__name__}.reduce", out=out)
        if self._own["reduce"] is not None:
            return self._own["reduce"](
                a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where
            )
        if where is not None:
            raise NotImplementedError(f"{self.__name__}.reduce: where is not supported.")
        rank = one_array(self.__name__, a).aval.ndim
        if axis is None:
            a, axis = ravel(a), 0
            out = self.reduce(a, 0, dtype, initial=initial)
            return reshape(out, (1,) * rank) if keepdims else out
        if isinstance(axis, (tuple, list)):
            axes = sorted([canonical_axis(i, rank, "reduce") for i in axes_of(axis)], reverse=True)
            for i in axes:
                a = self.reduce(a, i, dtype, keepdims=keepdims, initial=initial)
                initial = None
            return a
        x, axis = _rows_first(f"{self.__name__}.reduce", a, axis, dtype)
        start = self.identity if initial is None else initial
        if start is None:
            if not x.aval.shape[0]:
                raise ValueError(
                    f"zero-size array to reduction operation {self.__name__} which has no identity"
                )
            first, rest = getitem(x, 0), getitem(x, slice(1, None))
        else:
            first = broadcast(cast(as_array(start), x.aval.dtype), x.aval.shape[1:])
            rest = x
        first = cast(first, x.aval.dtype)
        step = lambda carry, row: (cast(self(carry, row), x.aval.dtype), None)
        result = scan(step, first, rest)[0]
        return expand_dims(result, axis) if keepdims else result

    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """All partial results of `reduce` along `axis`.

        a: an array, whose shape the result has. axis: an integer. dtype: that of the result.
        ValueError for functions of other than two arrays; `out` raises NotImplementedError.

        >>> jnp.maximum.accumulate(jnp.array([1, 3, 2]))
        Array([1, 3, 3], dtype=int32)
        """
        self._binary("accumulate")
        refuse(f"{self.__name__}.accumulate", out=out)
        own = self._own["accumulate"]
        if own in (cummax, cummin):
            a = one_array(self.__name__, a)
            a = a if dtype is None else cast(a, canonical_dtype(dtype, self.__name__))
            # The derivative at ties is shared out step by step, by the loop below.
            if a.aval.dtype.kind in "iu" or a.aval.dtype.kind == "f" and type(a) is ArrayImpl:
                return own(a, canonical_axis(axis, a.aval.ndim, self.__name__))
        elif own is not None:
            return own(a, axis=axis, dtype=dtype)
        x, axis = _rows_first(f"{self.__name__}.accumulate", a, axis, dtype)
        if not x.aval.shape[0]:
            return moveaxis(x, 0, axis)
        first = cast(getitem(x, 0), x.aval.dtype)

        def step(carry: Any, row: Any) -> tuple[Any, Any]:
            made = cast(self(carry, row), x.aval.dtype)
            return made, made

        rest = scan(step, first, getitem(x, slice(1, None)))[1]
        return moveaxis(concatenate([expand_dims(first, 0), rest], 0), 0, axis)

    def outer(self, A: Any, B: Any, /) -> Any:
        """The function of every pair of an element of `A` and one of `B`.

        A, B: arrays; the result has the axes of both. ValueError for functions of other than two
        arrays.

        >>> jnp.subtract.outer(jnp.array([1, 2]), jnp.array([10, 20]))
        Array([[ -9, -19],
               [ -8, -18]], dtype=int32)
        """
        self._binary("outer")
        x, y = one_array("outer", A), one_array("outer", B)
        return self(reshape(x, x.aval.shape + (1,) * y.aval.ndim), y)

    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Any:
        """`a` with the function of its elements at `indices`, and of those of `b`, in their place.

        indices: as in a[indices]; b: broadcast to them, for functions of two arrays. Arrays are
        immutable: give inplace=False (NotImplementedError) and use the result.

        >>> jnp.add.at(jnp.zeros(3), jnp.array([0, 0, 2]), 1.0, inplace=False)
        Array([2., 0., 1.], dtype=float32)
        """
        if inplace:
            raise NotImplementedError(
                f"{self.__name__}.at: JAX arrays are immutable, so it cannot operate inplace. Pass "
                "inplace=False and use the result."
            )
        if self._own["at"] is not None:
            return self._own["at"](a, indices, b)
        x = one_array("at", a)
        if b is None:
            return x.at[indices].apply(self)
        old = getitem(x, indices)
        return x.at[indices].set(cast(self(old, b), x.aval.dtype))

    def reduceat(
        self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
    ) -> Any:
        """`reduce` of the slices along `axis` that begin at `indices` and end where the next
        begins.

        a: an array. indices: a vector of known integers; where one is not below the next, that
        element alone. dtype: that of the result. ValueError for functions of other than two arrays;
        `out` raises NotImplementedError.

        >>> jnp.add.reduceat(jnp.arange(6), [0, 2, 5])
        Array([1, 9, 5], dtype=int32)
        """
        self._binary("reduceat")
        refuse(f"{self.__name__}.reduceat", out=out)
        x, axis = _rows_first(f"{self.__name__}.reduceat", a, axis, dtype)
        starts = np.asarray(indices).tolist()
        n = x.aval.shape[0]
        parts = []
        for i, start in enumerate(starts):
            stop = starts[i + 1] if i + 1 < len(starts) else n
            part = getitem(x, slice(start, stop if stop > start else start + 1))
            parts.append(self.reduce(part, 0))
        return moveaxis(stack(parts), 0, axis)


def axes_of(axis: Any) -> tuple:
    """An axis or several as a tuple."""
    return tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)


def frompyfunc(func: Callable, /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A function of scalars as a `ufunc`, with the methods reduce, accumulate, at, outer and
    reduceat.

    func: takes `nin` scalars and gives `nout`; it is traced once, where NumPy calls it for each
    element and gives objects. identity: what an empty reduction gives; without one that raises
    ValueError.

    >>> larger = jnp.frompyfunc(lambda x, y: jnp.where(x > y, x, y), 2, 1)
    >>> larger(jnp.array([1, 5]), 3), larger.reduce(jnp.array([1, 5, 2]))
    (Array([3, 5], dtype=int32), Array(5, dtype=int32))
    """
    return ufunc(func, nin, nout, identity=identity)


def _logical(reduce: Callable) -> Callable:
    def call(a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        if initial is not None:
            raise NotImplementedError("reduce: initial is not supported for logical functions.")
        return reduce(a, axis, keepdims=keepdims, where=where)

    return call


def _extremum(reduce: Callable) -> Callable:
    def call(a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        x = one_array("reduce", a)
        x = x if dtype is None else cast(x, canonical_dtype(dtype, "reduce"))
        return reduce(x, axis, keepdims=keepdims, initial=initial, where=where)

    return call


def _write(name: str) -> Callable:
    return lambda a, indices, b: getattr(array(a).at[indices], name)(b)


def attach() -> None:
    """Give the binary functions, and `negative`, their ufunc methods."""
    table: list[tuple[Callable, Any, dict]] = [
        (el.add, 0, dict(reduce=reductions.sum, accumulate=cumulative.cumsum, at=_write("add"))),
        (
            el.multiply,
            1,
            dict(reduce=reductions.prod, accumulate=cumulative.cumprod, at=_write("multiply")),
        ),
        (el.subtract, None, dict(at=_write("subtract"))),
        (
            el.maximum,
            None,
            dict(reduce=_extremum(reductions.max), accumulate=cummax, at=_write("max")),
        ),
        (
            el.minimum,
            None,
            dict(reduce=_extremum(reductions.min), accumulate=cummin, at=_write("min")),
        ),
        (logic.logical_and, True, dict(reduce=_logical(reductions.all))),
        (logic.logical_or, False, dict(reduce=_logical(reductions.any))),
        (logic.logical_xor, False, {}),
        (logic.bitwise_and, -1, {}),
        (logic.bitwise_or, 0, {}),
        (logic.bitwise_xor, 0, {}),
        (unary.logaddexp, -np.inf, {}),
        (unary.logaddexp2, -np.inf, {}),
        (el.negative, None, {}),
    ]
    for function, identity, own in table:
        name = function.__name__
        # Without an identity of their own booleans start from the first element.
        nin = 1 if function is el.negative else 2
        made = ufunc(function, nin, 1, name=name, call=function, identity=identity, **own)
        methods = ("reduce", "accumulate", "outer", "at", "reduceat")
        vars(function).update({method: getattr(made, method) for method in methods})
        vars(function).update(nin=nin, nout=1, nargs=nin, identity=identity)
        _attached.append(function)
