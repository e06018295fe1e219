"""Jaxprs, traces and avals as libraries use them, beside JAX."""

from __future__ import annotations

import numpy as np
import pytest
from both import both

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.export import symbolic_shape
from numjet.extend import core, jax_core, linear_util as lu, source_info_util
from numjet.extend.core import primitives


def test_interpreters_of_jaxprs_that_users_write():
    """The well-known style: an environment, a table by primitive, and calls by their params."""
    both("""
from PACKAGE.extend import core
from PACKAGE.extend.core import primitives as P
rules = {}

def interpret(jaxpr, consts, *args):
    env = {}
    def read(v):
        return v.val if type(v) is core.Literal else env[v]
    def write(v, x):
        env[v] = x
    for v, x in zip(jaxpr.constvars, consts):
        write(v, x)
    for v, x in zip(jaxpr.invars, args):
        write(v, x)
    for eqn in jaxpr.eqns:
        values = [read(v) for v in eqn.invars]
        params = dict(eqn.params)
        if eqn.primitive in (P.jit_p, P.closed_call_p):
            inner = params['jaxpr']
            outs = interpret(inner.jaxpr, inner.literals, *values)
        elif eqn.primitive in (P.custom_jvp_call_p, P.custom_vjp_call_p):
            inner = params['call_jaxpr']
            outs = interpret(inner.jaxpr, inner.consts, *values)
        elif eqn.primitive is P.scan_p:
            inner = params['jaxpr']
            nc, nk = params['num_consts'], params['num_carry']
            def body(carry, x):
                outs = interpret(inner.jaxpr, inner.consts, *values[:nc], *carry, *x)
                return outs[:nk], outs[nk:]
            carry, ys = lax.scan(body, values[nc:nc + nk], values[nc + nk:],
                                 length=params['length'], reverse=params['reverse'])
            outs = [*carry, *ys]
        elif eqn.primitive is P.while_p:
            n, m = params['cond_nconsts'], params['body_nconsts']
            cond, body = params['cond_jaxpr'], params['body_jaxpr']
            outs = lax.while_loop(
                lambda c: interpret(cond.jaxpr, cond.consts, *values[:n], *c)[0],
                lambda c: interpret(body.jaxpr, body.consts, *values[n:n + m], *c), values[n + m:])
        elif eqn.primitive is P.cond_p:
            fs = [lambda *xs, b=b: interpret(b.jaxpr, b.consts, *xs) for b in params['branches']]
            outs = lax.switch(values[0], fs, *values[1:])
        elif eqn.primitive in rules:
            outs = [rules[eqn.primitive](*values)]
        else:
            bind_params = eqn.primitive.get_bind_params(eqn.params)
            outs = eqn.primitive.bind(*values, **bind_params)
            if not eqn.primitive.multiple_results:
                outs = [outs]
        for v, x in zip(eqn.outvars, outs):
            write(v, x)
    return [read(v) for v in jaxpr.outvars]

@jax.custom_jvp
def soft(x):
    return jnp.log1p(jnp.exp(x))
soft.defjvp(lambda ps, ts: (soft(*ps), ts[0] * 3))

def program(x, n):
    y = jax.jit(jnp.sin)(x) + soft(x)
    c, ys = lax.scan(lambda c, a: (c * a, c + jnp.sin(a)), y[0], y)
    z = lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 1.1 + jnp.sin(c[1])), (0, c))
    w = lax.cond(z[1] > 0, jnp.sin, jnp.cos, z[1])
    return {'w': w, 'ys': ys, 'rest': jnp.array([1.0, 2.0]) @ y[:2]}

x = jnp.array([0.3, 0.5, 0.7])
closed = jax.make_jaxpr(program)(x, 3)
want = jax.tree_util.tree_leaves(program(x, 3))
for i, (a, b) in enumerate(zip(interpret(closed.jaxpr, closed.consts, x, 3), want)):
    out[f'~same {i}'] = np.asarray(a) - np.asarray(b)
    out[f'~value {i}'] = a
rules[P.sin_p] = lambda x: x
for i, a in enumerate(interpret(closed.jaxpr, closed.literals, x, 3)):
    out[f'~without sines {i}'] = a
for i, a in enumerate(jax.jit(lambda x: interpret(closed.jaxpr, closed.consts, x, 3))(x)):
    out[f'~compiled {i}'] = a
grad = jax.grad(lambda x: interpret(closed.jaxpr, closed.consts, x, 3)[0].sum())
out['~gradient'] = jax.jit(jax.grad(lambda x: interpret(
    jax.make_jaxpr(lambda x: soft(x).sum())(x).jaxpr, [], x)[0]))(x)
out['ins and outs'] = f'{closed.in_avals} {closed.jaxpr.out_avals} {len(closed.invars)}'
""")


