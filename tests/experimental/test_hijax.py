"""Values that are no arrays but hold some: operations on them, outside of transformations and in
functions that are compiled, differentiated and looped over."""

import dataclasses
import inspect

import numpy as np
import pytest
from oracle import run_in_oracle

import numjet as nj
import numjet.numpy as jnp
from numjet import lax, tree_util
from numjet.experimental import cur_qdd, hijax


@dataclasses.dataclass(frozen=True)
class Form:
    structure: object
    avals: tuple

    def normalize(self):
        return Form(self.structure, tuple([a.normalize() for a in self.avals]))


class Box:
    """Holds a pytree of arrays, which can be replaced."""

    def __init__(self, content):
        self.content = content

    def cur_qdd(self):
        leaves, structure = tree_util.tree_flatten(self.content)
        return Form(structure, tuple([nj.typeof(x) for x in leaves]))

    def get(self):
        leaves = get_p.bind(self, form=cur_qdd(self))
        return tree_util.tree_unflatten(cur_qdd(self).structure, leaves)

    def set(self, content):
        leaves, structure = tree_util.tree_flatten(content)
        set_p.bind(self, *leaves, structure=structure)


class BoxType(hijax.MutableHiType):
    def lo_ty_qdd(self, form):
        return list(form.avals)

    def read_loval(self, form, box):
        return tree_util.tree_leaves(box.content)

    def new_from_loval(self, form, *arrays):
        return Box(tree_util.tree_unflatten(form.structure, arrays))

    def update_from_loval(self, form, box, *arrays):
        box.content = tree_util.tree_unflatten(form.structure, arrays)

    def __eq__(self, other):
        return isinstance(other, BoxType)

    def __hash__(self):
        return hash(BoxType)


class Pair:
    """Two arrays that stay."""

    def __init__(self, x, y):
        self.x, self.y = x, y


class PairType(hijax.HiType):
    def lower_val(self, pair):
        return [pair.x, pair.y]

    def raise_val(self, x, y):
        return Pair(x, y)

    def __eq__(self, other):
        return isinstance(other, PairType)

    def __hash__(self):
        return hash(PairType)


class Get(hijax.HiPrimitive):
    multiple_results = True

    def impl(self, box, *, form):
        return tree_util.tree_leaves(box.content)


class Set(hijax.HiPrimitive):
    multiple_results = True

    def impl(self, box, *leaves, structure):
        box.content = tree_util.tree_unflatten(structure, leaves)
        return []


class New(hijax.HiPrimitive):
    def impl(self, *leaves, structure):
        return Box(tree_util.tree_unflatten(structure, leaves))


class Cross(hijax.HiPrimitive):
    def impl(self, pair):
        return Pair(pair.y, pair.x)


get_p, set_p, new_p, cross_p = Get("get"), Set("set"), New("new"), Cross("cross")
hijax.register_hitype(Box, lambda _: BoxType())
hijax.register_hitype(Pair, lambda _: PairType())


def box(content):
    leaves, structure = tree_util.tree_flatten(content)
    return new_p.bind(*leaves, structure=structure)


def test_compiled_functions_change_values_closed_over_and_given():
    counts, total = [], box(jnp.zeros(3))

    @nj.jit
    def add(x):
        counts.append(1)
        total.set(total.get() + x)
        return total.get().sum()

    assert [float(add(1.0)), float(add(2.0)), float(add(3))] == [3.0, 9.0, 18.0]
    np.testing.assert_array_equal(total.get(), np.full(3, 6.0))
    assert len(counts) == 2  # floats and an integer
    total.set(jnp.ones(3))
    assert float(add(1.0)) == 6.0 and len(counts) == 2

    first, second = box(jnp.arange(3.0)), box(jnp.zeros(()))
    give = nj.jit(lambda a, b: b.set(b.get() + a.get().sum()))
    give(first, second)
    give(box(jnp.ones(3)), second)
    assert float(second.get()) == 6.0 and first.get().tolist() == [0.0, 1.0, 2.0]
    # Given twice it is one value.
    both = nj.jit(lambda a, b: (a.set(a.get() * 2.0), b.get()[0])[1])
    assert float(both(first, first)) == 0.0 and first.get().tolist() == [0.0, 2.0, 4.0]
    # Values are traced once for arrays of one shape, whichever object holds them.
    seen = []
    again = nj.jit(lambda a: (seen.append(1), a.get() + 1)[1])
    for k in range(3):
        again(box(jnp.full(2, float(k))))
    assert len(seen) == 1
    with pytest.raises(TypeError, match="Return arrays, scalars"):
        nj.jit(lambda a: a)(first)


def test_a_compiled_function_may_change_what_a_value_holds():
    metrics = box({})

    @nj.jit
    def note(x):
        held = dict(metrics.get())
        held["sum"] = x.sum() + held.get("sum", 0.0)
        metrics.set(held)
        assert set(metrics.get()) == {"sum"}
        return metrics.get()["sum"] * 2

    assert float(note(jnp.ones(4))) == 8.0 and float(metrics.get()["sum"]) == 4.0
    assert float(note(jnp.ones(4))) == 16.0 and float(note(jnp.ones(4))) == 24.0

    given = box(jnp.ones(2))
    grow = nj.jit(lambda b: b.set(jnp.concatenate([b.get(), b.get()])))
    grow(given)
    grow(given)
    assert given.get().shape == (8,)
    outer = nj.jit(lambda x: (nj.jit(lambda x: metrics.set({"a": x, "b": 2 * x}))(x),
                              metrics.get()["b"])[1])
    assert float(outer(3.0)) == 6.0 and {k: float(v) for k, v in metrics.get().items()} == {
        "a": 3.0, "b": 6.0}

    def body(carry, _):
        metrics.set({"a": carry})
        return carry, None

    with pytest.raises(TypeError, match="In loops and branches it keeps what it holds"):
        lax.scan(body, 1.0, None, length=2)
    with pytest.raises(NotImplementedError, match="last array"):
        nj.jit(lambda: metrics.set({}))()


