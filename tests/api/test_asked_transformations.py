"""What transformations and their stages answer to statements whose answers JAX 0.10.2 gave: what
they refuse, what they warn of, shardings that are told ahead of time."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest

import numjet as nj
from numjet import P, errors, lax, numpy as jnp, random
from numjet.base.errors import IndivisibleError
from numjet.core.jaxpr import eval_jaxpr
from numjet.sharding import AxisType, Mesh, NamedSharding

eight = pytest.mark.usefixtures("eight_devices")


def over(*spec):
    return NamedSharding(nj.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2), P(*spec))


def test_checkpoint_and_jit_want_functions():
    for f in (nj.checkpoint, nj.remat):
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'fun'"):
            f(policy=nj.checkpoint_policies.everything_saveable)
        assert nj.grad(functools.partial(f, prevent_cse=False)(jnp.sin))(0.0) == 1
    for options in ({}, {"static_argnums": 0}):
        with pytest.raises(TypeError, match="Expected a callable value, got None"):
            nj.jit(None, **options)
    assert nj.jit()(lambda x: x + 1)(1) == 2


def test_prevent_cse_of_each_argument():
    f = nj.checkpoint(lambda x, y: jnp.sin(x) * y, prevent_cse=(True, False))
    assert nj.grad(f)(0.0, 2.0) == 2
    with pytest.raises(ValueError, match="prevent_cse"):
        nj.checkpoint(lambda x, y: x, prevent_cse=(True,))(1.0, 2.0)


def test_linear_transpose_of_functions_between_kinds():
    for f, *args in ((lambda x: x.astype(int), 1.0), (lambda x: (x, 1), 1.0), (lambda x: x, True),
                     (lambda x, n: x, 1.0, 1)):  # fmt: skip
        with pytest.raises(TypeError, match="linear_transpose only supports"):
            nj.linear_transpose(f, *args)
    assert nj.linear_transpose(lambda x: x * 2, 1)(3)[0] == 6
    assert nj.linear_transpose(lambda x: x * 1j, 1.0)(3j)[0] == -3


def test_nondiff_argnums_out_of_range():
    for kind in (nj.custom_jvp, nj.custom_vjp):
        f = kind(lambda x, n: x * n, nondiff_argnums=(5,))
        if kind is nj.custom_jvp:
            f.defjvp(lambda n, primals, tangents: (primals[0], tangents[0]))
        else:
            f.defvjp(lambda x, n: (x, n), lambda n, g: (g,))
        with pytest.raises(IndexError, match="tuple index out of range"):
            f(1.0, 2.0)
    f = nj.custom_jvp(lambda x, n: x**n, nondiff_argnums=(-1,))
    f.defjvp(lambda n, primals, tangents: (primals[0] ** n, 5.0 * tangents[0]))
    assert nj.grad(f)(3.0, 2) == 5


@pytest.mark.parametrize("run", [nj.jit, nj.vmap, lambda f: nj.grad(lambda x: f(x[0]) or x[0])])
def test_traced_values_tell_nothing_of_their_memory(run):
    def ask(x):
        for name in ("addressable_shards", "global_shards", "is_fully_addressable",
                     "is_fully_replicated", "committed", "traceback"):  # fmt: skip
            with pytest.raises(errors.ConcretizationTypeError, match=name):
                getattr(x, name)
        for name in ("tobytes", "__dlpack__", "on_device_size_in_bytes"):
            with pytest.raises(errors.ConcretizationTypeError, match=name):
                getattr(x, name)()
        for name in ("device", "format", "block_until_ready", "copy_to_host_async"):
            with pytest.raises(AttributeError, match=f"no attribute {name}"):
                getattr(x, name)

    run(ask)(jnp.ones(3))


def test_lost_imaginary_parts_are_told():
    z = jnp.array([1 + 2j])
    for f in (lambda: lax.convert_element_type(z, jnp.float32), lambda: jnp.sum(z, dtype=float),
              lambda: jnp.asarray(z, jnp.float32),
        lambda: jnp.asarray(np.array([1 + 2j]), int), lambda: jnp.full(2, z[0], jnp.float32),
              lambda: jnp.float32(z), lambda: jnp.concatenate([z], dtype=float)):  # fmt: skip
        with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part"):
            assert f().ravel()[0] == 1
    with pytest.warns(DeprecationWarning, match="complex to real"):
        z.astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        g = nj.grad(lambda x: jnp.real(jnp.sum((x * z) @ jnp.ones((1, 2)) * (1 + 1j))))(jnp.ones(1))
    assert g.tolist() == [-2]


def test_values_that_flags_do_not_take():
    for value in ("foo", 3):
        with pytest.raises(ValueError, match="default_device must be passed either a Device"):
            nj.config.update("default_device", value)
        with pytest.raises(ValueError, match="default_device"), nj.default_device(value):
            pass
    with pytest.raises(ValueError, match="null byte"):
        nj.config.update("cache_dir", "a\0b")
    with pytest.raises(ValueError, match="None or of type str, got 5"):
        nj.config.update("cache_dir", 5)


def test_means_of_numbers_over_a_mapped_axis_are_weak():
    mean = lambda x: lax.pmean((x, 1, jnp.int32(1)), "i")  # noqa: E731
    a, b, c = nj.vmap(mean, axis_name="i")(jnp.ones(3))
    assert [v.weak_type for v in (a, b, c)] == [False, True, False] and b.dtype == c.dtype


def test_a_mesh_is_of_devices():
    with pytest.raises(AttributeError, match="no attribute 'id'"):
        Mesh([1, 2], "a")


@eight
def test_shardings_that_do_not_fit_are_told_ahead_of_time():
    spec = nj.ShapeDtypeStruct((6,), "float32")
    for options in ({"in_shardings": over("x")}, {"out_shardings": over("x")}):
        f = nj.jit(lambda x: x, **options)
        for ask in (f.trace, f.lower, f.eval_shape):
            with pytest.raises(IndivisibleError, match="multiple of 4"):
                ask(spec)
    for options in ({"in_shardings": over("x", "y")}, {"out_shardings": over("x", "y")}):
        with pytest.raises(ValueError, match="rank at least 2"):
            nj.jit(lambda x: x, **options).lower(nj.ShapeDtypeStruct((8,), "float32"))


@eight
def test_shardings_of_arguments_that_jit_does_not_ask_for():
    f = nj.jit(lambda x: x, in_shardings=over("x"))
    for x in (nj.ShapeDtypeStruct((8,), "float32", sharding=over("y")),
              nj.device_put(jnp.ones(8), over("y")),
              nj.device_put(jnp.ones(8), nj.devices()[1])):  # fmt: skip
        f.trace(x)
        with pytest.raises(ValueError, match="does not match the sharding on the respective arg"):
            f.lower(x)
    f.lower(nj.device_put(jnp.ones(8), over(("x",))))


@eight
def test_pmap_lowered():
    f = nj.pmap(lambda x, n: (x * n, 1), axis_name="i", in_axes=(1, None), out_axes=(0, None))
    for x in (jnp.ones((2, 8)), nj.ShapeDtypeStruct((2, 8), "float32")):
        lowered = f.lower(x, 2)
        a, b = lowered.out_info
        assert a.shape == (8, 2) and a.sharding.spec == P("i") and b.sharding.spec == P()
        compiled = lowered.compile()
        (first, second), _ = compiled.input_shardings
        assert first.spec == P(None, "i") and second.spec == P()
        out, _ = compiled(jnp.ones((2, 8)), 2)
        assert out.sharding == a.sharding and (out == 2).all()
    with pytest.raises(ValueError, match="at least one argument with a mapped axis"):
        nj.pmap(lambda x: x, in_axes=None).lower(jnp.ones(8))
    with pytest.raises(IndivisibleError, match="only 8 devices"):
        nj.pmap(lambda x: x).lower(jnp.ones(9))


@eight
def test_lists_are_no_prefix_of_arguments():
    mesh = over().mesh
    for specs in ({"in_specs": [P("x"), P()], "out_specs": P("x")},
                  {"in_specs": P("x"), "out_specs": [P("x"), P("x")]}):  # fmt: skip
        with pytest.raises(ValueError, match="shard_map"):
            nj.shard_map(lambda a, b: (a, b), mesh=mesh, **specs)(jnp.ones(8), jnp.ones(8))


def test_powers_with_exponents_that_are_integers_are_printed_as_jax_has_them():
    n, x = np.arange(3, dtype=np.int32), np.arange(1.0, 4.0, dtype=np.float32)
    assert str(nj.make_jaxpr(lambda c: 1 - 0.9**c)(n[1])) == (
        "{ lambda ; a:i32[]. let\n    _:f32[] = convert_element_type[new_dtype=float32 "
        "weak_type=True] a\n    b:f32[] = pow 0.9:f32[] a\n    c:f32[] = sub 1.0:f32[] b\n  "
        "in (c,) }"
    )
    text = str(nj.make_jaxpr(nj.grad(lambda x: (x**n).sum()))(x))
    assert "c:f32[3] = pow b a\n" in text and "l:f32[3] = pow b k\n" in text
    for f in (
        lambda x: x**n,
        lambda x: lax.pow(x, n),
        lambda x: 0.5**n * x,
        lambda x: x[:, None] ** n,
    ):
        closed = nj.make_jaxpr(f)(x)
        run = lambda x, closed=closed: eval_jaxpr(closed.jaxpr, closed.consts, x)[0]  # noqa: E731
        for made in (run, nj.jit(run)):
            np.testing.assert_allclose(made(x), f(jnp.asarray(x)), rtol=1e-6)
            grads = [nj.grad(lambda x, g=g: g(x).sum())(x) for g in (made, f)]
            np.testing.assert_allclose(*grads, rtol=1e-6)
        np.testing.assert_allclose(nj.vmap(run)(x[None])[0], f(jnp.asarray(x)), rtol=1e-6)


@pytest.mark.parametrize("pair", [tuple, list])
def test_auxiliary_data_beside_a_result_in_a_list(pair):
    f = lambda x: pair([x * x, 7])  # noqa: E731
    assert nj.grad(f, has_aux=True)(3.0) == (6, 7)
    assert nj.value_and_grad(f, has_aux=True)(3.0) == ((9, 7), 6)
    assert nj.vjp(f, 3.0, has_aux=True)[2] == nj.linearize(f, 3.0, has_aux=True)[2] == 7
    assert nj.jvp(f, (3.0,), (1.0,), has_aux=True) == (9, 6, 7)
    for jacobian in (nj.jacfwd, nj.jacrev):
        assert jacobian(f, has_aux=True)(3.0) == (6, 7)
    for wrong in (lambda x: [x], lambda x: [x, 1, 2]):
        with pytest.raises(TypeError, match="two-element tuple"):
            nj.grad(wrong, has_aux=True)(1.0)


def test_flags_by_jax_s_names_are_not_assigned_to():
    with pytest.raises(AttributeError, match="no setter"):
        nj.config.jax_enable_x64 = True
    assert not nj.config.jax_enable_x64


@pytest.mark.parametrize("make", [nj.jit, nj.grad, nj.vmap, nj.checkpoint, nj.value_and_grad,
                                  nj.jacfwd, nj.pmap])  # fmt: skip
def test_names_of_what_has_none(make):
    class Called:
        def __call__(self, x):
            return x

    inner = functools.partial(functools.partial(jnp.sum, axis=0), keepdims=True)
    assert make(inner).__name__ == "sum"
    assert make(Called()).__name__ == make(Called()).__qualname__ == "<unnamed function>"
    assert make(nj.tree_util.Partial(jnp.add, 1)).__name__ == "add"
    assert "name=sum" in str(nj.make_jaxpr(nj.jit(inner))(jnp.ones(3)))
    assert nj.jit(inner).trace(jnp.ones(3)).fun_name == "sum"


def test_arguments_of_custom_vmap_by_name():
    @nj.custom_batching.custom_vmap
    def f(x, y=2.0):
        return x * y

    f.def_vmap(lambda size, batched, x, y: (x * y * 10, any(batched)))
    assert (f(1.0), f(1.0, y=3.0), f(y=1.0, x=2.0)) == (2, 3, 2)
    for g in (f, lambda x: f(x, y=2.0), lambda x: f(x=x)):
        assert nj.vmap(g)(jnp.ones(2)).tolist() == [20, 20]
    with pytest.raises(TypeError, match="custom_vmap-decorated function"):
        f(1.0, z=3.0)


def test_references_that_programs_wrote_keep_no_weak_type():
    def write(r):
        r[...] = r[...] * 2

    runs = (
        lambda r: lax.scan(lambda c, x: (write(r), (c, x))[1], 0, jnp.arange(2)),
        lambda r: lax.while_loop(lambda i: i < 2, lambda i: (write(r), i + 1)[1], 0),
        lambda r: nj.jit(lambda: write(r))(),
        lambda r: nj.checkpoint(lambda x: (write(r), x)[1])(1.0),
    )
    for run in runs:
        ref = nj.new_ref(1.0)
        run(ref)
        assert str(ref) in ("Ref(2., dtype=float32)", "Ref(4., dtype=float32)")
        assert ref[...].weak_type and "weak_type=True" in str(ref)  # since it was read
    ref = nj.new_ref(1.0)
    lax.cond(True, lambda: write(ref), lambda: None)
    assert str(ref) == "Ref(2., dtype=float32, weak_type=True)"


def test_what_joins_weak_booleans_is_strong():
    a, b = jnp.array(1.0), jnp.array(2.0)
    p, q = a > 0, b > 0
    assert p.weak_type and (~p).weak_type and jnp.logical_and(a, b).weak_type
    joined = (p & q, p | q, p ^ q, p == q, p != q, p < q, p + q, p * q, p / q, jnp.maximum(p, q),
              jnp.logical_and(p, q), jnp.logical_or(p, q), jnp.logical_xor(p, q), jnp.isinf(a),
              jnp.where(p, p, q))  # fmt: skip
    assert not any(x.weak_type for x in joined)
    f = lambda x: ((x > 0) & (x < 2), jnp.logical_and(x > 0, x < 2))  # noqa: E731
    got = (*nj.jit(f)(1.0), *nj.jvp(f, (1.0,), (1.0,))[0], *nj.vmap(f)(jnp.ones(2)))
    assert not any(x.weak_type for x in got)


def test_keys_are_no_positions():
    x, key = jnp.ones((2, 2)), random.key(1)
    for k in (key, random.split(key)):
        for f in (lambda: x[k], lambda: x[k, None], lambda: x[0, k], lambda: x.at[k].set(1.0),
                  lambda: x.at[k].get(), lambda: nj.jit(lambda: x[k])()):  # noqa: B023 # fmt: skip
            with pytest.raises(TypeError, match="Indexer must have integer or boolean type"):
                f()


def test_counts_that_are_traced():
    x, i = jnp.ones(2), jnp.array([0, 1])
    for f in (lambda n: jnp.nonzero(x, size=n), lambda n: jnp.unique(x, size=n),
              lambda n: jnp.argwhere(x, size=n), lambda n: jnp.bincount(i, length=n),
              lambda n: nj.ops.segment_sum(x, i, num_segments=n), lambda n: jnp.histogram(x, n),
              lambda n: lax.scan(lambda c, _: (c, c), 0, None, length=n),
              lambda n: lax.scan(lambda c, y: (c, y), 0, x, unroll=n)):  # fmt: skip
        with pytest.raises(errors.ConcretizationTypeError, match="is traced"):
            nj.jit(f)(1)


def test_weak_results_of_jaxprs_in_jax_form():
    for f in (jnp.hypot, lambda a, t: a**t):
        assert nj.make_jaxpr(f)(1.0, 2).out_avals[0].weak_type
        assert nj.jit(f)(1.0, 2).weak_type
