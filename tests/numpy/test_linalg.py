"""linalg, products, einsum and fft: values against NumPy, derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_differential import C, F, G, V, W, agree, check_derivative

import numjet
import numjet.numpy as jnp

rng = np.random.default_rng(1)
A = rng.standard_normal((4, 4)).astype(np.float32)
BATCH = rng.standard_normal((2, 3, 3)).astype(np.float32)
SPD = (A @ A.T + 4 * np.eye(4)).astype(np.float32)
TALL = rng.standard_normal((5, 3)).astype(np.float32)
HERMITIAN = (SPD[:3, :3] + 1j * (A[:3, :3] - A[:3, :3].T)).astype(np.complex64)


def close(got, want, tol=2e-4):
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


# ------------------------------------------------------------------ products
def test_products_with_fixed_shapes():
    agree("dot", V, W)
    agree("dot", F, G.T)
    agree("dot", F, 2.0)
    agree("dot", BATCH, BATCH)
    agree("vdot", C, C)
    agree("inner", F, G)
    agree("outer", V, W)
    agree("kron", F, G)
    agree("cross", F[:, :3], G[:, :3])
    agree("vecdot", F, G)
    agree("tensordot", F, G.T, 1)
    agree("tensordot", F, G, ((0, 1), (0, 1)))
    agree("dot", np.ones((2, 3), np.int32), np.ones((3, 2), np.int32))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((4,), (4,)),
        ((3, 4), (4,)),
        ((4,), (4, 2)),
        ((2, 3, 4), (4, 2)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((5, 3, 4), (2, 1, 4, 2)),
        ((1, 3, 4), (5, 4, 2)),
        ((3, 4), (5, 4, 2)),
        ((4,), (5, 4, 2)),
        ((5, 3, 4), (4,)),
        ((2, 5, 3, 4), (5, 4, 2)),
        ((1, 1, 4), (4, 1)),
        ((0, 3, 4), (4, 2)),
    ],
)
def test_matmul(first, second):
    x = rng.standard_normal(first).astype(np.float32)
    y = rng.standard_normal(second).astype(np.float32)
    agree("matmul", x, y)
    np.testing.assert_allclose(numjet.jit(jnp.matmul)(x, y), x @ y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "subscripts",
    [
        "ij,jk->ik",
        "ij,kj",
        "ij->ji",
        "ii->i",
        "ii",
        "ij->",
        "i,i->",
        "i,j->ij",
        "bij,bjk->bik",
        "...ij,...jk->...ik",
        "ij,ij->ij",
        "ij,jk,kl->il",
        "bij,bkj,l->bikl",
        "ijk->kj",
        "ij,j->ij",
        "abc,cd,de->abe",
        "iij->j",
        "ij, ji ->",
    ],
)
def test_einsum(subscripts):
    size = dict(a=2, b=2, c=4, d=3, e=5, i=3, j=3, k=3, l=3)
    terms = subscripts.replace(" ", "").split("->")[0].split(",")
    operands = [
        rng.standard_normal(
            ((2,) if "..." in t else ()) + tuple(size[c] for c in t.replace("...", ""))
        ).astype(np.float32)
        for t in terms
    ]
    agree("einsum", subscripts, *operands, tol=1e-4)
    close(
        numjet.jit(lambda *xs: jnp.einsum(subscripts, *xs))(*operands),
        np.einsum(subscripts, *operands),
    )


def test_einsum_with_axis_numbers_and_errors():
    close(jnp.einsum(F, [0, 1], G, [2, 1], [0, 2]), F @ G.T)
    with pytest.raises(ValueError, match="Size of label"):
        jnp.einsum("ij,jk", jnp.ones((2, 3)), jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="must be equal to the number of operands"):
        jnp.einsum("ij,jk", jnp.ones((2, 3)))
    with pytest.raises(TypeError, match="contracting"):
        jnp.dot(jnp.ones((2, 3)), jnp.ones((2, 3)))
    names = [
        e.primitive.name
        for e in numjet.make_jaxpr(lambda x, y: jnp.einsum("ij,jk->ik", x, y))(F, G.T).jaxpr.eqns
    ]
    assert names == ["dot_general"]


# ------------------------------------------------------------------ linalg
@pytest.mark.parametrize(
    "name", ["inv", "det", "slogdet", "pinv", "eigvals", "svdvals", "cond", "matrix_rank"]
)
@pytest.mark.parametrize("x", [A, SPD, BATCH], ids=["square", "spd", "batch"])
def test_functions_of_matrices(name, x):
    f, reference = getattr(jnp.linalg, name), getattr(np.linalg, name)
    got, want = f(x), reference(x)
    if name == "eigvals":
        got, want = np.sort_complex(np.asarray(got)), np.sort_complex(want)
    if name == "slogdet":
        close(got.sign, want.sign)
        got, want = got.logabsdet, want.logabsdet
    close(got, want, 2e-3)


@pytest.mark.parametrize("x", [SPD, HERMITIAN], ids=["real", "complex"])
def test_factorizations_rebuild_the_matrix(x):
    low = np.asarray(jnp.linalg.cholesky(x))
    close(low @ low.conj().T, x, 1e-3)
    up = np.asarray(jnp.linalg.cholesky(x, upper=True))
    close(up.conj().T @ up, x, 1e-3)
    w, v = (np.asarray(y) for y in jnp.linalg.eigh(x))
    close((v * w) @ v.conj().T, x, 1e-3)
    close(jnp.linalg.eigvalsh(x), np.linalg.eigvalsh(x), 1e-3)
    u, s, vh = (np.asarray(y) for y in jnp.linalg.svd(x))
    close((u * s) @ vh, x, 1e-3)
    q, r = jnp.linalg.qr(x)
    close(np.asarray(q) @ np.asarray(r), x, 1e-3)
    u, s, vh = (np.asarray(y) for y in jnp.linalg.svd(x, hermitian=True))
    close((u * s) @ vh, x, 1e-3)


def test_equal_singular_values_of_hermitian_matrices_are_in_jax_order():
    """Of those that are equal the last of `eigh` is first."""
    for x, order in ((np.eye(3), [2, 1, 0]), (np.diag([2.0, -3.0, 2.0]), [1, 2, 0])):
        u, s, vh = jnp.linalg.svd(jnp.asarray(x, jnp.float32), hermitian=True)
        close(np.abs(u), np.eye(3)[:, order], 1e-6)
        close((u * s) @ vh, x, 1e-6)


def test_systems():
    close(jnp.linalg.solve(A, V[:4]), np.linalg.solve(A, V[:4]), 2e-3)
    close(jnp.linalg.solve(A, SPD), np.linalg.solve(A, SPD), 5e-3)
    x, residuals, rank, s = jnp.linalg.lstsq(TALL, V)
    want = np.linalg.lstsq(TALL, V, rcond=None)
    close(x, want[0], 1e-3)
    close(residuals, want[1], 1e-3)
    assert rank == 3
    with pytest.raises(ValueError, match="do not fit"):
        jnp.linalg.solve(A, jnp.ones(3))
    with pytest.raises(ValueError, match="square"):
        jnp.linalg.inv(jnp.ones((2, 3)))


@pytest.mark.parametrize("ord", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_matrix_norms(ord):
    close(jnp.linalg.norm(F, ord), np.linalg.norm(F, ord))
    close(
        jnp.linalg.norm(BATCH, ord, axis=(1, 2), keepdims=True),
        np.linalg.norm(BATCH, ord, axis=(1, 2), keepdims=True),
    )


@pytest.mark.parametrize("ord", [None, 0, 1, 2, 3, -1, np.inf, -np.inf])
def test_vector_norms(ord):
    close(jnp.linalg.norm(F, ord, axis=1), np.linalg.norm(F, ord, axis=1))
    close(jnp.linalg.norm(C, ord, axis=0), np.linalg.norm(C, ord, axis=0))


def test_other_functions():
    close(jnp.linalg.matrix_power(A, 3), np.linalg.matrix_power(A, 3), 1e-3)
    close(jnp.linalg.matrix_power(A, -1), np.linalg.inv(A), 1e-2)
    close(jnp.linalg.multi_dot([F, G.T, F, V[:4]]), np.linalg.multi_dot([F, G.T, F, V[:4]]), 1e-3)
    close(
        jnp.linalg.tensorinv(A.reshape(4, 2, 2), 1),
        np.linalg.tensorinv(A.reshape(4, 2, 2), 1),
        1e-2,
    )
    close(jnp.linalg.vector_norm(F), np.linalg.norm(F))


@pytest.mark.parametrize(
    "f",
    [
        jnp.linalg.inv,
        jnp.linalg.det,
        lambda x: jnp.linalg.slogdet(x)[1],
        jnp.linalg.norm,
        lambda x: jnp.linalg.solve(x, jnp.ones(4)),
        lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(4)),
        lambda x: jnp.linalg.eigvalsh(x + x.T),
        lambda x: jnp.linalg.qr(x)[1],
        lambda x: jnp.linalg.svd(x, compute_uv=False),
        lambda x: jnp.linalg.pinv(x),
    ],
    ids=["inv", "det", "slogdet", "norm", "solve", "cholesky", "eigh", "qr", "svd", "pinv"],
)
def test_derivatives(f):
    check_derivative(f, SPD + A)


PINV_OF = {
    "equal singular values": np.eye(3),
    "low rank": np.diag([1.0, 1.0, 0.0]),
    "wide": np.eye(3)[:2],
    "tall": 2 * np.eye(4)[:, :2],
    "zero": np.zeros((2, 3)),
    "complex": np.eye(2) + 0j,
    "batch": np.stack([np.eye(2), np.ones((2, 2))]),
}


@pytest.mark.parametrize("name", PINV_OF)
def test_pinv_has_derivatives_where_singular_values_are_equal(name):
    """Along changes that keep the rank, as of the exact product of a rotation and the matrix."""
    a = PINV_OF[name]
    rotation = np.random.default_rng(3).normal(size=(a.shape[-2], a.shape[-2]))
    rotation = rotation - rotation.T
    t = rotation @ a
    with numjet.enable_x64(True):
        got = numjet.jvp(jnp.linalg.pinv, (jnp.asarray(a),), (jnp.asarray(t),))[1]
        grad = numjet.grad(lambda x: jnp.sum(jnp.abs(jnp.linalg.pinv(x)) ** 2))(jnp.asarray(a))
        rtol = numjet.jvp(lambda r: jnp.linalg.pinv(jnp.asarray(a), r), (0.1,), (1.0,))[1]
    np.testing.assert_allclose(got, np.linalg.pinv(a) @ -rotation, atol=1e-12)
    assert np.isfinite(grad).all()
    assert not np.any(rtol)


def cofactors(a):
    minors = [[np.delete(np.delete(a, i, 0), j, 1) for j in range(len(a))] for i in range(len(a))]
    signs = (-1.0) ** np.add.outer(np.arange(len(a)), np.arange(len(a)))
    return signs * np.linalg.det(np.array(minors))


def test_the_determinant_of_singular_matrices_has_its_derivative():
    full = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [2, 3, 1, 1], [3, 0, 2, 1]], float)
    rank_3 = full.copy()
    rank_3[3] = full[0] + full[1]
    without_column = full * [0, 1, 1, 1]
    batch = np.stack([
        full, rank_3, without_column, np.ones((4, 4)), np.zeros((4, 4)), np.diag([1.0, 0, 2, 3]),
        np.diag([1.0, 1, 1], 1), full[:, ::-1] * [1, 1, 0, 1],
    ])
    want = np.stack([cofactors(a) for a in batch])
    f = numjet.grad(jnp.linalg.det)
    for got in (
        np.stack([f(jnp.asarray(a)) for a in batch]), numjet.jit(numjet.vmap(f))(batch),
        np.stack([numjet.jit(f)(a) for a in batch]), numjet.vmap(f)(jnp.asarray(batch)),
        numjet.grad(lambda x: jnp.linalg.det(x).sum())(jnp.asarray(batch)),
    ):
        close(got, want, 1e-4)
    unitary = np.linalg.qr(full + 1j * rank_3)[0]
    complex_rank_3 = unitary @ np.diag([1, 2, 0, 3]) @ unitary.conj().T
    _, change = numjet.jvp(jnp.linalg.det, (jnp.asarray(complex_rank_3),),
                           (jnp.asarray(unitary.astype(np.complex64)),))
    close(change, np.sum(cofactors(complex_rank_3) * unitary), 1e-3)


def test_compiled_and_mapped():
    close(numjet.jit(jnp.linalg.inv)(A), np.linalg.inv(A), 1e-2)
    close(numjet.vmap(jnp.linalg.det)(BATCH), np.linalg.det(BATCH), 1e-3)


# ------------------------------------------------------------------ fft
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize(
    "name",
    [
        "fft",
        "ifft",
        "rfft",
        "irfft",
        "hfft",
        "ihfft",
        "fft2",
        "ifft2",
        "rfft2",
        "irfft2",
        "fftn",
        "ifftn",
        "rfftn",
        "irfftn",
    ],
)
def test_fft(name, norm):
    x = F if name in ("rfft", "rfft2", "rfftn", "ihfft") else C
    close(getattr(jnp.fft, name)(x, norm=norm), getattr(np.fft, name)(x, norm=norm))


def test_fft_sizes_and_helpers():
    close(jnp.fft.fft(F, n=6, axis=0), np.fft.fft(F, n=6, axis=0))
    close(jnp.fft.irfft(C, n=5), np.fft.irfft(C, n=5))
    close(jnp.fft.rfftn(BATCH, s=(2, 4), axes=(0, 2)), np.fft.rfftn(BATCH, s=(2, 4), axes=(0, 2)))
    close(jnp.fft.fftfreq(5, 0.1), np.fft.fftfreq(5, 0.1))
    close(jnp.fft.rfftfreq(6), np.fft.rfftfreq(6))
    close(jnp.fft.fftshift(F), np.fft.fftshift(F))
    close(jnp.fft.ifftshift(F, 1), np.fft.ifftshift(F, 1))
    assert jnp.fft.hfft(jnp.ones(1)).shape == jnp.fft.irfft(jnp.ones(1)).shape == (0,)
    for transform in (jnp.fft.fft, jnp.fft.ifft, jnp.fft.rfft, jnp.fft.irfft, jnp.fft.hfft):
        for n in (0, -1):  # of several axes -1 means: as it is
            with pytest.raises(ValueError, match="Shape should be positive"):
                transform(jnp.ones(4), n=n)
    with pytest.raises(ValueError, match="real valued inputs"):
        jnp.fft.rfft(C)
    with pytest.raises(ValueError, match="norm"):
        jnp.fft.fft(F, norm="x")


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (4, 2), (2, 4)])
def test_least_squares_of_a_zero_matrix(shape: tuple) -> None:
    a, b = np.zeros(shape), np.arange(1.0, shape[0] + 1)
    for f in (jnp.linalg.lstsq, numjet.jit(jnp.linalg.lstsq)):
        x, residuals, rank, s = f(a, b)
        np.testing.assert_array_equal(x, np.zeros(shape[1]))
        assert int(rank) == 0 and not np.any(s)
        assert float(residuals[0]) == pytest.approx((b**2).sum())


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_slogdet_of_two_by_two(dtype):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2, 2)).astype(dtype)
    if x.dtype.kind == "c":
        x = x + (1j * rng.normal(size=x.shape)).astype(dtype)
    x[0], x[1, 0], x[2, :, 0], x[3, :, 1], x[4] = 0, 0, 0, 0, [[1, 2], [2, 4]]
    x[5] *= 1e20
    x[6, 0, 0] = 0
    close = 3e-4 if x.dtype.itemsize in (4, 8) and dtype != "float64" else 1e-9
    with numjet.enable_x64(True):
        for call in (jnp.linalg.slogdet, numjet.jit(jnp.linalg.slogdet)):
            for got, want in zip(call(x), np.linalg.slogdet(x), strict=True):
                assert got.dtype == want.dtype
                np.testing.assert_allclose(got, want, rtol=close, atol=close)
        text = numjet.jit(jnp.linalg.slogdet).lower(x).as_text()
    assert text.count("kernel ") == 1, "the diagonals are in memory between two loops"


@pytest.mark.parametrize("n", [1, 5, 40, 100])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_cholesky_where_there_is_none(n, dtype):
    """The triangle is NaN, the other one zero, of that matrix alone."""
    good = np.eye(n, dtype=dtype) * 4
    for matrices in (-good, np.stack([good, -good] * 9)):
        for f in (jnp.linalg.cholesky, numjet.jit(jnp.linalg.cholesky)):
            found = np.asarray(f(matrices)).reshape(-1, n, n)
            triangle = np.tril(np.ones((n, n), bool))
            np.testing.assert_array_equal(np.isnan(found[-1]), triangle)
            assert not found[-1][~triangle].any()
            if len(found) > 1:
                np.testing.assert_array_equal(found[0], good / 2)


def test_norms_of_nothing():
    """0, where a greatest or a sum is taken; a least of nothing has no value."""
    wide, tall = jnp.zeros((2, 0)), jnp.zeros((0, 2))
    for ord in (None, 1, 2, np.inf):
        np.testing.assert_array_equal(jnp.linalg.norm(wide, ord, axis=-1), [0, 0])
        for matrix in (wide, tall):
            assert jnp.linalg.matrix_norm(matrix, ord=ord) == 0
        assert jnp.linalg.vector_norm(wide[0], ord=ord) == 0
    for ord in (-1, -2, -np.inf):
        with pytest.raises(ValueError):
            jnp.linalg.matrix_norm(wide, ord=ord)
            jnp.linalg.matrix_norm(tall, ord=ord)


@pytest.mark.parametrize(
    ("x", "ord", "slope"),
    [(jnp.zeros(3), np.inf, 1 / 6), (jnp.zeros((2, 2)), 1, 0.25), (jnp.zeros((2, 2)), np.inf, 0.25),
     (jnp.zeros(3), -np.inf, 1 / 3), (jnp.ones(3), np.inf, 1 / 3), (jnp.ones((2, 2)), 1, 0.5)],
)  # fmt: skip
def test_largest_sizes_share_their_slope_with_nought(x, ord, slope):
    found = numjet.grad(lambda x: jnp.linalg.norm(x, ord))(x)
    np.testing.assert_allclose(found, np.full(x.shape, slope), rtol=1e-6)


def test_jaxprs_name_decompositions_as_jax_does():
    text = str(numjet.make_jaxpr(jnp.linalg.svd)(np.eye(2, dtype=np.float32)))
    assert "name=svd" in text and "algorithm=None" in text and "subset_by_index=None" in text
    text = str(numjet.make_jaxpr(jnp.linalg.eigh)(np.eye(2, dtype=np.float32)))
    assert "name=eigh" in text and "= div " in text and "compute_v" not in text
    text = str(numjet.make_jaxpr(numjet.lax.linalg.cholesky)(np.eye(2, dtype=np.float32)))
    assert "cholesky" in text and "select_n" in text
    assert "use_magma=None" in str(numjet.make_jaxpr(jnp.linalg.qr)(np.eye(2, dtype=np.float32)))
