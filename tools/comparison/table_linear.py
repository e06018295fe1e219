"""Arguments for products, polynomials, Fourier transforms and linear algebra."""

from __future__ import annotations

from comparison.draw import Arg, Call, Draw, call, sequence, source
from comparison.families import (
    ALL,
    Table,
    diagonally_dominant,
    positive_definite,
    several,
    square,
)

TABLE: Table = {}
MATRIX = "ffffc"


def of(module: str, names: str):
    """Enter the decorated maker for these functions of `module`."""

    def enter(maker):
        several(TABLE, module, names, maker)
        return maker

    return enter


# --- products ------------------------------------------------------------------------------------


@of("numpy", "matmul dot")
def matmul(d: Draw) -> Call:
    m, k, n = d.extent(), d.extent(), d.extent()
    left, right = d.choice(
        (
            ((m, k), (k, n)),
            ((k,), (k,)),
            ((m, k), (k,)),
            ((k,), (k, n)),
            ((2, m, k), (k, n)),
            ((2, m, k), (2, k, n)),
            ((), (k,)),
            ((m, 5), (k,)),
        )
    )
    return call(
        d.operand(left, ALL, "plain"),
        d.operand(right, ALL, "plain"),
        **d.some(0.15, preferred_element_type=lambda: source("jnp.float32")),
    )


several(TABLE, "numpy.linalg", "matmul", matmul)


@of("numpy", "vdot inner outer kron")
def vdot(d: Draw) -> Call:
    k = d.extent()
    left, right = d.choice(
        (((k,), (k,)), ((2, k), (2, k)), ((2, k), (3, k)), ((), (k,)), ((k,), (2,)))
    )
    return call(d.operand(left, ALL, "plain"), d.operand(right, ALL, "plain"))


@of("numpy", "vecdot matvec vecmat")
def vecdot(d: Draw) -> Call:
    k = d.extent()
    left, right = d.choice(
        (
            ((k,), (k,)),
            ((2, k), (2, k)),
            ((2, k), (k,)),
            ((k,), (k, 2)),
            ((3, 2, k), (k,)),
            ((2, 3), (3,)),
        )
    )
    return call(d.operand(left, ALL, "plain"), d.operand(right, ALL, "plain"))


several(TABLE, "numpy.linalg", "vecdot", vecdot)


@of("numpy.linalg", "outer")
def outer(d: Draw) -> Call:
    return call(d.operand((d.extent(),), ALL, "plain"), d.operand((d.extent(),), ALL, "plain"))


@of("numpy", "tensordot")
def tensordot(d: Draw) -> Call:
    k = d.extent()
    left, right, axes = d.choice(
        (
            ((2, k), (k, 3), 1),
            ((2, k), (2, k), 2),
            ((k,), (2,), 0),
            ((2, k), (3, k), ((1,), (1,))),
            ((2, k), (3, k), (1, 1)),
            ((k, 2), (3, k), 1),
        )
    )
    return call(d.operand(left, ALL, "plain"), d.operand(right, ALL, "plain"), axes)


several(TABLE, "numpy.linalg", "tensordot", tensordot)


@of("numpy", "einsum einsum_path")
def einsum(d: Draw) -> Call:
    k = d.extent()
    text, shapes = d.choice(
        (
            ("ij,jk->ik", ((2, k), (k, 3))),
            ("ij,ij->", ((2, k), (2, k))),
            ("ii->i", ((k, k),)),
            ("ii", ((k, k),)),
            ("...i,i", ((2, k), (k,))),
            ("ij->ji", ((2, k),)),
            ("i,j", ((2,), (k,))),
            ("bij,bjk->bik", ((2, 3, k), (2, k, 2))),
            ("ij,jk,kl->il", ((2, k), (k, 2), (2, 3))),
            ("ij->", ((2, k),)),
            ("i->ij", ((k,),)),
        )
    )
    return call(text, *[d.operand(s, d.choice(("f", "fi", "fc")), "plain") for s in shapes])


TABLE["numpy.einsum_path"] = lambda d: call("ij,jk,kl->il", *[d.array((2, 2), "f", "plain")] * 3)


