"""Scaled dot-product attention, and products of block-scaled operands."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from numjet.api.compiled.shown import FLAG, wanted
from numjet.base.record import record
from numjet.core import dtypes
from numjet.core.array import as_array
from numjet.nn.jax_forms import attention_in_jax
from numjet.nn.normalization import logsumexp, softmax
from numjet.numpy import lax_names as lax
from numjet.numpy.einsum import einsum
from numjet.numpy.elementwise import add, multiply, subtract
from numjet.numpy.logic import bitwise_and, greater_equal, less, less_equal, where
from numjet.numpy.promote import as_arrays, broadcast, canonical_dtype, cast, one_array
from numjet.numpy.repetition import repeat
from numjet.numpy.shape import expand_dims, reshape


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: Any = None,
    implementation: Any = None,
    return_residual: bool = False,
) -> Any:
    """softmax(query · key scale + bias) · value: attention of several heads.

    query: [batch, T, N, H], of which the first axes may be missing; key, value: [batch, S, K, H],
    likewise, N a multiple of K (queries share heads in groups); floats of one dtype. bias, mask:
    broadcast to [batch, N, T, S]; mask is boolean, and positions without it are left out. scale:
    1/√H unless given. is_causal: a position sees none behind it. query_seq_lengths,
    key_value_seq_lengths: integers[batch]; what lies beyond is hidden. local_window_size: (left,
    right), or one number for both, how far a position looks.
    implementation: None or 'xla'; 'cudnn' raises RuntimeError, others ValueError.
    return_residual: the logarithm of the softmax's denominator [batch, T, N] as well. Result:
    query's shape. Softmax and sums are computed in float32. Raises ValueError for shapes that do
    not fit and for several dtypes. Source: Vaswani and others, Attention is all you need (2017).
    Differentiable in query, key, value and bias.

    >>> from numjet import nn, numpy as jnp
    >>> x = jnp.ones((2, 1, 4))
    >>> nn.dot_product_attention(x, x, jnp.arange(8.0).reshape(2, 1, 4), is_causal=True)[:, 0]
    Array([[0., 1., 2., 3.],
           [2., 3., 4., 5.]], dtype=float32)
    """
    if implementation not in (None, "xla", "cudnn"):
        raise ValueError(f"Unsupported implementation option: {implementation}")
    if implementation == "cudnn":
        raise RuntimeError(
            "dot_product_attention: cuDNN is not detected; implementation='cudnn' is not there. "
            "Leave it out."
        )
    query, key, value = as_arrays("dot_product_attention", query, key, value)
    if len({x.aval.dtype for x in (query, key, value)}) > 1:
        raise ValueError(
            "dot_product_attention: query, key and value must have one dtype, got "
            f"{query.aval}, {key.aval}, {value.aval}."
        )
    left_out = 4 - query.aval.ndim
    query, key, value = (
        expand_dims(x, tuple(range(4 - x.aval.ndim))) for x in (query, key, value)
    )
    _check_shapes(query, key, value)
    b, t, n, h = query.aval.shape
    s, k = key.aval.shape[1:3]
    scale = 1 / math.sqrt(h) if scale is None else scale
    if FLAG.uses and wanted():
        whole = [one_array("dot_product_attention", x) for x in (bias, mask) if x is not None]
        if (
            query_seq_lengths is key_value_seq_lengths is local_window_size is None
            and not return_residual and query.aval.dtype == np.float32
            and (not whole or len(whole) == 1 and whole[0].aval.shape == (b, n, t, s))
            and not (bias is not None and is_causal)
        ):  # fmt: skip
            out = attention_in_jax(query, key, value, bias, mask, scale, is_causal)
            return reshape(out, out.aval.shape[left_out:]) if left_out else out
    if n != k:
        key, value = (repeat(x, n // k, axis=2) for x in (key, value))
    # The logits and their softmax are kept in 32 bits.
    logits = einsum("btnh,bsnh->bnts", query, key, preferred_element_type=np.float32)
    logits = multiply(logits, scale)
    if bias is not None:
        logits = add(logits, _four("bias", bias))
    seen = _visible(
        mask, is_causal, query_seq_lengths, key_value_seq_lengths, local_window_size, t, s
    )
    if seen is not None:
        seen = broadcast(seen, logits.aval.shape)
        logits = where(seen, logits, 0.7 * float(np.finfo(np.float32).min))
    weights = cast(softmax(logits, axis=-1), value.aval.dtype)
    if query_seq_lengths is not None:
        inside = _before(query_seq_lengths, (b, 1, t, 1), 2)
        weights = where(inside, weights, 0)
    out = einsum("bnts,bsnh->btnh", weights, value)
    out = cast(out, query.aval.dtype)
    residual = None
    if return_residual:
        residual = cast(lax.transpose(logsumexp(logits, -1), (0, 2, 1)), query.aval.dtype)
    if left_out:
        out = lax.squeeze(out, tuple(range(left_out)))
        residual = lax.squeeze(residual, (0,)) if return_residual else None
    return (out, residual) if return_residual else out


def _check_shapes(query: Any, key: Any, value: Any) -> None:
    if query.aval.ndim != 4 or key.aval.ndim != 4 or value.aval.ndim != 4:
        raise ValueError(
            "dot_product_attention: query, key and value must have at most 4 dimensions, "
            f"got {query.aval}, {key.aval}, {value.aval}."
        )
    b, _, n, h = query.aval.shape
    s, k = key.aval.shape[1:3]
    if n % k:
        raise ValueError(
            "dot_product_attention: the number of query heads must be a multiple of key/value "
            f"heads, but got {n} vs {k}."
        )
    if key.aval.shape != (b, s, k, h) or value.aval.shape != (b, s, k, h):
        raise ValueError(
            "dot_product_attention: shapes do not fit: query (batch, T, N, H), key and "
            "value (batch, S, K, H); got "
            f"{query.aval}, {key.aval}, {value.aval}."
        )


def _four(name: str, x: Any) -> Any:
    x = one_array(name, x)
    return reshape(x, (1,) * (4 - x.aval.ndim) + x.aval.shape)


def _before(lengths: Any, shape: tuple, axis: int) -> Any:
    """position < length, for each batch element."""
    position = lax.broadcasted_iota(dtypes.int32, shape, axis)
    lengths = reshape(cast(one_array("lengths", lengths), dtypes.int32), (-1, 1, 1, 1))
    return less(position, lengths)


def _visible(
    mask: Any, causal: bool, query_lengths: Any, key_lengths: Any, window: Any, t: int, s: int
) -> Any:
    parts = []
    if mask is not None:
        m = _four("mask", mask)
        if m.aval.dtype != dtypes.bool_:
            raise ValueError(f"dot_product_attention: mask must be boolean, got {m.aval.dtype}.")
        parts.append(m)
    rows = lax.broadcasted_iota(dtypes.int32, (1, 1, t, s), 2)
    columns = lax.broadcasted_iota(dtypes.int32, (1, 1, t, s), 3)
    if causal:
        parts.append(greater_equal(rows, columns))
    if window is not None:
        left, right = (window, window) if isinstance(window, int) else window
        parts.append(
            bitwise_and(
                less_equal(subtract(rows, left), columns), less_equal(columns, add(rows, right))
            )
        )
    if query_lengths is not None:
        parts.append(_before(query_lengths, (1, 1, t, 1), 2))
    if key_lengths is not None:
        parts.append(_before(key_lengths, (1, 1, 1, s), 3))
    out = None
    for part in parts:
        out = part if out is None else bitwise_and(out, part)
    return out


def scaled_matmul(
    lhs: Any, rhs: Any, lhs_scales: Any, rhs_scales: Any, preferred_element_type: Any = np.float32
) -> Any:
    """The batched product of operands whose blocks along the last axis have scales.

    lhs: [b, m, k], rhs: [b, n, k], of any float dtype. lhs_scales: [b, m, k/s], rhs_scales: [b, n,
    k/s], one for s neighbours each. preferred_element_type: the result's dtype. Result: [b, m, n],
    Σ over k of lhs · rhs with both scales. Raises ValueError or TypeError for shapes that do not
    fit. Linear in each operand and scale.

    >>> from numjet import nn, numpy as jnp
    >>> ones, scales = jnp.ones((1, 1, 4)), jnp.full((1, 1, 2), 2.0)
    >>> nn.scaled_matmul(ones, ones, scales, scales)
    Array([[[16.]]], dtype=float32)
    """
    lhs, rhs, lhs_scales, rhs_scales = as_arrays("scaled_matmul", lhs, rhs, lhs_scales, rhs_scales)
    if lhs.aval.ndim != 3 or rhs.aval.ndim != 3 or lhs.aval.shape[2] != rhs.aval.shape[2]:
        raise ValueError(
            "scaled_matmul: operands must be (B, M, K) and (B, N, K), got "
            f"{lhs.aval} and {rhs.aval}."
        )
    if any(s.aval.ndim != 3 or not s.aval.shape[2] for s in (lhs_scales, rhs_scales)):
        raise ValueError(
            "scaled_matmul: scales must be (B, M, K / S) and (B, N, K / S), got "
            f"{lhs_scales.aval} and {rhs_scales.aval}."
        )
    wanted = canonical_dtype(preferred_element_type, "scaled_matmul")

    def whole(x: Any, scales: Any) -> Any:
        block = x.aval.shape[2] // scales.aval.shape[2]
        return multiply(cast(x, dtypes.float32), repeat(cast(scales, dtypes.float32), block, 2))

    out = einsum("bmk,bnk->bmn", whole(lhs, lhs_scales), whole(rhs, rhs_scales))
    return cast(out, wanted)


def scaled_dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    preferred_element_type: Any = np.float32,
    configs: Any = None,
    implementation: Any = None,
) -> Any:
    """`lax.dot_general`; quantization to scaled blocks is not available.

    lhs, rhs, dimension_numbers, preferred_element_type: as there. Result: as there, too. configs,
    implementation: must be None (NotImplementedError).

    >>> from numjet import nn, numpy as jnp
    >>> nn.scaled_dot_general(jnp.ones((2, 3)), jnp.ones((3, 2)), (((1,), (0,)), ((), ()))).shape
    (2, 2)
    """
    if configs is not None or implementation is not None:
        raise NotImplementedError(
            "scaled_dot_general: block-scaled quantization is not supported. "
            "Leave out configs and implementation."
        )
    return lax.dot_general(
        as_array(lhs),
        as_array(rhs),
        dimension_numbers,
        preferred_element_type=canonical_dtype(preferred_element_type, "scaled_dot_general"),
    )


@record(frozen=True, eq=False)
class BlockScaleConfig:
    """How the operands of `scaled_dot_general` are cut into blocks that share a scale."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any = None
    infer_only: bool = False


def get_scaled_dot_general_config(mode: str, global_scale: Any = None) -> BlockScaleConfig:
    """The description of a quantization, for `scaled_dot_general` of GPU libraries.

    mode: "mxfp8", blocks of 32 in float8_e4m3fn, or "nvfp4", blocks of 16 in float4_e2m1fn
    (ValueError for others). global_scale: what the latter are multiplied by, 1 by default. Nothing
    here is quantized: `scaled_dot_general` raises NotImplementedError where it is given one.

    >>> from numjet import nn
    >>> nn.get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu)
    if mode == "nvfp4":
        scale = lax.full((1,), 1.0, dtypes.float32) if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, scale)
    raise ValueError(f"Unsupported mode: {mode}. Give 'mxfp8' or 'nvfp4'.")

