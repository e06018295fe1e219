"""Primitives of the user's: every register, under every transformation, beside JAX."""

from __future__ import annotations

import functools
import pickle

import numpy as np
import pytest
from both import both

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.core.avals import ShapedArray
from numjet.extend.core import Primitive, no_effects
from numjet.interpreters import ad, batching, mlir, partial_eval as pe, xla


def test_rules_and_their_absence_behave_as_in_jax():
    both("""
from PACKAGE.extend.core import Primitive, Effect
from PACKAGE.interpreters import ad, batching, mlir

p = Primitive('foo')
x = jnp.arange(3.0) / 3
out['no impl'] = err(lambda: p.bind(x))
out['no abstract'] = err(lambda: jax.jit(p.bind)(x))
p.def_impl(lambda x, **params: jnp.sin(x))
p.def_abstract_eval(lambda x, **params: x)
out['impl'] = p.bind(x)
out['no lowering'] = err(lambda: jax.jit(p.bind)(x))
out['no jvp'] = err(lambda: jax.jvp(p.bind, (x,), (x,)))
out['no batch'] = err(lambda: jax.vmap(p.bind)(x))
out['bad operand'] = err(lambda: p.bind([1.0]))
out['text'] = err(lambda: p.bind('a'))
out['bad operand in jit'] = err(lambda: jax.jit(lambda x: p.bind(x, 'a'))(x))
mlir.register_lowering(p, mlir.lower_fun(lambda x, **params: jnp.sin(x), multiple_results=False))
out['~lowered'] = jax.jit(p.bind)(x)
loss = lambda x: p.bind(x, k=3).sum()
ad.deflinear(p, lambda ct, **params: [ct * 2])
out['~deflinear'] = jax.grad(loss)(x)
ad.deflinear2(p, lambda ct, x, k: [ct * k])
out['~deflinear2'] = jax.grad(loss)(x)
ad.primitive_jvps[p] = lambda primals, tangents, **params: (p.bind(*primals), tangents[0] * 5)
out['~primitive_jvps'] = jax.grad(loss)(x)
ad.defjvp(p, lambda t, x, **params: t * x)
out['~defjvp'] = jax.grad(loss)(x)
ad.defjvp2(p, lambda t, ans, x, **params: t * ans)
out['~defjvp2'] = jax.jit(jax.grad(loss))(x)
batching.defvectorized(p)
out['~vmap'] = jax.vmap(p.bind, in_axes=1)(jnp.ones((2, 3)))
out['~vmap of grad'] = jax.vmap(jax.grad(loss))(jnp.ones((2, 3)))
del ad.primitive_transposes[p]
out['no transpose'] = err(lambda: jax.linear_transpose(p.bind, x)(x))

add = Primitive('plus')
add.def_impl(lambda x, y: x + y)
add.def_abstract_eval(
    lambda x, y: x.update(shape=tuple(max(a, b) for a, b in zip(x.shape, y.shape))))
batching.defbroadcasting(add)
out['~broadcasting'] = jax.vmap(add.bind, in_axes=(1, None))(jnp.ones((3, 2)), jnp.ones((1,)))
out['~broadcasting 2'] = jax.vmap(add.bind, in_axes=(1, 0))(jnp.ones((3, 2)), jnp.ones((2, 1)))
mul = Primitive('times')
mul.def_impl(lambda x, y: x * y)
mul.def_abstract_eval(lambda x, y: x)
ad.defbilinear(mul, lambda ct, x, y: ct * y, lambda ct, x, y: ct * x)
out['~bilinear'] = np.stack(jax.grad(lambda x, y: mul.bind(x, y).sum(), (0, 1))(x, x + 1))
total = Primitive('total')
total.def_impl(lambda x, *, axes: jnp.sum(x, axes))
total.def_abstract_eval(lambda x, *, axes: x.update(
    shape=tuple(n for i, n in enumerate(x.shape) if i not in axes)))
batching.defreducer(total)
out['~reducer'] = jax.vmap(lambda x: total.bind(x, axes=(1,)), in_axes=1)(
    jnp.arange(24.0).reshape(2, 3, 4))

q = Primitive('q')
q.multiple_results = True
log = []
q.def_impl(lambda *xs: list(xs))
q.def_abstract_eval(lambda *xs: list(xs))
def fancy(axis, args, dims):
    log.append((axis.name, axis.size, dims))
    return q.bind(*args), dims
batching.fancy_primitive_batchers[q] = fancy
both_of = lambda y: jax.vmap(lambda x: q.bind(x, y)[0], axis_name='i')(jnp.ones(3))
both_of(2.0)
jax.vmap(lambda x: q.bind(2.0)[0] + x, axis_name='i')(jnp.ones(3))
out['fancy'] = str(log)
del batching.fancy_primitive_batchers[q]
log.clear()
def with_axis(size, name, _, args, dims):
    log.append((size, name, dims))
    return q.bind(*args), dims
batching.axis_primitive_batchers[q] = with_axis
both_of(2.0)
jax.vmap(lambda x: q.bind(2.0)[0] + x, axis_name='i')(jnp.ones(3))
out['with axis'] = str(log)

class Noted(Effect):
    pass
q.def_effectful_abstract_eval(lambda *xs: (list(xs), {Noted()}))
out['effects'] = len(jax.make_jaxpr(q.bind)(1.0).effects)
mlir.register_lowering(q, lambda ctx, *xs: list(xs))
out['refused effects'] = err(lambda: jax.jit(q.bind)(1.0))
mlir.lowerable_effects.add_type(Noted)
out['allowed effects'] = jax.jit(q.bind)(1.0)[0]
out['kept'] = len(jax.make_jaxpr(lambda x: (q.bind(x), x)[1])(1.0).eqns)
""")