def test_what_jaxprs_and_equations_know():
    both("""
from PACKAGE.extend import core
from PACKAGE.extend.core import primitives as P
closed = jax.make_jaxpr(lambda x: (jnp.sin(x), x * 2))(1.0)
jaxpr = closed.jaxpr
eqn = jaxpr.eqns[0]
x = jaxpr.invars[0]
out['classes'] = str([isinstance(closed, core.ClosedJaxpr), isinstance(jaxpr, core.Jaxpr),
    isinstance(eqn, core.JaxprEqn), isinstance(x, core.Var), not isinstance(x, core.DropVar),
    isinstance(jaxpr.eqns[1].invars[1], core.Literal), isinstance(eqn.primitive, core.Primitive)])
again = core.Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.outvars, jaxpr.eqns, jaxpr.effects,
                   jaxpr.debug_info)
out['~eval'] = np.stack(jax.core.eval_jaxpr(again, [], 2.0) if hasattr(jax.core, 'eval_jaxpr')
                        else core.eval_jaxpr(again, [], 2.0))
out['~as fun'] = np.stack(core.jaxpr_as_fun(closed)(2.0))
out['too many'] = err(lambda: core.jaxpr_as_fun(closed)(2.0, 3.0))
new = core.new_jaxpr_eqn([x], [eqn.outvars[0]], P.cos_p, dict(eqn.params), core.no_effects,
                         eqn.source_info, eqn.ctx)
with eqn.ctx.manager:
    other = jaxpr.replace(eqns=[new, jaxpr.eqns[1].replace(params={})])
out['~other'] = np.stack(core.jaxpr_as_fun(core.ClosedJaxpr(other, []))(2.0))
out['check'] = str([err(lambda: core.check_jaxpr(jaxpr)),
                    err(lambda: core.check_jaxpr(jaxpr.replace(eqns=jaxpr.eqns[1:])))])
nested = jax.make_jaxpr(jax.jit(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x)))(1.0)
count = lambda j: len(j.eqns) + sum(count(s) for s in core.subjaxprs(j))
out['nested'] = count(nested.jaxpr)
out['in params'] = len(list(core.jaxprs_in_params(nested.eqns[0].params)))
a = x.aval.update(shape=(2, 3), weak_type=False)
out['avals'] = str([core.mapped_aval(3, 1, a), core.unmapped_aval(4, 1, a),
                    core.unmapped_aval(4, None, a), a.strip_weak_type(), a.to_tangent_aval()])
out['wrong size'] = err(lambda: core.mapped_aval(4, 1, a))
out['valid'] = str([core.valid_jaxtype(v) for v in (1, 1.0, 'a', [1], jnp.ones(2), None,
                                                    np.ones(2), np.float32(1))])
out['known'] = core.concrete_or_error(int, jnp.array(3), 'here')
out['traced'] = err(lambda: jax.jit(lambda x: core.concrete_or_error(int, x, 'here'))(1))
out['tangent dtypes'] = str([core.primal_dtype_to_tangent_dtype(np.dtype(d))
                             for d in ('float32', 'int32')])
state = core.get_opaque_trace_state
out['state'] = str(state() == state())
seen = []
before = state()
def look(x):
    seen.append((before == state(), state(convention='nnx') == state(convention='nnx'),
                 core.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
                 core.unsafe_get_axis_names_DO_NOT_USE(), core.nonempty_axis_env_DO_NOT_USE()))
    return x
jax.vmap(look, axis_name='i')(jnp.ones(2))
jax.jit(look)(1.0)
jax.grad(look)(1.0)
look(1.0)
out['seen'] = str(seen)
""")


