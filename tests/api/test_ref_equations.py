"""Jaxprs of references, as `make_jaxpr` shows them, and what evaluates these."""

import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.core.ref_equations import addupdate_p, get_p, swap_p
from numjet.experimental import hijax, pallas
from numjet.extend import core
from numjet.ref import AbstractRef, addupdate, empty_ref, swap


def ref(*shape):
    return nj.new_ref(jnp.zeros(shape))


def counted(effects):
    return sorted([type(effect).__name__ for effect in effects])


def test_reading_and_writing_are_equations():
    def f(r, i, x):
        r[0, i] = x
        old = swap(r, (1, 2), x)
        addupdate(r, (slice(1, 3), -1), jnp.ones(2))
        r[jnp.array([0, 2])] = r[1:]
        return old + r[...].sum()

    closed = nj.make_jaxpr(f)(ref(3, 4), 1, 2.0)
    assert str(closed) == """\
{ lambda a:i32[2]; b:Ref{f32[3,4]} c:i32[] d:f32[]. let
    e:f32[] = convert_element_type[new_dtype=float32 weak_type=False] d
    b[0,c] <- e
    f:f32[] = convert_element_type[new_dtype=float32 weak_type=False] d
    g:f32[], b[1,2] <- b[1,2], f
    h:f32[2] = broadcast_in_dim 1.0:f32[]
    b[1:,-1] += h
    i:f32[2,4] <- b[1:,:]
    b[a,:] <- i
    j:f32[3,4] <- b[...]
    k:f32[] = reduce_sum[axes=(0, 1) out_sharding=None] j
    l:f32[] = add g k
  in (l,) }"""
    assert counted(closed.effects) == ["AccumEffect", "ReadEffect", "WriteEffect"]
    (read,) = [e for e in closed.effects if str(e).startswith("Read<")]
    assert read.input is closed.jaxpr.invars[0] and type(read.input.aval) is AbstractRef
    kinds = [e.primitive for e in closed.eqns]
    assert [kinds.count(p) for p in (get_p, swap_p, addupdate_p)] == [2, 3, 1]


def test_traced_places_and_parts_of_parts():
    def f(r, i):
        part = r.at[2:4]
        part[0, jnp.array(1)] = 3.0
        return part[1], r[pallas.ds(i, 2)]

    text = str(nj.make_jaxpr(f)(ref(4, 3), 1))
    assert "a[2:,:][0," in text and "<- a[2:,:][1,:]" in text and "<- a[b:b+2,:]" in text


def test_references_made_inside():
    def f(x):
        r, e = nj.new_ref(x), empty_ref(nj.ShapeDtypeStruct((2,), "float32"))
        e[...] = r[:2]
        nj.free_ref(e)
        return nj.freeze(r)

    closed = nj.make_jaxpr(f)(jnp.ones(3))
    assert str(closed) == """\
{ lambda ; a:f32[3]. let
    b:Ref{f32[3]} = new_ref[kind=None memory_space=None] a
    c:Ref{f32[2]} = empty_ref[memory_space=None ty=float32[2]] 
    d:f32[2] <- b[:2]
    c[...] <- d
    free_ref c
    e:f32[3] = freeze b
  in (e,) }"""  # noqa: W291
    assert counted(closed.effects) == ["InternalMutableArrayEffect"]


def loops(r, n):
    def add(i, total):
        r[0] += i
        return total + r[1]

    total = lax.fori_loop(0, n, add, 0.0)
    _, ys = lax.scan(lambda c, x: (c, swap(r, 1, r[1] + x)), None, jnp.arange(3.0))
    lax.cond(n > 2, lambda: swap(r, 2, 5.0), lambda: 0.0)
    return total, ys, nj.jit(lambda q: q[0] * 2)(r), nj.checkpoint(lambda x: r[1] * x)(3.0)


@pytest.mark.parametrize("wrap", [lambda f: f, nj.jit, lambda f: nj.jit(nj.jit(f))])
def test_evaluating_a_jaxpr_changes_the_reference(wrap):
    closed = nj.make_jaxpr(loops)(ref(3), 4)
    text = str(closed)
    assert text.count("Ref{f32[3]}") > 5 and "body_nconsts=1" in text and "num_consts=1" in text
    assert counted(closed.effects) == ["ReadEffect", "WriteEffect"]
    r, s = ref(3), ref(3)
    found = wrap(lambda r, n: core.eval_jaxpr(closed.jaxpr, closed.consts, r, n))(r, 4)
    want = nj.tree.leaves(loops(s, 4))
    for a, b in zip(found, want, strict=True):
        assert (a == b).all()
    assert r[...].tolist() == s[...].tolist() == [6.0, 3.0, 5.0]
    again = nj.make_jaxpr(core.jaxpr_as_fun(closed))(ref(3), 4)
    assert str(again) == text


