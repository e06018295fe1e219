"""ufunc objects: `frompyfunc`, and the methods (reduce, accumulate, at, outer, reduceat) of binary
functions such as `add`.

The binary functions of numjet.numpy become such objects when it is imported. Those of the modules
below it stay plain functions.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.compiled.abstract import eval_shape
from numjet.api.compiled.jit_arguments import hashable
from numjet.api.eager.large import as_program
from numjet.core import dtypes
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.trace import Tracer
from numjet.native import operators as native
from numjet.numpy import binary, cumulative, elementwise as el, logic, reductions
from numjet.numpy.creation import array, full, zeros
from numjet.numpy.functional import vectorize
from numjet.numpy.indexing import getitem
from numjet.numpy.joining import concatenate, stack
from numjet.numpy.promote import (
    broadcast,
    canonical_axis,
    canonical_dtype,
    cast,
    one_array,
    promoted,
    refuse,
)
from numjet.numpy.ranges import arange
from numjet.numpy.shape import broadcast_to, expand_dims, moveaxis, ravel, reshape
from numjet.ops.cumulative import cummax, cummin
from numjet.ops.scan import scan
from numjet.ops.shape import select_n


def _rows_first(name: str, a: Any, axis: Any, dtype: Any) -> tuple[Any, int]:
    x = one_array(name, a)
    if dtype is not None:
        x = cast(x, canonical_dtype(dtype, name))
    axis = canonical_axis(axis, x.aval.ndim, name)
    return moveaxis(x, axis, 0), axis


def _with_keywords(function: Callable, checked: Callable) -> inspect.Signature:
    """The signature of a function, with `out` and `where` of the one that checks them."""
    more = list(inspect.signature(checked).parameters.values())[1:]
    own = inspect.signature(function).parameters.values()
    named = [p for p in own if p.kind <= p.VAR_POSITIONAL]
    return inspect.Signature([*named, *more])


def _names(func: Callable, count: int) -> list[str]:
    """The names of a function's first arguments, as far as they are known."""
    try:
        found = list(inspect.signature(func).parameters)[:count]
    except (TypeError, ValueError):
        found = []
    return found + [f"x{i + 1}" for i in range(len(found), count)]


def _wrong_count(shown: str, names: list[str], count: int) -> str:
    """What Python says of a call with so many arguments."""
    if count > len(names):
        several = "s" * (len(names) != 1)
        return (
            f"{shown}() takes {len(names)} positional argument{several} but {count} were given: "
            "arrays, one for each."
        )
    missing = [repr(name) for name in names[count:]]
    several = "s" * (len(missing) != 1)
    return (
        f"{shown}() missing {len(missing)} required positional argument{several}: "
        f"{' and '.join(missing)}"
    )


def _fold(self: ufunc, dtype: Any) -> Callable:
    def step(carry: Any, rows: tuple) -> tuple[Any, None]:
        row, counted = rows
        made = cast(self(carry, row), dtype)
        return made if counted is None else logic.where(counted, made, carry), None

    return step


def _running(self: ufunc, dtype: Any) -> Callable:
    def step(carry: Any, row: Any) -> tuple[Any, Any]:
        made = cast(self(carry, row), dtype)
        return made, made

    return step


def _write_one(self: ufunc, dtype: Any) -> Callable:
    def step(carry: Any, row: tuple) -> tuple[Any, None]:
        place, value = row  # One after the other: a place may come several times.
        made = self(getitem(carry, place), value)
        return carry.at[place].set(cast(made, dtype)), None

    return step


