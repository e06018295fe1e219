"""Arguments that have to be known while tracing and are traced raise the class that JAX raises in
each function, and say what libraries match. The classes were asked of JAX."""

from __future__ import annotations

import builtins

import pytest

import numjet as nj
from numjet import errors, lax, nn, numpy as jnp, random, scipy as jsp
from numjet.api.asked import known
from numjet.nn import initializers

NAMES = {
    "jnp": jnp, "jsp": jsp, "lax": lax, "nn": nn, "random": random, "initializers": initializers,
    "m": jnp.ones((2, 2)), "v": jnp.ones(2), "b": jnp.ones(2, bool), "s": jnp.eye(2),
    "i": jnp.zeros((2, 1), int), "key": random.key(0),
}  # fmt: skip
# `t` is a traced 1, `p` a traced array of two.
CASES = {
    "ValueError": """
jnp.sort(m, axis=t)
jnp.argsort(m, axis=t)
jnp.all(b, keepdims=t)
jnp.mean(m, keepdims=t)
jnp.cumsum(m, axis=t)
jnp.diff(m, n=t)
jnp.tril(m, k=t)
jnp.triu(m, k=t)
jnp.rot90(m, k=t)
jnp.swapaxes(m, t, 0)
jnp.trace(m, axis1=t)
jnp.median(m, axis=t)
jnp.quantile(m, 0.5, axis=t)
jnp.nanmax(m, axis=t)
jnp.take_along_axis(m, i, t)
jnp.vander(v, N=t)
jnp.round(m, decimals=t)
jnp.pad(v, 1, constant_values=0, mode="linear_ramp", end_values=t)
jnp.linalg.matrix_power(s, t)
jnp.linalg.norm(m, ord=t)
jsp.linalg.hilbert(t)
jsp.linalg.eigh(s, eigvals_only=t)
jsp.special.logsumexp(m, keepdims=t)
jsp.stats.mode(m, axis=t)
nn.glu(m, axis=t)
nn.one_hot(i[0], 3, axis=t)
nn.log_softmax(m, axis=t)
""",
    "TypeError": """
lax.argmax(m, t, jnp.int32)
lax.slice(v, (0,), (t,))
lax.pad(v, 0.0, [(t, 0, 0)])
lax.rev(m, (t,))
lax.integer_pow(v, t)
lax.reduce_sum(m, (t,))
lax.tile(v, (t,))
lax.approx_max_k(v, t)
lax.linalg.qr(m, full_matrices=t)
random.split(key, t)
jnp.tile(v, t)
jnp.reshape(m, (t, 2))
jnp.ones((t, 2))
jnp.zeros(p)
jnp.broadcast_to(v, p)
jnp.diagflat(v, t)
initializers.zeros(key, p)
initializers.he_normal()(key, p)
lax.expand_dims(m, (t,))
jnp.fft.fftn(m, axes=(t,))
jnp.tensordot(m, m, t)
lax.scan(lambda c, x: (c, x), 0.0, v, reverse=t)
""",
    "ConcretizationTypeError": """
jnp.amax(m, axis=t)
jnp.amax(m, axis=p)
jnp.pad(v, t)
jnp.pad(v, (t, 0))
jnp.array_split(v, (t,))
jnp.linspace(0, 1, 3, axis=t)
jnp.linspace(0, 1, t)
jnp.arange(t)
jnp.indices((t, 2))
jnp.diag_indices(t)
jnp.tril_indices(t)
jnp.triu_indices_from(m, t)
jnp.bincount(i[0], length=t)
jnp.fft.fftfreq(t)
jnp.ravel_multi_index((i[0], i[0]), (t, 2))
lax.broadcasted_iota(jnp.int32, (2, 2), t)
lax.reduce_precision(v, t, 3)
lax.cumsum(m, axis=t)
lax.dynamic_slice_in_dim(m, 0, 1, axis=t)
random.orthogonal(key, t)
random.ball(key, t)
jsp.special.bernoulli(t)
""",
    "TracerIntegerConversionError": """
jnp.amax(m, axis=(t, 1))
jnp.argmax(m, axis=t)
nn.softmax(m, axis=(t,))
jnp.concatenate([m, m], axis=t)
jnp.stack([m, m], axis=t)
jnp.take(m, i, axis=t)
jnp.moveaxis(m, (t,), (0,))
jnp.transpose(m, (t, 1))
jnp.delete(m, 0, axis=t)
lax.dynamic_slice_in_dim(m, 0, t)
jnp.diag(v, t)
""",
    "TracerBoolConversionError": """
jnp.repeat(v, 2, total_repeat_length=t)
lax.top_k(v, t)
""",
    "TracerArrayConversionError": """
lax.padtype_to_pads((t,), (2,), (1,), "SAME")
""",
}
ALL = [(error, call) for error, calls in CASES.items() for call in calls.strip().split("\n")]


def raised(call: str, sizes: tuple = (1, [0, 1])) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whichever it is
        nj.jit(lambda t, p: eval(call, dict(NAMES, t=t, p=p)))(sizes[0], jnp.array(sizes[1]))
    return caught.value


@pytest.mark.parametrize(("error", "call"), ALL)
def test_traced_arguments_raise_the_class_of_each_function(error: str, call: str) -> None:
    assert type(raised(call)) is getattr(errors, error, getattr(builtins, error, None))


@pytest.mark.parametrize(
    ("call", "phrase"),
    [
        ("jnp.sort(m, axis=t)", "Non-hashable static arguments are not supported"),
        ("jnp.tril(m, k=t)", "Non-hashable static arguments are not supported"),
        ("lax.rev(m, (t,))", "parameters to jaxpr equations must have __hash__ and __eq__"),
        ("jnp.ones((t, 2))", "Shapes must be 1D sequences of concrete values of integer type"),
        ("jnp.amax(m, axis=t)", "Abstract tracer value encountered where concrete value"),
        ("jnp.argmax(m, axis=t)", "The __index__() method was called on"),
        ("lax.top_k(v, t)", "Attempted boolean conversion of"),
        ("jnp.pad(v, (t, 0))", "argument 'pad_width' of pad"),
        ("jnp.amax(m, axis=t)", "depends on the value of the argument t"),
    ],
)
def test_what_the_messages_say(call: str, phrase: str) -> None:
    assert phrase in str(raised(call))


def test_values_asked_for_within_functions_of_the_users_are_pythons_question() -> None:
    def body(carry, x):
        return carry, x if x > 0 else -x

    with pytest.raises(errors.TracerBoolConversionError):
        lax.scan(body, 0.0, jnp.ones(2), reverse=False)


def test_the_table_names_functions_and_parameters_that_are_there() -> None:
    for code, (function, rows) in known().items():
        count = code.co_argcount + code.co_kwonlyargcount + (code.co_flags & 4 > 0)
        names = code.co_varnames[:count]
        assert {row.rstrip("*[]") for row in rows} <= {*names}, function
