"""Kernels over grids: values beside JAX's interpret mode, derivatives, and what is refused."""

import numpy as np
import pytest
from same_script import compare

import numjet as nj
import numjet.numpy as jnp
from numjet.experimental import pallas as pl
from numjet.experimental.pallas import tpu, triton

F32 = jnp.float32

# `top` is numjet or jax; `pl` and `tpu` its modules.
KERNELS = """
import functools, importlib, sys
package = jnp.__name__.partition(".")[0]
top = sys.modules[package]
pl = importlib.import_module(package + ".experimental.pallas")
tpu = importlib.import_module(package + ".experimental.pallas.tpu")
triton = importlib.import_module(package + ".experimental.pallas.triton")
S, f32, i32 = top.ShapeDtypeStruct, jnp.float32, jnp.int32
call = functools.partial(pl.pallas_call, interpret=True)
rng = np.random.default_rng(0)
A, B = (rng.standard_normal(s).astype(np.float32) for s in ((24, 20), (20, 16)))
X = np.arange(7, dtype=np.float32)

def double(x, o):
    o[...] = x[...] * 2

def masked(x, o):
    few = jnp.arange(7) < 3
    o[...] = x[...]
    triton.store(o, triton.load(x, mask=few, other=-5.0) + 1, mask=jnp.arange(7) < 5)
    triton.store(o.at[5:], triton.load(x.at[:2]))

out["masked"] = call(masked, out_shape=S((7,), f32))(X)

def matmul(a, b, o):
    @pl.when(pl.program_id(2) == 0)
    def _():
        o[...] = jnp.zeros_like(o)
    o[...] += a[...] @ b[...]

out["~matmul"] = call(matmul, out_shape=S((24, 16), f32), grid=(3, 2, 5),
    in_specs=[pl.BlockSpec((8, 4), lambda i, j, k: (i, k)),
              pl.BlockSpec((4, 8), lambda i, j, k: (k, j))],
    out_specs=pl.BlockSpec((8, 8), lambda i, j, k: (i, j)))(A, B)

def scratch_matmul(a, b, o, acc):
    k = pl.program_id(1)
    @pl.when(k == 0)
    def _():
        acc[...] = jnp.zeros_like(acc)
    acc[...] += jnp.dot(a[...], b[...])
    @pl.when(k == pl.num_programs(1) - 1)
    def _():
        o[...] = acc[...]

out["~scratch"] = call(scratch_matmul, out_shape=S((24, 16), f32), grid=(3, 5),
    in_specs=[pl.BlockSpec((8, 4), lambda i, k: (i, k)),
              pl.BlockSpec((4, 16), lambda i, k: (k, 0))],
    out_specs=pl.BlockSpec((8, 16), lambda i, k: (i, 0)),
    scratch_shapes=[tpu.VMEM((8, 16), f32)])(A, B)

out["padded"] = call(double, out_shape=S((7,), f32), grid=(4,),
    in_specs=[pl.BlockSpec((2,), lambda i: i)], out_specs=pl.BlockSpec((2,), lambda i: i))(X)
out["undefined"] = call(lambda x, o, p: None, out_shape=[S((3,), f32), S((2,), i32)])(X)[0]
out["undefined int"] = call(lambda x, o, p: None, out_shape=[S((3,), f32), S((2,), i32)])(X)[1]
out["squeezed"] = call(double, out_shape=S((24, 20), f32), grid=(24,),
    in_specs=[pl.BlockSpec((None, 20), lambda i: (i, 0))],
    out_specs=pl.BlockSpec((pl.squeezed, 20), lambda i: (i, 0)))(A)
out["element"] = call(double, out_shape=S((6,), f32), grid=(3,),
    in_specs=[pl.BlockSpec((pl.Element(2, (1, 0)),), lambda i: (i * 2,))],
    out_specs=pl.BlockSpec((2,), lambda i: i))(X[:6])
out["row of ids"] = call(lambda o: o.__setitem__((pl.program_id(0), pl.program_id(1)),
    pl.program_id(0) * 10 + pl.program_id(1)), out_shape=S((3, 4), i32), grid=(3, 4))()
out["alias"] = call(lambda x, o: o.__setitem__(2, 5.0), out_shape=S((7,), f32),
    input_output_aliases={0: 0})(X)
tree = call(lambda x, o: (o["a"].__setitem__(..., x["k"][...] + 1),
                          o["b"].__setitem__(..., x["k"][1:7:3].sum() + x["k"][...]))[2:] or None,
            out_shape={"a": S((7,), f32), "b": S((7,), f32)})({"k": X})
out["tree a"], out["tree b"] = tree["a"], tree["b"]

def slices(x, o):
    def body(i, total):
        part = x[pl.ds(i * 2, 2)]
        o[pl.ds(i * 2, 2)] = part + total
        return total + part.sum()
    o[6] = top.lax.fori_loop(0, 3, body, jnp.float32(0))

out["slices"] = call(slices, out_shape=S((7,), f32))(X)

def loops(x, o):
    o[...] = x[...]
    @pl.loop(0, 6, step=2)
    def _(i):
        o[i] = -x[i]
    o[1] = pl.loop(0, 3, init_carry=jnp.float32(0))(lambda i, c: c + x[i])
    o[3] = pl.run_scoped(lambda r: (r.__setitem__(..., x[...] * 3), r[5])[1], tpu.VMEM((7,), f32))

out["loops"] = call(loops, out_shape=S((7,), f32))(X)

def gathered(index, x, o):
    o[...] = x[...] + index[pl.program_id(0)].astype(f32)

index = np.array([2, 0, 3, 1], np.int32)
grid = tpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(4,),
    in_specs=[pl.BlockSpec((2, 4), lambda i, index: (index[i], 0))],
    out_specs=pl.BlockSpec((2, 4), lambda i, index: (i, 0)))
out["prefetch"] = call(gathered, out_shape=S((8, 4), f32), grid_spec=grid)(
    index, np.arange(32, dtype=np.float32).reshape(8, 4))

def softmax(x, o):
    e = jnp.exp(x[...] - x[...].max(1, keepdims=True))
    o[...] = e / e.sum(1, keepdims=True)

out["~softmax"] = jit(call(softmax, out_shape=S((24, 20), f32), grid=(3,),
    in_specs=[pl.BlockSpec((8, 20), lambda i: (i, 0))],
    out_specs=pl.BlockSpec((8, 20), lambda i: (i, 0))))(A)
out["~vmap"] = vmap(call(double, out_shape=S((20,), f32), grid=(5,),
    in_specs=[pl.BlockSpec((4,), lambda i: i)], out_specs=pl.BlockSpec((4,), lambda i: i)))(A)
out["~jvp"] = jvp(call(lambda x, o: o.__setitem__(..., jnp.sin(x[...])), out_shape=S((7,), f32)),
                  (X,), (X + 1,))[1]
for name, value in [("cdiv", pl.cdiv(7, 2)), ("power", pl.next_power_of_2(9)),
                    ("align", pl.align_to(9, 4)), ("strides", pl.strides_from_shape((2, 3, 4)))]:
    out[name] = np.asarray(value)
"""


