"""checkify: the messages, results and errors of JAX, over primitives, control flow and vmap."""
from __future__ import annotations

import numpy as np
import pytest
from oracle import run_in_oracle

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.experimental import checkify
from numjet.sharding import AxisType, PartitionSpec as P

_FOUR = jnp.arange(4.0)

# Each line is a function and arguments; `A` makes an array. Runs under both systems.
AUTOMATIC = """
lambda x: jnp.log(x) | A(-1.)
lambda x: jnp.log(x).reshape(1) | A(-1.)
lambda x: x.reshape(1) | A(jnp.nan)
lambda x: x + 1 | A(jnp.nan)
lambda x: -x | A([1., jnp.nan])
lambda x: x.sum() | A([1., jnp.nan])
lambda x: x @ x | A([1., jnp.nan])
lambda x: jnp.max(x) | A([1., jnp.nan])
lambda x: jnp.where(x > 0, x, 0.) | A([1., jnp.nan])
lambda x: jnp.concatenate([x, x]) | A([1., jnp.nan])
lambda x: jnp.sin(x / 0. * 0.) | A(1.)
lambda x: x / 0. | A(-1.)
lambda x: x // 0 | A(3)
lambda x, i: x[i] | A([0., 1, 2, 3, 4]), A(7)
lambda x, i: x[i] | A([0., 1, 2, 3, 4]), A(-2)
lambda x, i: x[i] | A([0., 1, 2, 3, 4]), 7
lambda x, i: x.at[i].set(1.) | A([0., 1, 2, 3, 4]), 7
lambda x, i: x[i] | A([0., 1, 2, 3, 4]), A([1, 9])
lambda x, i, j: x[i, j] | jnp.ones((5, 3)), A([1, 2]), A([1, 9])
lambda x, i: x.at[i].get(mode='clip') | A([0., 1, 2, 3, 4]), A(7)
lambda x, i: x.at[i].set(1) | A([0., 1, 2, 3, 4]), A(7)
lambda x, i: x.at[i].add(1) | A([0., 1, 2, 3, 4]), A([7, 8])
lambda x, i: lax.dynamic_slice(x, (i,), (2,)) | A([0., 1, 2, 3, 4]), A(4)
lambda x, i: lax.dynamic_update_slice(x, x[:2], (i,)) | A([0., 1, 2, 3, 4]), A(4)
lambda x: nn.softmax(x) | A([1., jnp.inf])
lambda x: lax.scan(lambda c, y: (c / y, c), x, A([1., 0., 2.]))[0] | A(1.)
"""
USER = """
f | A(-1.)
f | A(.5)
f | A(3.)
lambda x: (check(x > 0, 'a {} {b}', x, b=A([1, 2])), x)[1] | A(-1.)
lambda x: checkpoint(f)(x) | A(-1.)
lambda x: jit(f)(x) | A(-1.)
lambda x: lax.map(f, x) | A([2., -1.])
lambda x: vmap(f)(x) | A([2., -1., -2.])
lambda x: lax.switch(A(1), [lambda x: x, f, lambda x: -x], x) | A(.5)
lambda x: lax.cond(x > 0, lambda x: f(-x), lambda x: x, x) | A(1.)
lambda x: lax.cond(x > 0, lambda x: f(-x), lambda x: x, x) | A(-1.)
lambda x: lax.while_loop(lambda v: v < 6, lambda v: (check(v < 3, 'v {}', v), v + 1)[1], x) | A(0)
lambda x: lax.while_loop(lambda v: (check(v < 3, 'c {}', v), v < 6)[1], lambda v: v + 1, x) | A(0)
lambda x: lax.scan(lambda c, y: (check(y < 3, 'y {}', y), (c + y, y))[1], 0, x)[0] | A([1, 4, 5])
lambda x: grad(f)(x) | A(-1.)
lambda x: (check_error(checkify(f)(x)[0]), x)[1] | A(-1.)
lambda x: relu_checked(x) | A(-1.)
"""
SCRIPT = """
A = jnp.asarray
check, check_error = checkify_module.check, checkify_module.check_error
checkify = checkify_module.checkify

def f(x):
    check(x > 0, "a")
    check(x > 1, "b {}", x)
    return x * 2

@custom_jvp
def relu_checked(x):
    check(x > 0, "relu of {}", x)
    return jnp.maximum(x, 0.)

relu_checked.defjvp(lambda p, t: (relu_checked(*p), t[0]))

told = []
sets = checkify_module.automatic_checks, checkify_module.user_checks
for text, errors in zip((automatic, user), sets):
    for line in text.strip().splitlines():
        fun, _, args = line.rpartition(" | ")
        values = eval(f"({args},)", globals() | locals())
        for wrap in (lambda g: g, jit):
            err, value = wrap(checkify(eval(fun, globals() | locals()), errors=errors))(*values)
            told.append(f"{line}: {err.get()} -> {np.round(np.asarray(value), 5).tolist()}")
"""


