"""Narrow dtypes in compiled programs: operations on them, written for bytes and wider dtypes.

`graph.storage` asks for it; `core.narrow` says what operations on such values mean. A value is the
uint8 array of its bits. It is decoded - integers by shifts, floats by a table of their values -
computed with, and encoded by integer arithmetic, all of it in the same kernels. What would break
it: an operation that has a dtype among its params under another type than np.dtype.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core import dtypes, narrow
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.dtypes import bits, float32, int8, int32, uint8, uint32
from numjet.core.structural import convert, full
from numjet.ops import arithmetic as ar, logic
from numjet.ops.arrange import stack
from numjet.ops.bits import bitcast_convert_type
from numjet.ops.gather import gather
from numjet.ops.indexing import GatherDimensionNumbers
from numjet.ops.shape import expand_dims, reshape, select_n
from numjet.ops.slicing import index_in_dim
from numjet.transforms.stage import StageTrace

_ELEMENTS = GatherDimensionNumbers((), (0,), (0,))  # elements of a vector, by their positions


def computed(trace: StageTrace, eqn: Any, values: list, avals: list, results: list) -> list:
    """The results of an operation by wider dtypes."""
    primitive, params = eqn.primitive, eqn.params
    if primitive.name == "bitcast_convert_type":
        return [_bitcast(values[0], avals[0].dtype, params["new_dtype"])]
    whole = primitive.name in narrow.BITS
    operands = [
        decode(x, a.dtype, whole) if a.narrow else x for x, a in zip(values, avals, strict=True)
    ]
    dtype = next((a.dtype for a in (*results, *avals) if a.narrow), None)
    found = trace.record(primitive, operands, narrow.wide_params(params, dtype))
    outs = list(found) if primitive.multiple_results else [found]
    if primitive.name == "clz":
        outs = [ar.sub(outs[0], full(outs[0].aval.shape, 8 - bits(dtype), uint8))]
    done = []
    for out, aval in zip(outs, results, strict=True):
        if aval.narrow:
            of = avals[0].dtype if avals else aval.dtype
            if narrow.saturates(primitive, of, aval.dtype):
                out = _clipped(out, aval.dtype)
            out = encode(out, aval.dtype)
        done.append(out)
    return done


def _like(x: Any, value: Any) -> Any:
    return full(x.aval.shape, value, x.aval.dtype)


def _clipped(x: Any, dtype: Any) -> Any:
    least, most = narrow.limits(dtype)
    if dtypes.is_integer(dtype):
        return ar.min(_like(x, int(most)), ar.max(_like(x, int(least)), x))
    if np.isinf(narrow.values(dtype)).any():
        return x
    x = select_n(logic.eq(x, _like(x, np.inf)), x, _like(x, most))
    return select_n(logic.eq(x, _like(x, -np.inf)), x, _like(x, least))


def decode(x: Any, dtype: Any, whole: bool = False) -> Any:
    """The values of bytes: int8, uint8 or float32. `whole`: the bits of an integer, in uint8."""
    size = bits(dtype)
    if dtype in dtypes.NARROW_FLOATS:
        if size < 8:
            x = logic.bitwise_and(x, _like(x, (1 << size) - 1))
        found = narrow.values(dtype)
        table = ArrayImpl(found, ShapedArray(found.shape, float32))
        positions = expand_dims(convert(x, int32), (x.aval.ndim,))
        return gather(table, positions, _ELEMENTS, (1,), mode="promise_in_bounds")
    if whole or dtype in dtypes.NARROW_UNSIGNED:
        return logic.bitwise_and(x, _like(x, (1 << size) - 1))
    signed = bitcast_convert_type(x, int8)
    by = _like(signed, 8 - size)
    return logic.shift_right_arithmetic(logic.shift_left(signed, by), by)


def encode(x: Any, dtype: Any) -> Any:
    """The bytes of values in a wide dtype: integers wrap around, floats are rounded to nearest."""
    if dtype in dtypes.NARROW_FLOATS:
        return _encode_exponents(x) if dtype.name == "float8_e8m0fnu" else _encode_float(x, dtype)
    if x.aval.dtype != uint8:
        x = bitcast_convert_type(convert(x, int8), uint8)
    return logic.bitwise_and(x, _like(x, (1 << bits(dtype)) - 1))


def _encode_exponents(x: Any) -> Any:
    """float8_e8m0fnu: the exponent of float32, halves rounded up."""
    word = bitcast_convert_type(x, uint32)
    exponent = logic.shift_right_logical(word, _like(word, 23))
    # A mantissa of one half and more goes to the next exponent. What is above 2**-127, whose code
    # is 0, becomes 2**-126.
    part = logic.bitwise_and(word, _like(word, 0x7FFFFF))
    subnormal = logic.eq(exponent, _like(word, 0))
    up = logic.ge(part, select_n(subnormal, _like(word, 0x400000), _like(word, 0x400001)))
    code = ar.add(exponent, convert(up, uint32))
    bad = logic.ge(code, _like(word, 255))  # infinities, NaN, the negative ones
    code = select_n(bad, code, _like(word, 255))
    zero = logic.eq(word, _like(word, 0))
    return convert(select_n(zero, code, _like(word, 255)), uint8)


def _encode_float(x: Any, dtype: Any) -> Any:
    """Round to nearest, ties to even: by integers where the result is normal, else by rounding the
    multiple of its least value. The format's numbers are read off its table of values."""
    table, size = narrow.values(dtype), bits(dtype)
    info = dtypes.finfo(dtype)
    mantissa = int(info.nmant)
    one = int(np.flatnonzero(table == 1.0)[0])  # the code of 1.0: its exponent is the bias
    bias = one >> mantissa
    least = float(table[1])
    half = 1 << (size - 1)
    top = int(np.flatnonzero(table == float(np.nanmax(table[np.isfinite(table)])))[0])
    special = np.array([np.inf, np.nan], np.float32).astype(dtype).view(np.uint8)
    beyond, nan = int(special[0]) & (2 * half - 1), int(special[1]) & (2 * half - 1)
    unsigned_zero = half < len(table) and bool(np.isnan(table[half]))

    word = bitcast_convert_type(x, uint32)
    sign = logic.shift_right_logical(word, _like(word, 31))
    word = logic.bitwise_and(word, _like(word, 0x7FFFFFFF))
    size_of = bitcast_convert_type(word, float32)
    drop = 23 - mantissa
    odd = logic.bitwise_and(logic.shift_right_logical(word, _like(word, drop)), _like(word, 1))
    rounded = logic.shift_right_logical(
        ar.add(ar.add(word, _like(word, (1 << (drop - 1)) - 1)), odd), _like(word, drop)
    )
    normal = ar.sub(rounded, _like(word, (127 - bias) << mantissa))
    below = convert(logic.round_even_p.bind(ar.mul(size_of, _like(size_of, 1 / least))), uint32)
    first = least * (1 << mantissa)  # the least normal value
    code = select_n(logic.lt(size_of, _like(size_of, first)), normal, below)
    over = logic.bitwise_or(
        logic.gt(code, _like(word, top)), logic.ge(size_of, _like(size_of, 2 * float(table[top])))
    )
    code = select_n(over, code, _like(word, beyond))
    missing = logic.gt(word, _like(word, 0x7F800000))
    code = select_n(missing, code, _like(word, nan))
    sign = ar.mul(sign, _like(word, half))
    # What stands for a NaN where there is none has a sign bit, which -NaN takes away.
    signed = logic.bitwise_or(code, sign) if size == 8 else logic.bitwise_xor(code, sign)
    if unsigned_zero:
        signed = select_n(logic.eq(code, _like(word, 0)), signed, code)
    return convert(signed, uint8)


