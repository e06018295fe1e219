"""The public exceptions of numjet."""
from numjet.base.errors import (
    ConcretizationTypeError as ConcretizationTypeError,
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    InternalError as InternalError,
    JAXIndexError as JAXIndexError,
    JaxprTypeError as JaxprTypeError,
    JAXTypeError as JAXTypeError,
    KeyReuseError as KeyReuseError,
    NonConcreteBooleanIndexError as NonConcreteBooleanIndexError,
    TracerArrayConversionError as TracerArrayConversionError,
    TracerBoolConversionError as TracerBoolConversionError,
    TracerIntegerConversionError as TracerIntegerConversionError,
    UnexpectedTracerError as UnexpectedTracerError,
)

# What programs catch for failures while compiled code runs.
JaxRuntimeError = InternalError
