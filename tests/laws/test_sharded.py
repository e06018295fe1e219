"""A law over the whole registry: what is cut over devices has the values of what is whole.

The arguments of each sample are laid out at random over a mesh of 2 x 3 devices; the program of one
device runs on all of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
import pytest
from cpu_devices import cpu_devices
from partitioned import cut, on_devices

import numjet as nj
from numjet.base import config
from numjet.core.primitive import REGISTRY

with config.enable_x64(True):
    from laws.samples import SAMPLES, Sample

SIZES = {"x": 2, "y": 3}
# Calls of Python, which may be made once a device; other numbers each time.
NOT_CUT = {"pure_callback", "io_callback", "debug_callback", "rng_uniform", "ffi_call"}
CUT = [
    s for s in SAMPLES
    if s.primitive not in NOT_CUT and not REGISTRY[s.primitive].collective
]  # fmt: skip


@pytest.fixture(autouse=True)
def six() -> Iterator[None]:
    with cpu_devices(6), config.enable_x64(True):
        yield


def layout(shape: tuple, rng: np.random.Generator) -> tuple:
    """A legal layout of an array of this shape, chosen at random."""
    found: list[tuple] = [()] * len(shape)
    for name in rng.permutation([*SIZES]):
        at = [
            i for i, n in enumerate(shape)
            if n % (SIZES[name] * np.prod([SIZES[a] for a in found[i]], dtype=int)) == 0 and n
        ]  # fmt: skip
        if at:
            i = int(rng.choice(at))
            found[i] = (*found[i], str(name))
    return tuple(found)


@pytest.mark.parametrize("sample", CUT, ids=[f"{i}-{s.id}" for i, s in enumerate(CUT)])
def test_cut_as_whole(sample: Sample) -> None:
    leaves, treedef = nj.tree.flatten(sample.args)
    rng = np.random.default_rng(zlib.crc32(sample.id.encode()))
    for _ in range(2):
        ins = [layout(np.shape(x), rng) for x in leaves]

        def flat(*xs):
            return nj.tree.leaves(sample.fun(*treedef.unflatten(xs)))

        got = on_devices(cut(flat, tuple(leaves), ins, None, SIZES), tuple(leaves))
        for a, b in zip(got, flat(*leaves), strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype, ins
            if nj.dtypes.issubdtype(a.dtype, nj.dtypes.prng_key):
                a, b = nj.random.key_data(a), nj.random.key_data(b)
            np.testing.assert_allclose(
                np.asarray(a), np.asarray(b), rtol=1e-6, atol=1e-8, err_msg=str(ins)
            )