@pytest.mark.oracle
def test_messages_and_values_are_jaxs():
    ours: dict = {"np": np, "jnp": jnp, "lax": lax, "nn": nj.nn, "jit": nj.jit, "vmap": nj.vmap,
                  "grad": nj.grad, "checkpoint": nj.checkpoint, "custom_jvp": nj.custom_jvp,
                  "checkify_module": checkify, "automatic": AUTOMATIC, "user": USER}
    exec(SCRIPT, ours)
    names = "from jax import lax, nn, jit, vmap, grad, checkpoint, custom_jvp\n"
    theirs = run_in_oracle(
        names + "from jax.experimental import checkify as checkify_module\n"
        f"automatic, user = {AUTOMATIC!r}, {USER!r}\nscope = dict(globals())\n"
        f"exec({SCRIPT!r}, scope)\nout['told'] = np.array(scope['told'])")["told"].tolist()
    assert len(ours["told"]) == len(theirs) > 80
    different = [(a, b) for a, b in zip(ours["told"], theirs) if a != b]
    assert not different, "\n".join(f"{a}\n  JAX: {b}" for a, b in different)


def test_without_checkify_a_check_raises_or_is_refused():
    with pytest.raises(checkify.JaxRuntimeError, match=r"x is 3 \(`check` failed\)"):
        checkify.check(False, "x is {x}", x=jnp.asarray(3))
    checkify.check(True, "fine")
    checkify.debug_check(False, "nothing")
    with pytest.raises(ValueError, match="not functionalized. Wrap the function"):
        nj.jit(lambda x: checkify.check(x > 0, "no"))(1.0)
    nj.jit(lambda x: checkify.debug_check(x > 0, "no"))(-1.0)


def test_errors_pass_through_vmap_and_are_thrown():
    def f(x):
        checkify.check(x > 0, "negative: {}", x)
        return x + 1

    err, _ = nj.vmap(checkify.checkify(f))(jnp.asarray([1.0, -1.0, -2.0]))
    assert err.get() == ("at mapped index 1: negative: -1.0 (`check` failed)\n"
                         "at mapped index 2: negative: -2.0 (`check` failed)")
    with pytest.raises(checkify.JaxRuntimeError, match="negative: -2.0"):
        err.throw()
    good, _ = checkify.checkify(f)(jnp.asarray(1.0))
    assert good.get() is None and good.throw() is None and str(good) == "Error(None)"
    with pytest.raises(ValueError, match="not functionalized"):
        nj.jit(lambda x: checkify.check_error(checkify.checkify(f)(x)[0]))(jnp.asarray(-1.0))