def test_wrapped_functions_and_flattening():
    both("""
from PACKAGE import api_util as au
from PACKAGE.extend import linear_util as lu
from PACKAGE.tree_util import tree_structure
info = au.debug_info('test', lambda x, y: x, (1.0, 2.0), {})
out['names'] = str(info.arg_names) + info.traced_for
deep = au.debug_info('t', lambda a, *b, c=1, **d: 0, ({'k': 1}, 2, 3), {'c': 4, 'e': [5, 6]},
                     static_argnames=('c',))
out['deep names'] = str(deep.arg_names)
f = lu.wrap_init(lambda x, y: [x * y], debug_info=info)
out['call'] = f.call_wrapped(2.0, 3.0)[0]
steps = []
@lu.transformation
def scaled(k, *args):
    steps.append('in')
    outs = yield args, {}
    yield [k * x for x in outs]
    steps.append('out')
@lu.transformation_with_aux
def noted(k, *args):
    outs = yield args, {}
    yield outs, f'note {k}'
@lu.transformation2
def shifted(f, k, *args):
    return [k + x for x in f(*args)]
@lu.transformation_with_aux2
def kept(f, store, *args):
    store.store(len(args))
    return f(*args)
g, note = noted(scaled(f, 10), 'x')
out['empty'] = err(note)
out['chain'] = shifted(g, 1).call_wrapped(2.0, 3.0)[0]
out['note'] = note()
out['twice'] = err(lambda: g.call_wrapped(2.0, 3.0))
h, many = kept(f)
out['merge'] = str(lu.merge_linear_aux(note, many))
h.call_wrapped(1.0, 2.0)
out['both'] = err(lambda: lu.merge_linear_aux(note, many))
out['equal'] = str([scaled(f, 1) == scaled(f, 2), f == f, f == lu.wrap_init(f.f, debug_info=info)])
calls = []
@lu.cache
def cached(fun, k):
    calls.append(k)
    return fun.call_wrapped(k, k)
outs = []
for k in (1.0, 1.0, 2.0):
    w, told = kept(f)
    outs.append((cached(w, k), told()))
out['cache'] = str([calls, outs])
out['steps'] = str(steps)
flat, tree = au.flatten_fun(lu.wrap_init(lambda x, y, z=1: {'a': x + y * z}, debug_info=info),
                            tree_structure(((1, 2), {'z': 3})))
out['flatten_fun'] = str([flat.call_wrapped(1.0, 2.0, 3.0), tree()])
flat, tree = au.flatten_fun_nokwargs(lu.wrap_init(lambda x, y: [x, y], debug_info=info),
                                     tree_structure((1, 2)))
out['nokwargs'] = str([flat.call_wrapped(1.0, 2.0), tree()])
partial, dynamic = au.argnums_partial(f, 0, (1.0, 2.0))
out['argnums_partial'] = str([partial.call_wrapped(5.0), dynamic])
same = [au.argnums_partial(f, 0, (1.0, y))[0] for y in (2.0, 2.0, 3.0, 2)]
out['argnums_partial equal'] = str([same[0] == x for x in same])
out['no hash'] = err(lambda: au.argnums_partial(f, 0, (1.0, [2.0])))
out['donation'] = str([au.donation_vector((0,), (), tree_structure(((1, [2, 3]), {'k': 4}))),
                       au.donation_vector((1,), ('k',), tree_structure(((1, [2, 3]), {'k': 4}))),
                       au.rebase_donate_argnums((1, 2), (0,))])
out['intersect'] = err(lambda: au.rebase_donate_argnums((1, 2), (1,)))
out['axes'] = str([au.flatten_axes('f', tree_structure((1, [2, 3])), (0, None)),
                   au.flatten_axes('f', tree_structure(((1, 2), {'k': 3})), (0, None), kws=True)])
out['bad axes'] = err(lambda: au.flatten_axes('f', tree_structure((1, [2, 3])), (0,)))
out['safe_map'] = str([au.safe_map(lambda a, b: a + b, [1, 2], [3, 4]),
                       err(lambda: au.safe_map(lambda a, b: a, [1], [2, 3]))])
out['abstract'] = str([au.shaped_abstractify(1.0), au.shaped_abstractify(jnp.ones(2)),
                       au.shaped_abstractify(jax.ShapeDtypeStruct((2,), 'float32')),
                       err(lambda: au.shaped_abstractify('s'))])
""")


