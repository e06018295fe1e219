"""The words of JAX's messages for arguments of `lax`, `numpy`, `random` and `sharding` that do not
fit: programs and tests of libraries match them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax, random, tree_util
from numjet.base.errors import DuplicateSpecError
from numjet.sharding import AxisType, Mesh, NamedSharding

x3, i3, m23 = jnp.arange(3.0), jnp.arange(3), jnp.arange(6.0).reshape(2, 3)
P = nj.P


def _over(spec: Any, kind: AxisType = AxisType.Auto, **more: Any) -> NamedSharding:
    return NamedSharding(nj.make_mesh((1,), ("x",), (kind,)), spec, **more)


_CASES: list[tuple[type[Exception], Callable, str]] = [
    (TypeError, lambda: lax.sin(i3), "sin does not accept dtype int32. Accepted dtypes are "
     "subtypes of floating, complexfloating"),
    (TypeError, lambda: lax.real(x3), "real does not accept dtype float32. Accepted dtypes are "
     "subtypes of complexfloating"),
    (TypeError, lambda: lax.complex(i3, i3), "subtypes of float32, float64"),
    (TypeError, lambda: jnp.bitwise_and(x3, x3), "at position 0 are subtypes of integer, bool"),
    (TypeError, lambda: lax.clz(x3), "Accepted dtypes are subtypes of integer"),
    (TypeError, lambda: x3 + jnp.ones(4), "add got incompatible shapes for broadcasting: "
     "(3,), (4,)"),
    (TypeError, lambda: lax.stop_gradient("a"), "Argument 'a' of type <class 'str'> is not a "
     "valid JAX type"),
    (TypeError, lambda: jnp.sin("a"), "Error interpreting argument to sin as an abstract array"),
    (TypeError, lambda: lax.dot_general(m23, m23, (((0,), (1,)), ((), ()))), "contracting "
     "dimensions to have the same shape, got (2,) and (3,)"),
    (TypeError, lambda: lax.dot_general(m23, m23, (((5,), (0,)), ((), ()))), "lhs dimension "
     "numbers to be nonnegative and less than the number of axes of the lhs value"),
    (TypeError, lambda: lax.dot_general(m23, m23, (((0,), (0,)), ((0,), (0,)))), "lhs batch "
     "dimensions to be disjoint from contracting dimensions"),
    (ValueError, lambda: lax.dot(x3, 1.0), "got lhs_shape=(3,) rhs_shape=()"),
    (TypeError, lambda: lax.broadcast_in_dim(x3, (2, 4), (1,)), "operand dimension sizes must "
     "either be 1"),
    (TypeError, lambda: lax.broadcast_in_dim(x3, (2, 3), (5,)), "must be a subset of output dim"),
    (TypeError, lambda: lax.broadcast_in_dim(x3, (2, 3), ()), "must have length equal to operand"),
    (ValueError, lambda: lax.squeeze(m23, (5,)), "axis 5 is out of bounds for array of dimen"),
    (TypeError, lambda: lax.select(x3, x3, x3), "select `which` must be boolean or integer type"),
    (TypeError, lambda: lax.slice(x3, (0,), (5,)), "slice_sizes must be less than or equal to "
     "operand shape, got slice_sizes (5,) for operand shape (3,)"),
    (TypeError, lambda: lax.slice(x3, (2,), (1,)), "must be greater than or equal to zero"),
    (ValueError, lambda: lax.dynamic_slice(x3, (0, 0), (1,)), "Length of slice indices must match "
     "number of operand dimensions (2 vs (3,))"),
    (TypeError, lambda: lax.dynamic_update_slice(x3, m23, (0,)), "must have the same rank as "
     "operand, got update shape (2, 3) for operand shape (3,)"),
    (ValueError, lambda: lax.reduce_sum_p.bind(m23, axes=(4,)), "reduction axes (4,) contains "
     "out-of-bounds indices for float32[2,3]"),
    (ValueError, lambda: lax.argmax(jnp.ones(0), 0, jnp.int32), "require non-empty reduced "
     "dimension. operand.shape=(0,) axis=0"),
    (TypeError, lambda: lax.sort(()), "Sort requires at least one operand"),
    (ValueError, lambda: lax.top_k(x3, 5), "got k=5 with shape=[3] and axis=0"),
    (ValueError, lambda: lax.top_k(x3, -1), "k argument to top_k must be nonnegative, got -1"),
    (TypeError, lambda: lax.reduce_window(x3, 0.0, lax.add, (2, 2), (1,), "VALID"), "got the "
     "wrong number of window_dimensions for operand: got operand shape (3,)"),
    (TypeError, lambda: lax.bitcast_convert_type(x3, bool), "does not support bool or complex"),
    (ValueError, lambda: lax.fft(x3, "foo", (3,)), "Unknown FFT type 'foo'"),
    (TypeError, lambda: lax.linalg.qr(x3), "Input 0 to qr must have rank at least 2, but got"),
    (ValueError, lambda: lax.linalg.triangular_solve(m23, m23), "The first input to "
     "triangular_solve must be a square matrix. Got shape (2, 3)"),
    (ValueError, lambda: lax.associative_scan(lambda a, b: a, (x3, m23)), "must have the same "
     "first dimension"),
    (TypeError, lambda: lax.fori_loop(jnp.float32(0), jnp.int8(3), lambda i, c: c, 0), "must have "
     "equal types, got float32 and int8"),
    (ValueError, lambda: jnp.einsum("ij,jk", m23, m23), "Size of label 'j' for operand 1 (2) does "
     "not match previous terms (3)"),
    (ValueError, lambda: jnp.matmul(1, m23), "matmul input operand 0 must have ndim at least 1"),
    (ValueError, lambda: jnp.stack([]), "Need at least one array to stack"),
    (ValueError, lambda: jnp.linspace(0, 1, -1), "Number of samples, -1, must be non-negative"),
    (ZeroDivisionError, lambda: jnp.arange(0, 3, 0), "division by zero"),
    (ValueError, lambda: jnp.pad(x3, (1, 2, 3)), "pad_width with nd=1 has unsupported shape (3,)"),
    (ValueError, lambda: jnp.interp(x3, m23, m23), "must be one-dimensional arrays of equal size"),
    (ValueError, lambda: x3.view(jnp.complex64), "its size must be a divisor of the total size"),
    (TypeError, lambda: jnp.where(x3 > 0, x3), "got <class 'NoneType'> at position 2"),
    (TypeError, lambda: random.key(i3), "key accepts a scalar seed, but was given an array of"),
    (TypeError, lambda: random.key(1.5), "PRNG key seed must be an integer; got"),
    (TypeError, lambda: random.wrap_key_data(x3), "expected key_data.dtype = uint32; got dtype="),
    (OverflowError, lambda: random.fold_in(random.key(0), -1), "integer -1 out of bounds for uint"),
    (ValueError, lambda: tree_util.tree_structure({1: 1, "a": 2}), "Comparator raised exception "
     "while sorting pytree dictionary keys"),
    (ValueError, lambda: _over(P("y")), "Resource axis: y of P('y',) is not found in mesh: ('x',)"),
    (DuplicateSpecError, lambda: _over(P("x", "x")), "has duplicate entries for `x`"),
    (ValueError, lambda: _over(P("x"), memory_kind="foo"), "Could not find memory addressable by"),
    (ValueError, lambda: Mesh(np.array(nj.devices()[:1]), ("x", "y")), "to equal the length of its "
     "second argument (`axis_names`), but got devices.ndim == 1 and len(axis_names) == 2"),
    (ValueError, lambda: nj.device_put(x3, "cpu"), "Received invalid value: cpu"),
    (TypeError, lambda: lax.cond(None, lambda: 1, lambda: 2), "cond predicate is None"),
    (TypeError, lambda: nj.named_scope(3), "named_scope name argument must be a string"),  # type: ignore[arg-type]
    (NotImplementedError, lambda: nj.vmap(lambda x: nj.pure_callback(np.sin, x, x))(x3), "vmap is "
     "only supported for the pure_callback primitive when vmap_method is one of 'sequential'"),
    (ValueError, lambda: lax.with_sharding_constraint(x3, _over(P("x"), AxisType.Explicit)),
     "can only refer to Auto axes of the mesh"),
]  # fmt: skip


@pytest.mark.parametrize("error, call, phrase", _CASES)
def test_what_does_not_fit_is_told_in_the_known_words(
    error: type[Exception], call: Callable, phrase: str
) -> None:
    with pytest.raises(error) as raised:
        call()
    assert phrase in str(raised.value)


def test_constraints_over_explicit_axes_of_no_current_mesh() -> None:
    over = _over(P(), AxisType.Explicit)
    assert lax.with_sharding_constraint(x3, over).tolist() == [0.0, 1.0, 2.0]
    placed = nj.device_put(x3, _over(P("x"), AxisType.Explicit))
    kept = nj.jit(lambda x: lax.with_sharding_constraint(x, over))(placed)
    assert str(nj.typeof(kept)) == "float32[3@x]"
