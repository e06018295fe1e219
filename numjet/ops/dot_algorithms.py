"""Which arithmetic a product may use, as programs for accelerators name it: DotAlgorithm and its
presets.

A CPU computes a product in its operands' dtype, or wider. What a preset asks for beyond that is
done by converting; presets of 8-bit operands and of TF32 are refused, as there is no such
arithmetic.
"""
from __future__ import annotations

import enum
from typing import Any

import ml_dtypes
import numpy as np

from numjet.base import config
from numjet.base.record import NamedTuple

_F16, _BF16 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)


class DotAlgorithm(NamedTuple):
    """A product's arithmetic, field by field.

    lhs_precision_type, rhs_precision_type, accumulation_type: dtypes; lhs_component_count,
    rhs_component_count, num_primitive_operations: into how many parts an operand is cut, and how
    many of their products are added; allow_imprecise_accumulation: sums may be less exact.

    >>> import numpy as np
    >>> from numjet import lax
    >>> lax.DotAlgorithm(np.float32, np.float32, np.float32).lhs_component_count
    1
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Arithmetic by name: dtypes of the operands, and of the sum; X3, X6, X9: how many products of
    narrower parts make one.

    >>> from numjet import lax, numpy as jnp
    >>> x = jnp.ones((2, 2))
    >>> float(jnp.dot(x, x, precision=lax.DotAlgorithmPreset.F32_F32_F32)[0, 0])
    2.0
    """

    DEFAULT = 1
    ANY_F8_ANY_F8_F32 = 2
    ANY_F8_ANY_F8_F32_FAST_ACCUM = 3
    ANY_F8_ANY_F8_ANY = 4
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = 5
    F16_F16_F16 = 6
    F16_F16_F32 = 7
    BF16_BF16_BF16 = 8
    BF16_BF16_F32 = 9
    BF16_BF16_F32_X3 = 10
    BF16_BF16_F32_X6 = 11
    BF16_BF16_F32_X9 = 12
    TF32_TF32_F32 = 13
    TF32_TF32_F32_X3 = 14
    F32_F32_F32 = 15
    F64_F64_F64 = 16

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name

    @property
    def accumulation_type(self) -> Any:
        """The dtype of the sum; None where the operands decide."""
        return _SUMS.get(self.name)

    @property
    def supported_lhs_types(self) -> tuple | None:
        """The dtypes that the left operand may have; None where any may be."""
        if self.name.startswith("BF16") and not self.name.endswith(("_X3", "_X6", "_X9")):
            return _BF16.type, np.float32
        kind = {"F16": np.float16, "F64": np.float64, "DEFAULT": None, "ANY": None}.get(
            self.name.split("_")[0], np.float32
        )
        return kind if kind is None else (kind,)

    @property
    def supported_rhs_types(self) -> tuple | None:
        """The dtypes that the right operand may have: those of the left one."""
        return self.supported_lhs_types


_SUMS = {"F16_F16_F16": _F16, "BF16_BF16_BF16": _BF16, "F64_F64_F64": _F64} | dict.fromkeys(
    ("ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "F16_F16_F32", "BF16_BF16_F32",
     "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9",
     "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32"), _F32)
# What operands become first. Those of a float32 sum keep their digits, as on JAX's CPUs.
OPERANDS = {"F16_F16_F16": _F16, "BF16_BF16_BF16": _BF16, "F64_F64_F64": _F64}

# The `Precision` that comes closest where hardware offers a choice, if not the default one.
EXACTNESS = {"BF16_BF16_F32_X3": "HIGH"} | dict.fromkeys(
    ("BF16_BF16_F32_X6", "BF16_BF16_F32_X9", "F32_F32_F32", "F64_F64_F64"), "HIGHEST")


def of_convolution(precision: Any) -> Any:
    """What a convolution, which has no algorithms, makes of one: the name of the `Precision` that
    comes closest, None for the default; `precision` itself where it is no algorithm."""
    if isinstance(precision, str):
        precision = DotAlgorithmPreset.__members__.get(precision, precision)
    if isinstance(precision, DotAlgorithmPreset):
        return EXACTNESS.get(precision.name, "default").lower()
    return None if isinstance(precision, DotAlgorithm) else precision


def algorithm_of(precision: Any) -> DotAlgorithmPreset | None:
    """The preset that `precision` is, or names; None for what is no preset. Raises ValueError for
    a preset, or an algorithm spelled out, that a CPU does not have; where equations are only shown
    the preset may be any."""
    if isinstance(precision, str):
        precision = DotAlgorithmPreset.__members__.get(precision)
    if isinstance(precision, DotAlgorithm):
        raise ValueError(f"The precision {precision} is not supported by dot_general on CPU. Pass "
                         "a DotAlgorithmPreset.")
    if not isinstance(precision, DotAlgorithmPreset):
        return None
    if precision.name.startswith(("ANY_F8", "TF32")) and not config.jax_form():
        raise ValueError(f"The precision {precision.name!r} is not supported by dot_general on "
                         "CPU. Convert the operands to bfloat16 or float32.")
    return precision