def test_of_a_batch_the_kind_that_stands_first_in_the_program_is_thrown():
    def f(x, i):
        checkify.check(i >= 0, "negative: {i}", i=i)
        return x[i]

    checked = checkify.checkify(f, errors=checkify.all_checks)
    for indices, told in (([-1, 2, 9], "negative: -1"), ([-1, -2, 9], "negative: -2"),
                          ([9, -1, 2], "negative: -1"), ([7, 9, 1], "index 9 is out of bounds"),
                          ([[-1, 9], [7, 2]], "negative: -1"), ([[1, 9], [7, 2]], "index 7 is")):
        mapped, shape = checked, np.shape(indices)
        for _ in shape:
            mapped = nj.vmap(mapped)
        err, _ = mapped(jnp.ones((*shape, 5)), jnp.asarray(indices))
        with pytest.raises(checkify.JaxRuntimeError, match=told):
            err.throw()


def test_numbers_are_handed_over_as_they_are():
    seen = []
    checkify.checkify(lambda *args: seen.extend(map(type, args)))(1.0, np.ones(2), {"a": 1})
    assert seen == [float, np.ndarray, dict]
    with pytest.raises(ZeroDivisionError):
        checkify.checkify(lambda x: 1 / x, errors=checkify.div_checks)(0.0)


def test_bad_arguments():
    for pred in (1, "yes", jnp.ones(2, bool)):
        with pytest.raises(TypeError, match="check takes a scalar pred as argument, got"):
            checkify.check(pred, "no")
    with pytest.raises(TypeError, match="need to be PyTrees of arrays, but got 3 of type"):
        checkify.check(False, "x {}", 3)
    with pytest.raises(TypeError, match="check_error takes an Error"):
        checkify.check_error(3)
    with pytest.raises(TypeError, match="expected a function, got 3"):
        checkify.checkify(3)
    def solved(x):
        def twice(y):
            checkify.check(y > 9, "no")
            return 2 * y
        return lax.custom_linear_solve(twice, x, lambda matvec, b: b / 2, symmetric=True)
    with pytest.raises(NotImplementedError, match="a check inside of .* cannot be reported"):
        checkify.checkify(solved)(jnp.asarray(1.0))


@pytest.mark.parametrize("read", [
    lambda v: v[9], lambda v: v[jnp.array(9)], lambda v: v[-9], lambda v: v.reshape(2, 2)[0, 5],
    lambda v: v.at[9].set(0.0, mode="clip"), lambda v: _FOUR[9] + v,
    lambda v: _FOUR.at[9].set(v[0]),
    lambda v: v.at[9].set(0.0), lambda v: v.at[-9].add(1.0), lambda v: v.at[9].apply(jnp.sin),
    lambda v: nj.jit(lambda u: u[jnp.array(4)])(v), lambda v: nj.grad(lambda u: u[7])(v),
    lambda v: nj.vmap(lambda i: v[i])(jnp.arange(5)),
    lambda v: lax.cond(v[0] >= 0, lambda u: u[7], lambda u: u[0], v),
])  # fmt: skip
def test_positions_that_are_known_are_checked_as_well(read):
    error, _ = checkify.checkify(read, errors=checkify.index_checks)(jnp.arange(4.0))
    assert "out-of-bounds indexing" in (error.get() or "")


def test_indices_that_are_python_numbers_are_checked():
    # The array is closed over, and the index is no array: both are known while tracing.
    checked = checkify.checkify(lambda i: _FOUR[i], errors=checkify.index_checks)
    told = "out-of-bounds indexing for array of shape (4,): index 10 is out of bounds for axis 0"
    assert checked(10)[0].get().startswith(told)
    assert checked(-4)[0].get() is None
    clipped = checkify.checkify(lambda i: _FOUR.at[i].get(mode="clip"), errors=checkify.all_checks)
    assert clipped(10)[0].get() is None  # it takes the last, as asked


@pytest.mark.parametrize("read", [
    lambda v: v[3], lambda v: v[-4], lambda v: v[1:9], lambda v: jnp.roll(v, 9),
    lambda v: nj.vmap(lambda i: v[i])(jnp.arange(4)), lambda v: jnp.interp(v, v, v),
    lambda v: jnp.median(v), lambda v: jnp.unique(v, size=9), lambda v: jnp.convolve(v, v),
])  # fmt: skip
def test_positions_within_are_not_reported(read):
    error, _ = checkify.checkify(read, errors=checkify.index_checks)(jnp.arange(4.0))
    assert error.get() is None


