"""The words of the notation for native code: types, records in memory, and functions of them.

A native function is a Python function under `@native` whose arguments are annotated with the types
declared here. `builder.notation` compiles it to LLVM IR; called from Python it runs as it stands,
on memory read and written by ctypes, so that tests can step through it. For: the native layer and
the runtime. What would break it: a record whose fields are declared in another order than they lie
in (the layouts of foreign objects are tried before use, see `native.layout`).

The notation is Python's: assignments, `if`, `while`, `for k in range(...)`, `break`, `continue`,
`return`, `match` on integers, arithmetic and comparisons of integers of 64 bits, calls of native
functions and of functions whose addresses stand in records. Beyond that:

    x.field, x.field = v     a field of the record at x           p[k], p[k] = v   an element
    p[k:]                    the address of element k             p + n            n bytes further
    place(x, "field")        the address of a field               Type(x)          a conversion
    stack(Type, n)           room for n values in this call       NULL             no address
    stack_of(R), stack_records(R, n)   the same for records

Comparisons are signed; `below` compares as unsigned, `>>` keeps the sign and `lshr` does not, `//`
cuts toward zero. Arithmetic wraps at 64 bits in native code, where Python's numbers grow: what may
be more is written `Int(...)`.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

T = TypeVar("T")

# ------------------------------------------------------------------ numbers


class Int(int):
    """An integer of 64 bits; as a conversion also of an address, and of more bits by cutting."""

    def __new__(cls, x: Any = 0) -> Int:
        bits = SCALARS[cls][1] * 8
        whole = x._at if isinstance(x, Pointer) else int(x)
        return int.__new__(cls, (whole + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1))


class Int32(Int):
    """An integer of 32 bits in memory and as an argument."""


class Int8(Int):
    """A byte, with a sign."""


class Double(float):
    """A number of double precision."""


class Single(float):
    """A number of single precision."""

    def __new__(cls, x: Any = 0.0) -> Single:
        return float.__new__(cls, ctypes.c_float(x).value)


# Each scalar's type in LLVM IR, bytes, and type in ctypes. (Truth values are `bool`.)
SCALARS: dict[type, tuple[str, int, Any]] = {
    Int: ("i64", 8, ctypes.c_int64),
    Int32: ("i32", 4, ctypes.c_int32),
    Int8: ("i8", 1, ctypes.c_int8),
    Double: ("double", 8, ctypes.c_double),
    Single: ("float", 4, ctypes.c_float),
    bool: ("i1", 1, ctypes.c_bool),
}


# ------------------------------------------------------------------ addresses


class Pointer:
    """An address of no declared content. `keep` is what owns the memory, where Python made it."""

    __slots__ = ("_at", "_keep")
    if TYPE_CHECKING:
        _at: int
        _keep: Any
        __orig_class__: Any

    def __init__(self, at: Any = 0, keep: Any = None) -> None:
        set_ = object.__setattr__
        set_(self, "_at", at._at if isinstance(at, Pointer) else int(at or 0))
        set_(self, "_keep", at._keep if isinstance(at, Pointer) else keep)

    def __bool__(self) -> bool:
        return self._at != 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pointer) and other._at == self._at

    def __hash__(self) -> int:
        return hash(self._at)

    def __add__(self, n: int) -> Any:
        return getattr(self, "__orig_class__", type(self))(self._at + n, self._keep)

    def __lt__(self, other: Pointer) -> bool:
        return self._at < other._at

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._at:#x})"


NULL: Any = Pointer(0)


class Array(Pointer, Generic[T]):
    """The address of values one after another: `Array[Int]`, `Array[Object]` (of addresses)."""

    __slots__ = ("__orig_class__",)

    @property
    def _element(self) -> Any:
        return self.__orig_class__.__args__[0]

    def __getitem__(self, k: Any) -> Any:
        element, size = self._element, size_of(self._element)
        if isinstance(k, slice):
            return _array(element, self._at + k.start * size, self._keep)
        return read(element, self._at + k * size)

    def __setitem__(self, k: int, value: Any) -> None:
        write(self._element, self._at + k * size_of(self._element), value)


class Records(Pointer, Generic[T]):
    """The address of records one after another: an element is the address of one."""

    __slots__ = ("__orig_class__",)

    @property
    def _element(self) -> Any:
        return self.__orig_class__.__args__[0]

    def __getitem__(self, k: Any) -> Any:
        at = self._at + (k.start if isinstance(k, slice) else k) * layout_of(self._element).size
        if isinstance(k, slice):
            return _records(self._element, at, self._keep)
        return self._element(at, self._keep)


class Inline(Array[T]):
    """As a field: the values begin in the record itself, so the field is their address."""


def _array(element: Any, at: int, keep: Any = None) -> Array:
    return Array[element](at, keep)


def _records(element: Any, at: int, keep: Any = None) -> Records:
    return Records[element](at, keep)


class Record(Pointer):
    """The address of declared fields: the annotations of a subclass, in order.

    `found` are fields whose places were found by trying, when they are not declared in order;
    `sized` says which field counts the elements of which other, `room` how many an inline field
    has; fields of a `packed` record may lie at any address; `python` is the class of the objects,
    of which a checked build makes sure.
    """

    __slots__ = ()
    found: ClassVar[dict[str, int] | None] = None
    sized: ClassVar[dict[str, str]] = {}
    room: ClassVar[dict[str, int]] = {}
    packed: ClassVar[bool] = False
    python: ClassVar[Any] = None

    def __getattr__(self, name: str) -> Any:
        offset, kind = layout_of(type(self)).field(name)
        if not self._at:
            raise ValueError(f"{type(self).__name__}.{name} was read at NULL")
        if getattr(kind, "__origin__", None) is Inline:
            return _array(kind.__args__[0], self._at + offset, self._keep)
        return read(kind, self._at + offset)

    def __setattr__(self, name: str, value: Any) -> None:
        offset, kind = layout_of(type(self)).field(name)
        write(kind, self._at + offset, value)


def _meant(text: str, names: dict[str, object]) -> Any:
    """The type that an annotation is written for; most are one word."""
    return names[text] if text in names else eval(text, names)


def _annotated(record: type[Record]) -> Iterator[tuple[str, type[Record], Any]]:
    """The fields of a record, in order: each one's name, class and what is written for its type."""
    for base in reversed(record.__mro__):
        if issubclass(base, Record) and base is not Record:
            for name, text in base.__annotations__.items():
                if "ClassVar" not in str(text):
                    yield name, base, text