def test_partial_evaluation_and_dead_code():
    both("""
from PACKAGE import api_util as au
from PACKAGE.extend import linear_util as lu
from PACKAGE.interpreters import partial_eval as pe
a = jax.make_jaxpr(lambda x: x)(jnp.ones(2)).in_avals[0]
info = au.debug_info('t', lambda x, y: x, (1, 2), {})
f = lu.wrap_init(lambda x, y: [lax.sin(x), lax.mul(x, y), lax.add(y, 1.0)], debug_info=info)
jaxpr, avals, consts = pe.trace_to_jaxpr_dynamic(f, [a, a])
out['dynamic'] = str([jaxpr, avals, consts])
unknown, known = pe.PartialVal.unknown(a), pe.PartialVal.known(jnp.arange(2.0))
out['values'] = str([unknown.is_known(), known.is_known(), unknown.get_aval(), known.get_aval()])
jaxpr2, pvals, residuals = pe.trace_to_jaxpr_nounits(f, [unknown, known])
out['nounits'] = str([[p.is_known() for p in pvals], len(jaxpr2.invars), len(residuals),
                      [e.primitive.name for e in jaxpr2.eqns]])
out['dce'] = str(pe.dce_jaxpr(jaxpr, [True, False, False]))
out['dce kept'] = str(pe.dce_jaxpr(jaxpr, [True, False, False], True))
out['dce consts'] = str(pe.dce_jaxpr_consts(jaxpr, [False, False, True]))
""")


def test_calls_of_jaxprs_stay_calls():
    closed = nj.make_jaxpr(lambda x: [jnp.sin(x) * x])(1.0)
    for primitive in (primitives.call_p, primitives.closed_call_p):
        assert primitive.call_primitive and primitive.multiple_results

        def run(x, p=primitive):
            return p.bind(x, call_jaxpr=closed)[0]

        np.testing.assert_allclose(nj.jit(run)(2.0), 2 * np.sin(2.0), rtol=1e-6)
        want = np.sin(2.0) + 2 * np.cos(2.0)
        np.testing.assert_allclose(nj.grad(run)(2.0), want, rtol=1e-6)
        np.testing.assert_allclose(nj.jit(nj.grad(run))(2.0), want, rtol=1e-6)
        assert nj.vmap(run)(jnp.ones(3)).shape == (3,)
        assert nj.make_jaxpr(run)(1.0).eqns[0].primitive is primitive


def test_every_primitive_has_its_name():
    from numjet.core.primitive import REGISTRY

    names = [name for name in dir(primitives) if name.endswith("_p")]
    assert len(names) > 140
    for name in names:
        assert isinstance(getattr(primitives, name), core.Primitive)
    assert primitives.sin_p is lax.sin_p and primitives.scan_p is REGISTRY["scan"]
    for kind in ("add", "sub", "mul", "min", "max"):
        assert getattr(primitives, f"scatter_{kind}_p").name == f"scatter-{kind}"
    assert not any(eqn.primitive.call_primitive for eqn in nj.make_jaxpr(lax.sin)(1.0).eqns)
    with pytest.raises(AttributeError, match="no such primitive"):
        primitives.never_made_p  # noqa: B018


class _Doubling(jax_core.Trace):
    """Sees every operation and doubles what sin gives."""

    def __init__(self, parent_trace, tag):
        super().__init__()
        self.parent_trace, self.tag, self.seen = parent_trace, tag, []

    def value(self, x):
        return x.value if isinstance(x, _Doubled) and x._trace.tag is self.tag else x

    def process_primitive(self, primitive, tracers, params):
        self.seen.append(primitive.name)
        with jax_core.set_current_trace(self.parent_trace):
            values = [self.value(x) for x in tracers]
            out = primitive.bind_with_trace(self.parent_trace, values, params)
        if primitive.multiple_results:
            return [_Doubled(self, x) for x in out]
        return _Doubled(self, out * 2 if primitive.name == "sin" else out)

    def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
        self.seen.append("custom_jvp")
        values = [self.value(x) for x in tracers]
        params = {"subfuns": (fun, jvp), "symbolic_zeros": symbolic_zeros}
        avals = [x.aval for x in values]
        outs = primitive.bind_with_trace(self.parent_trace, values, avals, params)
        return [_Doubled(self, x) for x in outs]


class _Doubled(jax_core.Tracer):
    def __init__(self, trace, value):
        self._trace, self.value = trace, value

    @property
    def aval(self):
        return self.value.aval


def _doubled(f):
    def run(*args):
        with jax_core.take_current_trace() as parent:
            trace = _Doubling(parent, jax_core.TraceTag())
            with jax_core.set_current_trace(trace):
                out = f(*[_Doubled(trace, jnp.asarray(x)) for x in args])
        run.seen = trace.seen
        return trace.value(out)

    return run


class _Params(_Doubling):
    """Also keeps the parameters of what it sees."""

    def process_primitive(self, primitive, tracers, params):
        self.given = {**getattr(self, "given", {}), primitive.name: params}
        self.operands = {**getattr(self, "operands", {}), primitive.name: tracers}
        return super().process_primitive(primitive, tracers, params)


