"""BLAS and LAPACK routines by address, and OpenBLAS on our pool."""

import ctypes
import os

import numpy as np
import pytest
from python_process import printed
from together import together

from numjet.cpu.link import link
from numjet.cpu.runtime import blas, lapack, threads

DRIVER = """
declare void @nj_parallel_for(ptr, ptr, i64, i64)
declare void @nj_blas_sgemm(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)

; ctx: n, pointers to a, b and c; element i of c is the i-th n x n product.
define void @product(ptr %ctx, i64 %i, i64 %end) {
  %n = load i32, ptr %ctx
  %a_p = getelementptr i64, ptr %ctx, i64 1
  %b_p = getelementptr i64, ptr %ctx, i64 2
  %c_p = getelementptr i64, ptr %ctx, i64 3
  %a = load ptr, ptr %a_p
  %b = load ptr, ptr %b_p
  %c = load ptr, ptr %c_p
  %wide = zext i32 %n to i64
  %square = mul i64 %wide, %wide
  %offset = mul i64 %square, %i
  %ci = getelementptr float, ptr %c, i64 %offset
  %no = alloca i8
  store i8 78, ptr %no
  %one = alloca float
  store float 1.0, ptr %one
  %zero = alloca float
  store float 0.0, ptr %zero
  call void @nj_blas_sgemm(ptr %no, ptr %no, ptr %ctx, ptr %ctx, ptr %ctx, ptr %one,
                           ptr %b, ptr %ctx, ptr %a, ptr %ctx, ptr %zero, ptr %ci, ptr %ctx)
  ret void
}

define void @products(ptr %ctx, i64 %count) {
  call void @nj_parallel_for(ptr @product, ptr %ctx, i64 %count, i64 1)
  ret void
}
"""


@pytest.fixture
def products():
    library = link.load([link.compile_module(DRIVER, verify=True)])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(library.address("products"))

    def run(a, b, count):
        out = np.full((count, *a.shape), np.nan, np.float32)
        ctx = np.array([len(a), a.ctypes.data, b.ctypes.data, out.ctypes.data], np.int64)
        function(ctx.ctypes.data, count)
        return out

    run.library = library
    return run


def matrices(n):
    generator = np.random.default_rng(n)
    return generator.random((2, n, n), np.float32)


@pytest.mark.parametrize("n", [1, 7, 64, 300])
def test_sgemm_from_native_code(products, n):
    a, b = matrices(n)
    np.testing.assert_allclose(products(a, b, 1)[0], a @ b, rtol=1e-4)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_sgemm_inside_a_parallel_loop(products, count):
    # Each product is big enough for OpenBLAS to split: its jobs find the pool busy.
    threads.set_num_threads(count)
    try:
        a, b = matrices(200)
        for out in products(a, b, 6):
            np.testing.assert_allclose(out, a @ b, rtol=1e-4)
    finally:
        threads.set_num_threads(0)


def test_concurrent_callers(products):
    a, b = matrices(200)
    expected = a @ b

    def work(_):
        for _ in range(20):
            np.testing.assert_allclose(products(a, b, 1)[0], expected, rtol=1e-4, atol=1e-8)

    together(work, range(3))


@pytest.mark.parametrize("prefix", "sdcz")
def test_routines_of_every_type_exist(prefix):
    for name in ("gemm", "gemv", "trsm", "scal"):
        assert blas.address(prefix + name)
    for name in ("potrf", "getrf", "trtrs", "geev", "gesdd"):
        assert lapack.address(prefix + name)


def test_lapack_cholesky():
    a = np.array([[4.0, 2.0], [2.0, 3.0]])
    n, info = ctypes.c_int32(2), ctypes.c_int32(-1)
    potrf = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(lapack.address("dpotrf"))
    uplo = ctypes.c_char(b"U")
    potrf(*[ctypes.addressof(x) for x in (uplo, n)], a.ctypes.data,
          *[ctypes.addressof(x) for x in (n, info)])
    assert info.value == 0
    np.testing.assert_allclose(np.tril(a), np.linalg.cholesky([[4.0, 2.0], [2.0, 3.0]]))


def test_capsules_give_the_same_routines():
    capsules = blas.cython_capsules("cython_blas")
    function = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_void_p] * 3)
    norm = function(blas.capsule_address(capsules["dnrm2"]))
    x = np.array([3.0, 4.0])
    n, step = ctypes.c_int32(2), ctypes.c_int32(1)
    assert norm(ctypes.addressof(n), x.ctypes.data, ctypes.addressof(step)) == 5.0


def test_unknown_routine_is_refused():
    with pytest.raises(NotImplementedError, match="no such routine"):
        blas.address("nonsense")


def test_addresses_do_not_import_scipy_linalg():
    assert printed("""
    import sys
    from numjet.cpu.runtime import blas, lapack
    blas.address("sgemm"), lapack.address("dgetrf")
    print([m for m in ("scipy.linalg", "scipy.linalg.blas") if m in sys.modules])
    import scipy.linalg
    print(scipy.linalg.inv([[2.0]]))
    """) == "[]\n[[0.5]]\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_numpy_on_the_pool_survives_threads_and_fork():
    output = printed("""
    import os, threading
    import numpy as np
    from numjet.cpu.runtime import blas, threads
    blas.adopt_numpy()
    a = np.random.default_rng(0).random((300, 300))
    expected = np.einsum("ij,jk->ik", a, a)
    def check():
        for _ in range(10):
            assert np.allclose(a @ a, expected)
    check()
    callers = [threading.Thread(target=check) for _ in range(3)]
    [c.start() for c in callers]
    [c.join() for c in callers]
    for count in (1, 4, 2):
        threads.set_num_threads(count)
        check()
    child = os.fork()
    if child == 0:
        check()
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    check()
    print("ok")
    """, NUMJET_NUM_THREADS="2")
    assert output == "ok\n"
