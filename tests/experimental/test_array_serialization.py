"""Arrays and pytrees on disk by way of TensorStore; what needs no TensorStore comes first."""

from __future__ import annotations

import asyncio
import base64
import collections
import importlib.util
import json
import os

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import export, tree_util
from numjet.experimental.array_serialization import (
    pytree_serialization as trees,
    pytree_serialization_utils as utils,
    serialization,
    tensorstore_impl,
    tree_bytes,
)

HAS_STORE = importlib.util.find_spec("tensorstore") is not None
needs_store = pytest.mark.skipif(not HAS_STORE, reason="tensorstore is not installed")
Pair = collections.namedtuple("Pair", "left right")
export.register_namedtuple_serialization(Pair, serialized_name="tests.SavedPair")


@tree_util.register_pytree_node_class
class Scaled:
    def __init__(self, value, unit):
        self.value, self.unit = value, unit

    def tree_flatten(self):
        return (self.value,), self.unit

    @classmethod
    def tree_unflatten(cls, unit, children):
        return cls(*children, unit)


export.register_pytree_node_serialization(
    Scaled, serialized_name="tests.Scaled", serialize_auxdata=str.encode,
    deserialize_auxdata=lambda data: bytes(data).decode(),
)  # fmt: skip


@pytest.mark.parametrize("data", [
    1, None, (), [], {}, (1,), [1, [2, (3, None)]], {"b": 1, "a": {"é": (2,)}}, Pair(1, [2]),
    {"q": Scaled(1, "m"), "p": [Scaled((2, 3), "")]}, [{str(i): i for i in range(40)}] * 3,
])  # fmt: skip
def test_structures_are_written_and_read(data):
    structure = nj.tree.structure(data)
    assert tree_bytes.read(tree_bytes.written(structure)) == structure
    told = json.loads(json.dumps(utils.serialize_pytreedef(structure)))
    assert utils.deserialize_pytreedef(told) == structure


def test_structures_of_files_that_jax_wrote():
    # [None, (leaf, {"a": (leaf,), "q": leaf})]
    text = (
        "BAAAAIj///8IAAAAAAAAAwIAAACcAAAABAAAAKD///8IAAAAAAAAAgIAAAB4AAAAEAAAAAAACgAQAA8ACAAEAAoA"
        "AAAMAAAAJAAAAAAAAAQCAAAAEAAAAAQAAAABAAAAcQAAAAEAAABhAAAAAgAAABQAAAAEAAAA4P///wgADAALAAQA"
        "CAAAAAgAAAAAAAACAQAAAAgAAAAEAAQABAAAAAQABgAEAAAAAAAGAAgABwAGAAAAAAAAAQ=="
    )
    want = nj.tree.structure([None, (0, {"a": (0,), "q": 0})])
    assert tree_bytes.read(base64.b64decode(text)) == want
    # A named tuple, which is called "my.NT" and has the fields p and q.
    text = (
        "FAAAAAAADgAUABMADAAAAAgABAAOAAAAEAAAABwAAAAkAAAAAAAABQoAAABbInAiLCAicSJdAAAFAAAAbXkuTlQA"
        "AAACAAAAEAAAAAQAAAD8////BAAEAAQAAAA="
    )
    named = collections.namedtuple("named", "p q")
    export.register_namedtuple_serialization(named, serialized_name="my.NT")
    assert tree_bytes.read(base64.b64decode(text)) == nj.tree.structure(named(0, 0))


def test_structures_that_cannot_be_written():
    with pytest.raises(TypeError, match="only for dictionaries with string keys. Found key 3"):
        tree_bytes.written(nj.tree.structure({3: 0}))
    other = collections.namedtuple("other", "p")
    with pytest.raises(ValueError, match="unregistered type"):
        tree_bytes.written(nj.tree.structure(other(0)))


def test_specifications():
    spec = tensorstore_impl.get_tensorstore_spec
    assert spec("/run/step/w") == {
        "driver": "zarr3",
        "kvstore": {
            "driver": "ocdbt", "base": {"driver": "file", "path": "/run/step"}, "path": "w",
        },
    }  # fmt: skip
    assert spec("gs://box/a/w", ocdbt=False)["kvstore"] == {
        "driver": "gcs", "bucket": "box", "path": "a/w",
    }  # fmt: skip
    assert spec("s3://box/a/w")["kvstore"]["base"] == {
        "driver": "s3", "bucket": "box", "path": "a",
    }  # fmt: skip
    assert spec("/run/w", False, 3)["kvstore"]["path"] == "/run/process_3/w"
    made = spec("/run/w", arr=jnp.ones((6, 2), jnp.bfloat16))["metadata"]
    assert made == {
        "codecs": [], "shape": (6, 2), "data_type": "bfloat16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [6, 2]}},
    }  # fmt: skip
    made = spec("/run/w", arr=jnp.ones(4), driver="zarr")["metadata"]
    assert made == {"compressor": {"id": "zstd"}, "shape": (4,), "chunks": [4]}
    with pytest.raises(ValueError, match="should be absolute. Got run"):
        spec("run/w")
    with pytest.raises(ValueError, match="the bucket name, the directory name and the array name"):
        spec("gs://box/w")
    with pytest.raises(ValueError, match="Unsupported driver: n5"):
        spec("/run/w", arr=jnp.ones(2), driver="n5")
    plain = serialization.get_tensorstore_spec("run/w")
    assert plain == {"driver": "zarr", "kvstore": {"driver": "file", "path": "run/w"}}
    assert tensorstore_impl._chunk_shape((40, 6), 4, 100) == [4, 6]
    assert tensorstore_impl._chunk_shape((7, 30), 4, 40) == [1, 10]