def test_closed_over_references_are_constants():
    r, s = ref(2), nj.new_ref(1.0)

    @nj.jit
    def f(x):
        r[0] += x
        return s[...]

    closed = nj.make_jaxpr(lambda x: f(x) + lax.scan(lambda c, y: (c + r[1], None), x, None, 3)[0])(
        1.0
    )
    assert closed.consts == [r, s] and str(closed).startswith(
        "{ lambda a:Ref{f32[2]} b:Ref{f32[]}; c:f32[]. let"
    )
    assert counted(closed.effects) == ["ReadEffect", "ReadEffect", "WriteEffect"]
    assert counted(closed.eqns[0].effects) == ["ReadEffect", "ReadEffect", "WriteEffect"]
    core.eval_jaxpr(closed.jaxpr, closed.consts, 2.0)
    assert r[0] == 2.0


def test_loops_that_make_references_are_compiled_differentiated_and_mapped():
    def f(x):
        def body(c, y):
            q = nj.new_ref(y)
            q[...] += c * y
            return c + 1, q[...]

        return lax.scan(body, 0.0, x)[1]

    closed = nj.make_jaxpr(f)(jnp.arange(3.0))
    assert "new_ref" in str(closed)

    def g(x):
        return core.jaxpr_as_fun(closed)(x)[0]

    x = jnp.arange(3.0)
    for h in (lambda f: f, nj.jit):
        assert h(g)(x).tolist() == [0.0, 2.0, 6.0]
        assert h(nj.grad(lambda x: g(x).sum()))(x).tolist() == [1.0, 2.0, 3.0]
        assert h(nj.vmap(g))(x[None])[0].tolist() == [0.0, 2.0, 6.0]


def test_transformations_between_read_the_whole():
    r = nj.new_ref(jnp.arange(4.0))

    def f(x):
        r[0] = 2.0
        return x * r[0]

    closed = nj.make_jaxpr(nj.grad(f))(1.0)
    assert "a[0] <- 2.0:f32[]" in str(closed)
    assert core.eval_jaxpr(closed.jaxpr, closed.consts, 1.0) == [2.0] and r[0] == 2.0
    closed = nj.make_jaxpr(nj.vmap(lambda i: r[i] + 1))(jnp.arange(2))
    assert core.eval_jaxpr(closed.jaxpr, closed.consts, jnp.array([3, 1]))[0].tolist() == [4.0, 2.0]


def test_stages_with_references():
    s = nj.new_ref(0.0)

    @nj.jit
    def f(r, x):
        r[0] += x
        s[...] += 1
        return {"y": r[1] * x}

    traced = f.trace(ref(2), 2.0)
    assert "b:Ref{f32[2]} c:f32[]. let" in str(traced.jaxpr)
    assert type(traced.in_avals[0][0]) is AbstractRef
    assert traced.out_info["y"].shape == ()
    compiled, r = traced.lower().compile(), ref(2)
    for _ in range(2):
        assert compiled(r, 3.0)["y"] == 0.0
    assert r[...].tolist() == [6.0, 0.0] and s[...] == 2.0
    assert f.lower(r, 1.0).compile()(r, 1.0)["y"] == 0.0 and r[0] == 7.0


def test_arguments_are_the_only_ones_to_be_used():
    r = ref(2)
    for f in (lambda y: r[...] + y[...], lambda y: nj.jit(lambda z: y[...] + z[...])(y)):
        with pytest.raises(ValueError, match="both closed over and passed as the argument [yz]"):
            nj.make_jaxpr(f)(r)
    with pytest.raises(ValueError, match="returned a mutable array reference"):
        nj.make_jaxpr(lambda y: y)(r)


def test_weak_values_stay_weak_until_something_is_written():
    r = nj.new_ref(1.0)
    assert nj.jit(lambda: r[...])().weak_type and nj.jit(lambda q: q[...] * 2)(r).weak_type
    assert nj.jit(lambda x: nj.new_ref(x)[...])(1.0).weak_type
    assert nj.eval_shape(lambda x: nj.freeze(nj.new_ref(x)), 1.0).weak_type

    def written(x):
        q = nj.new_ref(x)
        q[...] = q[...] * 2
        return q[...]

    assert not nj.jit(written)(1.0).weak_type


def test_traced_references_print_as_what_they_are():
    texts = []
    closed = nj.make_jaxpr(lambda q: texts.append(str(q)))(ref(2))
    assert texts == ["JitTracer(Ref{float32[2]})"] and not closed.eqns


