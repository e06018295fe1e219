"""Promotion of dtypes: the rules that are not NumPy's."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from numjet.core import dtypes


def test_products_have_the_dtype_of_one_operand():
    def join(a, b):
        return str(dtypes.join((np.dtype(a), False), (np.dtype(b), False))[0])

    assert join("int8", "uint8") == join("uint8", "int8") == "int8"
    assert join("uint32", "int8") == "uint32" and join("int16", "uint16") == "int16"
    assert join("float16", ml_dtypes.bfloat16) == "bfloat16"
    assert join(ml_dtypes.int4, "float16") == "float16" and join(ml_dtypes.int4, "int8") == "int8"
    assert dtypes.join((np.dtype("float16"), False), (np.dtype("float32"), True))[0] == "float16"
