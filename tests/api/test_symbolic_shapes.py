"""Programs exported for symbolic shapes: expressions, constraints, every size of a call the same as
the function itself, stored and read, called from other such programs, differentiated."""
import re

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import export, lax, random, scipy
from numjet.core.dims import largest, smallest
from numjet.errors import InconclusiveDimensionOperation as Inconclusive

a, b = export.symbolic_shape("a, b")


# What JAX 0.10 prints for the same.
@pytest.mark.parametrize("found, text", [
    (a * 2 + b * 3 - 1, "3*b + 2*a - 1"), (a * b * a, "a^2*b"), ((a + b) * (a - b), "- b^2 + a^2"),
    (a // 2, "floordiv(a, 2)"), ((4 * a) // 2, "2*a"), ((4 * a + 2) % 2, "0"), (-a, "- a"),
    (a + b - b, "a"), (a - b + 5, "- b + a + 5"),
    (a // 2 * 2 + a % 2, "mod(a, 2) + 2*floordiv(a, 2)"),
    (a % 2 * b, "b*mod(a, 2)"), (a // a, "1"), ((a * a + a) // a, "a + 1"), ((2 * a + 3) % 2, "1"),
    ((2 * a + b) // 2, "floordiv(b + 2*a, 2)"), (5 // a, "floordiv(5, a)"), (a**3, "a^3"),
    (divmod(a, 2), "(floordiv(a, 2), mod(a, 2))"), (max(a, 1), "a"), (np.prod((a, b)), "a*b"),
    (export.symbolic_shape("max(a, b)*2, min(a, 0), mod(a, 3)"), "(2*max(a, b), 0, mod(a, 3))"),
    (export.symbolic_shape("b", constraints=["b == 2*c"]), "(2*c,)"),
    (export.symbolic_shape("(a, _, ...)", like=(1, 2, 3, 4)), "(a, 2, 3, 4)"),
    (export.symbolic_shape("n*-3, n - -1, _n, __, é"), "(- 3*n, n + 1, _n, __, é)"),
    (export.symbolic_shape(None, like=(4, 5)), "(4, 5)"), (export.symbolic_shape(""), "()"),
])
def test_expressions_have_a_normal_form(found, text):
    assert str(found) == text


k, m, n = export.symbolic_shape("k, m, n")


# As JAX 0.10 has it: a longer term, factor or operand counts as greater, then names and operands.
@pytest.mark.parametrize("found, text", [
    ((k + m + n) ** 2, "2*m*n + 2*k*n + 2*k*m + n^2 + m^2 + k^2"),
    ((m - n) ** 3, "3*m*n^2 - 3*m^2*n - n^3 + m^3"),
    (k * n - m * n + m * m + k * k * k, "- m*n + k*n + k^3 + m^2"),
    (k * m * n + k**5, "k*m*n + k^5"), (m % n + k // 5, "mod(m, n) + floordiv(k, 5)"),
    (k % 3 + largest(k, 3), "mod(k, 3) + max(k, 3)"),
    ((m + 2) // 3 - (m - 2) // 3, "floordiv(m + 2, 3) - floordiv(m - 2, 3)"),
    ((m // 2) ** 2 + 7 * n * (k % 2), "floordiv(m, 2)^2 + 7*n*mod(k, 2)"),
    ((m % 3) * (m // 3) * m, "m*floordiv(m, 3)*mod(m, 3)"),
    ((k // (m + 1)) * (n % 2), "mod(n, 2)*floordiv(k, m + 1)"),
    (3 * m // 7 + (m + 5) // 7 + (n * n) // 7,
     "floordiv(3*m, 7) + floordiv(n^2, 7) + floordiv(m + 5, 7)"),
    ((m // 2) // 3 + smallest(m // 2, n) + 2 * m // 5,
     "min(floordiv(m, 2), n) + floordiv(floordiv(m, 2), 3) + floordiv(2*m, 5)"),
    ((2 * k * m - n + 4) % 2 - (k * n * n) % m, "mod(2*k*m - n + 4, 2) - mod(k*n^2, m)"),
])
def test_the_order_in_which_terms_and_factors_are_written(found, text):
    assert str(found) == text


def test_quotients_of_polynomials_are_found_where_terms_arise_in_between():
    assert (m * m - n * n) // (m + n) == m - n and (m * m - n * n) % (m - n) == 0
    assert (k**4 - 1) // (k - 1) == k**3 + k**2 + k + 1
    whole = (k // 2 + n) * (n - 3 * k)
    assert whole // (n - 3 * k) == k // 2 + n and divmod(whole, k // 2 + n) == (n - 3 * k, 0)
    # what is left comes round again and again
    assert str(m**3 * n // (m * m + m * n + n * n)) == "floordiv(m^3*n, m*n + n^2 + m^2)"


def test_comparisons_hold_for_all_values_or_are_refused():
    assert a >= 1 and a + b >= 2 and a * b >= 1 and 2 * a > a and not a < 1
    assert a // 2 >= 0 and a // 2 <= a and a // 2 * 2 <= a and a % 3 < 3 and -a < 0
    assert a == a + b - b and hash(a) == hash(a + b - b) and a != b and a != 1 and a
    for test in (lambda: a > b, lambda: a >= 2, lambda: a * a >= a, lambda: min(a, 5)):
        with pytest.raises(Inconclusive, match="is inconclusive"):
            test()
    for test, error in ((lambda: range(a), TypeError), (lambda: int(a), Inconclusive),
                        (lambda: np.zeros(a), TypeError), (lambda: a // 0, ZeroDivisionError),
                        (lambda: a**-1, ValueError)):
        with pytest.raises(error):
            test()
    c, = export.symbolic_shape("c")
    assert a != c
    with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes"):
        a + c


def test_constraints_decide_comparisons():
    scope = export.SymbolicScope(["m >= n", "n >= k", "n <= 8", "mod(k, 2) == 0"])
    m, n, k = export.symbolic_shape("m, n, k", scope=scope)
    assert m >= n and m >= k and n <= 8 and not n > 9 and m - n >= 0
    assert k % 2 == 0 and k // 2 * 2 == k and "m >= n" in str(scope)


def test_chains_of_constraints_decide_comparisons():
    sizes = [f"s{i}" for i in range(7)]
    chain = [f"{x} >= {y} + 1" for x, y in zip(sizes, sizes[1:], strict=False)]
    many = export.symbolic_shape(", ".join(sizes), constraints=[*chain, "s6 >= 3"])
    assert many[0] >= 9 and many[0] - many[6] >= 6 and many[1] > many[5]
    with pytest.raises(Inconclusive, match="(?s)inconclusive.*with constraints:.*s6 >= 3"):
        many[0] >= 10  # noqa: B015


@pytest.mark.parametrize(
    ("constraints", "text"),
    [
        (["p <= p - 2"], "Unsatisfiable explicit constraint: p <= p - 2"),
        (["p >= 6", "p <= 5"], "Unsatisfiable constraint: p <= 5"),
        (["p >= q + 3", "q >= r", "p <= r + 2"], "Unsatisfiable constraint: p <= r"),
        (["2*p >= 3*q", "q >= 5", "p <= 7"], "Unsatisfiable constraint: p <= 7"),
        (["p <= 0"], "Unsatisfiable constraint: p <= 0"),
    ],
)
def test_constraints_that_no_sizes_meet_are_refused(constraints, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        export.symbolic_shape("p, q, r", constraints=constraints)


def test_constraints_rewrite_products():
    rows, cols, n, m = export.symbolic_shape("rows, cols, n, m", constraints=["rows*cols == n + m"])
    assert rows * cols == n + m and 3 * rows * cols - 3 * n == 3 * m
    assert rows**2 * cols == rows * n + rows * m and rows * 2 != n
    p, q, r = export.symbolic_shape("p, q, r", constraints=["2 * p * p * q == r"])
    assert 4 * p**2 * q == 2 * r and p**3 * q * 2 == p * r
    assert str(3 * p**2 * q) == "3*p^2*q" and str(2 * p * q) == "2*p*q"
    flat = nj.eval_shape(lambda x: x.reshape(x.shape[0] * x.shape[1]),
                         nj.ShapeDtypeStruct((rows, cols), np.float32))
    assert flat.shape == (n + m,)


@pytest.mark.parametrize("make, text", [
    (lambda: export.symbolic_shape("a b"), "syntax error in symbolic shape 'a b'"),
    (lambda: export.symbolic_shape("4**a"), "syntax error"),
    (lambda: export.symbolic_shape("..."), "no 'like' shape was given"),
    (lambda: export.symbolic_shape("3, b", like=(4, 5)), "different size 3 for known dimension"),
    (lambda: export.symbolic_shape("b", constraints=["b > 3"]), "must contain one of"),
    (lambda: export.symbolic_shape("b", scope=a.scope, constraints=["b >= 3"]), "both"),
    (lambda: export.symbolic_shape("b", constraints=["2 >= 3"]), "Unsatisfiable"),
    (lambda: export.symbolic_shape("b, c", constraints=["b*c == 2*b*c + 1"]), "does not hold"),
    (lambda: export.symbolic_shape("b, c", constraints=["b + c == 2*b + 1"]), "Invalid equality"),
])
def test_what_is_wrong_with_a_specification_is_said(make, text):
    with pytest.raises(ValueError, match=text):
        make()


@nj.custom_jvp
def own_jvp(x):
    return jnp.sin(x) / x.shape[0]


own_jvp.defjvp(lambda p, t: (own_jvp(*p), jnp.cos(p[0]) * t[0] * 2))


@nj.custom_vjp
def own_vjp(x):
    return jnp.sin(x) * x.shape[0]


own_vjp.defvjp(lambda x: (own_vjp(x), x), lambda x, ct: (jnp.cos(x) * ct * 3,))

A, AB, IMAGE = ["a"], ["a, b"], ["a, 3, b+3, c+3"]
WINDOW = (1, 2, 2, 1)
CASES = {
    "elementwise": (lambda x, y: jnp.tanh(x) * y + jnp.where(x > 0, x, 0), ["a, b", "b"]),
    "ones stretch": (jnp.hypot, ["a, 1", "b"]),
    "reductions": (lambda x: (x.sum(), x.mean(0), x.var(-1), x.max(1), x.argmax(0)), AB),
    "sorts": (lambda x: (jnp.sort(x, 0), jnp.argsort(x), jnp.median(x), jnp.quantile(x, 0.3)), AB),
    "running": (lambda x: (jnp.cumsum(x, 0), lax.cummax(x, 1), jnp.diff(x, axis=0)), ["a+1, b"]),
    "products": (lambda x, y: (x @ y, jnp.einsum("ij,jk->ki", x, y)), ["a, b", "b, c"]),
    "shapes": (lambda x: (x.T, x.ravel(), x[:, None], x.reshape(2, -1), jnp.tile(x, (2, 3))),
               ["a, 4"]),
    "joins": (lambda x, y: (jnp.concatenate([x, y]), jnp.stack([x, x]), jnp.append(x, 1.0)),
              ["a", "b"]),
    "splits": (lambda x: (jnp.split(x, 2), jnp.split(x, [1]), jnp.array_split(x, 2)), ["2*a"]),
    "pads": (lambda x: [jnp.pad(x, ((1, 2), (0, 1)), mode=m) for m in ("constant", "edge", "wrap")],
             AB),
    "rolls": (lambda x: (jnp.roll(x, 1), jnp.roll(x, -2, axis=0), jnp.flip(x), jnp.rot90(x)), AB),
    "bits": (lambda x: (jnp.packbits(x > 0), jnp.packbits(x > 0, 0), jnp.trace(x, -1)), AB),
    "matrices": (lambda x: (jnp.eye(x.shape[0]), jnp.tril(x), jnp.diag(x), jnp.trace(x)), ["a, a"]),
    "triangles": (lambda x: (jnp.tril_indices(x.shape[0]), jnp.triu_indices_from(x),
                             jnp.triu_indices(x.shape[0] + 1, 1), jnp.tril_indices(x.shape[0], -2),
                             jnp.tril_indices(x.shape[0], 1, 3),
                             jnp.triu_indices(4, 0, x.shape[0] + 3)), ["a, a"]),
    "unraveled": (lambda x: (jnp.unravel_index(x.shape[0], x.shape), jnp.unravel_index(
        np.arange(-3, 6), (2, x.shape[1])), jnp.diag_indices(x.shape[0])), AB),
    "ranges": (lambda x: (jnp.arange(x.shape[0]), jnp.arange(1, x.shape[0] + 4, 3),
                          jnp.arange(x.shape[0] - 1, -1, -1),
                          jnp.linspace(0, 1, x.shape[0] + 1)), A),
    "slices": (lambda x: (x[1:], x[:-1], x[::2], x[::-1], x[:3], x[-2:], x[1::3], x[::-2], x[-3:-1],
                          x[5:2:-1], x[: x.shape[0] // 2]), A),
    "places": (lambda x, i: (x[0], x[:, -1], x[i], x[jnp.array([0, -1])], jnp.take(x, i, axis=0),
                             jnp.take_along_axis(x, jnp.argsort(x, 0), 0)), ["a, b", "c:i"]),
    "updates": (lambda x, i: (x.at[0].set(1.0), x.at[:, -1].add(2.0), x.at[i].add(1.0),
                              x.at[1:].multiply(2.0), x.at[::2].set(0.0)), ["a, b", "c:i"]),
    "dynamic": (lambda x: (lax.dynamic_slice_in_dim(x, 1, 2), lax.dynamic_update_slice(
        x, jnp.zeros((1, 1)), (0, 0)), lax.dynamic_index_in_dim(x, x.shape[0] - 1)), ["a+1, b"]),
    "searches": (lambda x, y: (jnp.searchsorted(jnp.sort(x), y), jnp.interp(y, jnp.sort(x), x),
                               lax.top_k(x, 2), jnp.nonzero(x > 0, size=2)), ["a+1", "b"]),
    "counts": (lambda x, i: (nj.ops.segment_sum(x, i, 4), jnp.bincount(i, length=4),
                             nj.nn.one_hot(i, i.shape[0])), ["a, b", "a:i"]),
    "nn": (lambda x: (nj.nn.softmax(x), nj.nn.logsumexp(x, 0), nj.nn.standardize(x), nj.nn.gelu(x)),
           AB),
    "attention": (lambda q, k: nj.nn.dot_product_attention(q, k, k), ["a, b, 2, 4", "a, c, 2, 4"]),
    "vmap": (lambda x: nj.vmap(lambda r: r @ r)(x), AB),
    "scan": (lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0], x, reverse=True), AB),
    "length": (lambda x: lax.scan(lambda c, _: (c * 0.5, c.sum()), x, None, length=x.shape[0]), A),
    "loops": (lambda x: (lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], 0.0), lax.while_loop(
        lambda c: c[0] < x.shape[0], lambda c: (c[0] + 1, c[1] + x), (0, x))[1]), A),
    "branches": (lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), AB),
    "inner jit": (lambda x: nj.jit(lambda y: y * y.shape[0])(x) + 1, AB),
    "grad": (nj.grad(lambda x: jnp.mean(jnp.sin(x[1:]) ** 2) + x[jnp.array([0, -1])].sum()),
             ["a+1, b"]),
    "grad of products": (nj.grad(lambda x, y: jnp.sum(jnp.tanh(x @ y)), (0, 1)), ["a, b", "b, c"]),
    "grad of a scan": (nj.grad(
        lambda x: lax.scan(lambda c, r: (c * jnp.sin(r), c), x[0], x)[0].sum()), AB),
    "second derivatives": (nj.hessian(lambda x: jnp.sum(x**3)), A),
    "own rules": (lambda x: (own_jvp(x), nj.grad(lambda y: own_jvp(y).sum())(x),
                             nj.grad(lambda y: own_vjp(y).sum())(x)), A),
    "convolutions": (lambda x: [lax.conv(x, jnp.ones((2, 3, 3, 3)), s, p) for s, p in (
        ((1, 1), "SAME"), ((2, 2), "SAME"), ((2, 2), "VALID"))], IMAGE),
    "their derivatives": (nj.grad(
        lambda x: lax.conv(x, jnp.ones((2, 3, 3, 3)), (2, 2), "SAME").sum()), IMAGE),
    "windows": (lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, WINDOW, WINDOW, "VALID"),
                           lax.reduce_window(x, 0.0, lax.add, WINDOW, WINDOW, "SAME")),
                ["a, b+2, c+2, 3"]),
    "linear algebra": (lambda x: (jnp.linalg.inv(x @ x.T + 2 * jnp.eye(x.shape[0])), jnp.linalg.svd(
        x, compute_uv=False), jnp.linalg.norm(x, axis=1)), AB),
    "solve": (lambda x, y: jnp.linalg.solve(x @ x.T + jnp.eye(x.shape[0]), y), ["a, a", "a"]),
    "transforms": (lambda x: (abs(jnp.fft.fft(x)), jnp.fft.fftfreq(x.shape[0])), A),
    "random": (lambda x: (random.normal(random.key(0), x.shape), random.randint(
        random.key(0), x.shape, 0, 9), random.categorical(random.key(0), x)), AB),
    "choices": (lambda x: (random.choice(random.key(1), x.shape[0], (5,)), random.choice(
        random.key(2), x.shape[0], (2, 3), p=abs(x) / abs(x).sum()), random.choice(
        random.key(3), x.shape[0], (2,), replace=False, p=abs(x) / abs(x).sum())), ["a + 1"]),
    "exponentials of matrices": (lambda x: scipy.linalg.expm(x[:, None] * x / 9), A),
    "images": (lambda x: (nj.image.resize(x, (4, 4), "linear"), nj.image.resize(
        x, (2 * x.shape[0], 2 * x.shape[1]), "nearest")), ["a+3, b+3"]),
    "values": (lambda x: (x * x.shape[0] + x.shape[1] / 2 - x.size, jnp.array(x.shape),
                          jnp.float32(x.shape[0]), x.shape[0] ** 0.5), AB),
}


def _argument(spec, sizes, rng):
    shape, integers = spec.removesuffix(":i"), spec.endswith(":i")
    shape = tuple([int(eval(n, {}, sizes)) for n in shape.split(",")])
    if integers:
        return rng.integers(0, min(4, sizes["a"]), shape).astype(np.int32)
    return rng.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("name", CASES)
def test_every_size_gives_what_the_function_gives(name):
    function, specs = CASES[name]
    scope, rng = export.SymbolicScope(), np.random.default_rng(0)
    args = [nj.ShapeDtypeStruct(export.symbolic_shape(s.removesuffix(":i"), scope=scope),
                                "int32" if s.endswith(":i") else "float32") for s in specs]
    made = export.export(nj.jit(function))(*args)
    read = export.deserialize(made.serialize())
    for have, want in ((read.in_avals, made.in_avals), (read.out_avals, made.out_avals)):
        assert str(have) == str(tuple([x.strip_weak_type() for x in want]))
    for sizes in ({"a": 4, "b": 3, "c": 5}, {"a": 2, "b": 5, "c": 1}, {"a": 7, "b": 2, "c": 2}):
        xs = [_argument(s, sizes, rng) for s in specs]
        want = nj.tree.leaves(nj.jit(function)(*xs))
        for exported in (made, read):
            for g, w in zip(nj.tree.leaves(exported.call(*xs)), want, strict=True):
                assert g.shape == w.shape and g.dtype == w.dtype
                assert g.weak_type == (w.weak_type and exported is made)
                np.testing.assert_allclose(g, w, rtol=2e-5, atol=1e-5)


def exported(function, *specs, constraints=()):
    scope = export.SymbolicScope(constraints)
    args = [nj.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), "float32") for s in specs]
    return export.export(nj.jit(function))(*args)


# Shapes of results as JAX 0.10 gives them.
@pytest.mark.parametrize("function, spec, text", [
    (lambda x: jnp.trace(x), "a, b", ""), (lambda x: jnp.trace(x, 1), "a, 3", ""),
    (lambda x: x[1:], "a", "a - 1"), (lambda x: x[:3], "a", "min(a, 3)"),
    (lambda x: x[5:], "a", "- min(a, 5) + a"), (lambda x: x[-3:], "a", "- max(0, a - 3) + a"),
    (lambda x: x[::2], "a", "floordiv(a + 1, 2)"), (lambda x: x.reshape(-1, 2), "a, 4", "2*a,2"),
    (lambda x: jnp.arange(0, x.shape[0], 2), "a", "floordiv(a + 1, 2)"),
    (lambda x: jnp.pad(x, 1), "a, b", "a + 2,b + 2"),
    (lambda x: lax.conv(x, jnp.ones((2, 3, 3, 3)), (2, 2), "SAME"), "a, 3, b, c",
     "a,2,- floordiv(- b, 2),- floordiv(- c, 2)"),
    (lambda x: lax.conv(x, jnp.ones((2, 3, 3, 3)), (2, 2), "VALID"), "a, 3, b, c",
     "a,2,floordiv(b - 3, 2) + 1,floordiv(c - 3, 2) + 1"),
    (lambda x: lax.conv_general_dilated(x, jnp.ones((2, 3, 6)), (3,), "VALID"), "1, 3, a",
     "1,2,max(floordiv(a - 6, 3) + 1, 0)"),
    (lambda x: jnp.tril_indices(x.shape[0])[0], "a", "floordiv(a^2 + a, 2)"),
    (lambda x: jnp.tril_indices(x.shape[0] + 3, 2)[0], "a",
     "- floordiv(a^2 + a, 2) + a^2 + 6*a + 9"),
])
def test_shapes_of_results_are_expressions(function, spec, text):
    assert exported(function, spec).out_avals[0].str_short(True).partition("[")[2] == text + "]"


@pytest.mark.parametrize("specs, constraints, shapes, text", [
    (["2*a"], (), [(3,)], "Division had remainder 1 when computing the value of 'a'"),
    (["a+3"], (), [(3,)], "Expected value >= 1 for dimension variable 'a'"),
    (["a, a"], (), [(3, 4)], r"args\[0\].shape\[1\] \(= 4\) and the specification 'a' \(= 3\)"),
    (["a", "a"], (), [(3,), (2,)], r"between dimension size args\[1\].shape\[0\]"),
    (["a, 3"], (), [(3, 4)], r"Shape mismatch for args\[0\].shape\[1\] \(expected same constant\)"),
    (["a, 3"], (), [(3,)], r"Rank mismatch for args\[0\]"),
    (["a"], ["a >= 4"], [(3,)], "constraint a >= 4. Expected 'a - 4' to be greater or equal to 0"),
    (["a"], ["mod(a, 2) == 0"], [(3,)], "constraint mod"),
    (["a, b"], ["a <= b"], [(3, 2)], "constraint a <= b"),
    (["a, b"], ["a == 2*b"], [(3, 2)], "Division had remainder"),
])
def test_shapes_of_a_call_are_checked(specs, constraints, shapes, text):
    made = exported(lambda *xs: xs, *specs, constraints=constraints)
    with pytest.raises(ValueError, match=text):
        made.call(*[np.ones(s, np.float32) for s in shapes])


@pytest.mark.parametrize("function, specs, error, text", [
    (lambda x: x, ["a*b"], ValueError, "We can only solve linear uni-variate constraints"),
    (lambda x: x.reshape(-1, 2), ["a, 3"], Inconclusive, "Cannot divide evenly the sizes"),
    (lambda x, y: x + y, ["a", "b"], TypeError, "ncompatible shapes for broadcasting"),
    (lambda x: x if x.shape[0] > 4 else -x, ["a"], Inconclusive, "'a' > '4' is inconclusive"),
    (lambda x: sum(range(x.shape[0])), ["a"], TypeError, "as an integer"),
    (lambda x: jnp.split(x, 2), ["a"], ValueError, "equal division"),
    (lambda x: lax.top_k(x, 3), ["a"], Inconclusive, "inconclusive"),
    (lambda x: random.permutation(random.key(0), x), ["a"], NotImplementedError, "symbolic size"),
    (lambda x: random.permutation(random.key(0), 2 * x.shape[0]), ["a"], NotImplementedError,
     "of symbolic size .2.a."),
    (lambda x: lax.associative_scan(lax.mul, x, axis=1), ["3, a"], NotImplementedError, "lax.scan"),
    (lambda x: lax.associative_scan(lax.mul, x, reverse=True), ["2*a+1"], NotImplementedError,
     "its steps depend on the size of axis 0, which is of dimension variables: 2.a . 1"),
])
def test_what_cannot_be_traced_is_refused(function, specs, error, text):
    with pytest.raises(error, match=text):
        exported(function, *specs)


def test_derivatives_and_calls_from_other_programs():
    x = np.arange(3, dtype=np.float32)
    made = exported(lambda x: jnp.sin(x) * x.shape[0], "n")
    assert str(made.vjp().in_avals[0].shape) == "(n,)"
    read = export.deserialize(made.serialize(vjp_order=1))
    for one in (made, read):
        got = nj.grad(lambda x, f=one: f.call(x).sum())(x)
        np.testing.assert_allclose(got, 3 * np.cos(x), 1e-6)
        outer = exported(lambda y, f=one: f.call(y[1:]) + 1, "m+2")
        assert str(outer.out_avals[0].shape) == "(m + 1,)"
        np.testing.assert_allclose(outer.call(x), np.sin(x[1:]) * 2 + 1, 1e-6)
    with pytest.raises(ValueError, match="Expected value >= 1 for dimension variable 'n'"):
        exported(lambda y: made.call(y), "m-1")
    assert nj.jit(made.call)(x).shape == (3,) and nj.vmap(made.call)(x[None]).shape == (1, 3)


def test_a_specification_for_every_argument():
    args = (jnp.ones((3, 4)), {"k": jnp.ones(3)})
    one, two = export.symbolic_args_specs(args, ("a, ...", None), constraints=["a >= 2"])
    assert str(one.shape) == "(a, 4)" and two["k"].shape == (3,)
    one, two = export.symbolic_args_specs(args, "a, ...")
    assert one.shape[0] == two["k"].shape[0] and export.is_symbolic_dim(one.shape[0])


def test_specifications_of_what_has_a_shape_alone():
    args = nj.ShapeDtypeStruct((2, 3), jnp.int8), np.ones(4, np.float32)
    one, two = export.symbolic_args_specs(args, ["n, ...", "n+1"])  # a list for a tuple, too
    assert (str(one.shape), one.dtype) == ("(n, 3)", jnp.int8) and str(two.shape) == "(n + 1,)"


def test_outside_of_export_shapes_are_told_and_values_are_not():
    spec = nj.ShapeDtypeStruct((a, b), np.float32)
    assert str(nj.eval_shape(lambda x: x.T + 1, spec).shape) == "(b, a)"
    assert "dim_as_value" in str(nj.make_jaxpr(lambda x: x * x.shape[0])(spec))
    with pytest.raises(NotImplementedError, match="symbolic dimension 'a'"):
        jnp.ones(3) * a
    with pytest.raises(ValueError, match="symbolic shapes"):
        nj.jit(lambda x: x + 1).lower(spec).compile()


def test_a_shape_as_a_value() -> None:
    shape = export.symbolic_shape("m, 3, n")
    exported = export.export(nj.jit(lambda x: lax.shape_as_value(x.shape)))(
        nj.ShapeDtypeStruct(shape, np.float32)
    )
    out = exported.call(np.ones((2, 3, 5), np.float32))
    assert out.dtype == np.int32
    np.testing.assert_array_equal(out, [2, 3, 5])


def test_variables_that_no_argument_has_are_refused():
    (n,) = export.symbolic_shape("n", constraints=["n <= 5"])
    best = nj.jit(lambda k, x: lax.top_k(x, k)[0], static_argnums=0)
    inner = nj.jit(lambda x: x + jnp.ones((n,)).sum())
    for f in (lambda: export.export(best)(n, jnp.arange(6)), lambda: export.export(inner)(1.0)):
        with pytest.raises(KeyError, match="dimension variable 'n' that is not appearing"):
            f()
    given = nj.jit(lambda sized, x: lax.top_k(x, sized.shape[1])[0])
    stored = export.export(given)(nj.ShapeDtypeStruct((0, n), np.float32), jnp.arange(6))
    assert stored.call(np.zeros((0, 2), np.float32), jnp.arange(6)).tolist() == [5, 4]


def test_arrays_get_shapes_that_fit_for_some_values() -> None:
    (n,) = export.symbolic_shape("n")
    given = nj.ShapeDtypeStruct((n,), "float32")
    for function in (
        lambda x: x.reshape(x.shape[0] // 3, 3).sum(1),
        lambda x: nj.lax.reshape(x, (x.shape[0] // 3, 3)).sum(1),
        lambda x: nj.grad(lambda y: (y.reshape(3, x.shape[0] // 3) ** 2).sum())(x)[::3],
    ):
        exported = export.export(nj.jit(function))(given)
        np.testing.assert_array_equal(
            exported.call(jnp.arange(6.0)), nj.jit(function)(jnp.arange(6.0))
        )
        with pytest.raises(ValueError, match="reshape"):
            exported.call(jnp.arange(7.0))
    for never in ((n + 1,), (n, 2)):
        with pytest.raises(TypeError, match="cannot reshape"):
            nj.eval_shape(lambda x, never=never: x.reshape(never), given)
