"""Products that the direct generator writes itself: the bits of LLVM's code for the same loops."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from x86_agree import GENERATOR, generated

from numjet.cpu.builder.builder import Module
from numjet.cpu.kernels.idioms import lanes_of
from numjet.cpu.kernels.products import gemm, gemm_tiles, small
from numjet.cpu.link import link

pytestmark = GENERATOR


@pytest.fixture(autouse=True)
def of_this_machine(vector_bytes: int) -> None:
    """Tiles have the shapes of this machine's registers."""
    if vector_bytes != link.vector_bytes():
        pytest.skip("of other registers than this machine's")


RNG = np.random.default_rng(7)
SIZES = [  # m, n, k
    (32, 32, 32),
    (8, 16, 4),  # one tile
    (13, 1, 5),  # a column; tiles that overlap
    (3, 7, 64),  # fewer rows than a tile
    (21, 130, 9),  # whole strips and a short one
    (6, 256, 5),  # strips that are all alike
    (300, 100, 33),
]


def run(image: bytes, name: str, *arrays: np.ndarray) -> None:
    pointers = (ctypes.c_void_p * len(arrays))(*[x.ctypes.data for x in arrays])
    library = link.load([image])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address(name))
    function(ctypes.addressof(pointers))


def operands(dtype: type, shape: tuple[int, int], turned: bool) -> np.ndarray:
    """A matrix inside a larger one; its columns or its rows next to each other."""
    rows, columns = shape[::-1] if turned else shape
    whole = RNG.standard_normal((rows, columns + 3)).astype(dtype)
    part = whole[:, 1 : 1 + columns]
    return part.T if turned else part


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("turned", ["", "a", "b"])
def test_both_generators_agree(size: tuple[int, int, int], dtype: type, turned: str) -> None:
    m, n, k = size
    a, b = operands(dtype, (m, k), turned == "a"), operands(dtype, (k, n), turned == "b")
    element = "float" if dtype is np.float32 else "double"
    line = (n + 5) * a.itemsize
    spec = small.Spec(element, m, n, k, a.strides, b.strides, line)
    function, module = small.function(spec), Module(link.features())
    function.write(module)
    assert any(f.whole is not None for f in module.functions)
    image = generated(module)
    assert image is not None
    left = []
    for made in (image, link._compile(module.text(), verify=True)):
        c = np.full((m + 2, n + 5), 77, dtype)
        run(made, function.name, a, b, c[1:, :])
        left.append(c)
    np.testing.assert_array_equal(*left)
    np.testing.assert_allclose(left[0][1 : m + 1, :n], a @ b, rtol=1e-4, atol=1e-4)
    left[0][1 : m + 1, :n] = 77
    assert (left[0] == 77).all()


def test_what_is_not_a_number_stays_in_its_row_and_column() -> None:
    a, b = np.ones((9, 6), np.float32), np.ones((6, 20), np.float32)
    a[4, 3], b[2, 7] = np.nan, np.inf
    c = np.zeros((9, 20), np.float32)
    spec = small.Spec("float", 9, 20, 6, (24, 4), (80, 4), 80)
    function, module = small.function(spec), Module(link.features())
    function.write(module)
    image = generated(module)
    assert image is not None
    run(image, function.name, a, b, c)
    np.testing.assert_array_equal(c, a @ b)


def test_loops_around_share_one_product() -> None:
    loops = ((3, 96, 480, 240), (2, 48, 0, 120))
    spec = small.Spec("float", 2, 15, 6, (24, 4), (80, 4), 60, loops)
    function, module = small.function(spec), Module(link.features())
    function.write(module)
    small.function(small.Spec("float", 2, 15, 6, (24, 4), (80, 4), 60)).write(module)
    assert sum(f.whole is not None for f in module.functions) == 1
    image = generated(module)
    assert image is not None
    a = RNG.standard_normal((3, 2, 2, 6), np.float32)
    b = RNG.standard_normal((3, 6, 20), np.float32)
    c = np.zeros((3, 2, 2, 15), np.float32)
    run(image, function.name, a, b, c)
    np.testing.assert_allclose(c, np.einsum("ijmk,ikn->ijmn", a, b[:, :, :15]), atol=1e-5)