def test_a_check_may_tell_of_a_key() -> None:
    def f(key, x):
        checkify.check(x > 0, "not with {key}", key=key)
        return x

    error, _ = checkify.checkify(f)(nj.random.key(3), -1.0)
    with pytest.raises(checkify.JaxRuntimeError, match=r"not with Array\(\(\), dtype=key<fry>\)"):
        error.throw()
    assert checkify.checkify(f)(nj.random.key(3), 1.0)[0].get() is None


def test_checks_inside_of_shard_map_are_reported() -> None:
    mesh = nj.make_mesh((1,), ("i",), axis_types=(AxisType.Auto,))

    def positive(x):
        checkify.check(jnp.all(x > 0), "positive, please")
        return x

    bad = jnp.array([-1.0])
    found = {
        "positive, please": positive,
        "division by zero": lambda x: x / 0.0,
        "nan generated by primitive: log": lambda x: lax.psum(jnp.log(x), "i") + x,
        "out-of-bounds indexing": lambda x: x[jnp.array([5])],
    }
    for text, f in found.items():
        local = nj.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
        for call in (local, nj.jit(local)):
            error, _ = checkify.checkify(call, errors=checkify.all_checks)(bad)
            assert text in error.get()
            if f is positive:
                assert checkify.checkify(call)(-bad)[0].get() is None


def test_errors_tell_their_exception_and_checks_are_not_lowered():
    def f(x):
        checkify.check(x > 0, "positive, please")
        return jnp.log(x)

    error, _ = checkify.checkify(f)(-1.0)
    found = error.get_exception()
    assert type(found).__name__ == "FailedCheckError" and "positive, please" in str(found)
    error, _ = checkify.checkify(f, errors=checkify.nan_checks)(-1.0)
    assert type(error.get_exception()).__name__ == "NaNError"
    assert checkify.checkify(f)(1.0)[0].get_exception() is None
    with pytest.raises(ValueError, match="which was not functionalized"):
        nj.jit(f).lower(1.0)
    nj.jit(checkify.checkify(f)).lower(1.0)
    nj.jit(lambda x: checkify.debug_check(x > 0, "unseen")).lower(1.0)


def test_loops_that_examples_leave_one_by_one_are_refused():
    def loop(n, step):
        def body(x):
            checkify.check(x < n, "{} is too far", x)
            return x + step

        return lax.while_loop(lambda x: x < n, body, 0.0)

    limits = jnp.array([2.0, 5.0])
    many = nj.vmap(loop, (0, None))
    for errors in (checkify.user_checks, checkify.nan_checks, checkify.all_checks):
        for f in (many, nj.jit(many)):
            with pytest.raises(ValueError, match="checkify-of-vmap-of-while"):
                checkify.checkify(f, errors=errors)(limits, 1.0)
    # Other arguments mapped; nothing asked for; the maps exchanged.
    alike = nj.vmap(loop, (None, 0))
    for f in (alike, nj.jit(alike)):
        with pytest.raises(ValueError, match="checkify-of-vmap-of-while"):
            checkify.checkify(f)(5.0, limits)
    assert checkify.checkify(many, errors=frozenset())(limits, 1.0)[0].get() is None
    error, out = nj.vmap(checkify.checkify(loop), (0, None))(limits, 1.0)
    assert error.get() is None and out.tolist() == [2.0, 5.0]


def test_a_debug_check_is_named_where_it_is_refused():
    for f in (checkify.check, checkify.debug_check):
        with pytest.raises(TypeError, match=f"^{f.__name__} takes a scalar pred"):
            checkify.checkify(f)(jnp.array([True, False]), "both")
