"""Compiled functions as bytes, read by another process; exported ones there, too."""

import marshal
import os
import subprocess
import sys

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import export
from numjet.experimental import serialize_executable as stored

X, Y = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8), np.eye(8, dtype=np.float32) / 2


def function(x, y, *, k):
    z = nj.lax.fori_loop(0, 4, lambda i, v: jnp.tanh(v @ y), x)
    drawn = nj.random.normal(nj.random.key(3), (3,))
    return {"a": z + k["b"], "s": jnp.linalg.svd(z)[1], "c": drawn}


OTHER = """
import sys
import numpy as np
import numjet as nj
from numjet import export
from numjet.experimental import serialize_executable as stored
folder = sys.argv[1]
read = lambda name: open(f"{folder}/{name}", "rb").read()
exported = export.deserialize(read("exported"))        # before anything loads `random`
x, y = np.load(f"{folder}/x.npy"), np.load(f"{folder}/y.npy")
structure = nj.tree.structure
call = stored.deserialize_and_load(read("program"), structure(((0, 0), {"k": {"b": 0}})),
                                   structure({"a": 0, "s": 0, "c": 0}))
given = nj.numpy.array(x)
out = call(given, y, k={"b": x})
assert given.is_deleted()
drawn = exported.call(nj.random.key(5))
np.savez(f"{folder}/out.npz", drawn=drawn, **out)
"""


def test_another_process(tmp_path):
    compiled = nj.jit(function, donate_argnums=0).lower(X, Y, k={"b": X}).compile()
    data, in_tree, out_tree = stored.serialize(compiled)
    assert in_tree == nj.tree.structure(((0, 0), {"k": {"b": 0}}))
    assert out_tree == nj.tree.structure({"a": 0, "s": 0, "c": 0})
    draw = nj.jit(lambda key: nj.random.gamma(key, 2.0, (4,)))
    (tmp_path / "program").write_bytes(data)
    (tmp_path / "exported").write_bytes(export.export(draw)(nj.random.key(5)).serialize())
    np.save(tmp_path / "x", X)
    np.save(tmp_path / "y", Y)
    done = subprocess.run(
        [sys.executable, "-c", OTHER, str(tmp_path)], capture_output=True, text=True,
        env={**os.environ, "NUMJET_CACHE_DIR": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "out.npz") as found:
        for name, value in compiled(jnp.array(X), Y, k={"b": X}).items():
            np.testing.assert_array_equal(found[name], value)
        np.testing.assert_array_equal(found["drawn"], draw(nj.random.key(5)))
    # The machine code lies in the bytes: the cache there has it, under the key of this process.
    key = marshal.loads(data[len(stored._MAGIC):])[3]
    assert (tmp_path / "cache" / key[:2]).is_dir()


def test_what_is_refused():
    compiled = nj.jit(lambda x: x + 1).lower(X).compile()
    data, in_tree, out_tree = stored.serialize(compiled)
    with pytest.raises(TypeError, match=r"jit\(f\)\.lower"):
        stored.serialize(nj.jit(lambda x: x))
    with pytest.raises(ValueError, match="not what serialize wrote"):
        stored.deserialize_and_load(b"abc", in_tree, out_tree)
    with pytest.raises(ValueError, match="cannot be read"):
        stored.deserialize_and_load(data[:-40], in_tree, out_tree)
    with pytest.raises(ValueError, match="1 arguments and 1 results, the structures 1 and 2"):
        stored.deserialize_and_load(data, in_tree, nj.tree.structure([0, 0]))
    with pytest.raises(NotImplementedError, match="loaded for the CPU"):
        stored.deserialize_and_load(data, in_tree, out_tree, backend="gpu")
    back = nj.jit(lambda x: nj.pure_callback(np.sin, x, x)).lower(X).compile()
    with pytest.raises(ValueError, match="callbacks"):
        stored.serialize(back)