def test_values_as_jax():
    compare(KERNELS)


def test_gradients():
    """In JAX the interpreter has no reverse mode."""
    block = pl.BlockSpec((2,), lambda i: i)

    def cube(x, o):
        o[...] = x[...] ** 3

    call = pl.pallas_call(cube, nj.ShapeDtypeStruct((6,), F32), grid=(3,), in_specs=[block],
                          out_specs=block)
    x = np.arange(6, dtype=np.float32)
    np.testing.assert_allclose(nj.grad(lambda x: call(x).sum())(x), 3 * x**2)
    np.testing.assert_allclose(nj.jit(nj.grad(lambda x: (call(call(x)) / 1000).sum()))(x),
                               9 * x**8 / 1000, rtol=1e-5)


def test_a_grid_of_traced_size():
    def kernel(x, o):
        o[pl.program_id(0)] = x[pl.program_id(0)] + jnp.asarray(pl.num_programs(0), F32)

    def run(n):
        whole = jnp.zeros(5)
        return pl.pallas_call(kernel, nj.ShapeDtypeStruct((5,), F32), grid=(n,),
                              input_output_aliases={0: 0})(whole)

    np.testing.assert_array_equal(nj.jit(run)(3), [3, 3, 3, 0, 0])


def test_what_is_refused():
    shape = nj.ShapeDtypeStruct((8,), F32)
    x = jnp.arange(8.0)

    def double(x, o):
        o[...] = 2 * x[...]

    cases = [
        (dict(in_specs=[pl.BlockSpec((2, 2))]), ValueError, "same number of dimensions"),
        (dict(in_specs=[pl.BlockSpec((2,), lambda i: (i, 0))], grid=4), ValueError,
         "must return 1 values to match block_shape"),
        (dict(in_specs=[pl.BlockSpec((2,))] * 2, grid=4), ValueError, "Pytree for `in_specs`"),
        (dict(in_specs=[pl.BlockSpec((pl.BoundedSlice(2),))]), NotImplementedError,
         "BoundedSlice is not there"),
    ]
    for options, error, told in cases:
        with pytest.raises(error, match=told):
            pl.pallas_call(double, shape, **options)(x)
    with pytest.raises(ValueError, match="should return None"):
        pl.pallas_call(lambda x, o: x[...], shape)(x)
    for name in ("program_id", "num_programs"):
        with pytest.raises(ValueError, match="outside of a kernel"):
            getattr(pl, name)(0)
    with pytest.raises(ValueError, match="has no axis 1"):
        pl.pallas_call(lambda o: o.__setitem__(0, pl.program_id(1)), shape, grid=(2,))()
    with pytest.raises(ValueError, match="non-negative"):
        pl.next_power_of_2(-1)
    with pytest.raises(NotImplementedError, match="stride is not"):
        tpu.roll(x, 1, 0, stride=2)


def test_debugging(capfd):
    def kernel(x, o):
        pl.debug_print("first {}", x[0])
        o[...] = x[...]

    pl.pallas_call(kernel, nj.ShapeDtypeStruct((2,), F32), debug=True)(jnp.ones(2))
    nj.effects_barrier()
    printed = capfd.readouterr().out
    assert "first 1.0" in printed and "lambda" in printed


def test_dot_adds_up_in_32_bits():
    for dtype, expected in (("int8", "int32"), ("bfloat16", "float32"), ("float32", "float32")):
        a = jnp.full((3, 4), 100).astype(dtype)
        product = triton.dot(a, a, trans_b=True)
        assert product.dtype == expected and product.shape == (3, 3)
        np.testing.assert_array_equal(product, 40_000)
    with pytest.raises(ValueError, match="must be 2D"):
        triton.dot(jnp.ones(3), jnp.ones((3, 2)))
    with pytest.raises(ValueError, match="Only one of"):
        triton.dot(jnp.ones((2, 2)), jnp.ones((2, 2)), False, False, True, "highest")
