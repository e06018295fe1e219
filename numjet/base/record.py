"""Classes of fields, as `dataclasses` and `typing` make them, in a tenth of their time.

`@record` takes the annotations of a class as its fields: it writes `__init__`, and `__repr__`,
`__eq__` and `__hash__` where they are not there. `field` gives a fresh default, `replace` copies
with changes. `NamedTuple` is the base of tuples with names. Whoever imports the package waits for
some fifty such classes. What would break it: ClassVar and InitVar, which it does not know.
"""

from __future__ import annotations

import operator
from _collections import _tuplegetter
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

T = TypeVar("T")

# Constructors by their number of fields, named for these in `_named`: to compile one for each class
# takes thirty times as long.
_FROZEN = (
    lambda self: None,
    lambda self, a: _set(self, "a", a),
    lambda self, a, b: _set(self, "a", a) or _set(self, "b", b),
    lambda self, a, b, c: _set(self, "a", a) or _set(self, "b", b) or _set(self, "c", c),
    lambda self, a, b, c, d: (
        _set(self, "a", a) or _set(self, "b", b) or _set(self, "c", c) or _set(self, "d", d)
    ),
)
_TUPLES = (
    lambda _cls: _new(_cls, ()),
    lambda _cls, a: _new(_cls, (a,)),
    lambda _cls, a, b: _new(_cls, (a, b)),
    lambda _cls, a, b, c: _new(_cls, (a, b, c)),
    lambda _cls, a, b, c, d: _new(_cls, (a, b, c, d)),
    lambda _cls, a, b, c, d, e: _new(_cls, (a, b, c, d, e)),
    lambda _cls, a, b, c, d, e, f: _new(_cls, (a, b, c, d, e, f)),
    lambda _cls, a, b, c, d, e, f, g: _new(_cls, (a, b, c, d, e, f, g)),
    lambda _cls, a, b, c, d, e, f, g, h: _new(_cls, (a, b, c, d, e, f, g, h)),
    lambda _cls, a, b, c, d, e, f, g, h, i: _new(_cls, (a, b, c, d, e, f, g, h, i)),
    lambda _cls, a, b, c, d, e, f, g, h, i, j: _new(_cls, (a, b, c, d, e, f, g, h, i, j)),
)
_set, _new = object.__setattr__, tuple.__new__

_MISSING: Any = object()


class _Fresh:
    """A default that is made anew for each object."""

    __slots__ = ("factory",)

    def __init__(self, factory: Callable[[], Any]) -> None:
        self.factory = factory


def field(*, default_factory: Callable[[], Any]) -> Any:
    """The default of a field: what `default_factory()` makes, for each object anew."""
    return _Fresh(default_factory)


@dataclass_transform(field_specifiers=(field,))
def record(
    *, frozen: bool = False, eq: bool = True, slots: bool = False
) -> Callable[[type[T]], type[T]]:
    """A decorator that makes a class of its annotations.

    frozen: fields are set once. eq: objects of equal fields are equal, and with `frozen` may be
    keys. slots: objects have no other attributes.
    """

    def decorate(cls: type[T]) -> type[T]:
        return _made(cls, frozen, eq, slots)

    return decorate


def replace(x: T, **changes: Any) -> T:
    """A copy of a record with other values in some fields."""
    for name in x._fields:  # type: ignore[attr-defined]
        if name not in changes:
            changes[name] = getattr(x, name)
    return type(x)(**changes)


def _made(cls: Any, frozen: bool, eq: bool, slots: bool) -> Any:
    own = cls.__dict__
    names = tuple(cls.__annotations__)  # its own: none are inherited
    defaults = {name: own[name] for name in names if name in own}
    names = tuple(dict.fromkeys((*getattr(cls, "_fields", ()), *names)))
    defaults = {**getattr(cls, "_defaults", {}), **defaults}
    new: dict[str, Any] = {
        "_fields": names,
        "_defaults": defaults,
        "__match_args__": names,
    }
    if "__init__" not in own:
        new["__init__"] = _init(names, defaults, frozen, hasattr(cls, "__post_init__"))
    if "__repr__" not in own:
        new["__repr__"] = _repr
    if eq and "__eq__" not in own:
        new["__eq__"], new["__hash__"] = _comparison(names, frozen)
    if frozen:
        new["__setattr__"] = new["__delattr__"] = _refuse
    if slots:
        kept = {k: v for k, v in own.items() if k not in ("__dict__", "__weakref__", *names)}
        return type(cls)(cls.__name__, cls.__bases__, {**kept, **new, "__slots__": names})
    for name, default in defaults.items():
        if type(default) is _Fresh and name in own:
            delattr(cls, name)
    for name, value in new.items():
        setattr(cls, name, value)
    return cls


