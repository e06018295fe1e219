"""Functions exported for given shapes: stored, read in another process, called, differentiated."""

import collections

import numpy as np
import pytest
from python_process import printed

import numjet as nj
import numjet.numpy as jnp
from numjet import export, lax


@nj.custom_vjp
def cubed(x):
    return x**3


cubed.defvjp(lambda x: (x**3, x), lambda x, ct: (ct * 7.0,))  # a rule that is not the derivative


def network(params, x, *, scale=1.0):
    def step(c, w):
        return jnp.tanh(c @ w), lax.cond(c[0] > 0, jnp.cos, jnp.sin, c)

    last, seen = lax.scan(step, x, params["w"])
    return {"last": nj.nn.relu(last) * scale, "seen": (jnp.sort(seen, axis=0), x.astype("int4"))}


ARGS = ({"w": jnp.full((3, 2, 2), 0.3)}, jnp.array([1.0, -2.0]))


def test_what_is_read_does_the_same():
    f = nj.jit(network)
    made = export.export(f)(*ARGS, scale=2.0)
    again = export.deserialize(made.serialize())
    assert again.in_avals == tuple([a.strip_weak_type() for a in made.in_avals])
    assert again.fun_name == "network"
    want = f(*ARGS, scale=2.0)
    for exported in (made, again):
        got = nj.jit(exported.call)(*ARGS, scale=2.0)
        assert nj.tree.structure(got) == nj.tree.structure(want)
        for a, b in zip(nj.tree.leaves(got), nj.tree.leaves(want), strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_another_process_reads_it(tmp_path):
    file = tmp_path / "exported"
    shape = nj.ShapeDtypeStruct((3,), "float32")
    exported = export.export(nj.jit(lambda x: jnp.sin(x) + cubed(x)))(shape)
    file.write_bytes(exported.serialize(vjp_order=1))
    script = (f"from numjet import export; import numjet.numpy as jnp\n"
              f"e = export.deserialize(open({str(file)!r}, 'rb').read())\n"
              "x = jnp.ones(3)\nprint(e.call(x), e.vjp().call(x, x)[0])")
    out = printed(script)
    x = np.ones(3, np.float32)
    numbers = [float(v) for v in out.replace("[", " ").replace("]", " ").split()]
    np.testing.assert_allclose(numbers, [*(np.sin(x) + 1), *(np.cos(x) + 7)], rtol=1e-6)


def test_derivatives_are_those_that_were_stored():
    made = export.export(nj.jit(cubed))(2.0)
    assert nj.grad(made.call)(2.0) == 7.0 and made.has_vjp()
    assert nj.grad(export.deserialize(made.serialize(vjp_order=1)).call)(2.0) == 7.0
    bare = export.deserialize(made.serialize())
    assert not bare.has_vjp() and bare.call(2.0) == 8.0
    assert "stablehlo.sine" in EXPORTED.mlir_module()
    with pytest.raises(ValueError, match="vjp_order"):
        nj.grad(bare.call)(2.0)


EXPORTED = export.export(nj.jit(jnp.sin))(jnp.zeros(3))


@pytest.mark.parametrize("call, error, text", [
    (lambda: EXPORTED.call(jnp.zeros(4)), ValueError, "Shape mismatch for args.0."),
    (lambda: EXPORTED.call(jnp.zeros(3, int)), ValueError, "Dtype mismatch for args.0."),
    (lambda: EXPORTED.call(jnp.zeros(3), 1), ValueError, "same pytree structure"),
    (lambda: export.export(lambda x: x), ValueError, "result of `jit`"),
    (lambda: export.deserialize(b"something else"), ValueError, "Exported.serialize"),
    (lambda: export.deserialize(EXPORTED.serialize()[:90]), ValueError, "damaged"),
    (lambda: export.export(nj.jit(lambda x: nj.pure_callback(np.sin, x, x)))(
        jnp.zeros(3)).serialize(), ValueError, "callbacks"),
])  # fmt: skip
def test_what_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_bytes_that_name_other_classes_are_not_read():
    import pickle

    class Other:
        def __reduce__(self):
            return print, ("executed",)

    head = bytes(EXPORTED.serialize()).split(b"\n")[:2]
    with pytest.raises(ValueError, match="builtins.print"):
        export.deserialize(b"\n".join([*head, pickle.dumps(Other())]))


def test_platforms_that_a_program_is_for() -> None:
    function = nj.jit(jnp.cos)
    both = export.export(function, platforms=["tpu", "cpu"])(1.0)
    assert both.platforms == ("tpu", "cpu") and float(both.call(0.0)) == 1
    other = export.export(function, platforms=["cuda"])(1.0)
    with pytest.raises(ValueError, match=r"exported for platforms '\('cuda',\)' but it is used on"):
        other.call(0.0)
    unchecked = [export.DisabledSafetyCheck.platform()]
    other = export.export(function, platforms=["cuda"], disabled_checks=unchecked)(1.0)
    assert float(export.deserialize(other.serialize()).call(0.0)) == 1


def test_how_many_devices_a_program_is_for() -> None:
    mesh = nj.sharding.AbstractMesh((4,), ("a",))
    layout = nj.sharding.NamedSharding(mesh, nj.P("a"))
    function = export.export(nj.jit(lambda x: x + 1))
    assert function(nj.ShapeDtypeStruct((8,), "int32", sharding=layout)).nr_devices == 4
    assert function(nj.ShapeDtypeStruct((8,), "int32")).nr_devices == 1
    devices = [nj.api.placement.devices._device(i) for i in range(2)]
    over = nj.sharding.NamedSharding(nj.sharding.Mesh(np.array(devices), ("a",)), nj.P("a"))
    two = export.export(nj.jit(lambda x: x + 1, in_shardings=over))
    assert two(nj.ShapeDtypeStruct((8,), "int32")).nr_devices == 2
    mapped = nj.shard_map(lambda x: x, mesh=over.mesh, in_specs=nj.P("a"), out_specs=nj.P("a"))
    assert export.export(nj.jit(mapped))(nj.ShapeDtypeStruct((8,), "int32")).nr_devices == 2


def test_checks_are_named() -> None:
    assert repr(export.DisabledSafetyCheck.custom_call("f")) == "custom_call:f"


def test_windows_over_sizes_that_nobody_knows() -> None:
    pool = nj.jit(lambda x: nj.lax.reduce_window(x, 0.0, nj.lax.add, (2,), (2,), "VALID"))
    exported = export.export(pool)(nj.ShapeDtypeStruct(export.symbolic_shape("a"), "float32"))
    assert str(exported.out_avals[0]) == "float32[floordiv(a - 2, 2) + 1]"
    assert exported.call(jnp.arange(5.0)).tolist() == [1.0, 5.0]
    assert exported.call(jnp.ones(1)).shape == (0,)


def test_functions_of_numpy_need_no_jit() -> None:
    made = export.export(jnp.sin)(jnp.zeros(3))
    assert made.fun_name == "sin" and made.in_avals[0].shape == (3,)
    np.testing.assert_array_equal(made.call(jnp.zeros(3)), np.zeros(3))


Moments = collections.namedtuple("Moments", "mean var")


class Tagged:
    """A node whose tag is static."""

    def __init__(self, value, tag):
        self.value, self.tag = value, tag


nj.tree_util.register_pytree_node(
    Tagged, lambda n: ((n.value,), n.tag), lambda tag, children: Tagged(*children, tag)
)


def test_nodes_of_the_users_classes() -> None:
    function = nj.jit(lambda m, t: Tagged({"sum": m.mean + t.value, "none": None}, t.tag))
    given = Moments(jnp.ones(2), 3.0), Tagged(2.0, "units")
    made = export.export(function)(*given)
    with pytest.raises(ValueError, match="unregistered type .*Moments"):
        made.serialize()
    named = export.register_namedtuple_serialization
    assert named(Moments, serialized_name="tests.Moments") is Moments
    with pytest.raises(ValueError, match="Duplicate serialization registration for type"):
        named(Moments, serialized_name="tests.Other")
    with pytest.raises(ValueError, match="for types other than"):
        named(dict, serialized_name="tests.dict")
    export.register_pytree_node_serialization(
        Tagged,
        serialized_name="tests.Tagged",
        serialize_auxdata=str.encode,
        deserialize_auxdata=bytes.decode,
    )
    stored = made.serialize(vjp_order=1)
    again = export.deserialize(stored)
    assert again.in_tree == made.in_tree and again.out_tree == made.out_tree
    got = again.call(*given)
    assert (got.value["sum"].tolist(), got.tag) == ([3, 3], "units")
    with pytest.raises(ValueError, match="same pytree structure"):
        again.call(given[0], Tagged(2.0, "others"))
    unknown = bytes(stored).replace(b"tests.Tagged", b"tests.Nobody")
    with pytest.raises(ValueError, match="'tests.Nobody' are not registered here"):
        export.deserialize(bytearray(unknown))


def test_a_node_may_be_built_from_its_children() -> None:
    class Pair(collections.UserList):
        pass

    nj.tree_util.register_pytree_node(Pair, lambda p: (p.data, None), lambda _, xs: Pair(xs))
    export.register_pytree_node_serialization(
        Pair,
        serialized_name="tests.Pair",
        serialize_auxdata=lambda data: b"",
        deserialize_auxdata=lambda data: None,
        from_children=lambda data, children: Pair(children),
    )
    made = export.export(nj.jit(lambda p: p[0] - p[1]))(Pair([3.0, 1.0]))
    assert export.deserialize(made.serialize()).call(Pair([5.0, 1.0])) == 4.0


def test_static_arguments_are_bound() -> None:
    by_place = nj.jit(lambda x, n: x * n, static_argnums=1)
    by_name = nj.jit(lambda x, *, n: x * n, static_argnames="n")
    for made in (export.export(by_place)(jnp.arange(3), 5),
                 export.export(by_name)(jnp.arange(3), n=5)):  # fmt: skip
        assert made.in_tree.num_leaves == 1
        again = export.deserialize(made.serialize())
        assert again.call(jnp.arange(3)).tolist() == [0, 5, 10]
        with pytest.raises(ValueError, match="same pytree structure"):
            made.call(jnp.arange(3), 5)


def test_weak_types_are_those_of_the_export() -> None:
    for platforms in (None, ["cpu"], ["cpu", "cuda"]):
        made = export.export(nj.jit(lambda x: x + 1), platforms=platforms)(2.0)
        assert made.in_avals[0].weak_type and made.out_avals[0].weak_type
        assert made.call(2.0).weak_type and made.call(jnp.float32(2)).weak_type
        assert nj.grad(made.call)(2.0).weak_type
        assert [a.weak_type for a in made.vjp().in_avals + made.vjp().out_avals] == [True] * 3
    made = export.export(nj.jit(lambda x: (x + 1, 2.0)))(jnp.float32(2))
    assert [x.weak_type for x in made.call(2.0)] == [False, True]


def test_what_is_read_has_no_weak_types() -> None:
    exported = export.export(nj.jit(lambda x, y: 5.0 * x / y))(1.5, 2.0)
    read = export.deserialize(exported.serialize(vjp_order=1))
    assert [a.weak_type for a in (*exported.in_avals, *exported.out_avals)] == [True] * 3
    assert not any([a.weak_type for a in (*read.in_avals, *read.out_avals, *read.vjp().out_avals)])
    assert exported.call(1.5, 2.0).weak_type and not read.call(1.5, 2.0).weak_type
    slope = nj.grad(read.call)(1.5, 2.0)
    assert not slope.weak_type and slope == 2.5


def test_how_arguments_and_results_lie() -> None:
    mesh = nj.make_mesh((1,), ("a",))
    cut = nj.NamedSharding(mesh, nj.P("a"))
    function = nj.jit(lambda x, y: (x + 1, y), in_shardings=(cut, None), out_shardings=cut)
    made = export.deserialize(export.export(function)(jnp.ones(4), jnp.ones(2)).serialize())
    assert made.in_shardings_jax(mesh) == (cut, None)
    assert made.out_shardings_jax(mesh) == (cut, cut)
    with pytest.raises(ValueError, match="does not match the mesh used for export"):
        made.in_shardings_jax(nj.make_mesh((1,), ("b",)))
    assert export.export(nj.jit(jnp.sin))(1.0).in_shardings_jax(mesh) == (None,)


def test_what_depends_on_the_call_is_told() -> None:
    x = np.arange(6, dtype=np.float32)
    fixed = export.export(nj.jit(jnp.cos))(x)
    sized = export.export(nj.jit(jnp.cos))(nj.ShapeDtypeStruct(export.symbolic_shape("n"), x.dtype))
    several = export.export(nj.jit(jnp.cos), platforms=("cpu", "cuda"))(x)
    assert [e.uses_global_constants for e in (fixed, sized, several)] == [False, True, True]
    for inner in (fixed, sized, several):
        outer = nj.jit(lambda v, inner=inner: inner.call(v) + 1)
        found = [export.export(outer)(x).uses_global_constants for _ in range(2)]
        assert found == [inner.uses_global_constants] * 2


def test_inner_functions_are_exported_for_all_platforms() -> None:
    inner = export.export(nj.jit(jnp.cos), platforms=("cpu", "cuda"))(1.0)
    for names in (("cuda",), ("cpu", "cuda"), ("cpu",)):
        assert export.export(nj.jit(inner.call), platforms=names)(1.0).platforms == names
    with pytest.raises(ValueError, match=r"for platforms '\('cpu', 'cuda'\)' but it is used on"):
        export.export(nj.jit(lambda x: inner.call(x)), platforms=("cpu", "rocm"))(1.0)


def test_platforms_may_have_any_name() -> None:
    assert export.export(nj.jit(jnp.cos), platforms=["cpu", "abacus"])(1.0).call(0.0) == 1.0
    donating = nj.jit(jnp.cos, donate_argnums=0)
    assert export.export(donating, platforms=["cpu", "tpu"])(1.0).call(0.0) == 1.0
    with pytest.raises(NotImplementedError, match="either all or no lowering platforms should"):
        export.export(donating, platforms=["cpu", "abacus"])(1.0)
    with pytest.raises(TypeError, match="sequence of names, got 'cpu'"):
        export.export(donating, platforms="cpu")


def test_scopes_of_arguments_do_not_mix() -> None:
    def join(a, *, b):
        return a, b

    first, second = (nj.ShapeDtypeStruct(export.symbolic_shape(s), np.int8) for s in ("m", "n, 2"))
    with pytest.raises(ValueError, match=r"(?s)mixing of symbolic scopes when exporting join.*"
                       r"from args\[0\]\) scope .*for 'n' \(kwargs\['b'\]\) scope"):  # fmt: skip
        export.export(nj.jit(join))(first, b=second)


def test_variables_are_solved_in_the_order_of_sizes() -> None:
    shape = export.symbolic_shape("p + 3*q, p, p + q")
    exported = export.export(nj.jit(lambda x: x.sum()))(nj.ShapeDtypeStruct(shape, np.float32))
    exported.call(np.ones((7, 1, 3), np.float32))
    with pytest.raises(ValueError, match=r"shape\[0\] \(= 9\) and the specification '3\*q \+ p' "
                       r"\(= 7\)"):  # fmt: skip
        exported.call(np.ones((9, 1, 3), np.float32))


@pytest.mark.usefixtures("eight_devices")
def test_pullbacks_are_for_as_many_devices() -> None:
    over = nj.NamedSharding(nj.make_mesh((2,), ("a",)), nj.P("a"))
    cut = nj.jit(jnp.cos, out_shardings=over)
    pullback = export.export(cut, platforms=("cpu", "tpu"))(np.ones(4)).vjp()
    assert pullback.nr_devices == 2 and pullback.platforms == ("cpu", "tpu")


def test_checks_and_orders() -> None:
    check = export.DisabledSafetyCheck
    assert check.custom_call("f:g").is_custom_call() == "f:g"
    assert check.platform().is_custom_call() is None
    with pytest.raises(ValueError, match="vjp_order is negative: -1"):
        export.export(nj.jit(jnp.cos))(1.0).serialize(vjp_order=-1)


def test_cotangents_of_integers_have_no_values():
    exported = export.export(nj.jit(lambda n, x: (n + 1, x * x)))(np.arange(2), np.ones(2, "f"))
    pullback = exported.vjp()
    assert [a.dtype for a in pullback.in_avals[2:]] == [nj.dtypes.float0, np.float32]
    nothing = np.zeros(2, nj.dtypes.float0)
    none, found = pullback.call(np.arange(2), np.ones(2, "f"), nothing, np.ones(2, "f"))
    assert none.dtype == nj.dtypes.float0 and found.tolist() == [2.0, 2.0]
    with pytest.raises(ValueError, match=r"Dtype mismatch for args\[2\]"):
        pullback.call(np.arange(2), np.ones(2, "f"), np.arange(2), np.ones(2, "f"))


def test_kept_arguments_and_the_serialized_module():
    for options, kept in (({}, (1,)), ({"keep_unused": True}, (0, 1))):
        exported = export.export(nj.jit(lambda x, y: y * 2, **options))(np.ones(2, "f"), 1.0)
        assert exported.module_kept_var_idx == kept
        assert exported.mlir_module_serialized.decode() == exported.mlir_module()


def test_the_calling_convention_is_that_of_the_flag():
    flag = "jax_export_calling_convention_version"
    try:
        nj.config.update(flag, 9)
        assert export.export(nj.jit(jnp.sin))(1.0).calling_convention_version == 9
        nj.config.update(flag, 4)
        with pytest.raises(ValueError, match="convention version 4 is outside the range"):
            export.export(nj.jit(jnp.sin))(1.0)
    finally:
        nj.config.update(flag, 10)


def test_shapes_of_arguments_may_have_another_rank():
    (spec,) = export.symbolic_args_specs((np.ones((2, 3), "f"),), "n")
    assert str(spec.shape) == "(n,)"


def test_bytes_are_the_same_each_time():
    made = export.export(nj.jit(network))(*ARGS)
    first = made.serialize()
    assert [made.serialize(), (lambda: made.serialize())()] == [first] * 2
