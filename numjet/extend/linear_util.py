"""Functions wrapped by transformations that are written as generators or as functions.

A `WrappedFun` is a function with transformations around it. `transformation` makes one of a
generator that yields (arguments, keywords) for the function inside, gets its result, and yields
the result of the whole; `transformation_with_aux` of one that yields (result, extra), where the
extra is told afterwards, once. Two wrapped functions are equal when the function, the
transformations and their static arguments are. What would break it: static arguments without a
hash, where `cache` is used.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from typing import Any

from numjet.core.memo import remembered


class StoreException(Exception):
    """A store was read while empty, or written twice."""


class Store:
    """A place for one value, written once."""

    __slots__ = ("_value", "_full")

    def __init__(self) -> None:
        self._value: Any = None
        self._full = False

    def store(self, value: Any) -> None:
        """Put the value in. Raises StoreException where there is one."""
        if self._full:
            raise StoreException("Store occupied")
        self._value, self._full = value, True

    def reset(self) -> None:
        """Take the value out."""
        self._value, self._full = None, False

    @property
    def val(self) -> Any:
        """The value. Raises StoreException where there is none."""
        if not self._full:
            raise StoreException("Store empty")
        return self._value

    def __bool__(self) -> bool:
        return self._full


class EqualStore(Store):
    """A store that may be written again, with an equal value."""

    __slots__ = ()

    def store(self, value: Any) -> None:
        if self._full and self._value != value:
            raise StoreException(
                f"Stores occupied with not-equal values: {self._value} and {value}"
            )
        self._value, self._full = value, True


class WrappedFun:
    """`f` with `transforms` around it; `call_wrapped(*args)` calls the whole."""

    __slots__ = ("f", "f_transformed", "transforms", "stores", "params", "debug_info")

    def __init__(
        self,
        f: Callable,
        f_transformed: Callable,
        transforms: tuple,
        stores: tuple,
        params: tuple,
        debug_info: Any = None,
    ) -> None:
        self.f, self.f_transformed, self.transforms = f, f_transformed, transforms
        self.stores, self.params, self.debug_info = stores, params, debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(self, gen: Callable, static: tuple, store: Store | None) -> WrappedFun:
        """This with another transformation, a function that gets the function inside first."""
        inner = self.f_transformed
        outer = functools.partial(gen, inner, *(() if store is None else (store,)), *static)
        return WrappedFun(
            self.f,
            outer,
            ((gen, static), *self.transforms),
            (store, *self.stores),
            self.params,
            self.debug_info,
        )

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function through its transformations."""
        return self.f_transformed(*args, **dict(self.params, **kwargs))

    def populate_stores(self, stores: tuple) -> None:
        """Write the values of another call's stores into this one's."""
        for mine, other in zip(self.stores, stores, strict=True):
            if mine is not None:
                mine.store(other)

    def replace_debug_info(self, debug_info: Any) -> WrappedFun:
        """This with other information for messages."""
        return WrappedFun(
            self.f, self.f_transformed, self.transforms, self.stores, self.params, debug_info
        )

    def with_unknown_names(self) -> WrappedFun:
        """This without names of arguments and results."""
        info = self.debug_info
        return self.replace_debug_info(None if info is None else info.with_unknown_names())

    def _key(self) -> tuple:
        return self.f, self.transforms, self.params

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and self._key() == other._key()

    def __repr__(self) -> str:
        names = [f"{getattr(gen, '__name__', gen)} {static}" for gen, static in self.transforms]
        lines = [f"{i}: {text}" for i, text in enumerate(names)]
        return "\n".join(["Wrapped function:", *lines, f"Core: {self.__name__}"])


def wrap_init(
    f: Callable, params: dict | None = None, *, debug_info: Any = None
) -> WrappedFun:
    """A function as a WrappedFun, without transformations.

    f: a function. params: keywords for each call. debug_info: what messages say of it.

    >>> from numjet.extend import linear_util
    >>> linear_util.wrap_init(lambda x, y: x - y, {"y": 1}).call_wrapped(5)
    4
    """
    given = () if params is None else tuple(sorted(params.items()))
    return WrappedFun(f, f, (), (), given, debug_info)


def _curried(make: Callable) -> Callable:
    """`make(gen, fun, *static)`, which also takes `gen` alone and then is a decorator."""

    @functools.wraps(make)
    def curry(gen: Callable, *rest: Any, **options: Any) -> Any:
        if rest:
            return make(gen, *rest, **options)

        @functools.wraps(gen)
        def of_function(fun: WrappedFun, *static: Any) -> Any:
            return make(gen, fun, *static, **options)

        return of_function

    curry.__signature__ = inspect.signature(make)  # type: ignore[attr-defined]
    return curry