def test_traces_by_libraries_see_the_parameters_of_jax():
    jitted, ones = nj.jit(lambda v: v + 1), jnp.ones(3)
    with jax_core.take_current_trace() as parent:
        trace = _Params(parent, jax_core.TraceTag())
        with jax_core.set_current_trace(trace):
            x = _Doubled(trace, ones)
            out = jnp.sum(lax.broadcast_in_dim(lax.exp(x), (2, 3), (1,)))
            jitted(x)
    np.testing.assert_allclose(trace.value(out), 6 * np.e, rtol=1e-6)
    assert trace.given["broadcast_in_dim"]["sharding"] is None
    assert trace.given["reduce_sum"]["out_sharding"] is None
    assert trace.given["jit"]["inline"] is False and trace.given["exp"] == {"accuracy": None}
    # A rule may bind them itself, with the parameters it was handed.
    plain = {"shape": (2, 3), "broadcast_dimensions": (1,)}
    assert lax.broadcast_in_dim_p.bind(jnp.ones(3), **plain, sharding=None).shape == (2, 3)
    with pytest.raises(NotImplementedError, match="sharding='x' has no meaning here"):
        lax.broadcast_in_dim_p.bind(jnp.ones(3), **plain, sharding="x")


def test_traces_by_libraries_are_handed_a_mapped_loop_with_a_predicate_for_each_example():
    def count(x, end):
        return lax.while_loop(lambda x: (x < end).all(), lambda x: x + 2, x)

    def mapped(x, ends):
        return nj.vmap(count, (None, 0))(x, ends)

    for f, x, ends, shape in (
        (mapped, jnp.zeros(1), jnp.array([3.0, 0.0, 7.0]), (3,)),
        (nj.vmap(mapped, (0, None)), jnp.array([0.0, 5.0]), jnp.array([3.0, 0.0, 7.0]), (2, 3)),
    ):
        with jax_core.take_current_trace() as parent:
            trace = _Params(parent, jax_core.TraceTag())
            with jax_core.set_current_trace(trace):
                out = f(_Doubled(trace, x), ends)
        assert trace.given["while"]["cond_jaxpr"].out_avals[0].shape == shape
        assert "select_n" not in trace.seen
        out = trace.value(out)
        np.testing.assert_array_equal(out, f(x, ends))
    np.testing.assert_array_equal(out, np.array([[4.0, 0, 8], [5, 5, 7]]))
    # A primitive of the user's own code may bind the loop that it was handed.
    loop = trace.given["while"]
    given = [trace.value(v) for v in trace.operands["while"]]
    np.testing.assert_array_equal(nj.jit(lambda *v: lax.while_p.bind(*v, **loop))(*given)[0], out)


def test_traces_by_libraries_are_handed_operations_in_the_terms_of_jax():
    a, b = jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.ones((2, 3))

    def seen_by(f, *args):
        with jax_core.take_current_trace() as parent:
            trace = _Params(parent, jax_core.TraceTag())
            with jax_core.set_current_trace(trace):
                out = f(*[_Doubled(trace, x) for x in args])
        return trace, trace.value(out)

    # Two primitives of ours are one of JAX's, which the library may bind itself.
    for method, want in ((0, 3.0), (1, 2.0)):
        trace, out = seen_by(lambda x, m=method: lax.round(x, m), jnp.array([2.5]))
        assert trace.given["round"] == {"rounding_method": method}
        assert out == want == lax.round_p.bind(jnp.array([2.5]), rounding_method=method)
    # A system of equations is its factors, and a solution that is differentiated as a whole.
    trace, out = seen_by(jnp.linalg.solve, a, b)
    assert {"lu", "custom_linear_solve"} <= trace.given.keys() and "solve" not in trace.given
    np.testing.assert_allclose(out, np.linalg.solve(a, b), rtol=1e-6)
    trace, out = seen_by(jnp.linalg.inv, jnp.stack([a, 2 * a]))
    np.testing.assert_allclose(out, np.linalg.inv(np.stack([a, 2 * a])), rtol=1e-6)
    # A product of two dtypes is one operation.
    trace, out = seen_by(jnp.matmul, jnp.ones((2, 2), jnp.int32), a)
    assert trace.given["dot_general"]["preferred_element_type"] == np.float32
    assert "convert_element_type" not in trace.given
    # Numbers of Python arrive as such, and as arrays where they were converted.
    trace, _ = seen_by(lambda x: lax.igamma(1.0, x), a)
    assert trace.operands["igamma"][0] == 1.0 and type(trace.operands["igamma"][0]) is float
    trace, _ = seen_by(lambda x: x + 1.0, a.astype(jnp.bfloat16))
    assert trace.operands["add"][1].dtype == jnp.bfloat16


