"""The public exceptions of numjet."""
from numjet.base.errors import (
    ConcretizationTypeError as ConcretizationTypeError,
    InternalError as InternalError,
    InternalError as JaxRuntimeError,
    NonConcreteBooleanIndexError as NonConcreteBooleanIndexError,
    TracerArrayConversionError as TracerArrayConversionError,
    TracerBoolConversionError as TracerBoolConversionError,
    TracerIntegerConversionError as TracerIntegerConversionError,
    UnexpectedTracerError as UnexpectedTracerError,
)