@of("numpy", "cross")
def cross(d: Draw) -> Call:
    n = d.choice((3, 3, 2))
    shape = d.choice(((n,), (2, n), (3, n)))
    return call(
        d.operand(shape, "fffic", "plain"),
        d.operand(shape[-1:] if d.chance(0.3) else shape, "fffi", "plain"),
    )


several(TABLE, "numpy.linalg", "cross", cross)


@of("numpy", "convolve correlate")
def convolve(d: Draw) -> Call:
    return call(
        d.operand((d.extent(),), "fffic", "plain"),
        d.operand((d.extent(),), "fffi", "plain"),
        **d.some(0.6, mode=lambda: d.choice(("full", "same", "valid"))),
    )


# --- polynomials ---------------------------------------------------------------------------------


@of("numpy", "polyadd polysub polymul polydiv")
def polynomials(d: Draw) -> Call:
    return call(
        d.operand((d.randint(1, 4),), "fffi", "plain"),
        d.operand((d.randint(1, 3),), "fffi", "plain"),
    )


@of("numpy", "polyval")
def polyval(d: Draw) -> Call:
    return call(
        d.operand((d.randint(0, 4),), "fffic", "plain"), d.operand(kinds="fffic", values="plain")
    )


@of("numpy", "polyder polyint")
def polyder(d: Draw) -> Call:
    return call(
        d.operand((d.randint(1, 5),), "fffi", "plain"), **d.some(0.5, m=lambda: d.randint(0, 3))
    )


@of("numpy", "poly")
def poly(d: Draw) -> Call:
    return call(d.operand((d.randint(0, 4),), "fffi", "plain"))


@of("numpy", "roots")
def roots(d: Draw) -> Call:
    return call(d.array((d.randint(0, 4),), "ff", "positive"), **d.some(0.3, strip_zeros=False))


@of("numpy", "polyfit")
def polyfit(d: Draw) -> Call:
    return call(
        Arg("jnp.array([0.0, 1.0, 2.0, 3.5, 4.0, 6.0])", True),
        d.operand((6,), "ffi", "plain"),
        d.randint(0, 3),
        **d.some(0.3, full=True, cov=True, w=lambda: d.array((6,), "f", "positive")),
    )


# --- linear algebra ------------------------------------------------------------------------------


@of("numpy.linalg", "det slogdet eigvals")
def determinant(d: Draw) -> Call:
    return call(square(d, "ffffci"))


@of("numpy.linalg", "inv")
def inv(d: Draw) -> Call:
    return call(diagonally_dominant(d, d.filled(0, 1), d.randint(1, 4)))


several(TABLE, "scipy.linalg", "inv", inv)
several(TABLE, "scipy.linalg", "det", lambda d: call(square(d)))


@of("numpy.linalg", "cholesky")
def cholesky(d: Draw) -> Call:
    return call(positive_definite(d, d.filled(0, 1), d.randint(1, 4)), **d.some(0.3, upper=True))


TABLE["lax.linalg.cholesky"] = lambda d: call(
    positive_definite(d, d.filled(0, 1), d.randint(1, 4)), **d.some(0.3, symmetrize_input=False)
)
TABLE["scipy.linalg.cholesky"] = TABLE["scipy.linalg.cho_factor"] = lambda d: call(
    positive_definite(d, (), d.randint(1, 4)), **d.some(0.4, lower=True)
)
TABLE["scipy.linalg.cho_solve"] = lambda d: call(
    sequence(
        [
            Arg(f"jnp.linalg.cholesky({positive_definite(d, (), 3, 'f').text})", True),
            source("True"),
        ],
        "()",
    ),
    d.array(d.choice(((3,), (3, 2))), "f", "plain"),
)


@of("numpy.linalg", "eigvalsh")
def eigvalsh(d: Draw) -> Call:
    return call(square(d, least=1), **d.some(0.5, UPLO=lambda: d.choice("LU")))


@of("numpy.linalg", "svdvals")
def svdvals(d: Draw) -> Call:
    return call(d.array(d.filled(2, 3), MATRIX, "plain"))