@pytest.fixture
def sine():
    """A primitive with two results, a param and all its rules."""
    p = Primitive("sine and multiple")
    p.multiple_results = True
    p.def_impl(lambda x, *, n: [np.sin(x), np.asarray(x) * np.float32(n)])
    p.def_abstract_eval(lambda x, *, n: [ShapedArray(x.shape, x.dtype)] * 2)
    mlir.register_lowering(p, mlir.lower_fun(lambda x, *, n: (jnp.sin(x), x * n)))

    def jvp(primals, tangents, *, n):
        outs = p.bind(*primals, n=n)
        if type(tangents[0]) is ad.Zero:
            return outs, [ad.Zero.from_primal_value(x) for x in outs]
        return outs, [tangents[0] * jnp.cos(primals[0]), tangents[0] * n]

    ad.primitive_jvps[p] = jvp
    batching.primitive_batchers[p] = lambda xs, dims, *, n: (p.bind(*xs, n=n), [dims[0]] * 2)
    return p


@pytest.mark.parametrize("wrap", [
    lambda f: f, nj.jit, nj.grad, lambda f: nj.jit(nj.grad(f)), nj.hessian,
    lambda f: lambda x: nj.vmap(nj.grad(f))(jnp.stack([x, 2 * x])),
    lambda f: lambda x: nj.jit(nj.vmap(nj.grad(f)))(jnp.stack([x, 2 * x])),
], ids="eager jit grad jit_grad hessian vmap_grad jit_vmap_grad".split())  # fmt: skip
def test_inside_loops_and_branches_it_is_what_it_computes(sine, wrap):
    def own(x):
        return sine.bind(x, n=2)

    def plain(x):
        return jnp.sin(x), 2 * x

    def program(op):
        def f(x):
            def body(c, _):
                a, b = op(c)
                return lax.cond(c > 0, lambda c: a + 0.1 * op(c)[1], lambda c: b, c), b

            c, ys = lax.scan(body, x, None, length=3)
            return lax.fori_loop(0, 2, lambda i, c: op(c)[0], c) + ys.sum()

        return f

    x = jnp.float32(0.3)
    got, want = wrap(program(own))(x), wrap(program(plain))(x)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_a_lowering_in_mlir_is_a_call_of_the_implementation():
    p, seen = Primitive("running sum"), []

    @p.def_impl
    def _(x):
        seen.append(x)
        return np.cumsum(np.asarray(x), dtype=np.float64)

    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, lambda ctx, x: [mlir.hlo.add(x, mlir.ir_constant(1.0))])
    x = jnp.arange(3.0)
    np.testing.assert_array_equal(nj.jit(lambda x: p.bind(x) * 2)(x), [0, 2, 6])
    out = nj.jit(lambda x: lax.fori_loop(0, 2, lambda i, c: p.bind(c), x))(x)
    np.testing.assert_array_equal(out, [0, 1, 4])
    assert out.dtype == np.float32 and len(seen) == 3
    # The context and the operands may be asked for what is known without MLIR.
    mlir.register_lowering(
        p, lambda ctx, x: mlir.lower_fun(lambda y: y * len(ctx.avals_in), False)(ctx, x)
    )
    np.testing.assert_array_equal(nj.jit(lambda x: p.bind(x) * 2)(x), [0, 2, 4])
    assert len(seen) == 3
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x * 7, False), platform="cpu")
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x * 9, False), platform="cuda")
    np.testing.assert_array_equal(nj.jit(p.bind)(x), [0, 7, 14])
    p.def_impl(functools.partial(xla.apply_primitive, p))
    np.testing.assert_array_equal(p.bind(x), [0, 7, 14])