def test_traces_by_libraries():
    f = _doubled(lambda x: jnp.sin(x) * x + 1)
    want = 2 * np.sin(0.5) * 0.5 + 1
    np.testing.assert_allclose(f(0.5), want, rtol=1e-6)
    assert f.seen == ["sin", "mul", "add"]
    np.testing.assert_allclose(nj.jit(f)(0.5), want, rtol=1e-6)
    slope = 2 * (np.cos(0.5) * 0.5 + np.sin(0.5))
    np.testing.assert_allclose(nj.grad(f)(0.5), slope, rtol=1e-6)
    np.testing.assert_allclose(nj.jit(nj.vmap(nj.grad(f)))(jnp.full(2, 0.5)), slope, rtol=1e-6)
    # Inside it: transformations of values of the trace.
    inner = _doubled(nj.grad(lambda x: x**3))
    np.testing.assert_allclose(inner(2.0), 12.0, rtol=1e-6)

    @nj.custom_jvp
    def cube(x):
        return x**3

    cube.defjvp(lambda xs, ts: (cube(*xs), 100.0 * ts[0]))
    g = _doubled(lambda x: jnp.sin(cube(x)))
    np.testing.assert_allclose(g(0.5), 2 * np.sin(0.125), rtol=1e-6)
    assert g.seen == ["custom_jvp", "sin"]
    np.testing.assert_allclose(nj.grad(g)(0.5), 200 * np.cos(0.125), rtol=1e-6)

    class Without(_Doubling):
        process_custom_jvp_call = jax_core.Trace.process_custom_jvp_call

    with jax_core.set_current_trace(Without(None, jax_core.TraceTag())) as trace:
        cube(_Doubled(trace, jnp.float32(2.0)))
    assert trace.seen == ["integer_pow"], "a trace without the rule sees what the function does"

    class Through(_Doubling):
        def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
            return fun.call_wrapped(*tracers)

    with jax_core.take_current_trace() as parent:
        trace = Through(parent, jax_core.TraceTag())
        with jax_core.set_current_trace(trace):
            out = cube(_Doubled(trace, jnp.float32(2.0)))
    assert trace.seen == ["integer_pow"] and trace.value(out) == 8.0

    class Empty(jax_core.Trace):
        parent_trace = None

    with jax_core.set_current_trace(Empty()), pytest.raises(NotImplementedError, match="Empty has"):
        jnp.sin(_Doubled(None, jnp.ones(2)))


def test_avals_are_made_of_whatever_names_a_dtype():
    a = jax_core.ShapedArray([2, np.int64(3)], "float32", sharding=None)
    assert a is jax_core.ShapedArray((2, 3), np.float32) is jnp.ones((2, 3)).aval
    assert isinstance(a, jax_core.AbstractValue) and a.to_tangent_aval() is a
    assert jax_core.get_aval(np.ones((2, 3), np.float32)) is a
    assert jax_core.min_dim(2, 3) == 2 and jax_core.max_dim(2, 3) == 3
    a, b = symbolic_shape("a, b")
    assert str(jax_core.max_dim(a, 5)) == "max(a, 5)" and str(jax_core.min_dim(a, b)) == "min(a, b)"
    assert jax_core.max_dim(a + 1, a) == a + 1 and jax_core.min_dim(a, 1) == 1
    with jax_core.eval_context():
        assert float(jnp.sin(0.0)) == 0


def test_lines_and_names_of_scopes():
    eqn = nj.make_jaxpr(lambda x: x + 1)(1.0).eqns[0]
    text = source_info_util.summarize(eqn.source_info)
    assert "test_core.py" in text and "<lambda>" in text
    with source_info_util.extend_name_stack("a"), source_info_util.extend_name_stack("b"):
        stack = source_info_util.current_name_stack()
        assert str(stack) == "a/b"
        with source_info_util.reset_name_stack():
            assert str(source_info_util.current_name_stack()) == ""
        with source_info_util.transform_name_stack("jvp"):
            assert str(source_info_util.current_name_stack()) == "a/b/jvp()"
    with source_info_util.user_context(None, name_stack=stack):
        assert source_info_util.current().name_stack == stack
    assert lu.wrap_init(lambda: 0).debug_info is None


