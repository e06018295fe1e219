"""Classes of fields, as `dataclasses` makes them, in a tenth of its time.

`@record` takes the annotations of a class as its fields: it writes `__init__`, and `__repr__`,
`__eq__` and `__hash__` where they are not there. For: the compiler, whose forty such classes took
a third of what importing it takes. `field` gives a fresh default, `replace` copies with changes.
What would break it: ClassVar and InitVar, which it does not know.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")

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
        "__init__": _init(names, defaults, frozen, hasattr(cls, "__post_init__")),
    }
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


def _init(
    names: tuple[str, ...], defaults: dict[str, Any], frozen: bool, post: bool
) -> Callable[..., None]:
    known: dict[str, Any] = {"_set": object.__setattr__, "_missing": _MISSING}
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