def test_rules_of_a_new_primitive_forget_nothing_that_was_compiled():
    traces = []

    @nj.jit
    def f(x):
        traces.append(x)
        return x + 1

    f(1.0)
    q = Primitive("of a library that is imported now")
    q.def_abstract_eval(lambda x: x)
    mlir.register_lowering(q, mlir.lower_fun(lambda x: x * 3, False))
    mlir.register_lowering(q, mlir.lower_fun(lambda x: x * 5, False), platform="cuda")
    mlir.register_lowering(lax.sin_p, lambda ctx, x: x, platform="tpu")
    f(1.0)
    assert len(traces) == 1
    g = nj.jit(lambda x: q.bind(x))
    assert g(2.0) == 6
    mlir.register_lowering(q, mlir.lower_fun(lambda x: x * 4, False))  # another one counts
    assert g(2.0) == 8


def test_what_a_rule_promises_is_checked():
    p = Primitive("half")
    p.def_impl(lambda x: np.zeros(3, np.float32))
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, lambda ctx, x: mlir.ir_constant(1.0))
    with pytest.raises(TypeError, match="def_impl gave"):
        nj.jit(p.bind)(jnp.ones(2))
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x[:1], False))
    with pytest.raises(TypeError, match="lowering of half gives"):
        nj.jit(p.bind)(jnp.ones(2))
    p.def_impl(functools.partial(xla.apply_primitive, p))
    mlir.register_lowering(p, lambda ctx, x: mlir.ir_constant(1.0), platform="cpu")
    with pytest.raises(NotImplementedError, match="written in MLIR"):
        p.bind(jnp.ones(2))
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(p)


def test_programs_with_operations_of_one_name_are_told_apart(tmp_path):
    """The name of an operation does not decide what a program in the disk cache computes."""
    results = []
    for factor in (2.0, 3.0):
        p = Primitive("scaled")
        p.def_abstract_eval(lambda x: x)
        mlir.register_lowering(p, mlir.lower_fun(lambda x, f=factor: x * f, False))
        results.append(float(nj.jit(lambda x, p=p: p.bind(x) + 1)(1.0)))
    assert results == [3.0, 4.0]
    p = Primitive("sin")
    p.def_impl(lambda x: np.float32(x) + 1)
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, lambda ctx, x: mlir.hlo.sine(x))
    assert float(nj.jit(p.bind)(1.0)) == 2.0


def test_rules_of_our_own_primitives_can_be_replaced():
    own = ad.primitive_jvps[lax.sin_p]
    try:
        ad.primitive_jvps[lax.sin_p] = lambda xs, ts, **params: (
            lax.sin_p.bind(*xs, **params), ts[0] * 100)  # fmt: skip
        assert nj.grad(jnp.sin)(1.0) == 100
        assert nj.jit(nj.grad(jnp.sin))(1.0) == 100
    finally:
        ad.primitive_jvps[lax.sin_p] = own
    np.testing.assert_allclose(nj.grad(jnp.sin)(1.0), np.cos(1.0), rtol=1e-6)
    out, dim = batching.primitive_batchers[lax.sin_p]((jnp.ones((2, 3)),), (1,))
    assert out.shape == (2, 3) and dim == 1
    assert lax.sin_p in ad.primitive_jvps and lax.sin_p not in batching.axis_primitive_batchers