def test_evaluation_at_compile_time_leaves_traced_values_to_their_trace():
    def f(x):
        with nj.ensure_compile_time_eval():
            table = jnp.arange(3.0) * 2
            assert float(table.sum()) == 6.0
            return (nj.vmap(lambda v: v * x)(table)).sum() + jnp.sin(x)

    want = 6 * 0.5 + np.sin(0.5)
    np.testing.assert_allclose(nj.jit(f)(0.5), want, rtol=1e-6)
    np.testing.assert_allclose(nj.jit(nj.grad(f))(0.5), 6 + np.cos(0.5), rtol=1e-6)
    np.testing.assert_allclose(nj.vmap(nj.jit(f))(jnp.full(2, 0.5)), want, rtol=1e-6)
    np.testing.assert_allclose(f(0.5), want, rtol=1e-6)
    kept = []
    nj.jit(lambda x: kept.append(x))(1.0)
    with nj.ensure_compile_time_eval(), pytest.raises(nj.errors.UnexpectedTracerError):
        kept[0] + 1


def test_errors_have_the_classes_and_the_arguments_of_jax():
    both("""
errors = jax.errors
names = [n for n in ('ConcretizationTypeError', 'InconclusiveDimensionOperation', 'JAXIndexError',
         'JAXTypeError', 'JaxRuntimeError', 'JaxprTypeError', 'KeyReuseError',
         'NonConcreteBooleanIndexError', 'TracerArrayConversionError', 'TracerBoolConversionError',
         'TracerIntegerConversionError', 'UnexpectedTracerError')]
kinds = [getattr(errors, n) for n in names]
builtin = (TypeError, ValueError, IndexError, RuntimeError)
for name, kind in zip(names, kinds):
    out[name] = str([issubclass(kind, k) for k in (*kinds, *builtin)])
def raised(kind):
    def f(x):
        raise kind(x)
    return err(lambda: jax.jit(f)(1.0))
for name in ('ConcretizationTypeError', 'NonConcreteBooleanIndexError', 'TracerBoolConversionError',
             'TracerArrayConversionError', 'TracerIntegerConversionError'):
    out['raised ' + name] = raised(getattr(errors, name))
out['bool'] = err(lambda: jax.jit(lambda x: 1 if x else 2)(1.0))
out['int'] = err(lambda: jax.jit(lambda x: int(x))(1.0))
out['index'] = err(lambda: jax.jit(lambda x: [1, 2][x])(1))
out['numpy'] = err(lambda: jax.jit(lambda x: np.asarray(x))(1.0))
out['mask'] = err(lambda: jax.jit(lambda x: x[x > 0])(jnp.ones(2)))
""")


def test_a_jaxpr_is_made_of_parts_of_another():
    both("""
from PACKAGE.extend import core
from PACKAGE.extend.core import ClosedJaxpr, Jaxpr
def f(x, y): return jnp.sin(x) * y
jaxpr = jax.make_jaxpr(f)(1.0, 2.0).jaxpr
sine, product = jaxpr.eqns
made = Jaxpr((), jaxpr.invars[:1], sine.outvars, [sine],
             debug_info=jaxpr.debug_info.with_unknown_names())
out['~first'] = core.jaxpr_as_fun(ClosedJaxpr(made, ()))(1.0)[0]
made = Jaxpr((), [jaxpr.invars[1], *sine.outvars], jaxpr.outvars, [product], jaxpr.effects,
             jaxpr.debug_info.with_unknown_names(), is_high=False)
out['second'] = core.jaxpr_as_fun(ClosedJaxpr(made, ()))(3.0, 5.0)[0]
frame = sine.source_info.traceback.frames[-1]
out['line'] = str([frame.function_name, frame.line_num - frame.function_start_line,
                   product.source_info.traceback.frames[-1].file_name == frame.file_name])
""")


def test_is_concrete_tells_what_is_known():
    seen = []

    def f(x):
        seen.append((jax_core.is_concrete(x), jax_core.is_concrete(x * 2)))
        return x

    nj.grad(f)(1.0)
    nj.jit(f)(1.0)
    nj.vmap(f)(nj.numpy.ones(2))
    assert seen == [(True, True), (False, False), (False, False)]
    assert jax_core.is_concrete(3) and not jax_core.is_concrete(None)


