"""The exceptions a user of numjet can meet.

Any layer raises them. User mistakes get the types that programs written against this
programming model already catch (they derive from TypeError, ValueError, ...); faults of the
compiler itself are `InternalError`. Every message names the operation, what was expected,
what came, and the remedy.
"""

from __future__ import annotations

from typing import Any


class JAXTypeError(TypeError):
    """Base of the type errors of this module."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class JAXIndexError(IndexError):
    """Base of the index errors of this module."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


def _text(tracer: object, what: str, context: str = "") -> str:
    """The message: the first argument is one already, or a tracer, as libraries give it."""
    if isinstance(tracer, str):
        return f"{tracer}\n{context}" if context else tracer
    origin = getattr(tracer, "origin", lambda: "")()
    return " ".join(filter(None, [f"{what}: {tracer!r}.", context, origin]))


class ConcretizationTypeError(JAXTypeError):
    """A concrete value was needed where only shape and dtype are known (under a transformation)."""

    def __init__(self, tracer: object, context: str = "") -> None:
        what = "Abstract tracer value encountered where concrete value is expected"
        super().__init__(_text(tracer, what, context))


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced array was used as a Python truth value."""

    def __init__(self, tracer: object) -> None:
        super().__init__(_text(tracer, "Attempted boolean conversion of traced array"))


class TracerIntegerConversionError(JAXTypeError):
    """A traced array was used where Python needs an integer."""

    def __init__(self, tracer: object) -> None:
        super().__init__(_text(tracer, "__index__() was called on a traced array"))


class TracerArrayConversionError(JAXTypeError):
    """A traced array was handed to NumPy."""

    def __init__(self, tracer: object) -> None:
        super().__init__(_text(tracer, "__array__() was called on a traced array"))


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index, so the result's shape is unknown."""

    def __init__(self, tracer: object) -> None:
        super().__init__(_text(tracer, "Array boolean indices must be concrete; got"))


class UnexpectedTracerError(JAXTypeError):
    """A tracer outlived the function it was made for (a side effect leaked it)."""

    def __init__(self, msg: str) -> None:
        super().__init__(msg)


def leaked(tracer: Any, where: str) -> UnexpectedTracerError:
    """The error for a tracer that outlived its trace."""
    origin, source = tracer.origin(), getattr(tracer, "source", None)
    traced_in = tracer.traced_in()
    if traced_in:
        origin = f"The function being traced when the value leaked was {traced_in}. {origin}"
    created = "" if source is None else f"The value was created on line {source}. "
    return UnexpectedTracerError(
        "Encountered an unexpected tracer. A function transformed by JAX had a side effect, "
        "allowing for a reference to an intermediate value with type "
        f"{tracer.aval.str_short()} wrapped in a {type(tracer).__name__} to escape the scope of "
        f"the transformation. {where}: a traced value ({tracer.aval.str_short()}) was used after "
        f"the function it belongs to had returned. {origin}{' ' if origin else ''}It leaked "
        "through global state: a variable, an attribute or a list. Return it from the function "
        f"instead. {created}The flag check_tracer_leaks finds what holds it."
    )


class KeyReuseError(JAXTypeError):
    """A PRNG key was used twice, with the flag `debug_key_reuse`."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class InvalidInputException(TypeError):  # noqa: N818 - the name programs see
    """A value to be differentiated is no array and no number."""


class JaxprTypeError(TypeError):
    """A jaxpr breaks the rules of jaxprs."""


class InconclusiveDimensionOperation(Exception):  # noqa: N818 - the name programs catch
    """Sizes that are expressions of dimension variables compare one way for some of their values
    and another for others."""


class JaxRuntimeError(RuntimeError):
    """A program failed while it ran: above all, a Python function that it calls."""


class InternalError(JaxRuntimeError):
    """A fault of numjet itself: the compiler produced or met IR that breaks its own rules."""


class IndivisibleError(ValueError):
    """An array's axis is no multiple of the parts that a sharding cuts it into."""


class ShardingTypeError(Exception):
    """Arrays whose axes are cut over Explicit axes of a mesh meet in an operation that does not say
    how its result is cut."""


class DuplicateSpecError(Exception):  # noqa: N818 - the name programs catch
    """A PartitionSpec that names an axis of the mesh twice."""


class XlaError(RuntimeError):
    """What a PJRT plugin reports: XLA's own text. `code`: its number in PJRT's list."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class TypePromotionError(ValueError):
    """Operands of dtypes that are not joined: with `numpy_dtype_promotion='strict'`, any that
    differ."""


# Tracebacks name them as users import them.
for _kind in (
    JAXTypeError, JAXIndexError, ConcretizationTypeError, TracerBoolConversionError,
    TracerIntegerConversionError, TracerArrayConversionError, NonConcreteBooleanIndexError,
    UnexpectedTracerError, KeyReuseError, JaxprTypeError, InconclusiveDimensionOperation,
    JaxRuntimeError, InternalError,
):  # fmt: skip
    _kind.__module__ = "numjet.errors"