def test_effects_have_the_classes_of_what_they_do():
    def f(x):
        nj.debug.print("{}", x)
        nj.debug.callback(lambda x: None, x, ordered=True)

    assert counted(nj.make_jaxpr(f)(1.0).effects) == ["DebugEffect", "OrderedDebugEffect"]


def test_loops_and_branches_refuse_unknown_effects_of_the_users():
    class Noise(core.Effect):
        pass

    noisy = core.Primitive("noisy")
    noisy.def_impl(lambda x: x)
    noisy.def_effectful_abstract_eval(lambda aval: (aval, {Noise()}))
    uses = (
        lambda x: lax.scan(lambda c, _: (noisy.bind(c), None), x, None, 2)[0],
        lambda x: lax.cond(x > 0, noisy.bind, lambda x: x, x),
        lambda x: lax.while_loop(lambda c: c < 3, noisy.bind, x),
    )
    assert len(nj.make_jaxpr(noisy.bind)(1.0).effects) == 1
    for f in uses:
        with pytest.raises(NotImplementedError, match="Effects not supported in"):
            nj.make_jaxpr(f)(1.0)
    hijax.control_flow_allowed_effects.add_type(Noise)
    for f in uses:
        assert len(nj.make_jaxpr(f)(1.0).effects) == 1


def test_mapped_references_are_read_and_written_in_the_whole():
    def made(x):
        r = nj.new_ref(x)
        r[0] = 2.0
        return r[...]

    assert str(nj.make_jaxpr(nj.vmap(made))(jnp.ones((4, 3)))) == """\
{ lambda ; a:f32[4,3]. let
    b:Ref{f32[4,3]} = new_ref[kind=None memory_space=None] a
    c:f32[4] = broadcast_in_dim 2.0:f32[]
    b[:,0] <- c
    d:f32[4,3] <- b[...]
  in (d,) }"""

    def given(r, i, x):
        old = swap(r, 1, x)
        addupdate(r, (slice(1, 3),), jnp.ones(2))
        r[0] = r[i]
        return old

    f = nj.vmap(given, (1, 0, 0))
    values, i, x = jnp.arange(12.0).reshape(3, 4), jnp.array([0, 1, 2, 1]), jnp.arange(4.0) * 10
    closed = nj.make_jaxpr(f)(nj.new_ref(values), i, x)
    text = str(closed)
    assert "e:f32[4], a[1,:] <- a[1,:], " in text or "<- a[1,:], c" in text
    assert "a[1:,:] += " in text and "a[0,:] <- " in text
    r, s = nj.new_ref(values), nj.new_ref(values)
    found = core.eval_jaxpr(closed.jaxpr, closed.consts, r, i, x)
    assert found[0].tolist() == f(s, i, x).tolist() == values[1].tolist()
    assert r[...].tolist() == s[...].tolist()


def test_equations_without_results_stand_before_those_without_operands():
    def f(r):
        addupdate(r, 0, 1.0)
        return jnp.arange(3.0)

    kinds = [eqn.primitive.name for eqn in nj.make_jaxpr(f)(ref(2)).eqns]
    assert kinds == ["addupdate", "iota"] and "= iota[" in str(nj.make_jaxpr(f)(ref(2)))


def test_run_state_is_one_equation():
    def f(x, y):
        def step(refs):
            refs[0][...] += refs[1][...]
            refs[1][0] = 3.0

        return pallas.run_state(step)((x, y))

    x, y = jnp.zeros(2), jnp.ones(2)
    closed = nj.make_jaxpr(f)(x, y)
    (eqn,) = closed.eqns
    assert not closed.effects and eqn.primitive.name == "run_state"
    assert "lambda ; e:Ref{f32[2]} f:Ref{f32[2]}. let" in str(closed)

    def g(x, y):
        return core.jaxpr_as_fun(closed)(x, y)

    for wrap in (lambda f: f, nj.jit):
        found = wrap(g)(x, y)
        assert [a.tolist() for a in found] == [a.tolist() for a in f(x, y)] == [[1, 1], [3, 1]]
        assert wrap(nj.grad(lambda y: g(x, y)[0].sum()))(y).tolist() == [1.0, 1.0]
    z = jnp.float32(5)  # from outside: its equations are written in place
    closed = nj.make_jaxpr(lambda x, z: pallas.run_state(lambda r: r.set(z, 0))(x))(x, z)
    assert core.jaxpr_as_fun(closed)(x, z)[0].tolist() == [5.0, 0.0]
