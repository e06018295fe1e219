"""The phrases of JAX's messages that programs and tests of libraries match, beside its exception
types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import errors, lax
from numjet.extend import core

X = jnp.ones(2)


def _deleted() -> Any:
    x = jnp.ones(3)
    x.delete()
    return x + 1


def _assign() -> None:
    jnp.ones(3)[0] = 1.0


def _leak() -> Any:
    kept: list = []
    nj.jit(kept.append)(1.0)
    return kept[0] + 1


def _rule(**rules: Any) -> Any:
    """The gradient at 1 of a custom_vjp identity with `fwd` and `bwd`, or without rules."""
    f = nj.custom_vjp(lambda x: x)
    if rules:
        f.defvjp(rules.get("fwd", lambda x: (x, None)), rules.get("bwd", lambda r, g: (g,)))
    return nj.grad(f)(1.0)


def _jvp_rule(rule: Callable) -> Any:
    f = nj.custom_jvp(lambda x: x)
    f.defjvp(rule)
    return nj.jvp(f, (1.0,), (1.0,))


def _nondiff() -> Any:
    f = nj.custom_vjp(lambda n, x: x, nondiff_argnums=(0,))
    f.defvjp(lambda n, x: (x, None), lambda n, r, g: (g,))
    return nj.jit(f)(3.0, 2.0)


def _scan(body: Callable, init: Any = 0.0, xs: Any = None, **options: Any) -> Any:
    return lax.scan(body, init, jnp.ones(3) if xs is None else xs, **options)


def _no_values() -> Any:
    return nj.grad(lambda n: n * 1.5, allow_int=True)(2)


def _twice(x: Any) -> Any:
    return x, x


def _ruled(rule: Callable, several: bool = False) -> Any:
    primitive = core.Primitive("two")
    primitive.multiple_results = several
    primitive.def_abstract_eval(rule)
    return nj.jit(lambda x: primitive.bind(x))(1.0)


def _compiled() -> Any:
    return nj.jit(lambda x: x).lower(jnp.ones(2)).compile()


CASES: list[tuple[Callable, type, str]] = [
    (
        lambda: nj.grad(lambda x: x)(1),
        TypeError,
        "grad requires real- or complex-valued inputs",
    ),
    (
        lambda: nj.jacrev(lambda x: x)(1),
        TypeError,
        "jacrev requires real- or complex-valued inputs",
    ),
    (lambda: nj.jacfwd(lambda x: x)(1), TypeError, "jacfwd requires real-valued inputs"),
    (lambda: nj.grad(lambda x: x * 1j)(1.0), TypeError, "grad requires real-valued outputs"),
    (lambda: nj.grad(lambda x: x)("a"), TypeError, "not a valid JAX type"),
    (
        lambda: nj.grad(lambda x: [x])(1.0),
        TypeError,
        "Gradient only defined for scalar-output functions. Output was",
    ),
    (
        lambda: nj.grad(lambda x: x)(jnp.ones(3)),
        TypeError,
        "Gradient only defined for scalar-output functions. Output had shape: (3,)",
    ),
    (
        lambda: nj.jvp(jnp.sin, (1.0,), (1,)),
        TypeError,
        "primal and tangent arguments to jax.jvp do not match; dtypes must be equal",
    ),
    (
        lambda: nj.jvp(jnp.sin, (jnp.ones(3),), (jnp.ones(2),)),
        ValueError,
        "jvp called with different primal and tangent shapes",
    ),
    (
        lambda: nj.jvp(jnp.sin, 1.0, 1.0),
        TypeError,
        "primal and tangent arguments to jax.jvp must be tuples or lists; found float and float",
    ),
    (
        lambda: nj.linearize(jnp.sin, jnp.ones(3))[1](jnp.ones(2)),
        ValueError,
        "linearized function called on tangent values inconsistent with the original primal values",
    ),
    (
        lambda: nj.linearize(jnp.sin, 1.0)[1](1),
        ValueError,
        "linearized function called on tangent values inconsistent with the original primal values",
    ),
    (lambda: nj.vmap(jnp.sin)(1.0), ValueError, "vmap was requested to map its argument along"),
    (
        lambda: nj.vmap(jnp.add)(jnp.ones(2), jnp.ones(3)),
        ValueError,
        "vmap got inconsistent sizes for array axes to be mapped:\n"
        "  * one axis had size 2: axis 0 of argument x",
    ),
    (
        lambda: nj.vmap(jnp.sin, in_axes=None)(1.0),
        ValueError,
        "vmap must have at least one non-None value in in_axes",
    ),
    (
        lambda: nj.vmap(jnp.sin, in_axes=(0, 0))(jnp.ones(2)),
        ValueError,
        "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional",
    ),
    (
        lambda: nj.vmap(jnp.sin, out_axes=3)(jnp.ones(2)),
        ValueError,
        "axis 3 is out of bounds for array of dimension 1",
    ),
    (
        lambda: nj.jit(lambda x: 1 if x else 2)(True),
        errors.TracerBoolConversionError,
        "Attempted boolean conversion of traced array with shape bool[].",
    ),
    (
        lambda: nj.jit(float)(1.0),
        errors.ConcretizationTypeError,
        "Abstract tracer value encountered where concrete value is expected: traced array with "
        "shape float32[].\nThe problem arose with the `float` function",
    ),
    (
        lambda: nj.jit(lambda x: [1, 2][x])(1),
        errors.TracerIntegerConversionError,
        "The __index__() method was called on traced array with shape int32[]",
    ),
    (_leak, errors.UnexpectedTracerError, "Encountered an unexpected tracer."),
    (_deleted, RuntimeError, "Array has been deleted with shape=float32[3]."),
    (_assign, TypeError, "JAX arrays are immutable and do not support in-place item assignment."),
    (lambda: hash(jnp.ones(2)), TypeError, "unhashable type:"),
    (lambda: bool(jnp.ones(0)), ValueError, "The truth value of an empty array is ambiguous"),
    (
        lambda: float(jnp.ones(2)),
        TypeError,
        "Only scalar arrays can be converted to Python scalars; got arr.ndim=1",
    ),
    (
        lambda: [1][jnp.ones(1)],
        TypeError,
        "Only integer scalar arrays can be converted to a scalar index",
    ),
    (
        lambda: nj.jit(lambda x: [1][x])(1.5),
        TypeError,
        "Only integer scalar arrays can be converted to a scalar index.",
    ),
    (
        lambda: nj.jit(int)(jnp.ones(2)),
        TypeError,
        "Only scalar arrays can be converted to Python scalars; got arr.ndim=1",
    ),
    (
        lambda: nj.jit(bool)(jnp.ones(2)),
        ValueError,
        "The truth value of an array with more than one element is ambiguous.",
    ),
    (lambda: nj.jit(complex)(1.0), errors.ConcretizationTypeError, "try using `x.astype(complex)`"),
    (lambda: _no_values() + jnp.ones(2), TypeError, "float0s do not support any operations"),
    (lambda: lax.mul(_no_values(), 1.0), TypeError, "float0s do not support any operations"),
    (lambda: jnp.cos(_no_values()), TypeError, "float0s do not support any operations"),
    (lambda: lax.neg(_no_values()), TypeError, "float0s do not support any operations"),
    (
        lambda: nj.vmap(lambda x, y, z: x)(jnp.ones(3), jnp.ones(4), jnp.ones(4)),
        ValueError,
        "\n  * most axes (2 of them) had size 4, e.g. axis 0 of argument y",
    ),
    (lambda: nj.vjp(_twice, 1.0)[1](1.0, 1.0), TypeError, "`jax.vjp` applied to _twice was called"),
    (
        lambda: nj.linear_transpose(_twice, 1.0)(1.0),
        TypeError,
        "cotangent tree does not match function output",
    ),
    (
        lambda: setattr(nj.ShapeDtypeStruct((2,), "int8"), "dtype", "int32"),
        RuntimeError,
        "Cannot reassign attributes (dtype) of immutable ShapeDtypeStruct objects",
    ),
    (lambda: nj.ShapeDtypeStruct(3, "int8"), TypeError, "'int' object is not iterable"),
    (lambda: _ruled(lambda x: [x]), ValueError, "two.abstract_eval() method should return a tuple"),
    (
        lambda: _ruled(lambda x: x, True),
        ValueError,
        "two.abstract_eval() method should return a tuple or a list iff two.multiple_results",
    ),
    (
        lambda: nj.pmap(jnp.add, static_broadcasted_argnums=1)(jnp.ones((1, 2)), y=1),
        ValueError,
        "called with only 1 positional argument. All static broadcasted arguments must be passed",
    ),
    (lambda: iter(jnp.float32(1)), TypeError, "iteration over a 0-d array"),
    (lambda: len(jnp.float32(1)), TypeError, "len() of unsized object"),
    (
        lambda: nj.jit(lambda x, n: x, static_argnums=1)(1.0, [1]),
        ValueError,
        "Non-hashable static arguments are not supported",
    ),
    (lambda: nj.jit(lambda x: x)("a"), TypeError, "Error interpreting argument to"),
    (lambda: nj.jit(lambda x: "a")(1.0), TypeError, "which is not a valid JAX type"),
    (lambda: nj.jit(lambda x: x, static_argnames=(3,)), TypeError, "argument is not a string"),
    (
        lambda: _compiled()(jnp.ones(3)),
        TypeError,
        "Argument types differ from the types for which this computation was compiled",
    ),
    (
        lambda: _compiled()([jnp.ones(2)]),
        TypeError,
        "Function compiled with input pytree does not match the input pytree it was called with",
    ),
    (
        lambda: nj.jit(_compiled())(jnp.ones(2)),
        TypeError,
        "Cannot apply JAX transformations to a function lowered and compiled for a particular",
    ),
    (
        lambda: lax.cond(True, lambda: (1,), lambda: 1),
        TypeError,
        "cond branch outputs must have the same pytree structure, but they differ",
    ),
    (lambda: lax.cond(jnp.ones(2), int, int), TypeError, "Pred must be a scalar, got"),
    (lambda: lax.cond("a", int, int), TypeError, "Pred must be a scalar, got a of type"),
    (lambda: lax.cond(1j, int, int), TypeError, "Pred type must be either boolean or number"),
    (lambda: lax.switch(0, []), ValueError, "Empty branch sequence"),
    (lambda: lax.switch(0.0, [int, int]), TypeError, "Index type must be an integer, got"),
    (lambda: lax.switch(jnp.ones(2, int), [int]), TypeError, "Branch index must be scalar, got"),
    (
        lambda: lax.while_loop(lambda c: c, lambda c: c, 0.0),
        TypeError,
        "cond_fun must return a boolean scalar, but got output type(s)",
    ),
    (
        lambda: lax.while_loop(lambda c: (c, c), lambda c: c, 0.0),
        TypeError,
        "cond_fun must return a boolean scalar, but got pytree",
    ),
    (
        lambda: lax.while_loop(lambda c: c < 3, lambda c: c + 1.0, jnp.int32(0)),
        TypeError,
        "while_loop body function carry input and carry output must have equal types",
    ),
    (
        lambda: nj.grad(lambda x: lax.while_loop(lambda c: c < 3, lambda c: c * 2, x))(1.0),
        ValueError,
        "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with "
        "dynamic start/stop values",
    ),
    (lambda: _scan(lambda c, x: c), TypeError, "scan body output must be a pair, got"),
    (
        lambda: _scan(lambda c, x: ((c, c), x)),
        TypeError,
        "scan body function carry input and carry output must have the same pytree structure",
    ),
    (
        lambda: _scan(lambda c, x: (jnp.ones(2), x), jnp.ones(3)),
        TypeError,
        "has type float32[3] but the corresponding output carry component has type float32[2], "
        "so the shapes do not match",
    ),
    (
        lambda: _scan(lambda c, x: (c, x), xs=(jnp.ones(3), jnp.ones(2))),
        ValueError,
        "scan got values with different leading axis sizes: 3, 2",
    ),
    (
        lambda: _scan(lambda c, x: (c, x), length=4),
        ValueError,
        "scan got `length` argument of 4 which disagrees with leading axis sizes [3]",
    ),
    (
        lambda: lax.scan(lambda c, x: (c, x), 0.0),
        ValueError,
        "scan got no values to scan over and `length` not provided",
    ),
    (
        lambda: _scan(lambda c, x: (c, x), xs=3.0),
        ValueError,
        "scan got value with no leading axis to scan over",
    ),
    (_rule, AttributeError, "No VJP defined for custom_vjp function <lambda> using defvjp"),
    (
        lambda: nj.custom_jvp(lambda x: x)(1.0),
        AttributeError,
        "No JVP defined for custom_jvp function <lambda> using defjvp",
    ),
    (
        lambda: _rule(fwd=lambda x: x),
        TypeError,
        "must produce a pair (list or tuple of length two) where the first element represents "
        "the primal output and the second element represents residuals",
    ),
    (
        lambda: _rule(bwd=lambda r, g: g),
        TypeError,
        "must produce an output with the same container (pytree) structure as the args tuple of "
        "the primal function",
    ),
    (
        lambda: _rule(bwd=lambda r, g: (jnp.ones(2),)),
        ValueError,
        "must produce an output with the same type as the args tuple of the primal function",
    ),
    (
        lambda: _jvp_rule(lambda p, t: p[0]),
        TypeError,
        "must produce a pair (list or tuple of length two) representing primal and tangent outputs",
    ),
    (
        lambda: _jvp_rule(lambda p, t: (p[0], [t[0]])),
        TypeError,
        "must produce primal and tangent outputs with equal container (pytree) structures",
    ),
    (
        lambda: _jvp_rule(lambda p, t: (p[0], jnp.ones(2))),
        TypeError,
        "Custom JVP rule must produce primal and tangent outputs with corresponding shapes and "
        "dtypes",
    ),
    (
        lambda: jnp.ones((2, 3)) @ jnp.ones((2, 3)),
        TypeError,
        "dot_general requires contracting dimensions to have the same shape, got (3,) and (2,)",
    ),
    (
        lambda: jnp.concatenate([jnp.ones((2, 3)), jnp.ones((2, 2))]),
        TypeError,
        "Cannot concatenate arrays with shapes that differ in dimensions other than the one being "
        "concatenated",
    ),
    (
        lambda: jnp.stack([jnp.ones(2), jnp.ones(3)]),
        ValueError,
        "All input arrays must have the same shape",
    ),
    (
        lambda: lax.dynamic_slice(jnp.ones(3), (0,), (4,)),
        TypeError,
        "slice slice_sizes must be less than or equal to operand shape",
    ),
    (lambda: jnp.array(["a"]), TypeError, "is not a valid JAX array type"),
    (
        lambda: nj.jit(jnp.zeros)(3),
        TypeError,
        "Shapes must be 1D sequences of concrete values of integer type",
    ),
    (
        lambda: nj.jit(lambda x: jnp.arange(0, x))(3),
        errors.ConcretizationTypeError,
        "It arose in the jnp.arange argument 'stop'",
    ),
    (
        lambda: nj.grad(lambda x: nj.pure_callback(lambda v: v, nj.typeof(1.0), x))(1.0),
        ValueError,
        "Pure callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks",
    ),
    (
        lambda: nj.vmap(nj.custom_batching.custom_vmap(lambda x: x))(jnp.ones(2)),
        AttributeError,
        "No batching rule defined for custom_vmap function <lambda> using def_vmap",
    ),
    (
        _nondiff,
        errors.UnexpectedTracerError,
        "Found a JAX Tracer object passed as an argument to a custom_vjp function in a position "
        "indicated by nondiff_argnums",
    ),
    (lambda: nj.vmap(3), TypeError, "Expected a callable value, got 3"),
    (
        lambda: nj.jit(lambda x: x, donate_argnums=4),
        ValueError,
        "Jitted function has donate_argnums=(4,), but only accepts 1 positional arguments",
    ),
    (
        lambda: nj.jit(lambda x: x, donate_argnames="q"),
        ValueError,
        "Jitted function has invalid argnames {'q'} in donate_argnames. Function does not take",
    ),
    (
        lambda: nj.grad(lambda x, y: x, argnums=(0, 5))(1.0, 2.0),
        TypeError,
        "differentiating with respect to argnums=(0, 5) requires at least 6 positional arguments "
        "to be passed by the caller, but got only 2 positional arguments",
    ),
    (
        lambda: nj.grad(lambda x: x, has_aux=True)(1.0),
        TypeError,
        "expected function with aux output to return a two-element tuple, but got type",
    ),
    (
        lambda: nj.jvp(jnp.sin, [1.0], (1.0,)),
        TypeError,
        "primal and tangent arguments to jax.jvp must have the same tree structure; primals have "
        "tree structure",
    ),
    (
        lambda: nj.vjp(jnp.sin, 1.0)[1](jnp.ones(2)),
        ValueError,
        "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got float32[2], but "
        "expected float32[]",
    ),
    (
        lambda: _jvp_rule(lambda p, t: (p[0], 1)),
        TypeError,
        "Custom JVP rule must produce primal and tangent outputs with corresponding shapes",
    ),
    (
        lambda: _rule(bwd=lambda r, g: (g, g)),
        TypeError,
        "in particular must produce a tuple of length equal to the number of arguments",
    ),
    (
        lambda: nj.checkpoint(lambda x: x, static_argnums=(2,))(1.0),
        ValueError,
        "can only take integer values greater than or equal to `-len(args)` and less than",
    ),
    (
        lambda: nj.jit(lambda x, axis: x.min(axis))(jnp.ones((2, 2)), 1),
        errors.ConcretizationTypeError,
        "Abstract tracer value encountered where concrete value is expected",
    ),
    (
        lambda: nj.jit(lambda n: jnp.linspace(0, 1, n))(3),
        errors.ConcretizationTypeError,
        "not available in Python because it depends on the value of the argument n",
    ),
    (
        lambda: nj.jit(lambda x: x.delete())(1.0),
        errors.ConcretizationTypeError,
        "The delete() method was called on traced array with shape float32[]",
    ),
    (
        lambda: nj.jit(lambda x: f"{x:.2f}")(1.0),
        TypeError,
        "unsupported format string passed to",
    ),
    (
        lambda: nj.jit(lambda x: x.sharding)(1.0),
        AttributeError,
        "The 'sharding' attribute is not available on traced array with shape float32[]",
    ),
    (lambda: lax.psum(1.0, "i"), NameError, "unbound axis name: i"),
    (lambda: jnp.ones(2).sum(4), ValueError, "axis 4 is out of bounds for array of dimension 1"),
    (lambda: jnp.ones(2)["a"], TypeError, "JAX does not support string indexing; got idx='a'"),
    (lambda: jnp.ones(2)[{}], IndexError, "only integers, slices (`:`), ellipsis (`...`)"),
    (lambda: float(jnp.array(1j)), TypeError, "float() argument must be"),
    (lambda: [1, 2][jnp.bool_(True)], TypeError, "Only integer scalar arrays can be converted"),
    (lambda: float(nj.random.key(0)), TypeError, "float() argument must be"),
    (lambda: bool(nj.random.key(0)), TypeError, "key array cannot be converted to boolean"),
    (lambda: nj.random.uniform(3), TypeError, "JAX encountered invalid PRNG key data"),
    (
        lambda: nj.random.normal(nj.random.key(0), dtype=int),
        ValueError,
        "dtype argument to `normal` must be a float or complex dtype, got int32",
    ),
    (
        lambda: lax.pad(jnp.ones(2), 0, [(0, 0, 0)]),
        TypeError,
        "pad operand and padding_value must be same dtype",
    ),
    (lambda: lax.rev(jnp.ones((2, 2)), (0, 0)), TypeError, "rev dimensions must be unique"),
    (lambda: lax.select_n(True), ValueError, "select_n() must have at least one case"),
    (
        lambda: lax.transpose(jnp.ones((2, 2)), (0, 0)),
        TypeError,
        "transpose permutation isn't a permutation of operand dimensions, got permutation (0, 0)",
    ),
]


@pytest.mark.parametrize(("run", "error", "phrase"), CASES, ids=[c[2][:60] for c in CASES])
def test_messages_have_the_phrases_that_programs_match(
    run: Callable, error: type, phrase: str
) -> None:
    with pytest.raises(error) as caught:
        run()
    assert phrase in str(caught.value)
    assert type(caught.value) is error


def test_cotangents_of_another_precision_are_converted() -> None:
    assert _rule(bwd=lambda r, g: (g.astype(jnp.bfloat16),)) == 1.0


x3 = jnp.array([1.0, 2.0, 3.0])
m23 = jnp.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("f, error, phrase", [
    (lambda: jnp.max(x3, where=x3 > 1), ValueError, "does not have an identity, so to use a where"),
    (lambda: jnp.var(x3, ddof=1, correction=2), ValueError, "can't be provided simultaneously"),
    (lambda: jnp.percentile(x3, m23), ValueError, "have rank <= 1, got shape (2, 3)"),
    (lambda: jnp.pad(x3, 1, mode="foo"), NotImplementedError, "Unimplemented padding mode 'foo'"),
    (lambda: jnp.pad(x3, 1, foo=1), ValueError,
     "unsupported keyword arguments for mode 'constant'"),
    (lambda: jnp.zeros(-1), TypeError, "shape must have every element be nonnegative, got (-1,)"),
    (lambda: jnp.searchsorted(x3, 2.0, side="foo"), ValueError, "invalid argument side='foo'"),
    (lambda: jnp.lexsort([]), TypeError, "need sequence of keys with len > 0 in lexsort"),
    (lambda: lax.sort((x3, jnp.ones(2))), TypeError, "Arguments to sort must have equal shapes"),
    (lambda: lax.full((2,), x3), TypeError, "full must be called with scalar fill_value"),
    (lambda: lax.add(x3, jnp.ones(2)), TypeError, "add got incompatible shapes for broadcasting"),
    (lambda: jnp.tril(x3), ValueError, "must be at least 2D"),
    (lambda: jnp.linalg.inv(m23), ValueError, "Argument to inv must have shape [..., n, n]"),
    (lambda: jnp.einsum("i,i", x3), ValueError, "must be equal to the number of operands, 1"),
    (lambda: jnp.einsum("ij", x3), ValueError, "does not contain the correct number of indices"),
    (lambda: jnp.cross(jnp.ones(4), jnp.ones(4)), ValueError, "must be either 2 or 3 for cross"),
    (lambda: jnp.diag(1.0), ValueError, "diag input must be 1d or 2d"),
    (lambda: jnp.tensordot(m23, m23, 3), TypeError, "exceeds input ranks"),
    (lambda: jnp.add.at(x3, 0, 1.0), NotImplementedError, "JAX arrays are immutable"),
    (lambda: jnp.diff(x3, n=-1), ValueError, "order must be non-negative but got -1"),
    (lambda: jnp.vectorize(jnp.dot, signature="(n),(n)")(x3, x3), ValueError,
     "not a valid gufunc signature"),
    (lambda: jnp.round(jnp.arange(3), -1), NotImplementedError, "not implemented for decimals < 0"),
    (lambda: jnp.fill_diagonal(m23, 1.0), NotImplementedError, "because JAX arrays are immutable"),
    (lambda: nj.nn.initializers.orthogonal()(nj.random.key(0), (3,)), ValueError, "at least a 2D"),
    (lambda: nj.config.read("foo"), AttributeError, "Unrecognized config option"),
    (lambda: lax.padtype_to_pads((4,), (2,), (1,), "FOO"), RuntimeError, "Unrecognized padding"),
])
def test_phrases_of_array_functions(f: Callable, error: type, phrase: str) -> None:
    with pytest.raises(error) as raised:
        f()
    assert phrase in str(raised.value)


# Sentences that messages begin with, which programs look for.
BEGINNINGS: list[tuple[type[Exception], Callable, str]] = [
    (ValueError, lambda: jnp.choose(jnp.array([0, 5]), [jnp.ones(2)] * 2),
     "invalid entry in choice array"),
    (ValueError, lambda: jnp.negative.reduce(X), "reduce only supported for binary ufuncs"),
    (ValueError, lambda: jnp.negative.outer(X, X), "outer only supported for binary ufuncs"),
    (TypeError, lambda: jnp.add(1), "add() missing 1 required positional argument: 'y'"),
    (TypeError, lambda: jnp.negative(1, 2),
     "negative() takes 1 positional argument but 2 were given"),
    (ValueError, lambda: jnp.array(None), "None is not a valid value for jnp.array"),
    (ValueError, lambda: jnp.isdtype(jnp.float32, "foo"), "Unrecognized kind='foo'"),
    (NotImplementedError, lambda: jnp.pad(X, 1, mode="foo"),
     "Unimplemented padding mode 'foo' for np.pad"),
    (ValueError, lambda: jnp.vecdot(jnp.ones((3, 4)), X),
     "vecdot: axes must match; got shapes (3, 4) and (2,)"),
    (ValueError, lambda: jnp.linalg.inv(jnp.ones((2, 3))),
     "Argument to inv must have shape [..., n, n]"),
    (ValueError, lambda: jnp.linalg.qr(jnp.eye(2), mode="foo"),
     "Unsupported QR decomposition mode 'foo'"),
    (ValueError, lambda: jnp.linalg.eigh(jnp.eye(2), UPLO="Q"),
     "UPLO must be one of None, 'L', or 'U'"),
    (ValueError, lambda: jnp.linalg.norm(jnp.ones((2, 2, 2)), 2),
     "Improper number of axes for norm"),
    (ValueError, lambda: nj.random.choice(nj.random.key(0), 3, p=X),
     "p must be None or a 1D vector with the same size"),
    (ValueError, lambda: jnp.fft.fftn(jnp.eye(2), axes=(0, 0)),
     "jax.numpy.fft.fftn does not support repeated axes. Got axes (0, 0)."),
    (ValueError, lambda: nj.grad(lambda x: nj.pure_callback(
        abs, nj.ShapeDtypeStruct((), jnp.float32), x))(1.0),
     "Pure callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks while taking "
     "gradients."),
    (ValueError, lambda: nj.image.resize(jnp.eye(2), (1, 1), "foo"), 'Unknown resize method "foo"'),
    (TypeError, lambda: lax.cond(True, lambda: 1, lambda: 2.0),
     "cond branches must have equal output types but they differ"),
    (ValueError, lambda: lax.conv(*[jnp.ones((1, 1, 4))] * 2, (1, 1), "VALID"),
     "conv_general_dilated window and window_strides must"),
    (TypeError, lambda: lax.conv_general_dilated(*[jnp.ones((1, 1, 4))] * 2, (1,), [(0, 0)] * 2),
     "Wrong number of explicit pads"),
    (ValueError,
     lambda: lax.conv_general_dilated(jnp.ones((1, 3, 4)), jnp.ones((2, 1, 2)), (1,), "VALID",
     feature_group_count=2),
     "conv_general_dilated feature_group_count must divide"),
    (TypeError, lambda: lax.dot_general(jnp.eye(2), jnp.eye(2), (((1, 1), (1, 1)), ((), ()))),
     "dot_general requires lhs contracting dimensions to be distinct"),
    (AttributeError, lambda: nj.config.update("zork", 1), "Unrecognized config option: zork"),
    (ValueError, lambda: nj.config.update("numpy_rank_promotion", "foo"),
     "new enum value must be in ['allow', 'warn', 'raise']"),
    (TypeError, lambda: nj.grad(lambda x: x)("a"),
     "Argument 'a' of type <class 'str'> is not a valid JAX type"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "call", "text"), BEGINNINGS)
def test_messages_begin_with_what_programs_look_for(error, call, text):
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error and str(caught.value).startswith(text)


def test_errors_of_traced_values_name_the_function_that_was_traced():
    def choose(x):
        return x if x > 0 else -x

    with pytest.raises(errors.TracerBoolConversionError) as caught:
        nj.jit(choose)(1.0)
    for text in ("The error occurred while tracing the function choose",
                 "it depends on the value of the argument x"):  # fmt: skip
        assert text in str(caught.value)