TABLE["numpy.linalg.svd"] = lambda d: call(
    d.array(d.filled(2, 3), MATRIX, "plain"), compute_uv=False, **d.some(0.3, full_matrices=False)
)
TABLE["lax.linalg.svd"] = lambda d: call(d.array(d.filled(2, 3), MATRIX, "plain"), compute_uv=False)
TABLE["scipy.linalg.svd"] = lambda d: call(
    d.array(d.filled(2, 2), MATRIX, "plain"), compute_uv=False
)


@of("numpy.linalg", "eigh eig")
def eigh(d: Draw) -> Call:
    return call(positive_definite(d, (), 1), **{})


@of("numpy.linalg", "qr")
def qr(d: Draw) -> Call:
    return call(d.array(d.filled(2, 3), MATRIX, "plain"), mode="r" if d.chance(0.5) else "reduced")


TABLE["lax.linalg.qr"] = lambda d: call(
    d.array(d.filled(2, 3), MATRIX, "plain"), full_matrices=d.chance(0.5)
)
TABLE["scipy.linalg.qr"] = lambda d: call(
    d.array(d.filled(2, 2), MATRIX, "plain"),
    **d.some(0.4, mode=lambda: d.choice(("r", "economic"))),
)
TABLE["scipy.linalg.qr_multiply"] = lambda d: call(
    d.array((3, 2), "f", "plain"), d.array((2, 2), "f", "plain"), **d.some(0.4, mode="right")
)
TABLE["lax.linalg.eigh"] = lambda d: call(positive_definite(d, (), 1), **d.some(0.3, lower=False))
TABLE["lax.linalg.eig"] = lambda d: call(positive_definite(d, (), 1))
TABLE["scipy.linalg.eigh"] = lambda d: call(
    square(d, least=1), **d.some(0.3, lower=False), eigvals_only=True
)


@of("numpy.linalg", "solve")
def solve(d: Draw) -> Call:
    n = d.randint(1, 4)
    batch = d.filled(0, 1)
    right = d.choice(((n,), (*batch, n, 2), (n, 1)))
    return call(diagonally_dominant(d, batch, n), d.operand(right, "ffffci", "plain"))


TABLE["scipy.linalg.solve"] = lambda d: call(
    diagonally_dominant(d, (), 3),
    d.operand(d.choice(((3,), (3, 2))), "ffc", "plain"),
    **d.some(0.3, assume_a=lambda: d.choice(("gen",)), lower=True),
)


@of("scipy.linalg", "solve_triangular")
def solve_triangular(d: Draw) -> Call:
    return call(
        diagonally_dominant(d, (), 3),
        d.operand(d.choice(((3,), (3, 2))), "ffc", "plain"),
        **d.some(0.4, lower=True, trans=lambda: d.choice((0, 1, 2, "T", "C")), unit_diagonal=True),
    )


@of("lax.linalg", "triangular_solve")
def triangular_solve(d: Draw) -> Call:
    kind = d.choice("fffc")
    dtype = {"f": "float32", "c": "complex64"}[kind]
    a = Arg(
        f"jnp.array({d.nested((3, 3), dtype, 'plain')}, '{dtype}')"
        f" + 8 * jnp.eye(3, dtype='{dtype}')",
        True,
    )
    left = d.chance(0.5)
    return call(
        a,
        d.array((3, 2) if left else (2, 3), dtype=dtype, values="plain"),
        left_side=left,
        **d.some(0.4, lower=True, transpose_a=True, conjugate_a=True, unit_diagonal=True),
    )


@of("numpy.linalg", "lstsq")
def lstsq(d: Draw) -> Call:
    return call(d.array((4, 2), "ffc", "plain"), d.array(d.choice(((4,), (4, 3))), "f", "plain"))


@of("numpy.linalg", "pinv matrix_rank")
def pinv(d: Draw) -> Call:
    return call(
        d.array(d.filled(2, 3), MATRIX, "plain"),
        **d.some(0.3, rtol=lambda: d.choice((0.1, Arg("jnp.array(0.1)", True)))),
    )


@of("numpy.linalg", "cond")
def cond(d: Draw) -> Call:
    return call(
        diagonally_dominant(d, d.filled(0, 1), 3),
        **d.some(0.7, p=lambda: d.choice((None, 1, -1, 2, -2, "fro", source("jnp.inf")))),
    )