class Layout:
    """Where the fields of a record lie and of what types they are, and its size."""

    def __init__(self, record: type[Record]) -> None:
        self.record = record
        self.fields: dict[str, tuple[int, Any]] = {}
        end = 0
        for name, base, text in _annotated(record):
            names = vars(sys.modules[base.__module__])
            kind = _meant(text, names) if isinstance(text, str) else text
            if "found" in base.__dict__:
                assert base.found is not None
                self.fields[name] = (base.found.get(name, -1), kind)
                continue
            inline = getattr(kind, "__origin__", None) is Inline
            size = size_of(kind.__args__[0] if inline else kind)
            end = -(-end // size) * size
            self.fields[name] = (end, kind)
            end += size * base.room.get(name, 0) if inline else size
        self.size = -(-end // 8) * 8

    def field(self, name: str) -> tuple[int, Any]:
        """The offset and the type of a field."""
        try:
            offset, kind = self.fields[name]
        except KeyError:
            raise AttributeError(f"{self.record.__name__} has no field {name}") from None
        if offset < 0:
            raise AttributeError(f"the place of {self.record.__name__}.{name} was not found")
        return offset, kind


_layouts: dict[type, Layout] = {}


def layout_of(record: type) -> Layout:
    """The layout of a record, made once (and anew when places are found)."""
    known = _layouts.get(record)
    if known is None:
        known = _layouts[record] = Layout(record)
    return known


def place_fields(record: type[Record], places: dict[str, int]) -> None:
    """Say where the fields of a record with `found` lie."""
    record.found = places
    _layouts.clear()


def words(record: type[Record]) -> list[str]:
    """The names of a record's fields in order, for tables of 64-bit words."""
    return [name for name, _, _ in _annotated(record)]


def zeros(record: type[Record]) -> Any:
    """A record of zeros, which lives as long as what refers to it does."""
    words = (ctypes.c_int64 * (layout_of(record).size // 8))()
    return record(ctypes.addressof(words), [words])


def size_of(kind: Any) -> int:
    """The bytes of a value of a type."""
    return SCALARS[kind][1] if kind in SCALARS else 8


# ------------------------------------------------------------------ memory, from Python


def read(kind: Any, at: int) -> Any:
    """The value of a type at an address."""
    if not at:
        raise ValueError(f"a {getattr(kind, '__name__', kind)} was read at NULL")
    if kind in SCALARS:
        return SCALARS[kind][2].from_address(at).value
    return typed(kind, ctypes.c_size_t.from_address(at).value)


def write(kind: Any, at: int, value: Any) -> None:
    """Store a value of a type at an address."""
    if not at:
        raise ValueError(f"a {getattr(kind, '__name__', kind)} was written at NULL")
    if kind in SCALARS:
        SCALARS[kind][2].from_address(at).value = value
    else:
        ctypes.c_size_t.from_address(at).value = address_of(value)


def address_of(x: Any) -> int:
    """What an address or a native function is as a number."""
    if isinstance(x, Pointer):
        return x._at
    if isinstance(x, Call):
        return x.at
    return ctypes.cast(x.callback(), ctypes.c_void_p).value or 0 if isinstance(x, Native) else x


def typed(kind: Any, at: Any) -> Any:
    """A value that came as a number, as the type that was declared for it."""
    if kind is None or kind is type(None):
        return None
    if kind in SCALARS:
        return at
    origin = getattr(kind, "__origin__", kind)
    if origin in (Array, Inline):
        return _array(kind.__args__[0], Pointer(at)._at)
    if origin is Records:
        return _records(kind.__args__[0], Pointer(at)._at)
    if isinstance(origin, type) and issubclass(origin, Pointer):
        return origin(at)
    return Call(kind, Pointer(at)._at)


# ------------------------------------------------------------------ functions

# The exception that a call from Python left, as the interpreter's error indicator would have it.
pending: list[BaseException] = []


class Call:
    """A function at an address, of a declared type: `Callable[[argument, ...], result]`."""

    def __init__(self, kind: Any, at: int, name: str = "") -> None:
        *self.arguments, self.result = kind.__args__
        self.at, self.name = at, name

    def __eq__(self, other: object) -> bool:
        return self.at == (other.at if isinstance(other, Call) else address_of(other))

    def __hash__(self) -> int:
        return hash(self.at)

    def __call__(self, *given: Any) -> Any:
        native = ctypes.PYFUNCTYPE(_ctype(self.result), *map(_ctype, self.arguments))(self.at)
        special = _indicator(self.at)
        if special is not None:
            return special(self.result)
        numbers = [
            x if kind in SCALARS else address_of(x)
            for x, kind in zip(given, self.arguments, strict=True)
        ]
        if pending:
            raise RuntimeError("a function was called while an exception is set") from pending[0]
        try:
            out = native(*numbers)
        except BaseException as error:
            pending.append(error)
            out = -1 if self.result in SCALARS else 0
        return typed(self.result, out)


@functools.cache
def _indicator(at: int) -> Callable | None:
    """The error indicator's own functions, on the exceptions that ctypes has raised."""

    def address(name: str) -> int | None:
        return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value

    if at == address("PyErr_Occurred"):
        return lambda result: typed(result, id(type(pending[0])) if pending else 0)
    if at == address("PyErr_Clear"):
        return lambda result: pending.clear()
    if at in (address("PyEval_SaveThread"), address("PyEval_RestoreThread")):
        return lambda result: typed(result, 0)  # the one who runs this holds the lock
    return None


def _ctype(kind: Any) -> Any:
    if kind in (None, type(None)):
        return None
    return SCALARS[kind][2] if kind in SCALARS else ctypes.c_void_p


class Native:
    """A native function. Called from Python, it runs as Python."""

    def __init__(self, function: Callable, name: str, exported: bool) -> None:
        functools.update_wrapper(self, function)
        self.function, self.name, self.exported = function, name, exported
        self._callback: Any = None

    def types(self) -> tuple[list[Any], Any]:
        """The types of the arguments and of the result."""
        code, names = self.function.__code__, self.scope()
        notes = {
            k: eval(v, names) if isinstance(v, str) else v
            for k, v in self.function.__annotations__.items()
        }
        arguments = [notes[name] for name in code.co_varnames[: code.co_argcount]]
        return arguments, notes.get("return")

    def scope(self) -> dict[str, Any]:
        """What the names that the function does not bind mean."""
        cells = self.function.__closure__ or ()
        held = zip(self.function.__code__.co_freevars, cells, strict=True)
        return {**self.function.__globals__, **{name: cell.cell_contents for name, cell in held}}

    def callback(self) -> Any:
        """The function for native code that calls it back, as Python."""
        if self._callback is None:
            arguments, result = self.types()
            self._callback = ctypes.PYFUNCTYPE(_ctype(result), *map(_ctype, arguments))(self)
        return self._callback

    def __call__(self, *given: Any) -> Any:
        arguments, result = self.types()
        if len(given) != len(arguments):
            raise TypeError(f"{self.name} takes {len(arguments)} arguments, not {len(given)}")
        made = [
            x if kind in SCALARS or isinstance(x, (Call, Native)) else typed(kind, x)
            for x, kind in zip(given, arguments, strict=True)
        ]
        out = self.function(*made)
        return typed(result, out) if out is NULL else out


def run_in_python(function: Native, *given: Any) -> Any:
    """What a native function does, as Python; an exception that it leaves set is raised. An object
    that it returns is taken over by the caller."""
    pending.clear()
    out = function(*given)
    if pending:
        raise pending.pop()
    if not isinstance(out, Record):
        return out
    if not out:
        raise SystemError(f"{function.name} returned NULL without setting an exception")
    found = ctypes.cast(out._at, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(found))
    return found


def native(function: Any = None, *, name: str = "", exported: bool = False) -> Any:
    """Make a Python function native. exported: it is called from outside of its module."""
    if function is None:
        return lambda f: Native(f, name or f.__name__, exported)
    return Native(function, name or function.__name__, exported)


class External:
    """A function of the process or of the linker, by its symbol; `variadic` from argument so many
    on."""

    def __init__(self, symbol: str, kind: Any, variadic: int = 0) -> None:
        self.symbol, self.kind, self.variadic = symbol, kind, variadic

    def __call__(self, *given: Any) -> Any:
        address = ctypes.cast(getattr(ctypes.CDLL(None), self.symbol), ctypes.c_void_p).value
        return Call(self.kind, address or 0, self.symbol)(*given)


class Static:
    """A record that a module holds, all zero or as `initial` says of its integers. exported: it is
    seen from outside."""

    def __new__(
        cls, record: Any, name: str, initial: dict[str, int] | None = None, exported: bool = False
    ) -> Any:
        made = record(*_room(layout_of(record).size))
        for field, value in (initial or {}).items():
            setattr(made, field, value)
        STATICS[id(made)] = (made, name, initial or {}, exported)
        return made


STATICS: dict[int, tuple[Any, str, dict[str, int], bool]] = {}

# ------------------------------------------------------------------ operations


def place(x: Record, name: str) -> Array:
    """The address of a field, as of an array of one."""
    offset, kind = layout_of(type(x)).field(name)
    return _array(kind, x._at + offset, x._keep)


def stack(kind: Any, n: int = 1) -> Any:
    """Room for `n` values, for as long as the function runs."""
    return _array(kind, *_room(n * size_of(kind)))


def stack_of(record: Any) -> Any:
    """A record for as long as the function runs."""
    return record(*_room(layout_of(record).size))


def stack_records(record: Any, n: int) -> Any:
    """`n` records for as long as the function runs."""
    return _records(record, *_room(n * layout_of(record).size))


def _room(size: int) -> tuple[int, Any]:
    memory = (ctypes.c_char * (size + 64))()
    return -(-ctypes.addressof(memory) // 64) * 64, memory


def copy(to: Array, source: Array, n: int) -> None:
    """`n` elements from one place to another; the places do not overlap."""
    if n:
        ctypes.memmove(to._at, source._at, n * size_of(to._element))


def clear(to: Array, n: int) -> None:
    """Make `n` elements zero."""
    if n:
        ctypes.memset(to._at, 0, n * size_of(to._element))


def lshr(x: int, n: int) -> int:
    """x shifted right, filled with zeros."""
    return Int((x & 0xFFFFFFFFFFFFFFFF) >> n)


def ones(x: int) -> int:
    """How many bits of x are 1."""
    return (x & 0xFFFFFFFFFFFFFFFF).bit_count()


def below(a: int, b: int) -> bool:
    """a < b, as numbers without a sign."""
    return a & 0xFFFFFFFFFFFFFFFF < b & 0xFFFFFFFFFFFFFFFF


# Memory orders: of LLVM IR. From Python there is one thread, and every order is kept.
RELAXED, ACQUIRE, RELEASE = "monotonic", "acquire", "release"
ACQUIRE_RELEASE, SEQUENTIAL = "acq_rel", "seq_cst"


def atomic_load(p: Array, order: str) -> int:
    """An integer that other threads may change."""
    return p[0]


def atomic_store(p: Array, x: int, order: str) -> None:
    """Store an integer that other threads read."""
    p[0] = x


def atomic_add(p: Array, x: int, order: str) -> int:
    """Add to an integer; answers what it was."""
    before = p[0]
    p[0] = p._element(before + x)
    return before


def atomic_exchange(p: Array, x: int, order: str) -> int:
    """Store an integer; answers what was there."""
    before = p[0]
    p[0] = x
    return before


def compare_exchange(p: Array, expected: int, x: int, order: str, otherwise: str) -> int:
    """Store x where `expected` is; answers what was there. otherwise: the order if it was not."""
    before = p[0]
    if before == expected:
        p[0] = x
    return before


def fence(order: str) -> None:
    """Nothing before is seen after what follows."""


def pause() -> None:
    """Tell the core that this thread spins."""