def test_values_that_a_library_registers_are_arrays():
    class Wrapped:
        def __init__(self, x):
            self.x = x

    from numjet.extend.types import shaped_abstractify, valid_jaxtype

    assert not valid_jaxtype(Wrapped(1.0))
    xla.canonicalize_dtype_handlers[Wrapped] = lambda w: w.x
    xla.pytype_aval_mappings[Wrapped] = lambda w: shaped_abstractify(w.x)
    try:
        assert jnp.sin(Wrapped(jnp.ones(2))).shape == (2,)
        assert shaped_abstractify(Wrapped(jnp.ones(2))) is ShapedArray((2,), np.dtype("float32"))
    finally:
        del xla.canonicalize_dtype_handlers[Wrapped], xla.pytype_aval_mappings[Wrapped]
    assert not valid_jaxtype(Wrapped(1.0))


def test_rules_as_methods_of_a_derived_class():
    """As kfac-jax has its tags: a class with `multiple_results`, `impl` and `abstract_eval`."""

    class Both(Primitive):
        multiple_results = True

        def __init__(self):
            super().__init__("both")
            ad.primitive_jvps[self] = lambda args, tangents: (self.bind(*args), tangents[::-1])
            batching.primitive_batchers[self] = lambda args, dims: (self.bind(*args), dims[::-1])
            mlir.register_lowering(self, mlir.lower_fun(self.impl, True))

        def impl(self, x, y):
            return y, x

        def abstract_eval(self, x, y):
            return (y, x), no_effects

    both_p = Both()
    assert [float(v) for v in both_p.bind(1.0, 2.0)] == [2.0, 1.0]
    assert [float(v) for v in nj.jit(both_p.bind)(1.0, 2.0)] == [2.0, 1.0]
    assert nj.grad(lambda x: both_p.bind(x, 2.0)[1] * 3)(1.0) == 3.0
    turned = nj.vmap(lambda *xs: tuple(both_p.bind(*xs)), in_axes=(0, None), out_axes=(None, 0))
    rows, one = turned(jnp.arange(3.0), 1.0)
    assert rows == 1.0 and one.tolist() == [0.0, 1.0, 2.0]
    assert nj.make_jaxpr(both_p.bind)(1.0, jnp.ones(2)).out_avals[0].shape == (2,)


def test_rules_for_dead_code_say_what_stays():
    rows_p, asked = Primitive("rows"), []
    rows_p.multiple_results = True
    rows_p.def_abstract_eval(lambda *xs, gains: list(xs))
    rows_p.def_impl(lambda *xs, gains: [x * g for x, g in zip(xs, gains)])
    mlir.register_lowering(
        rows_p, mlir.lower_fun(lambda *xs, gains: [x * g for x, g in zip(xs, gains)])
    )

    def rule(used, eqn):
        asked.append(tuple(used))
        if not any(used):
            return used, None

        def keep(values):
            return [v for v, u in zip(values, used, strict=True) if u]

        params = {"gains": tuple(keep(eqn.params["gains"]))}
        return used, eqn.replace(
            invars=keep(eqn.invars), outvars=keep(eqn.outvars), params=params
        )

    pe.dce_rules[rows_p] = rule
    assert rows_p in pe.dce_rules and pe.dce_rules[rows_p] is rule

    def rows(x, y):
        return rows_p.bind(x, y, gains=(2.0, 3.0))

    x, y = jnp.arange(3.0), jnp.ones(2)
    jaxpr = nj.make_jaxpr(lambda x, y: rows(x, jnp.sin(y)))(x, y).jaxpr
    found, reads = pe.dce_jaxpr(jaxpr, [True, False])
    assert reads == [True, False] and len(found.eqns) == 1
    assert found.eqns[0].params == {"gains": (2.0,)}
    found, reads = pe.dce_jaxpr(jaxpr, [False, False])
    assert not found.eqns and asked == [(True, False), (False, False)]

    def loop(x, y):
        carry, _ = nj.lax.scan(lambda c, _: (tuple(rows(*c)), None), (x, y), None, length=3)
        return carry[0]

    found, reads = pe.dce_jaxpr(nj.make_jaxpr(loop)(x, y).jaxpr, [True])
    assert reads == [True, False]
    np.testing.assert_array_equal(nj.jit(loop)(x, y), 8 * np.arange(3.0))
    del pe.dce_rules[rows_p]
    assert len(pe.dce_jaxpr(jaxpr, [True, False])[0].eqns[-1].outvars) == 2
    with pytest.raises(NotImplementedError, match="numjet's own primitive"):
        pe.dce_rules[nj.lax.sin_p] = rule


