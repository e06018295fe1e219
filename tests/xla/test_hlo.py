"""StableHLO text without a plugin: golden modules, and that every primitive has a form or a reason.

NUMJET_UPDATE_GOLDEN=1 writes the files of tests/golden/hlo anew.
"""
from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.core.primitive import REGISTRY
from numjet.xla import hlo

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "hlo"
# What the CPU alone has; each says why.
UNSUPPORTED = {
    "psum_start", "psum_done",  # of programs over processes alone
    # Gone before a program is compiled: the map that owns the axis interprets them.
    "all_gather", "all_to_all", "axis_index", "pmax", "pmin", "ppermute", "psum", "pvary",
    "reduce_scatter",
}
F = np.float32


def exact(fun, precision):
    """`fun` with a default precision around it."""
    def within(*args):
        with nj.default_matmul_precision(precision):
            return fun(*args)

    return within


PROGRAMS = {
    "elementwise": (lambda x, y: jnp.where(x > y, jnp.sin(x) * 2 + y, -jnp.exp(y)),
                    [np.zeros((2, 3), F), np.zeros((2, 3), F)]),
    "softmax": (lambda x: nj.nn.softmax(x), [np.zeros((4, 5), F)]),
    "gather_fill": (lambda x, i: x.at[i].get(mode="fill"), [np.zeros((5, 2), F), np.arange(3)]),
    "scatter_add": (lambda x, i: x.at[i].add(1.0), [np.zeros(5, F), np.arange(3)]),
    "product_gradient": (nj.grad(lambda w, x: jnp.tanh(x @ w).sum()),
                         [np.zeros((3, 2), F), np.zeros((4, 3), F)]),
    "product_precision": (exact(lambda x: (x @ x, nj.lax.conv(x[None, None], x[None, None], (1, 1),
                                                              "SAME"),
                                           jnp.dot(x, x, precision="high")), "float32"),
                          [np.zeros((2, 2), F)]),
    "scan": (lambda c, xs: nj.lax.scan(lambda c, x: (c + x, c * x), c, xs),
             [np.zeros(2, F), np.zeros((3, 2), F)]),
    "while": (lambda x: nj.lax.while_loop(lambda v: v.sum() < 10, lambda v: v * 2 + 1, x),
              [np.zeros(2, F)]),
    "cond": (lambda i, x: nj.lax.switch(i, [jnp.sin, jnp.cos], x), [np.int32(0), np.zeros(2, F)]),
    "sort": (lambda x, y: nj.lax.sort((x, y), num_keys=1), [np.zeros(4, F), np.zeros(4, np.int32)]),
    "bits": (lambda k: nj.random.bits(nj.random.wrap_key_data(k), (3,)), [np.zeros(2, np.uint32)]),
}  # fmt: skip


def device_text(fun: Any, *args: Any) -> str:
    """The module that devices are given."""
    traced = fun.trace(*args)
    return hlo.module_text(traced.program, traced.fun_name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_golden(name: str) -> None:
    fun, args = PROGRAMS[name]
    with nj.default_matmul_precision("default"):
        text = device_text(nj.jit(fun), *args)
    text = text.replace("module @_lambda_ {", "module {")
    path = GOLDEN / f"{name}.mlir"
    if os.environ.get("NUMJET_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def test_a_default_precision_reaches_each_way_of_a_product() -> None:
    x = np.ones((2, 2), F)
    ways = [lambda x: x @ x, lambda x: jnp.matmul(x, x), lambda x: jnp.einsum("ij,jk->ik", x, x),
            lambda x: nj.vmap(jnp.dot)(x, x), nj.grad(lambda x: (x @ x).sum()),
            lambda x: nj.lax.ragged_dot(x, x[None], np.array([2]))]
    names = "DEFAULT", "HIGH", "HIGHEST"
    for k, way in enumerate(ways):
        fun = nj.jit(way)
        counts = {}
        for precision in (None, "highest", "F32_F32_F32", "tensorfloat32", None):
            with nj.default_matmul_precision(precision):
                text = device_text(fun, x)
            counts[precision] = [text.count(f"precision {n}>") for n in names]
        n = sum(counts[None])
        assert n and counts == {None: [n, 0, 0], "highest": [0, 0, n], "F32_F32_F32": [0, 0, n],
                                "tensorfloat32": [0, n, 0]}, k
    with pytest.raises(ValueError, match="new enum value"), nj.default_matmul_precision("more"):
        pass


def test_factorizations_take_exact_products() -> None:
    text = device_text(nj.jit(jnp.linalg.svd), np.ones((3, 3), F))
    assert "precision HIGHEST>" in text and "precision DEFAULT>" not in text


def test_a_function_has_constants_of_its_own() -> None:
    inner = nj.jit(lambda x: x * 3.5)
    text = nj.jit(lambda x: inner(x * 3.5)).lower(np.ones(2, F)).as_text("stablehlo")
    functions = text.split("func.func ")[1:]
    assert [f.count("stablehlo.constant") for f in functions] == [1, 1]


def test_every_primitive_has_a_form_or_a_reason() -> None:
    without = {name: hlo.unsupported(p) for name, p in REGISTRY.items() if hlo.unsupported(p)}
    assert set(without) <= UNSUPPORTED, set(without) - UNSUPPORTED
    assert all(reason.endswith(".") for reason in without.values())


def test_what_has_no_form_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(next(c for c in hlo.Emitter.__mro__ if "fft" in vars(c)), "fft")
    with pytest.raises(NotImplementedError, match="fft cannot run on a device of XLA: no r.*CPU"):
        nj.jit(nj.numpy.fft.fft).lower(np.zeros(4, F)).as_text("stablehlo")


def test_keys_of_other_generators_are_their_words() -> None:
    f = nj.jit(lambda key: nj.random.split(key, 3)[1:])
    text = device_text(f, nj.random.key(0, impl="rbg"))
    assert "@main(%0: tensor<4xui32>) -> (tensor<2x4xui32>)" in text


def test_programs_that_are_compiled_without_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
    programs = importlib.import_module("xla_compile").programs
    texts = {name: text() for kind, name, _, text in programs("tpu") if kind != "operations"}
    assert list(texts) == ["transformer", "its gradient", "gradient over data and model",
                           "psum in shard_map"]
    assert all("func.func public @main" in text for text in texts.values())
    assert "sdy.sharding" in texts["gradient over data and model"]