@of("numpy.linalg", "norm")
def norm(d: Draw) -> Call:
    shape = d.shape(1, 3)
    axis = d.choice((None, 0, -1, (0, 1), (-1,)))
    order = d.choice(
        (None, 1, 2, -1, -2, 0, 3, 0.5, "fro", "nuc", source("jnp.inf"), source("-jnp.inf"))
    )
    return call(
        d.operand(shape, "fffci", "plain"),
        **d.some(0.6, ord=lambda: order, axis=axis),
        **d.some(0.3, keepdims=True),
    )


@of("numpy.linalg", "matrix_norm")
def matrix_norm(d: Draw) -> Call:
    return call(
        d.operand(d.shape(2, 3), "fffci", "plain"),
        **d.some(0.6, ord=lambda: d.choice((1, 2, -1, -2, "fro", "nuc", source("jnp.inf")))),
        **d.some(0.3, keepdims=True),
    )


@of("numpy.linalg", "vector_norm")
def vector_norm(d: Draw) -> Call:
    shape = d.shape(0, 3)
    return call(
        d.operand(shape, "fffci"),
        **d.some(
            0.4,
            axis=lambda: d.axis(len(shape)),
            keepdims=True,
            ord=lambda: d.choice((0, 1, 2, 3, 0.5, source("jnp.inf"), source("-jnp.inf"))),
        ),
    )


@of("numpy.linalg", "matrix_power")
def matrix_power(d: Draw) -> Call:
    return call(diagonally_dominant(d, d.filled(0, 1), 2), d.randint(-2, 4))


@of("numpy.linalg", "multi_dot")
def multi_dot(d: Draw) -> Call:
    return call(
        sequence(
            [
                d.array(s, "f", "plain")
                for s in d.choice(
                    (
                        ((2, 3), (3, 2), (2, 4)),
                        ((2, 3), (3,)),
                        ((3,), (3, 2), (2,)),
                        ((2, 3), (3, 2), (2, 4), (4, 1)),
                    )
                )
            ]
        )
    )


@of("numpy.linalg", "tensorinv")
def tensorinv(d: Draw) -> Call:
    return call(
        Arg(f"{d.array((2, 2, 4), 'f', 'unit').text} + 4 * jnp.eye(4).reshape(2, 2, 4)", True)
    )


@of("numpy.linalg", "tensorsolve")
def tensorsolve(d: Draw) -> Call:
    return call(
        Arg(f"{d.array((2, 2, 4), 'f', 'unit').text} + 4 * jnp.eye(4).reshape(2, 2, 4)", True),
        d.array((2, 2), "f", "plain"),
    )


@of("numpy.linalg", "trace diagonal")
def trace(d: Draw) -> Call:
    return call(d.operand(d.shape(2, 3), ALL), **d.some(0.4, offset=lambda: d.randint(-2, 2)))


@of("numpy.linalg", "matrix_transpose")
def matrix_transpose(d: Draw) -> Call:
    return call(d.operand(d.shape(1, 3), ALL))


@of("lax.linalg", "lu")
def lu(d: Draw) -> Call:
    return call(d.array(d.filled(2, 3), MATRIX, "plain"))