def test_dead_code_in_calls_is_dropped():
    def f(x, y):
        held = jnp.arange(3.0)
        inner = nj.jit(lambda a, b: (jnp.sin(a), nj.checkpoint(lambda c: (c * held, c))(b), b))
        return inner(x, y)

    jaxpr = nj.make_jaxpr(f)(1.0, 2.0).jaxpr
    found, reads = pe.dce_jaxpr(jaxpr, [True, False, False, False])
    [call] = found.eqns
    assert reads == [True, False] and len(call.invars) == len(call.outvars) == 1
    assert [eqn.primitive.name for eqn in call.params["jaxpr"].eqns] == ["sin"]
    assert len(call.params["in_shardings"]) == len(call.params["out_shardings"]) == 1
    found, reads = pe.dce_jaxpr(jaxpr, [False, False, True, False])
    inner = found.eqns[-1].params["jaxpr"].jaxpr
    assert reads == [False, True] and not inner.eqns[0].params["jaxpr"].eqns
    found, reads = pe.dce_jaxpr(jaxpr, [False, True, False, True])
    consts = [jnp.arange(3.0)][: len(found.constvars)]
    ran = nj.extend.core.jaxpr_as_fun(nj.extend.core.ClosedJaxpr(found, consts))(2.0)
    assert reads == [False, True] and [str(x) for x in ran] == ["[0. 2. 4.]", "2.0"]


def test_numpy_results_within_calls_are_arrays():
    p = Primitive("fma_in_calls")
    p.def_impl(lambda x, y: np.add(np.multiply(x, x), y))
    p.def_abstract_eval(lambda x, y: ShapedArray(x.shape, x.dtype))

    def jvp(primals, tangents):
        (x, y), (dx, dy) = primals, [
            lax.full_like(x, 0) if type(t) is ad.Zero else t for x, t in zip(primals, tangents)
        ]
        return p.bind(x, y), p.bind(x, dy) - p.bind(x, lax.full_like(x, 0)) + 2 * x * dx

    def batched(args, dims):
        return p.bind(*[jnp.broadcast_to(x, (3,)) for x in args]), 0

    ad.primitive_jvps[p] = jvp
    batching.primitive_batchers[p] = batched
    transposed = lambda ct, x, y: [None, ct]
    ad.primitive_transposes[p] = transposed
    kept = nj.checkpoint(lambda x: p.bind(x, 10.0))
    chosen = lambda x: lax.switch(1, [lambda x: x, lambda x: p.bind(x, 10.0)], x)
    for f in (kept, chosen):
        assert [float(v) for v in nj.jvp(f, (3.0,), (1.0,))] == [19.0, 6.0]
        assert float(nj.grad(f)(3.0)) == 6.0 == float(nj.linearize(f, 3.0)[1](1.0))
        np.testing.assert_array_equal(nj.vmap(f)(jnp.arange(3.0)), np.arange(3.0) ** 2 + 10)


def test_operands_over_a_mesh():
    """netket's searches of states are a primitive of its own, over the mesh of its samples."""
    p = Primitive("twice_over_a_mesh")
    p.def_impl(lambda x: 2 * x)
    p.def_abstract_eval(lambda x: x)
    ad.deflinear2(p, lambda ct, x: [p.bind(ct)])
    batching.defvectorized(p)
    mesh = nj.make_mesh((1,), ("i",))
    lie = nj.NamedSharding(mesh, nj.P("i"))
    x = nj.device_put(jnp.arange(3.0), lie)
    loss = lambda x: jnp.sum(p.bind(x) * x)
    for lowering in (None, mlir.lower_fun(lambda x: x + x, multiple_results=False)):
        mlir.register_lowering(p, lowering or (lambda ctx, x: ctx.module_context))
        mapped = nj.shard_map(p.bind, mesh=mesh, in_specs=nj.P("i"), out_specs=nj.P("i"))
        ways = [p.bind, nj.jit(p.bind), nj.vmap(p.bind), nj.jit(nj.vmap(p.bind)), mapped,
                nj.jit(p.bind, in_shardings=lie, out_shardings=lie)]  # fmt: skip
        for way in ways:
            np.testing.assert_array_equal(way(x), [0.0, 2.0, 4.0])
        for way in (nj.grad(loss), nj.jit(nj.grad(loss))):
            np.testing.assert_array_equal(way(x), [0.0, 4.0, 8.0])
