"""The exceptions a user of numjet can meet.

Any layer raises them. User mistakes get the types that programs written against this
programming model already catch (they derive from TypeError, ValueError, ...); faults of the
compiler itself are `InternalError`. Every message names the operation, what was expected,
what came, and the remedy.
"""

from __future__ import annotations


class NumjetTypeError(TypeError):
    """Base of the type errors of this module."""


class ConcretizationTypeError(NumjetTypeError):
    """A concrete value was needed where only shape and dtype are known (under a transformation)."""


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced array was used as a Python truth value."""


class TracerIntegerConversionError(ConcretizationTypeError):
    """A traced array was used where Python needs an integer."""


class TracerArrayConversionError(ConcretizationTypeError):
    """A traced array was handed to NumPy."""


class NonConcreteBooleanIndexError(IndexError):
    """A traced boolean mask was used as an index, so the result's shape is unknown."""


class UnexpectedTracerError(NumjetTypeError):
    """A tracer outlived the function it was made for (a side effect leaked it)."""


class InternalError(RuntimeError):
    """A fault of numjet itself: the compiler produced or met IR that breaks its own rules."""