def test_jaxprs_that_are_wrong_are_told_by_their_names():
    jaxpr = nj.make_jaxpr(lambda x: jnp.tan(x) * jnp.cos(x))(1.0).jaxpr
    tan, cos, mul = jaxpr.eqns
    for eqns, told in (
        ([cos, mul], r"Variable '.' not defined\.\n\nin equation:\n\n.* = mul"),
        ([tan, tan, cos, mul], r"Variable 'b' already bound\.\n\nin equation:"),
    ):
        with pytest.raises(core.JaxprTypeError, match=told):
            core.check_jaxpr(jaxpr.replace(eqns=eqns))
    choice = nj.make_jaxpr(lambda i, x: nj.lax.switch(i, [jnp.tan, jnp.cos], x))(0, 1.0).jaxpr
    cond = choice.eqns[-1]
    first, second = cond.params["branches"]
    shorter = first.replace(jaxpr=first.jaxpr.replace(invars=[]))
    wrong = cond.replace(params={**cond.params, "branches": (shorter, second)})
    with pytest.raises(core.JaxprTypeError, match="branch 0 takes 0 inputs, branch 1 takes 1"):
        core.check_jaxpr(choice.replace(eqns=[*choice.eqns[:-1], wrong]))


def test_effects_of_equations_are_those_of_the_jaxpr():
    jaxpr = nj.make_jaxpr(lambda x: nj.debug.print("{}", x))(1.0).jaxpr
    core.check_jaxpr(jaxpr)
    with pytest.raises(core.JaxprTypeError, match="Equation effect not present in jaxpr effects"):
        core.check_jaxpr(jaxpr.replace(effects=set()))


def test_what_is_known_of_functions_traced_in_others():
    both("""
def known(f, *args):
    def walk(jaxpr):
        info = jaxpr.debug_info
        name = info.func_src_info.split(' at ')[0]
        paths = info.result_paths
        paths = None if paths is None else tuple(paths)
        found.append((info.traced_for, name, info.arg_names, paths))
        for eqn in jaxpr.eqns:
            for sub in ('jaxpr', 'call_jaxpr', 'call'):
                if sub in eqn.params:
                    inner = eqn.params[sub]
                    walk(getattr(inner, 'jaxpr', inner))
    found = []
    walk(jax.jit(f).trace(*args).jaxpr.jaxpr)
    return str(found)
def whole(p, q):
    @jax.jit
    def part(u, v): return {'s': u * v, 't': [v]}
    return part(q, p)['s']
@jax.custom_batching.custom_vmap
def mapped(tree): return tree['m'] * 2
mapped.def_vmap(lambda size, flags, tree: (tree['m'], True))
def third(w): return w / 3
x, xs = jnp.float32(2), jnp.ones(3)
out['jit'] = known(whole, x, x)
out['vmap'] = known(jax.vmap(whole), xs, xs)
out['jvp'] = known(lambda x: jax.jvp(jax.jit(lambda k: jnp.sin(k)), (x,), (x,)), x)
out['grad'] = known(jax.grad(whole), x, x)
out['custom_vmap'] = known(mapped, {'m': x})
out['composite'] = known(lax.composite(third, 'a.third'), x)
out['name'] = lax.composite(third, 'a.third').__name__
""")


def test_primitives_of_references_are_there() -> None:
    ref = nj.new_ref(jnp.arange(3.0))
    read = nj.make_jaxpr(lambda r: r[1])(ref)
    written = nj.make_jaxpr(lambda r: nj.ref.swap(r, (), jnp.zeros(3)))(ref)
    assert [j.eqns[-1].primitive for j in (read, written)] == [primitives.get_p, primitives.swap_p]
    assert {"get_p", "swap_p", "random_gamma_p"} <= set(dir(primitives))
    assert primitives.random_gamma_p.name == "random_gamma"


def test_what_make_jaxpr_shows_of_mapped_loops_is_the_same_beside_traces_by_libraries():
    def loop(x):
        return lax.while_loop(lambda c: c < 5, lambda c: c + 1, x)

    test_traces_by_libraries_see_the_parameters_of_jax()  # installs what they need
    closed = nj.make_jaxpr(nj.vmap(loop))(jnp.arange(4.0))
    (eqn,) = closed.eqns
    assert eqn.params["cond_jaxpr"].out_avals[0].shape == (4,)
    out = nj.vmap(loop)(jnp.arange(4.0) * 2)
    np.testing.assert_array_equal(out, [5.0, 5.0, 5.0, 6.0])