def test_parts_of_specifications():
    impl = tensorstore_impl
    first = impl.get_tensorstore_spec("/run/a/w", arr=jnp.ones(3))
    merged = impl.merge_nested_ts_specs(first, {"driver": "zarr", "kvstore": {"path": "v"}})
    assert merged["driver"] == "zarr" and merged["kvstore"]["path"] == "v"
    assert merged["kvstore"]["driver"] == "ocdbt"
    assert impl.merge_nested_ts_specs(first, None) is first
    assert impl.is_tensorstore_spec_leaf(None) and impl.is_tensorstore_spec_leaf(first)
    assert not impl.is_tensorstore_spec_leaf({"weights": first})
    impl.verify_tensorstore_spec(first, jnp.ones(3), "/run/a", True)
    for arr, folder, match in ((jnp.ones(4), "/run/a", "shape"),
                               (jnp.ones(3, jnp.int8), "/run/a", "dtype"),
                               (jnp.ones(3), "/run/b", "not in")):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            impl.verify_tensorstore_spec(first, arr, folder, True)
    with pytest.raises(ValueError, match="ocdbt"):
        impl.verify_tensorstore_spec(impl.get_tensorstore_spec("/run/w", False), None, "/run", True)
    remote = serialization.is_remote_storage
    assert remote("s3://a") and remote({"base": {"kvstore": {"driver": "gcs"}}})
    assert not remote(first) and not remote("/run")


def test_bytes_under_way_are_bounded():
    async def use():
        limit, order = serialization._LimitInFlightBytes(10), []

        async def take(name, size):
            await limit.wait_for_bytes(size)
            order.append(name)
            await asyncio.sleep(0)
            order.append(name)
            await limit.release_bytes(size)

        await asyncio.gather(take("a", 8), take("b", 50), take("c", 1))
        return order

    order = asyncio.run(use())
    assert sorted(order) == ["a", "a", "b", "b", "c", "c"]
    assert order.index("b") + 1 == len(order) - order[::-1].index("b") - 1  # alone


@pytest.mark.skipif(HAS_STORE, reason="tensorstore is installed")
def test_what_needs_tensorstore_says_so(tmp_path):
    x = jnp.ones(2)
    spec = serialization.get_tensorstore_spec(tmp_path / "x")
    for use in (
        lambda: serialization.run_serialization([x], [spec]),
        lambda: serialization.GlobalAsyncCheckpointManager().serialize([x], [spec]),
        lambda: serialization.run_deserialization([x.sharding], [spec]),
        lambda: trees.save({"a": x}, tmp_path / "tree"),
        lambda: serialization.TS_CONTEXT,
    ):
        with pytest.raises(ImportError, match="pip install tensorstore"):
            use()


def test_leaves_that_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="all leaves must be either None or jax.Array-like"):
        trees.save({"a": "text"}, tmp_path)
    with pytest.raises(TypeError, match="key_data"):
        trees.save([nj.random.key(0)], tmp_path)
    with pytest.raises(AssertionError, match="does not exist"):
        trees.load(tmp_path / "none", jnp.ones(2).sharding)


# ------------------------------------------------------------------ with tensorstore
def _place():
    return nj.sharding.SingleDeviceSharding(nj.devices()[0])