def test_loops_branches_and_calls_within_calls():
    state = box((jnp.float32(1.0), jnp.arange(2)))

    def double(_, x):
        a, b = state.get()
        state.set((a * 2, b + 1))
        return x + a

    assert float(lax.fori_loop(0, 4, double, 0.0)) == 15.0
    assert float(state.get()[0]) == 16.0 and state.get()[1].tolist() == [4, 5]

    @nj.jit
    def f(x):
        local = box(x)
        lax.scan(lambda c, _: (c, local.set(local.get() + c)), 2.0, None, length=3)
        lax.cond(x > 0, lambda: local.set(-local.get()), lambda: None)
        nj.jit(lambda y: local.set(local.get() + y))(10.0)
        double(0, 0.0)
        return local.get()

    assert float(f(1.0)) == 3.0 and float(f(-1.0)) == 15.0
    assert float(state.get()[0]) == 64.0

    shape = nj.eval_shape(lambda b: (b.set(jnp.zeros(5)), b.get())[1], box(jnp.ones(2)))
    assert shape.shape == (5,)
    untouched = box(jnp.ones(2))
    nj.eval_shape(lambda b: b.set(b.get() + 1), untouched)
    assert nj.jit(lambda x: (state.set(state.get()), x)[1]).eval_shape(1.0).shape == ()
    np.testing.assert_array_equal(untouched.get(), np.ones(2))


def test_derivatives_go_through_the_arrays_that_values_hold():
    kept = box(jnp.float32(2.0))

    def loss(x):
        local = box(x * kept.get())
        kept.set(lax.stop_gradient(x * 3))
        return local.get() ** 2

    assert float(nj.grad(loss)(1.0)) == 8.0 and float(kept.get()) == 3.0
    assert float(nj.jit(nj.grad(loss))(1.0)) == 18.0 and float(kept.get()) == 3.0
    slopes = nj.vmap(nj.grad(lambda x: box(x * x).get()))(jnp.arange(3.0))
    assert slopes.tolist() == [0.0, 2.0, 4.0]
    for transformed in (nj.grad, lambda f: nj.jit(nj.grad(f))):
        with pytest.raises(Exception, match="stop_gradient|differentiated value"):
            transformed(lambda x: (kept.set(x * 2), x)[1])(1.0)
        assert float(kept.get()) == 3.0


def test_values_that_do_not_change():
    pair = Pair(jnp.ones(2), jnp.zeros(3))
    crossed = cross_p.bind(pair)
    assert crossed.x is pair.y
    total = nj.jit(lambda p, s: (cross_p.bind(p).y * s).sum())
    assert float(total(pair, 3.0)) == 6.0 and float(total(Pair(jnp.zeros(2), pair.y), 3.0)) == 0.0
    assert float(nj.jit(lambda s: (cross_p.bind(pair).y * s).sum())(2.0)) == 4.0
    assert nj.eval_shape(lambda p: cross_p.bind(p).x, pair).shape == (3,)


class Product(hijax.VJPHiPrimitive):
    """Its derivatives are others than those of what it computes."""

    def __init__(self, avals, scale):
        self.in_avals, self.out_aval = avals, avals[0]
        self.params = {"scale": scale}
        super().__init__()

    def expand(self, x, y):
        return x * y * self.scale

    def vjp_fwd(self, nonzeros, x, y):
        assert nonzeros == (True, True)
        return self(x, y), (x, y)


class Scaled(Product):
    def vjp_bwd_retval(self, kept, cotangent):
        return 10 * cotangent * kept[1], 100 * cotangent * kept[0]


class Summed(Product):
    def vjp_bwd(self, kept, cotangent, x, y):
        x.accum(cotangent)
        x.accum(cotangent)


DERIVED = """
def sc(x, y):
    return Scaled((jx.typeof(x), jx.typeof(y)), 2.0)(x, y)

def summed(x, y):
    return Summed((jx.typeof(x), jx.typeof(y)), 2.0)(x, y)

x, y, xs = jnp.float32(3), jnp.float32(5), jnp.arange(3.0)
out["run"] = np.array([sc(x, y), jx.jit(sc)(x, y)])
for name, f in (("scaled", sc), ("summed", summed)):
    for way, g in (("", f), ("jit", jx.jit(f))):
        out[name + way] = np.array(jx.grad(g, (0, 1))(x, y))
    out[name + "jitted"] = np.array(jx.jit(jx.grad(f, (0, 1)))(x, y))
"""


@pytest.mark.oracle
def test_operations_with_derivatives_of_their_own() -> None:
    classes = "".join(map(inspect.getsource, (Product, Scaled, Summed)))
    theirs = run_in_oracle(
        "import jax as jx\nimport jax.numpy as jnp\nfrom jax.experimental import hijax\n"
        + classes + DERIVED
    )  # fmt: skip
    out: dict[str, np.ndarray] = {}
    names = {"jx": nj, "jnp": jnp, "np": np, "Scaled": Scaled, "Summed": Summed, "out": out}
    exec(DERIVED, names)
    for name in theirs:
        np.testing.assert_allclose(out[name], theirs[name], err_msg=name)
    mapped = nj.vmap(lambda x: names["sc"](x, np.float32(5)))(jnp.arange(3.0))
    assert mapped.tolist() == [0.0, 10.0, 20.0]