def _named(name: str, code: Any, names: tuple[str, ...], defaults: tuple[Any, ...]) -> Any:
    """A constructor of `_FROZEN` or `_TUPLES` with these fields' names."""
    called = dict(zip(code.co_varnames[1:], names, strict=True))
    code = code.replace(
        co_name=name,
        co_qualname=name,
        co_varnames=(code.co_varnames[0], *names),
        co_consts=tuple([called.get(x, x) for x in code.co_consts]),
    )
    return FunctionType(code, globals(), name, defaults)


def _init(
    names: tuple[str, ...], defaults: dict[str, Any], frozen: bool, post: bool
) -> Callable[..., None]:
    values = tuple(defaults.values())
    if frozen and not post and len(names) < len(_FROZEN) and _Fresh not in map(type, values):
        return _named("__init__", _FROZEN[len(names)].__code__, names, values)
    known: dict[str, Any] = {"_set": _set, "_missing": _MISSING}
    arguments, lines = [], []
    for name in names:
        value = name
        if name not in defaults:
            arguments.append(name)
        elif type(defaults[name]) is _Fresh:
            known[f"_make_{name}"] = defaults[name].factory
            arguments.append(f"{name}=_missing")
            value = f"_make_{name}() if {name} is _missing else {name}"
        else:
            known[f"_is_{name}"] = defaults[name]
            arguments.append(f"{name}=_is_{name}")
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if post:
        lines.append("self.__post_init__()")
    head = f"def __init__({', '.join(['self', *arguments])}):"
    exec("\n ".join([head, *lines] if lines else [head, "pass"]), known)
    return known["__init__"]


def _repr(self: Any) -> str:
    inside = ", ".join([f"{name}={getattr(self, name)!r}" for name in self._fields])
    return f"{type(self).__qualname__}({inside})"


def _refuse(self: Any, name: str, *_: Any) -> None:
    raise AttributeError(f"{type(self).__name__}.{name} is set once, when the object is made.")


def _comparison(names: tuple[str, ...], frozen: bool) -> tuple[Any, Any]:
    values: Callable[[Any], Any] = operator.attrgetter(*names) if names else type

    def equal(self: Any, other: Any) -> Any:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def hashed(self: Any) -> int:
        return hash(values(self))

    return equal, hashed if frozen else None


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class _Naming(type):
        """Makes classes that derive from `NamedTuple` classes of tuples."""

        def __new__(cls: type, name: str, bases: tuple[type, ...], own: dict[str, Any]) -> type:
            if not bases:  # NamedTuple itself
                return type.__new__(cls, name, bases, own)
            names = tuple(own.get("__annotations__", ()))
            if len(names) >= len(_TUPLES):
                raise TypeError(f"{name} has {len(names)} fields: `_TUPLES` ends before.")
            defaults = {x: own[x] for x in names if x in own}
            made = {
                "__new__": _named(
                    "__new__", _TUPLES[len(names)].__code__, names, (*defaults.values(),)
                ),
                "_fields": names,
                "_field_defaults": defaults,
                "__match_args__": names,
                "__slots__": (),
                **_METHODS,
                **own,
                **{x: _tuplegetter(i, f"Field number {i}.") for i, x in enumerate(names)},
            }
            return type.__new__(type, name, (tuple,), made)

    class NamedTuple(metaclass=_Naming):
        """The base of tuples with names, given by the annotations of a class, as of `typing`."""

        @classmethod
        def _make(cls: Any, values: Any) -> Any:
            """A tuple of this class from its fields' values."""
            return cls(*values)

        def _replace(self: Any, **changes: Any) -> Any:
            """A copy with other values in some fields."""
            made = [changes.pop(name, x) for name, x in zip(self._fields, self, strict=True)]
            if changes:
                raise ValueError(f"Got unexpected field names: {list(changes)!r}")
            return type(self)(*made)

        __replace__ = _replace  # for `copy.replace`

        def _asdict(self: Any) -> dict[str, Any]:
            """The fields by their names."""
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self: Any) -> str:
            inside = ", ".join([f"{k}={x!r}" for k, x in zip(self._fields, self, strict=True)])
            return f"{type(self).__name__}({inside})"

        def __getnewargs__(self: Any) -> tuple:
            return tuple(self)

    _METHODS = {
        name: vars(NamedTuple)[name]
        for name in "_make _replace __replace__ _asdict __repr__ __getnewargs__".split()
    }