@needs_store
def test_a_manager_writes_and_reads(tmp_path):
    manager, done = serialization.GlobalAsyncCheckpointManager(), []
    arrays = [jnp.arange(12.0).reshape(3, 4), jnp.ones(3, jnp.bfloat16), jnp.array(True),
              jnp.array([3, -2], jnp.int4), jnp.zeros((0, 2))]
    paths = [str(tmp_path / str(i)) for i in range(len(arrays))]
    manager.serialize_with_paths(arrays, paths, on_commit_callback=lambda: done.append(1))
    manager.wait_until_finished()
    manager.check_for_errors()
    assert done == [1] and os.path.exists(tmp_path / "0" / ".zarray")
    for x, y in zip(arrays, manager.deserialize_with_paths([_place()] * 5, paths), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    (grown,) = manager.deserialize_with_paths([_place()], paths[:1], [(4, 2)], [jnp.int32])
    assert grown.tolist() == [[0, 1], [4, 5], [8, 9], [0, 0]] and grown.dtype == np.int32


@needs_store
def test_errors_are_raised_once_where_somebody_waits(tmp_path):
    manager = serialization.GlobalAsyncCheckpointManager()

    def fail():
        raise KeyError("the callback")

    spec = [serialization.get_tensorstore_spec(tmp_path / "x")]
    manager.serialize([jnp.ones(2)], spec, on_commit_callback=fail)
    with pytest.raises(KeyError, match="the callback"):
        manager.wait_until_finished()
    manager.wait_until_finished()
    with pytest.raises(ValueError, match="NOT_FOUND"):
        serialization.run_deserialization(
            [_place()], [serialization.get_tensorstore_spec(tmp_path / "y")]
        )
    with pytest.raises(TypeError, match="sharding passed to deserialization"):
        serialization.run_deserialization([None], spec)


@needs_store
def test_one_array_within_a_loop_of_events(tmp_path):
    spec = tensorstore_impl.get_tensorstore_spec(str(tmp_path / "a" / "x"))
    cast = {"driver": "cast", "dtype": "bfloat16",
            "base": {**serialization.get_tensorstore_spec(tmp_path / "cast"), "dtype": "float32"}}

    async def both():
        futures = []
        await serialization.async_serialize(np.arange(3), spec, commit_future=futures)
        await asyncio.gather(*futures)
        await serialization.async_serialize(jnp.ones(2, jnp.bfloat16), cast)
        like = nj.ShapeDtypeStruct((3,), jnp.float32, sharding=_place())
        found = await serialization.async_deserialize(like, spec)
        # Where a loop runs already, too.
        return found, serialization.run_deserialization([_place()], [cast["base"]])[0]

    x, y = asyncio.run(both())
    assert x.dtype == np.float32 and x.tolist() == [0, 1, 2]
    assert y.dtype == np.float32 and y.tolist() == [1, 1]


@needs_store
def test_trees_are_saved_and_loaded(tmp_path):
    data = {"a": jnp.arange(4), "b": [None, Pair(jnp.float32(2), Scaled(jnp.ones((2, 1)), "m"))]}
    folder = tmp_path / "tree"
    trees.save(data, folder)
    assert sorted(os.listdir(folder)) == ["array_store", "pytreedef.json"]
    stubs = trees.load_pytreedef(folder)
    assert stubs["a"].shape == (4,) and stubs["b"][1].left.dtype == np.float32
    back = trees.load(folder, _place())
    assert nj.tree.structure(back) == nj.tree.structure(data)
    assert nj.tree.all(nj.tree.map(lambda x, y: bool((x == y).all()), back, data))
    assert back["b"][1].right.unit == "m"
    part = trees.load(folder, {"a": _place(), "b": _place()}, mask={"a": True, "b": False})
    assert part["a"].tolist() == [0, 1, 2, 3] and part["b"][1].left is None
    like = nj.ShapeDtypeStruct((1,), jnp.float16, sharding=_place())
    assert trees.load(folder, like)["a"].dtype == np.float16
    with pytest.raises(ValueError, match="overwrite=False"):
        trees.save(data, folder, overwrite=False)
    with pytest.raises(ValueError, match="no prefix"):
        trees.load(folder, [_place()])
    trees.save([jnp.ones(1)], folder)
    assert trees.load(folder, _place())[0].tolist() == [1]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes").write_text("keep")
    with pytest.raises(RuntimeError, match="no saved pytree"):
        trees.save(data, tmp_path / "other")


@needs_store
def test_futures_of_trees(tmp_path):
    saved = trees.nonblocking_save({"a": jnp.ones(3)}, tmp_path / "t")
    assert saved.pytree["a"].shape == (3,)
    loaded = trees.nonblocking_load(tmp_path / "t", _place())
    assert loaded.pytree["a"].dtype == np.float32 and saved.done() and saved.result() is None

    async def wait():
        return await loaded

    assert asyncio.run(wait())["a"].tolist() == [1, 1, 1]
    assert loaded.exception() is None


@needs_store
def test_specifications_for_single_leaves(tmp_path):
    data = {"a": jnp.arange(8.0), "b": [jnp.ones(2)]}
    spec = {"driver": "zarr", "metadata": {"compressor": None, "shape": (8,), "chunks": [4]}}
    trees.save(data, tmp_path / "t", ts_specs={"a": spec, "b": None})
    back = trees.load(tmp_path / "t", _place(), ts_specs={"a": {"driver": "zarr"}, "b": None})
    assert back["a"].tolist() == list(range(8))