def _bitcast(x: Any, old: Any, new: Any) -> Any:
    """The operand's bits, the first element's lowest, as elements of the new width; narrow ones as
    bytes, on both sides."""
    have, want = bits(old), bits(new)
    if old in dtypes.NARROW and have < 8:
        x = logic.bitwise_and(x, _like(x, (1 << have) - 1))
    held = uint8 if new in dtypes.NARROW else new
    if have == want:
        return bitcast_convert_type(x, held)
    if have > want:
        parts = x if have == 8 else bitcast_convert_type(x, uint8)
        if want == 8:
            return parts
        parts = bitcast_convert_type(parts, uint8)
        each = [
            logic.bitwise_and(
                logic.shift_right_logical(parts, _like(parts, k)), _like(parts, (1 << want) - 1)
            )
            for k in range(0, 8, want)
        ]
        shape = (*x.aval.shape, have // want)
        return reshape(_stacked(each), shape)
    whole = x
    if have < 8:
        count = min(8, want) // have
        shape = (*x.aval.shape[:-1], x.aval.shape[-1] // count, count)
        whole = reshape(x, shape)
        parts = [_part(whole, k) for k in range(count)]
        total = parts[0]
        for k in range(1, count):
            shifted = logic.shift_left(parts[k], _like(parts[k], k * have))
            total = logic.bitwise_or(total, shifted)
        whole = total
        if want <= 8:
            whole = reshape(whole, x.aval.shape[:-1])
            return whole if held == uint8 else bitcast_convert_type(whole, held)
    return bitcast_convert_type(whole, held)


def _stacked(parts: list) -> Any:
    return stack(parts, parts[0].aval.ndim)


def _part(x: Any, k: int) -> Any:
    return index_in_dim(x, k, x.aval.ndim - 1, False)