class ufunc(functools.partial):  # noqa: N801 - NumPy's name
    """A function of scalars as a function of arrays, with NumPy's ufunc methods.

    func: of `nin` scalars with `nout` results. name: what it is called; nargs: nin.
    identity: what a reduction of nothing gives. call, reduce, accumulate, at, reduceat: functions
    that do the same quicker. A call takes arrays that broadcast; `out` and `where` raise
    NotImplementedError. Made by `frompyfunc`; `jnp.add` and others are some, too.

    >>> jnp.add.reduce(jnp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """

    # Of a function that checks the arguments: so a call is the interpreter's, without a frame here.
    opaque = True  # to `tree_util.Partial`
    __name__: str
    __signature__: inspect.Signature
    nin: int
    nout: int
    nargs: int
    identity: Any
    _own: dict[str, Callable | None]
    _steps: dict[tuple, Callable]  # of loops, which `scan` knows again, and the methods' programs

    def __new__(
        cls,
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
    ) -> ufunc:
        nin, nout = operator.index(nin), operator.index(nout)
        shown = str(name or func.__name__)
        run = vectorize(func) if call is None else call

        def checked(*args: Any, out: None = None, where: None = None) -> Any:
            for argument, given in (("out", out), ("where", where)):
                if given is not None:
                    raise NotImplementedError(
                        f"{argument} argument of {shown} is not supported: arrays are immutable. "
                        "Use jnp.where."
                    )
            if len(args) != nin:
                raise TypeError(_wrong_count(shown, _names(func, nin), len(args)))
            return run(*args)

        self = super().__new__(cls, checked)
        self.nin, self.nout, self.nargs = nin, nout, nin if nargs is None else nargs
        self.identity = identity
        self.__name__ = shown
        self.__module__ = __name__.rpartition(".")[0]
        self.__doc__ = func.__doc__
        self.__signature__ = _with_keywords(run, checked)
        self._steps = {}
        self._own = {"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat}
        return self

    def __repr__(self) -> str:
        return f"<jnp.ufunc {self.__name__!r}>"

    def __reduce__(self) -> str:  # type: ignore[override]
        return self.__name__  # by its name, as functions are pickled

    def __get__(self, instance: Any, owner: Any = None) -> ufunc:
        return self  # no method of a class that holds it

    def _run_natively(self, forms: native.Forms) -> None:
        """Let native code answer calls with two operands that `forms` knows."""
        table = forms.attach(native.Table(self.func, 2))
        self.__setstate__((table.function(), (), {}, vars(self)))  # type: ignore[attr-defined]

    def _step(self, made: Callable, dtype: Any) -> Callable:
        known = self._steps.get((made, dtype))
        return self._steps.setdefault((made, dtype), made(self, dtype)) if known is None else known

    def _program(self, method: str) -> Callable:
        known = self._steps.get((method,))
        if known is None:
            known = self._steps.setdefault((method,), as_program(getattr(self, method)))
        return known

    def _binary(self, method: str) -> None:
        if self.nin != 2 or self.nout != 1:
            raise ValueError(
                f"{method} only supported for binary ufuncs: {self.__name__} is none (two arrays "
                "with one result)."
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
        by default the identity. where: which elements count; the function
        must have an identity or `initial` (ValueError). ValueError for functions of other
        than two arrays, and of nothing without an identity; `out` raises NotImplementedError.

        >>> jnp.multiply.reduce(jnp.array([[1, 2], [3, 4]]), axis=1)
        Array([ 2, 12], dtype=int32)
        """
        self._binary("reduce")
        refuse(f"{self.__name__}.reduce", out=hashable(out, "argument out", "reduce"))
        if self._own["reduce"] is not None:
            return self._own["reduce"](
                a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where
            )
        return self._program("_reduce_loop")(a, axis, dtype, keepdims, initial, where)

    def _reduce_loop(
        self, a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any
    ) -> Any:
        name, a = self.__name__, one_array(self.__name__, a)
        rank = a.aval.ndim
        kinds = dtypes.is_integer(a.aval.dtype) or a.aval.dtype == dtypes.bool_
        if name.startswith("bitwise_") and not kinds:
            raise ValueError(f"{name}: integer argument required; got dtype={a.aval.dtype}.")
        start = self.identity if initial is None else initial
        if where is not None:
            if start is None:
                raise ValueError(
                    f"reduction operation {name!r} does not have an identity, so to use a where "
                    "mask one has to specify 'initial'."
                )
            where = broadcast(cast(one_array(name, where), dtypes.bool_), a.aval.shape)
        if axis is None:
            where = None if where is None else ravel(where)
            out = self.reduce(ravel(a), 0, dtype, initial=initial, where=where)
            return reshape(out, (1,) * rank) if keepdims else out
        if isinstance(axis, (tuple, list)):
            axes = sorted([canonical_axis(i, rank, "reduce") for i in axes_of(axis)], reverse=True)
            for i in axes:
                a = self.reduce(a, i, dtype, keepdims=keepdims, initial=initial, where=where)
                initial = where = None
            return a
        if dtype is None and name.startswith("log"):  # of which results have another dtype
            dtype = eval_shape(self, a, a).dtype
        x, axis = _rows_first(f"{name}.reduce", a, axis, dtype)
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
        counts = None if where is None else moveaxis(where, axis, 0)
        result = scan(self._step(_fold, x.aval.dtype), first, (rest, counts))[0]
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
        if axis is None or isinstance(axis, tuple):
            if own in (None, cummax, cummin):
                raise ValueError(f"{self.__name__}.accumulate does not allow multiple axes.")
        if own in (cummax, cummin):
            a = one_array(self.__name__, a)
            a = a if dtype is None else cast(a, canonical_dtype(dtype, self.__name__))
            # The derivative at ties is shared out step by step, by the loop below.
            if a.aval.dtype.kind in "iu" or a.aval.dtype.kind == "f" and type(a) is ArrayImpl:
                return own(a, canonical_axis(axis, a.aval.ndim, self.__name__))
        elif own is not None:
            return own(a, axis=axis, dtype=dtype)
        return self._program("_accumulate_loop")(a, axis, dtype)

    def _accumulate_loop(self, a: Any, axis: Any, dtype: Any) -> Any:
        if self.__name__.startswith("logical_"):
            dtype = bool
        elif dtype is None and self.__name__.startswith("log"):  # floats of integers
            a = one_array(self.__name__, a)
            dtype = eval_shape(self, a, a).dtype
        x, axis = _rows_first(f"{self.__name__}.accumulate", a, axis, dtype)
        if not x.aval.shape[0]:
            return moveaxis(x, 0, axis)
        first = cast(getitem(x, 0), x.aval.dtype)
        step = self._step(_running, x.aval.dtype)
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
        x, y = (
            reshape(x, x.aval.shape + (1,) * y.aval.ndim),
            reshape(y, (1,) * x.aval.ndim + y.aval.shape),
        )
        return self(x, y)

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
        if self.nin == 2 and b is None:
            raise TypeError(f"{self.__name__}.at: the values `b` are missing.")
        if self._own["at"] is not None:
            return self._own["at"](a, indices, b)
        if isinstance(indices, (np.ndarray, Array)):
            indices = as_array(indices)
            if indices.aval.dtype == dtypes.bool_:  # a mask, whose values say how many there are
                return self._at_loop(a, indices, b)
        return self._program("_at_loop")(a, indices, b)

    def _at_loop(self, a: Any, indices: Any, b: Any) -> Any:
        x = one_array("at", a)
        if b is None:
            return x.at[indices].apply(self)
        numbers = np.arange(x.aval.size, dtype=np.int32).reshape(x.aval.shape)
        places = getitem(as_array(numbers), indices)
        values = reshape(broadcast_to(as_array(b), places.aval.shape), (-1,))
        start = reshape(cast(x, eval_shape(self, getitem(x, indices), as_array(b)).dtype), (-1,))
        step = self._step(_write_one, start.aval.dtype)
        return reshape(scan(step, start, (reshape(places, (-1,)), values))[0], x.aval.shape)

    def reduceat(
        self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
    ) -> Any:
        """`reduce` of the slices along `axis` that begin at `indices` and end where the next
        begins.

        a: an array. indices: a vector of integers (ValueError for others); where one is not below
        the next, that element alone. A slice whose index counts from the end is the element there
        and what precedes the next index; beyond the end lies NaN. dtype: that of the result.
        ValueError for functions of other than two arrays; `out` raises NotImplementedError.

        >>> jnp.add.reduceat(jnp.arange(6), jnp.array([0, 2, 5]))
        Array([1, 9, 5], dtype=int32)
        """
        self._binary("reduceat")
        refuse(f"{self.__name__}.reduceat", out=out)
        x, axis = _rows_first(f"{self.__name__}.reduceat", a, axis, dtype)
        indices = one_array(f"{self.__name__}.reduceat", indices)
        if indices.aval.ndim != 1:
            raise ValueError(
                f"reduceat: indices must be one-dimensional, got shape {indices.aval.shape}."
            )
        if not dtypes.is_integer(indices.aval.dtype):
            raise ValueError(f"reduceat: indices must be integers, got {indices.aval.dtype}.")
        n = x.aval.shape[0]
        known = None if isinstance(indices, Tracer) else np.asarray(indices)
        if known is None or ((known < 0) | (known >= n)).any():
            return moveaxis(self._slices(x, indices), 0, axis)
        starts = known.tolist()
        parts = []
        for i, start in enumerate(starts):
            stop = starts[i + 1] if i + 1 < len(starts) else n
            part = getitem(x, slice(start, stop if stop > start else start + 1))
            made = self.reduce(part, 0)
            if self._own["reduce"] in (reductions.sum, reductions.prod):
                made = cast(made, x.aval.dtype)  # Small integers and booleans do not grow here.
            parts.append(made)
        if not parts:
            return moveaxis(getitem(x, slice(0, 0)), 0, axis)
        return moveaxis(stack(parts), 0, axis)

    def _slices(self, x: Any, starts: Any) -> Any:
        """`reduceat` of the first axis for indices that are not known, or not in range: each row
        joins, in its turn, the slices that it is in."""
        one = self.reduce(zeros((1, *x.aval.shape[1:]), x.aval.dtype), 0).aval.dtype
        if self._own["reduce"] in (reductions.sum, reductions.prod):
            one = x.aval.dtype
        x, rows = cast(x, one), x.aval.shape[0]
        stops = concatenate([getitem(starts, slice(1, None)), full((1,), rows, starts.aval.dtype)])
        shape = (-1,) + (1,) * (x.aval.ndim - 1)

        def step(made: Any, row: tuple) -> tuple[Any, None]:
            place, value = row
            inside = logic.bitwise_and(place > starts, place < stops)
            joined = cast(self(made, value), one)
            inside = broadcast_to(reshape(inside, shape), joined.aval.shape)
            return select_n(inside, made, joined), None

        first = x.at[starts].get(mode="fill")
        return scan(step, first, (arange(rows, dtype=starts.aval.dtype), x))[0]


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


def _logical(reduce: Callable, join: Callable) -> Callable:
    def call(a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        out = reduce(a, axis, keepdims=keepdims, where=where)
        return out if initial is None else join(out, logic.as_bool(as_array(initial)))

    return call


def _extremum(reduce: Callable) -> Callable:
    def call(a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        x = one_array("reduce", a)
        x = x if dtype is None else cast(x, canonical_dtype(dtype, "reduce"))
        return reduce(x, axis, keepdims=keepdims, initial=initial, where=where)

    return call


def _write(name: str, of_booleans: str = "") -> Callable:
    """The update `name` of an array's elements; of booleans another."""

    def call(a: Any, indices: Any, b: Any) -> Any:
        x = array(a)
        if of_booleans and x.aval.dtype == bool:
            return getattr(x.at[indices], of_booleans)(logic.as_bool(as_array(b)))
        if name in ("max", "min"):  # which choose, in the dtype of both
            x = cast(x, promoted(x, as_array(b))[0])
        return getattr(x.at[indices], name)(b)

    return call


def attach(namespace: dict[str, Any]) -> None:
    """Make ufuncs of the binary functions of a namespace, and of `negative`."""
    table: list[tuple[Callable, Any, dict]] = [
        (
            el.add,
            0,
            dict(reduce=reductions.sum, accumulate=cumulative.cumsum, at=_write("add", "max")),
        ),
        (
            el.multiply,
            1,
            dict(
                reduce=reductions.prod,
                accumulate=cumulative.cumprod,
                at=_write("multiply", "min"),
            ),
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
        (logic.logical_and, True, dict(reduce=_logical(reductions.all, logic.logical_and))),
        (logic.logical_or, False, dict(reduce=_logical(reductions.any, logic.logical_or))),
        (logic.logical_xor, False, {}),
        (logic.bitwise_and, -1, {}),
        (logic.bitwise_or, 0, {}),
        (logic.bitwise_xor, 0, {}),
        (binary.logaddexp, -np.inf, {}),
        (binary.logaddexp2, -np.inf, {}),
        (el.negative, None, {}),
    ]
    for below, identity, own in table:
        name = below.__name__
        function = namespace[name]  # which may be a program of what is below
        for module in (el, logic, binary):
            if getattr(module, name, None) is below:  # the namespace has a ufunc of this name now
                below.__module__ = module.__name__
        # Without an identity of their own booleans start from the first element.
        nin = 1 if below is el.negative else 2
        made = ufunc(function, nin, 1, name=name, call=function, identity=identity, **own)
        namespace[name] = made
        if nin == 2 and hasattr(function, "forms"):
            native.when_ready(functools.partial(made._run_natively, function.forms))