@_curried
def transformation2(gen: Callable, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """A wrapped function inside a function that calls it.

    gen(f, *static, *args, **kwargs): calls f. fun: a WrappedFun. gen_static_args: its arguments
    behind f. Usable as a decorator of gen.

    >>> from numjet.extend import linear_util
    >>> @linear_util.transformation2
    ... def doubled(f, x):
    ...     return f(2 * x)
    >>> doubled(linear_util.wrap_init(lambda x: x + 1)).call_wrapped(5)
    11
    """
    return fun.wrap(gen, gen_static_args, None)


@_curried
def transformation_with_aux2(
    gen: Callable,
    fun: WrappedFun,
    *gen_static_args: Any,
    use_eq_store: bool = False,
    unk_names: bool = False,
) -> tuple[WrappedFun, Callable[[], Any]]:
    """As `transformation2`, for `gen(f, store, *static, *args, **kwargs)`, which puts an extra into
    `store`.

    gen, fun, gen_static_args: as there. use_eq_store: the store may be written again, with an equal
    value. unk_names is taken for JAX's sake. Result: the wrapped function, and a function that
    tells the extra after a call.

    >>> from numjet.extend import linear_util
    >>> @linear_util.transformation_with_aux2
    ... def measured(f, store, x):
    ...     store.store("extra")
    ...     return f(x)
    >>> wrapped, extra = measured(linear_util.wrap_init(lambda x: x + 1))
    >>> wrapped.call_wrapped(5), extra()
    (6, 'extra')
    """
    store = EqualStore() if use_eq_store else Store()
    wrapped = fun.wrap(gen, gen_static_args, store)
    return wrapped.with_unknown_names() if unk_names else wrapped, lambda: store.val


@_curried
def transformation(gen: Callable, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """A wrapped function inside a generator.

    gen(*static, *args, **kwargs): yields (args, kwargs) for fun, gets its result and yields the
    result of the whole. fun: a WrappedFun. gen_static_args: the generator's first arguments. Usable
    as a decorator of gen.

    >>> from numjet.extend import linear_util
    >>> @linear_util.transformation
    ... def doubled(x):
    ...     out = yield (2 * x,), {}
    ...     yield out
    >>> doubled(linear_util.wrap_init(lambda x: x + 1)).call_wrapped(5)
    11
    """
    return fun.wrap(_by_generator(gen), gen_static_args, None)


@_curried
def transformation_with_aux(
    gen: Callable, fun: WrappedFun, *gen_static_args: Any
) -> tuple[WrappedFun, Callable[[], Any]]:
    """As `transformation`, for a generator that yields (result, extra) last.

    gen, fun, gen_static_args: as there. Result: the wrapped function, and a function that tells the
    extra after a call.

    >>> from numjet.extend import linear_util
    >>> @linear_util.transformation_with_aux
    ... def measured(x):
    ...     out = yield (x,), {}
    ...     yield out, "extra"
    >>> wrapped, extra = measured(linear_util.wrap_init(lambda x: x + 1))
    >>> wrapped.call_wrapped(5), extra()
    (6, 'extra')
    """
    store = Store()
    return fun.wrap(_by_generator_with_aux(gen), gen_static_args, store), lambda: store.val


@remembered("transformations by generators", 1024)
def _by_generator(gen: Callable) -> Callable:
    def run(f: Callable, *args: Any, **kwargs: Any) -> Any:
        return _generate(gen, f, args, kwargs)

    run.__name__ = getattr(gen, "__name__", "transformation")
    return run


@remembered("transformations by generators with more results", 1024)
def _by_generator_with_aux(gen: Callable) -> Callable:
    def run(f: Callable, store: Store, *args: Any, **kwargs: Any) -> Any:
        out, extra = _generate(gen, f, args, kwargs)
        store.store(extra)
        return out

    run.__name__ = getattr(gen, "__name__", "transformation")
    return run


def _generate(gen: Callable, f: Callable, args: tuple, kwargs: dict) -> Any:
    steps = gen(*args, **kwargs)
    inner_args, inner_kwargs = next(steps)
    try:
        found = f(*inner_args, **inner_kwargs)
    except BaseException:
        steps.close()
        raise
    out = steps.send(found)
    steps.close()  # ends a `with` around the last yield; other code behind it does not run
    return out


def merge_linear_aux(aux1: Callable, aux2: Callable) -> tuple[bool, Any]:
    """Which of two tellers of extras has one: (True, extra) for the first, else (False, extra).

    aux1, aux2: functions that transformations with extras gave. Raises StoreException where none or
    both have.

    >>> from numjet.extend import linear_util
    >>> def empty():
    ...     raise linear_util.StoreException("empty")
    >>> linear_util.merge_linear_aux(lambda: "extra", empty)
    (True, 'extra')
    """
    try:
        first = aux1()
    except StoreException:
        try:
            return False, aux2()
        except StoreException:
            raise StoreException("neither store occupied") from None
    try:
        aux2()
    except StoreException:
        return True, first
    raise StoreException("both stores occupied")


def cache(call: Callable, *, explain: Callable | None = None) -> Callable:
    """`call(fun, *args)`, remembered by the wrapped function and the arguments.

    call: a function of a WrappedFun and hashable arguments. It is remembered as long as the
    function itself lives; what it put into the function's stores is put there again. explain is
    taken for JAX's sake.

    >>> from numjet.extend import linear_util
    >>> count = linear_util.cache(lambda fun, x: fun.call_wrapped(x))
    >>> count(linear_util.wrap_init(abs), -3)
    3
    """
    del explain  # tells why a function is called anew, which `log_compiles` does here
    known: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()

    def cached(fun: WrappedFun, *args: Any) -> Any:
        results = known.setdefault(fun.f, {})
        key = (fun.transforms, fun.params, args)
        if key in results:
            out, stores = results[key]
            fun.populate_stores(stores)
            return out
        out = call(fun, *args)
        results[key] = out, tuple([None if s is None else s.val for s in fun.stores])
        return out

    cached.cache_clear = known.clear  # type: ignore[attr-defined]
    return cached


__all__ = [
    "StoreException", "WrappedFun", "cache", "merge_linear_aux", "transformation",
    "transformation2", "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__]
