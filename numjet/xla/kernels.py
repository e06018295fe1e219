"""Products, convolutions, sorts, Fourier transforms and factorizations that StableHLO has.

Methods named like the primitives that they stand for. For `xla.hlo`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.ops.dot_algorithms import EXACTNESS, DotAlgorithmPreset
from numjet.ops.fft import FftType
from numjet.xla.arrays import Arrays
from numjet.xla.writer import BOOL, WIDE, Value, numbers, spec


def _precision(precision: Any) -> str:
    """The attribute that says how exact both operands of a product are taken."""
    pair = precision if isinstance(precision, tuple) else (precision, precision)
    names = [
        EXACTNESS.get(p.name, "DEFAULT") if type(p) is DotAlgorithmPreset
        else getattr(p, "name", None) or "DEFAULT" for p in pair
    ]  # fmt: skip
    return f"precision_config = [{', '.join(f'#stablehlo<precision {n}>' for n in names)}]"


# From so many elements along the axis on, XLA's GPU compiler sorts floats by digits, if they are
# compared in the way that it looks for; below, the quickest comparison is best. Several arrays are
# sorted by digits from so many elements in all on.
_BY_DIGITS, _LONG = 1 << 12, 1 << 15
_FLOATS = frozenset(("float16", "bfloat16", "float32", "float64"))
_DIGITS = _FLOATS.union(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))


class Kernels(Arrays):
    """What is more than elements and windows."""

    def dot_general(self, out: Any, lhs: Value, rhs: Value, *, dimension_numbers: Any,
                    precision: Any, preferred_element_type: Any, **_: Any) -> Value:  # fmt: skip
        (lc, rc), (lb, rb) = dimension_numbers
        shape, dtype = spec(out)
        if lhs.dtype == BOOL:  # any of the products: counted
            counted = self.dot_general(
                _Like(shape, np.dtype(np.int32)), self.cast(lhs, np.int32),
                self.cast(rhs, np.int32), dimension_numbers=dimension_numbers, precision=None,
                preferred_element_type=None,
            )  # fmt: skip
            return self.cast(counted, dtype)
        if lhs.dtype != rhs.dtype:
            lhs, rhs = self.cast(lhs, dtype), self.cast(rhs, dtype)
        return self.op(
            "dot_general", [lhs, rhs], shape, dtype,
            f"dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {[*lb]}, "
            f"rhs_batching_dimensions = {[*rb]}, lhs_contracting_dimensions = {[*lc]}, "
            f"rhs_contracting_dimensions = {[*rc]}>, {_precision(precision)}",
        )  # fmt: skip

    def conv_general_dilated(
        self, out: Any, lhs: Value, rhs: Value, *, window_strides: tuple, padding: tuple,
        lhs_dilation: tuple, rhs_dilation: tuple, dimension_numbers: Any, feature_group_count: int,
        precision: Any, preferred_element_type: Any, **params: Any,
    ) -> Value:  # fmt: skip
        shape, dtype = spec(out)
        rank = len(window_strides)
        layouts = []
        for places, names in zip(dimension_numbers, ("bf", "oi", "bf"), strict=True):
            words = [""] * (rank + 2)
            for place, word in zip(places, [*names, *map(str, range(rank))], strict=True):
                words[place] = word
            layouts.append(f"[{', '.join(words)}]")
        pads = f"dense<{[list(map(int, p)) for p in padding]}> : tensor<{rank}x2xi64>"
        if not rank:
            pads = "dense<> : tensor<0x2xi64>"
        if lhs.dtype != rhs.dtype:
            lhs, rhs = self.cast(lhs, dtype), self.cast(rhs, dtype)
        return self.op(
            "convolution", [lhs, rhs], shape, dtype,
            f"batch_group_count = {params.get('batch_group_count', 1)} : i64, "
            f"dimension_numbers = #stablehlo.conv<{layouts[0]}x{layouts[1]}->{layouts[2]}>, "
            f"feature_group_count = {feature_group_count} : i64, "
            f"lhs_dilation = {numbers(lhs_dilation)}, padding = {pads}, {_precision(precision)}, "
            f"rhs_dilation = {numbers(rhs_dilation)}, window_strides = {numbers(window_strides)}",
        )  # fmt: skip

    # -- order ------------------------------------------------------------------------------
    def _before(self, a: Value, b: Value) -> Value:
        """Whether `a` comes before `b`: NaN last, zeros of both signs equal."""
        if a.dtype.kind == "c":
            re, im = (self.real(a), self.real(b)), (self.imag(a), self.imag(b))
            return self.or_(self._before(*re), self.and_(self._level(*re), self._before(*im)))
        if a.dtype.kind not in "fV":
            return self.compare("LT", a, b)
        return self.or_(self.compare("LT", a, b), self.and_(self.eq(a, a), self.ne(b, b)))

    def _level(self, a: Value, b: Value) -> Value:
        """Whether neither comes before the other."""
        return self.not_(self.or_(self._before(a, b), self._before(b, a)))

    def _canonical(self, x: Value) -> Value:
        """Floats of which those that sort alike are the same: zeros and NaN without their signs."""
        zero = self.broadcast(self.const(0, x.dtype), x.shape)
        nan = self.broadcast(self.const(float("nan"), x.dtype), x.shape)
        return self.select(self.ne(x, x), nan, self.select(self.eq(x, zero), zero, x))

    def _ranked(self, x: Value) -> Value:
        """Integers that sort as `x` does."""
        if x.dtype.kind not in "fV":
            return x
        bits = np.dtype(f"u{x.dtype.itemsize}")
        top = 1 << (8 * bits.itemsize - 1)
        word = self.bitcast(self._canonical(x), bits)
        return self.select(self.ge(word, top), self.not_(word), self.xor(word, top))

    def _by_digits(self, xs: Sequence[Value], down: bool) -> list[Value]:
        """Arrays sorted by the first, which is long: its digits and the places are sorted, and the
        places tell what comes where."""
        (n,) = {int(np.prod(x.shape)) for x in xs}
        flat = [self.reshaped(x, (n,)) for x in xs]
        pair = [self._ranked(flat[0]), self.counting((n,), 0, np.int32)]
        region = self.region(
            [((), x.dtype) for x in pair for _ in range(2)],
            lambda a, b, *_: [self.compare("GT" if down else "LT", a, b)])
        _, places = self.ops("sort", pair, [(x.shape, x.dtype) for x in pair],
                             "dimension = 0 : i64, is_stable = true", [region])
        at = self.reshaped(places, (n, 1))
        return [
            self.reshaped(places, x.shape) if x.ref in self.places and x.dtype == places.dtype else
            self.reshaped(self.op(
                "gather", [y, at], (n,), y.dtype,
                "dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], "
                "start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, "
                "slice_sizes = array<i64: 1>"), x.shape)
            for x, y in zip(xs, flat, strict=True)
        ]  # fmt: skip

    def _sorted(self, xs: Sequence[Value], axis: int, keys: int, down: bool) -> list[Value]:
        kind, length = xs[0].dtype.name, xs[0].shape[axis]
        if self.for_gpu and keys == 1 and kind in _DIGITS and len(xs) > 1 and (
            length == np.prod(xs[0].shape) and _LONG <= length < 1 << 31
        ):
            return self._by_digits(xs, down)
        canonical = self.for_gpu and len(xs) == 1 and length > _BY_DIGITS and kind in _FLOATS

        def before(*pairs: Value) -> list[Value]:
            if canonical:
                a, b = [self._canonical(x) for x in pairs]
                return [self.compare("GT" if down else "LT", a, b, "TOTALORDER")]
            found = None
            for k in range(keys - 1, -1, -1):
                a, b = pairs[2 * k], pairs[2 * k + 1]
                first = self._before(b, a) if down else self._before(a, b)
                found = first if found is None else self.or_(
                    first, self.and_(self._level(a, b), found))
            assert found is not None
            return [found]

        region = self.region([((), x.dtype) for x in xs for _ in range(2)], before)
        return self.ops("sort", xs, [(x.shape, x.dtype) for x in xs],
                        f"dimension = {axis} : i64, is_stable = true", [region])

    def sort(self, outs: Any, *xs: Value, dimension: int, is_stable: bool, num_keys: int):
        return self._sorted(xs, dimension, num_keys, False)

    def _largest(self, x: Value, k: int) -> list[Value]:
        """The `k` largest of each row and their places, by XLA's own operation."""
        *batch, n = x.shape
        rows = self.reshaped(x, (int(np.prod(batch)), n))
        shape, index = (rows.shape[0], k), np.dtype(np.int32)
        ranked = self._canonical(rows) if x.dtype.name in _FLOATS else rows
        _, places = self.ops("chlo.top_k", [ranked], [(shape, x.dtype), (shape, index)],
                             f"k = {k} : i64")
        values = self.op(
            "gather", [rows, self.reshaped(places, (*shape, 1))], shape, x.dtype,
            "dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], "
            "operand_batching_dims = [0], start_indices_batching_dims = [0], "
            "start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = false, "
            "slice_sizes = array<i64: 1, 1>",
        )  # fmt: skip
        return [self.reshaped(y, (*batch, k)) for y in (values, places)]

    def top_k(self, outs: Any, x: Value, *, k: int, axis: int) -> list[Value]:
        if self.for_gpu and x.dtype.name in _DIGITS and k and 0 not in x.shape:
            last = [a for a in range(len(x.shape)) if a != axis]
            values, places = self._largest(self.permuted(x, [*last, axis]), k)
            back = [*range(axis), len(last), *range(axis, len(last))]
            return [self.permuted(values, back),
                    self.cast(self.permuted(places, back), spec(outs[1])[1])]
        at = self.counting(x.shape, axis, np.int32)
        limits = [k if a == axis else n for a, n in enumerate(x.shape)]
        values, places = [
            self.part(y, [0] * len(x.shape), limits) for y in self._sorted([x, at], axis, 1, True)
        ]
        return [values, self.cast(places, spec(outs[1])[1])]

    def rng_uniform(self, out: Any, a: Value, b: Value, *, shape: tuple) -> Value:
        _, dtype = spec(out)
        wide = np.dtype(np.float32) if dtype.name in WIDE else dtype
        sizes = self.constant(np.array(shape, np.int64))
        made = self.op("rng", [self.cast(a, wide), self.cast(b, wide), sizes], shape, wide,
                       "rng_distribution = #stablehlo<rng_distribution UNIFORM>")
        return self.cast(made, dtype)

    # -- transforms and factorizations ------------------------------------------------------
    def fft(self, out: Any, x: Value, *, fft_type: FftType, fft_lengths: tuple) -> Value:
        shape, dtype = spec(out)
        if 0 in x.shape or 0 in shape:
            return self.broadcast(self.const(0, dtype), shape)
        return self.op(
            "fft", [x], shape, dtype,
            f"fft_length = {numbers(fft_lengths)}, "
            f"fft_type = #stablehlo<fft_type {FftType(fft_type).name}>",
        )  # fmt: skip

    def triangle(self, x: Value, lower: bool = True) -> Value:
        """`x` with zeros above its diagonals (or below)."""
        rank = len(x.shape)
        rows = self.counting(x.shape, rank - 2, np.int32)
        columns = self.counting(x.shape, rank - 1, np.int32)
        keep = self.ge(rows, columns) if lower else self.le(rows, columns)
        return self.select(keep, x, self.broadcast(self.const(0, x.dtype), x.shape))

    def cholesky(self, out: Any, x: Value) -> Value:
        if 0 in x.shape:
            return x
        made = self.op("cholesky", [x], x.shape, x.dtype, "lower = true")
        return self.triangle(made)

    def triangular_solve(
        self, out: Any, a: Value, b: Value, *, left_side: bool, lower: bool, transpose_a: bool,
        conjugate_a: bool, unit_diagonal: bool,
    ) -> Value:  # fmt: skip
        if 0 in a.shape or 0 in b.shape:
            return b
        if conjugate_a and not transpose_a:
            a = self.conj(a)
        kind = "NO_TRANSPOSE" if not transpose_a else "ADJOINT" if conjugate_a else "TRANSPOSE"
        flags = [f"{name} = {str(flag).lower()}" for name, flag in (
            ("left_side", left_side), ("lower", lower), ("unit_diagonal", unit_diagonal))]
        return self.op("triangular_solve", [a, b], b.shape, b.dtype,
                       f"{', '.join(flags)}, transpose_a = #stablehlo<transpose {kind}>")


class _Like:
    """A shape and dtype where an aval is expected."""

    def __init__(self, shape: Sequence[int], dtype: np.dtype) -> None:
        self.shape, self.dtype = tuple(shape), dtype