@pytest.mark.parametrize("columns", [1, 16, 23, 32, 40, 48, 64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("copied", [False, True], ids=["in place", "copied"])
def test_strips_of_both_generators_agree(columns: int, dtype: type, copied: bool) -> None:
    element = "float" if dtype is np.float32 else "double"
    columns = min(columns, gemm_tiles.tile_vectors() * lanes_of(element))
    module = gemm_tiles._module(f"once_{columns}_{element}")
    image = generated(module)
    assert image is not None
    height = gemm_tiles.tile_rows(-(-columns // lanes_of(element)))
    images = image, link._compile(module.text(), verify=True)
    # The last two go through the depth in parts.
    sizes = (height, 0), (height, 1), (2 * height + 3, 37), (5 * height, 144), (6 * height + 1, 307)
    for rows, depth in sizes:
        a = operands(dtype, (rows, depth + 1), rows > height)
        b = operands(dtype, (308, columns), False)
        left = []
        for made in images:
            c, scratch = np.full((rows + 1, columns + 3), 5, dtype), np.empty((309, 64), dtype)
            table = np.zeros(len(gemm_tiles.FIELDS), np.int64)
            for name, value in zip(("ars", "acs", "crs"), (*a.strides, c.strides[0]), strict=True):
                table[gemm_tiles.FIELDS.index(name)] = value
            library = link.load([made])
            tile = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 5)
            scratch_at = scratch.ctypes.data if copied else 0
            tile(library.address("entry"))(
                table.ctypes.data, a.ctypes.data, b.ctypes.data, c.ctypes.data, depth, rows,
                b.strides[0], 0, scratch_at,
            )  # fmt: skip
            left.append(c)
        np.testing.assert_array_equal(*left)
        expected = a[:, :depth] @ b[:depth]
        np.testing.assert_allclose(left[0][:rows, :columns], expected, rtol=1e-4, atol=1e-4)
        assert (left[0][rows:] == 5).all() and (left[0][:, columns:] == 5).all()


@pytest.mark.parametrize("columns", [1, 16, 23, 32, 48, 61, 64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("copied", [False, True], ids=["in place", "copied"])
def test_strips_of_segments_of_both_generators_agree(
    columns: int, dtype: type, copied: bool
) -> None:
    element = "float" if dtype is np.float32 else "double"
    columns = min(columns, gemm_tiles.tile_vectors() * lanes_of(element) - (columns == 61))
    module = gemm_tiles._module(f"general_{columns}_{element}")
    image = generated(module)
    assert image is not None
    libraries = [link.load([made]) for made in (image, link._compile(module.text(), verify=True))]
    height = gemm_tiles.tile_rows(-(-columns // lanes_of(element)))
    sizes = [(rows, 5, 3) for rows in range(2 * height + 2)]
    for rows, depth, segments in (*sizes, (height + 1, 0, 2), (3, 37, 1), (height, 1, 4)):
        a = operands(dtype, (rows + 1, 3 * (depth + 40)), rows > height)
        b = operands(dtype, (depth * segments + 1, columns), False)
        step = (depth + 7) * a.strides[1]
        for old in (0, 1):
            left = []
            for library in libraries:
                c = np.arange((rows + 1) * (columns + 3)).reshape(rows + 1, -1).astype(dtype)
                scratch = np.empty((depth * segments + 1, 64), dtype)
                table = np.zeros(len(gemm_tiles.FIELDS), np.int64)
                facts = {"ars": a.strides[0], "acs": a.strides[1], "crs": c.strides[0],
                         "segments": segments, "segment_step": step}  # fmt: skip
                for name, value in facts.items():
                    table[gemm_tiles.FIELDS.index(name)] = value
                tile = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 5)
                before = c.copy()
                tile(library.address("entry"))(
                    table.ctypes.data, a.ctypes.data, b.ctypes.data, c.ctypes.data, depth, rows,
                    b.strides[0], old, scratch.ctypes.data if copied else 0,
                )  # fmt: skip
                left.append(c)
            np.testing.assert_array_equal(*left)
            expected = old * before
            for s in range(segments):
                part = a[:rows, s * (depth + 7) :][:, :depth]
                expected[:rows, :columns] += part @ b[s * depth : (s + 1) * depth]
            inside = left[0][:rows, :columns]
            np.testing.assert_allclose(inside, expected[:rows, :columns], rtol=1e-4, atol=1e-4)
            assert (left[0][rows:] == before[rows:]).all()
            assert (left[0][:, columns:] == before[:, columns:]).all()


@pytest.mark.parametrize("columns", [1, 7, 16, 23, 64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
def test_packers_of_both_generators_agree(columns: int, dtype: type) -> None:
    element = "float" if dtype is np.float32 else "double"
    lanes = lanes_of(element)
    columns = min(columns, 4 * lanes)
    width = -(-columns // lanes) * lanes
    module = gemm._packer_module(f"columns_{element}")
    image = generated(module)
    assert image is not None and module.functions[0].whole is not None
    images = image, link._compile(module.text(), verify=True)
    for depth in (0, 1, 7, 8, 37):
        b = operands(dtype, (depth, columns), True)
        table = np.zeros(len(gemm_tiles.FIELDS), np.int64)
        table[gemm_tiles.FIELDS.index("bcs")] = b.strides[1]
        left = []
        for made in images:
            space = np.full((depth + 9) * width + 16, 5, dtype)
            first = -space.ctypes.data % 64 // space.itemsize  # scratch is aligned
            to = space[first : first + (depth + 9) * width].reshape(depth + 9, width)
            packer = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3)
            library = link.load([made])
            packer(library.address("entry"))(
                table.ctypes.data, b.ctypes.data, to[1:].ctypes.data, depth, columns, to.strides[0]
            )
            left.append(to)
        np.testing.assert_array_equal(*left)
        np.testing.assert_array_equal(left[0][1 : depth + 1, :columns], b)
        end = 1 + -(-depth // min(lanes, 8)) * min(lanes, 8)
        assert (left[0][depth + 1 : end] == 0).all()
        assert (left[0][0] == 5).all() and (left[0][end:] == 5).all()