several(TABLE, "scipy.linalg", "lu_factor", lambda d: call(square(d, "fffc", least=1)))
TABLE["scipy.linalg.lu"] = lambda d: call(
    d.array(d.filled(2, 2), MATRIX, "plain"), **d.some(0.3, permute_l=True)
)
TABLE["scipy.linalg.lu_solve"] = lambda d: Call(
    [
        Arg(f"jax.scipy.linalg.lu_factor({diagonally_dominant(d, (), 3, 'f').text})", True),
        d.array((3,), "f", "plain"),
    ]
)
TABLE["lax.linalg.lu_pivots_to_permutation"] = lambda d: call(
    Arg("jnp.array([1, 2, 2], 'int32')", True), d.choice((3, 4))
)
TABLE["lax.linalg.symmetric_product"] = lambda d: call(
    d.array((3, 2), dtype="float32", values="plain"),
    Arg("jnp.eye(3, dtype='float32')", True),
    **d.some(0.4, alpha=lambda: 2.0, beta=lambda: 0.5, symmetrize_output=True),
)
TABLE["lax.linalg.tridiagonal_solve"] = lambda d: call(
    *[
        Arg(f"jnp.array({v}, 'float32')", True)
        for v in (
            [0.0, d.gauss(0, 1), d.gauss(0, 1)],
            [5.0, 6.0, 7.0],
            [d.gauss(0, 1), d.gauss(0, 1), 0.0],
        )
    ],
    d.array((3, 2), dtype="float32", values="plain"),
)
TABLE["lax.linalg.cholesky_update"] = lambda d: call(
    Arg(f"jnp.linalg.cholesky({positive_definite(d, (), 3, 'f').text}).T.astype('float32')", True),
    d.array((3,), dtype="float32", values="plain"),
)
TABLE["lax.linalg.schur"] = lambda d: call(
    positive_definite(d, (), 1), **d.some(0.3, compute_schur_vectors=False)
)
TABLE["lax.linalg.hessenberg"] = lambda d: call(square(d, "fffc", least=1))
TABLE["scipy.linalg.hessenberg"] = lambda d: call(
    square(d, "fffc", least=1), **d.some(0.3, calc_q=True)
)
TABLE["lax.linalg.householder_product"] = lambda d: call(
    d.array((3, 2), dtype="float32", values="plain"), d.array((2,), dtype="float32", values="unit")
)
TABLE["lax.linalg.ormqr"] = lambda d: call(
    *[d.array(s, dtype="float32", values="plain") for s in ((3, 2), (2,), (3, 2))]
)
TABLE["lax.linalg.tridiagonal"] = lambda d: call(positive_definite(d, (), 3, "f"))
TABLE["lax.linalg.qdwh"] = lambda d: call(Arg("jnp.array([[3.0, 1.0], [0.5, 2.0]])", True))


@of("scipy.linalg", "block_diag")
def block_diag(d: Draw) -> Call:
    return call(*[d.operand(d.shape(0, 2), ALL) for _ in range(d.randint(1, 3))])


@of("scipy.linalg", "toeplitz hankel")
def toeplitz(d: Draw) -> Call:
    return call(
        d.operand((*d.filled(0, 1), d.randint(1, 3)), "fffic", "plain"),
        *([d.operand((d.randint(1, 3),), "fffi", "plain")] if d.chance(0.5) else []),
    )


@of("scipy.linalg", "circulant companion fiedler fiedler_companion")
def circulant(d: Draw) -> Call:
    return call(d.operand((*d.filled(0, 1), d.randint(2, 4)), "fffic", "positive"))


@of("scipy.linalg", "convolution_matrix")
def convolution_matrix(d: Draw) -> Call:
    return call(
        d.operand((*d.filled(0, 1), d.randint(1, 4)), "fffic", "plain"),
        d.randint(1, 4),
        **d.some(0.5, mode=lambda: d.choice(("full", "same", "valid"))),
    )


@of("scipy.linalg", "leslie")
def leslie(d: Draw) -> Call:
    n = d.randint(2, 4)
    return call(d.array((n,), "fi", "positive"), d.array((n - 1,), "fi", "positive"))


several(
    TABLE,
    "scipy.linalg",
    "hilbert invhilbert helmert dft pascal invpascal",
    lambda d: call(d.randint(1, 6)),
)
TABLE["scipy.linalg.hadamard"] = lambda d: call(
    d.choice((1, 2, 4, 8, 3)), **d.some(0.4, dtype=lambda: d.dtype_arg("fi"))
)
TABLE["scipy.linalg.dft"] = lambda d: call(
    d.randint(1, 6), **d.some(0.4, scale=lambda: d.choice(("sqrtn", "n")))
)
TABLE["scipy.linalg.pascal"] = TABLE["scipy.linalg.invpascal"] = lambda d: call(
    d.randint(1, 6), **d.some(0.4, kind=lambda: d.choice(("symmetric", "lower", "upper")))
)


