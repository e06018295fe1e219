"""The public exceptions of numjet."""
from numjet.base.errors import (
    ConcretizationTypeError as ConcretizationTypeError,
    InternalError as InternalError,
    NonConcreteBooleanIndexError as NonConcreteBooleanIndexError,
    TracerArrayConversionError as TracerArrayConversionError,
    TracerBoolConversionError as TracerBoolConversionError,
    TracerIntegerConversionError as TracerIntegerConversionError,
    UnexpectedTracerError as UnexpectedTracerError,
)

# What programs catch for failures while compiled code runs.
JaxRuntimeError = InternalError