@of("scipy.linalg", "expm")
def expm(d: Draw) -> Call:
    return call(square(d, "fffc", "unit", 1), **d.some(0.2, upper_triangular=True))


TABLE["scipy.linalg.expm_frechet"] = lambda d: call(
    *[d.array((3, 3), dtype="float32", values="unit") for _ in range(2)],
    **d.some(0.3, compute_expm=False),
)
TABLE["scipy.linalg.sqrtm"] = lambda d: call(positive_definite(d, (), d.randint(1, 3), "fffc"))
TABLE["scipy.linalg.funm"] = lambda d: call(
    positive_definite(d, (), 2, "f"), source("lambda x: jnp.exp(x)")
)
TABLE["scipy.linalg.polar"] = lambda d: call(
    diagonally_dominant(d, (), 3, "fffc"), **d.some(0.4, side="left")
)
TABLE["scipy.linalg.schur"] = lambda d: call(positive_definite(d, (), 1))
TABLE["scipy.linalg.rsf2csf"] = lambda d: call(
    positive_definite(d, (), 1, "f"), Arg("jnp.ones((1, 1))", True)
)
TABLE["scipy.linalg.solve_sylvester"] = lambda d: call(
    diagonally_dominant(d, (), 2, "f"),
    diagonally_dominant(d, (), 2, "f"),
    d.array((2, 2), dtype="float32", values="plain"),
)
TABLE["scipy.linalg.eigh_tridiagonal"] = lambda d: call(
    d.array((4,), dtype="float32", values="distinct"),
    d.array((3,), dtype="float32", values="unit"),
    eigvals_only=True,
)


# --- Fourier transforms --------------------------------------------------------------------------


@of("numpy.fft", "fft ifft rfft irfft hfft ihfft")
def fft(d: Draw) -> Call:
    shape = d.filled(1, 3)
    return call(
        d.operand(shape, "fffci", "plain"),
        **d.some(
            0.3,
            n=lambda: d.randint(1, 5),
            axis=lambda: d.axis(len(shape), 0, False),
            norm=lambda: d.choice(("ortho", "forward", "backward")),
        ),
    )


@of("numpy.fft", "fft2 ifft2 rfft2 irfft2")
def fft2(d: Draw) -> Call:
    return call(
        d.operand(d.filled(2, 3), "fffci", "plain"),
        **d.some(
            0.3,
            s=lambda: (d.randint(1, 4), d.randint(1, 4)),
            axes=lambda: d.choice(((0, 1), (-1, 0))),
            norm=lambda: d.choice(("ortho", "forward")),
        ),
    )


@of("numpy.fft", "fftn ifftn rfftn irfftn")
def fftn(d: Draw) -> Call:
    shape = d.filled(1, 3)
    return call(
        d.operand(shape, "fffci", "plain"),
        **d.some(
            0.3,
            axes=lambda: d.choice(((0,), (-1,), tuple(range(len(shape))))),
            norm=lambda: d.choice(("ortho", "forward")),
        ),
    )


@of("numpy.fft", "fftfreq rfftfreq")
def fftfreq(d: Draw) -> Call:
    return call(d.randint(1, 7), **d.some(0.4, d=lambda: 0.5, dtype=lambda: d.dtype_arg("ffi")))


@of("numpy.fft", "fftshift ifftshift")
def fftshift(d: Draw) -> Call:
    shape = d.shape(1, 3)
    return call(d.operand(shape, ALL), **d.some(0.4, axes=lambda: d.axis(len(shape))))


@of("scipy.fft", "dct idct")
def dct(d: Draw) -> Call:
    shape = d.filled(1, 2)
    return call(
        d.operand(shape, "fffi", "plain"),
        **d.some(
            0.3,
            n=lambda: d.randint(1, 5),
            axis=lambda: d.axis(len(shape), 0, False),
            norm=lambda: "ortho",
        ),
    )


@of("scipy.fft", "dctn idctn")
def dctn(d: Draw) -> Call:
    return call(
        d.operand(d.filled(2, 2), "fffi", "plain"),
        **d.some(0.3, axes=lambda: d.choice(((0,), (0, 1))), norm=lambda: "ortho"),
    )
