"""One array in TensorStore: where it lies and how; each process writes and reads its parts.

Specifications are TensorStore's (https://google.github.io/tensorstore/spec.html): the driver
(zarr3, zarr), the store of keys (a folder's files, or an OCDBT database in it), and the metadata.
Arrays that are cut over devices are written as chunks of the parts' shape. What would break it: a
process that writes what another one writes; each writes the parts whose first copy it has.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.api.placement.assemble import make_array_from_callback
from numjet.api.placement.devices import process_index
from numjet.api.placement.layout import Format
from numjet.api.placement.placements import Sharding
from numjet.core import dtypes
from numjet.core.array import Array

_DRIVER = "zarr3"
# Files are at most about this large: some stores take no larger ones, and chunks are read whole.
_FILE_SIZE_TARGET = 2 * 2**30
_CACHE_BYTES, _AT_ONCE = 10**10, 128
_CONTEXT: list[Any] = []


def __getattr__(name: str) -> Any:
    if name == "_TS_CONTEXT":
        return _context(None)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def tensorstore() -> Any:
    """The package tensorstore. Raises ImportError where it is not installed."""
    try:
        import tensorstore as ts
    except ImportError as error:
        raise ImportError(
            "array_serialization writes and reads arrays with the package tensorstore, which is "
            "not installed: pip install tensorstore. numjet.checkpoints needs no other package."
        ) from error
    return ts


def _context(given: Any) -> Any:
    """What TensorStore's operations share: memory for chunks, threads."""
    if given is None and not _CONTEXT:
        ts = tensorstore()
        limits = {"file_io_concurrency": {"limit": _AT_ONCE},
                  "data_copy_concurrency": {"limit": _AT_ONCE},
                  "cache_pool": {"total_bytes_limit": _CACHE_BYTES}}  # fmt: skip
        _CONTEXT.append(ts.Context(limits))
    return given if given is not None else _CONTEXT[0]


# ------------------------------------------------------------------ specifications
def _divisors(extent: int) -> list[int]:
    """The numbers that divide an extent, the smallest first."""
    low = [n for n in range(1, math.isqrt(extent) + 1) if extent % n == 0]
    return sorted({*low, *[extent // n for n in low]})


def _chunk_shape(shape: Sequence[int], itemsize: int, target: int = _FILE_SIZE_TARGET) -> list[int]:
    """The shape of chunks of a part: it divides the part's, and a chunk has about `target` bytes at
    most."""
    chunk, axis = list(shape), 0
    while axis < len(chunk) and math.prod(chunk) * itemsize > 1.1 * target:
        need = math.prod(chunk) * itemsize / target
        chunk[axis] //= next((n for n in _divisors(chunk[axis]) if n >= need), chunk[axis])
        axis += 1
    return [max(extent, 1) for extent in chunk]


def _metadata(arr: Any, driver: str) -> dict[str, Any]:
    shape = tuple(arr.shape)
    sharding = getattr(arr, "sharding", None)
    part = shape if sharding is None else sharding.shard_shape(shape)
    dtype = np.dtype(arr.dtype)
    chunk = _chunk_shape(part, dtype.itemsize)
    if driver == "zarr3":
        grid = {"name": "regular", "configuration": {"chunk_shape": chunk}}
        return {"codecs": [], "shape": shape, "data_type": dtype.name, "chunk_grid": grid}
    if driver == "zarr":
        return {"compressor": {"id": "zstd"}, "shape": shape, "chunks": chunk}
    raise ValueError(f"Unsupported driver: {driver}. Arrays are written as zarr3 or zarr.")


_REMOTE = re.compile(r"(gs|s3)://([^/]+)(?:/(.*))?$")


def is_remote_path(path: str) -> bool:
    """Whether a path is a bucket's in the cloud."""
    return _REMOTE.match(path) is not None


def _store(path: str) -> dict[str, Any]:
    """The store of keys that a path means."""
    found = _REMOTE.match(path)
    if found is None:
        return {"driver": "file", "path": path}
    driver = "gcs" if found[1] == "gs" else "s3"
    return {"driver": driver, "bucket": found[2], "path": found[3] or ""}


def get_tensorstore_spec(
    ckpt_path: str | os.PathLike,
    ocdbt: bool = True,
    process_idx: int | None = None,
    arr: Any = None,
    driver: str = _DRIVER,
) -> dict[str, Any]:
    """TensorStore's specification of an array at a path.

    ckpt_path: a folder and the array's name, or the same in a bucket (gs://, s3://). ocdbt: the
    folder is a database of few files; else the array has files of its own. process_idx: write into
    a folder of this process's in it. arr: the array, of whose shape, dtype and parts the metadata
    are made. driver: "zarr3" or "zarr". Raises ValueError for relative paths with ocdbt and for
    other drivers.

    >>> from numjet.experimental.array_serialization import tensorstore_impl
    >>> spec = tensorstore_impl.get_tensorstore_spec("/tmp/step_1/weights", ocdbt=False)
    >>> spec["kvstore"]
    {'driver': 'file', 'path': '/tmp/step_1/weights'}
    """
    path = os.fspath(ckpt_path)
    found = _REMOTE.match(path)
    path = os.path.normpath(path) if found is None else path.rstrip("/")
    folder, name = os.path.split(path)
    if found is not None and ocdbt and len((found[3] or "").strip("/").split("/")) < 2:
        raise ValueError(
            "Using OCDBT requires the bucket name, the directory name and the array name, your "
            f"path is: {path}"
        )
    if found is None and ocdbt and not os.path.isabs(folder):
        raise ValueError(f"Checkpoint path should be absolute. Got {folder}")
    if process_idx is not None:
        folder = f"{folder}/process_{process_idx}"
    if ocdbt:
        store = {"driver": "ocdbt", "base": _store(folder), "path": name}
    else:
        store = _store(f"{folder}/{name}" if folder else name)
    spec: dict[str, Any] = {"driver": driver, "kvstore": store}
    if arr is not None:
        spec["metadata"] = _metadata(arr, driver)
    return spec


def is_tensorstore_spec_leaf(leaf: Any) -> bool:
    """Whether this is a specification, or None, in a pytree of specifications.

    leaf: a part of such a tree.

    >>> from numjet.experimental.array_serialization import tensorstore_impl
    >>> tensorstore_impl.is_tensorstore_spec_leaf({"driver": "zarr3"})
    True
    """
    return leaf is None or isinstance(leaf, dict) and ("driver" in leaf or "kvstore" in leaf)


def merge_nested_ts_specs(dict1: dict, dict2: dict | None) -> dict:
    """One specification with what another one says in its place.

    dict1: a specification. dict2: what counts instead, the store of keys key by key; or None.

    >>> from numjet.experimental.array_serialization import tensorstore_impl
    >>> tensorstore_impl.merge_nested_ts_specs({"driver": "zarr3", "kvstore": {"path": "a"}},
    ...                                        {"driver": "zarr"})
    {'driver': 'zarr', 'kvstore': {'path': 'a'}}
    """
    if dict2 is None:
        return dict1
    stores = {**dict1.get("kvstore", {}), **dict2.get("kvstore", {})}
    return {**dict1, **dict2, "kvstore": stores}


def verify_tensorstore_spec(
    spec: dict[str, Any],
    arr: Any,
    path: str | os.PathLike,
    ocdbt: bool,
    check_metadata: bool = True,
) -> None:
    """Check that a specification means an array at a path. Raises ValueError where it does not.

    spec: the specification. arr: the array, or None. path: the folder that it has to be in. ocdbt:
    whether that is a database. check_metadata: compare the metadata with the array.

    >>> from numjet.experimental.array_serialization import tensorstore_impl as impl
    >>> impl.verify_tensorstore_spec(impl.get_tensorstore_spec("/tmp/a/b"), None, "/tmp/a", True)
    """
    store = spec.get("kvstore", {})
    if ocdbt and store.get("driver") != "ocdbt":
        raise ValueError(f"Expected the kvstore driver ocdbt, got {store.get('driver')!r}.")
    if check_metadata and arr is not None:
        told = spec.get("metadata", {})
        if "shape" in told and tuple(told["shape"]) != tuple(arr.shape):
            raise ValueError(f"The metadata's shape is {told['shape']}, the array's {arr.shape}.")
        name = told.get("data_type", spec.get("dtype"))
        if name is not None and np.dtype(dtypes.named(name)) != np.dtype(arr.dtype):
            raise ValueError(f"The metadata's dtype is {name}, the array's {arr.dtype}.")
    base = store.get("base", store)
    found = base.get("path") if isinstance(base, dict) else str(base)
    want = _store(os.fspath(path).rstrip("/"))["path"]
    if not (found or "").rstrip("/").startswith(want):
        raise ValueError(f"The specification's path is {found!r}, which is not in {want!r}.")


# ------------------------------------------------------------------ memory
class _LimitInFlightBytes:
    """Bounds the bytes that are read or written at once."""

    def __init__(self, host_memory_bytes_limit: int) -> None:
        self._most = self._free = host_memory_bytes_limit
        self._change = asyncio.Condition()

    async def wait_for_bytes(self, requested_bytes: int) -> None:
        """Wait until so many bytes are free, or all where there are less, and take them."""
        taken = min(requested_bytes, self._most)
        async with self._change:
            await self._change.wait_for(lambda: self._free >= taken)
            self._free -= taken

    async def release_bytes(self, requested_bytes: int) -> None:
        """Give so many bytes back."""
        async with self._change:
            self._free += min(requested_bytes, self._most)
            self._change.notify_all()


def estimate_read_memory_footprint(t: Any, domain: Any) -> int:
    """About how many bytes reading a domain of a TensorStore takes: its chunks are read whole.

    t: a TensorStore. domain: a domain of indices.
    """
    size = t.dtype.numpy_dtype.itemsize
    grid = t.chunk_layout.read_chunk_template
    if grid is None or grid.rank == 0:
        return int(size)
    origin = grid.origin
    total = 1
    for axis in range(domain.rank):
        extent = max(grid[axis].size, 1)
        first = (domain[axis].inclusive_min - origin[axis]) // extent
        last = -(-(domain[axis].exclusive_max - origin[axis]) // extent)
        total *= max(last - first, 0) * extent
    return int(total * size)


# ------------------------------------------------------------------ writing and reading
def _parts(arr: Any, replica_id: int) -> list[tuple[tuple, Any]]:
    """What of an array this process writes: places, and what lies there."""
    if not isinstance(arr, Array):
        return [((slice(None),) * arr.ndim, np.asarray(arr))] if process_index() == 0 else []
    return [
        (shard.index, np.asarray(shard.data))
        for shard in arr.addressable_shards  # type: ignore[attr-defined]
        if shard.replica_id == replica_id
    ]


def _with_metadata(spec: dict[str, Any], arr: Any) -> dict[str, Any]:
    """A specification with an array's metadata, also within those that rest on it ("cast")."""
    if "metadata" in spec:
        return spec
    if isinstance(spec.get("base"), dict):
        return {**spec, "base": _with_metadata(spec["base"], arr)}
    return {**spec, "metadata": _metadata(arr, spec.get("driver", _DRIVER))}


async def async_serialize(
    arr_inp: Any,
    tensorstore_spec: Any,
    commit_future: list | None = None,
    context: Any = None,
    chunk_layout: Any = None,
    primary_host: int | None = None,
    replica_id: int = 0,
    transaction: Any = None,
) -> Any:
    """Write an array, each process its parts.

    arr_inp: an array. tensorstore_spec: as of `get_tensorstore_spec`; metadata are made where there
    are none. commit_future: a list that gets the futures of what is on its way to the store; None:
    they are awaited. context, chunk_layout: TensorStore's. primary_host: only this process makes
    the metadata. replica_id: which copy of a part is written. transaction: TensorStore's.

    Raises ImportError without tensorstore, ValueError for what cannot be written.
    """
    ts = tensorstore()
    spec = tensorstore_spec
    if isinstance(spec, dict):
        spec = ts.Spec({"dtype": np.dtype(arr_inp.dtype).name, **_with_metadata(spec, arr_inp)})
    first = primary_host is None or process_index() == primary_host
    t = await ts.open(
        spec, create=first or None, open=True, assume_metadata=not first or None,
        context=_context(context), transaction=transaction,
        **({} if chunk_layout is None else {"chunk_layout": chunk_layout}),
    )  # fmt: skip

    async def write(index: tuple, data: Any) -> None:
        made = t[index].write(data, can_reference_source_data_indefinitely=True)
        await made.copy
        if commit_future is None:
            await made.commit
        else:
            commit_future.append(made.commit)

    return await asyncio.gather(*[write(*part) for part in _parts(arr_inp, replica_id)])


def _asked(in_type: Any) -> tuple[Any, Any, Any]:
    """The sharding, the shape and the dtype that reading is asked for."""
    shape = dtype = None
    sharding = in_type
    if hasattr(in_type, "shape") and hasattr(in_type, "dtype"):
        sharding, shape, dtype = in_type.sharding, in_type.shape, in_type.dtype
    if isinstance(sharding, Format):
        sharding = sharding.sharding
    if not isinstance(sharding, Sharding):
        raise TypeError(
            "sharding passed to deserialization should be specified, concrete and an instance of "
            f"`jax.sharding.Sharding`. Got {in_type}"
        )
    return sharding, shape, dtype


async def async_deserialize(
    in_type: Any,
    tensorstore_spec: Any,
    global_shape: Sequence[int] | None = None,
    dtype: Any = None,
    byte_limiter: _LimitInFlightBytes | None = None,
    context: Any = None,
    chunk_layout: Any = None,
    assume_metadata: bool = False,
) -> Any:
    """Read an array, each process its parts.

    in_type: a sharding, a `Format`, or a ShapeDtypeStruct with one. tensorstore_spec: as it was
    written. global_shape: of the result; what lies outside is cut off, what is missing zero. dtype:
    of the result. byte_limiter: what bounds the bytes that are read at once. context, chunk_layout:
    TensorStore's. assume_metadata: trust the specification's. Raises ImportError without
    tensorstore, ValueError where there is no such array, TypeError without a sharding.
    """
    ts = tensorstore()
    sharding, shape, asked = _asked(in_type)
    dtype = asked if dtype is None else dtype
    shape = global_shape if global_shape is not None else shape
    t = await ts.open(
        tensorstore_spec, open=True, assume_metadata=assume_metadata or None,
        context=_context(context),
        **({} if chunk_layout is None else {"chunk_layout": chunk_layout}),
    )  # fmt: skip
    whole = tuple(t.shape if shape is None else shape)
    if len(whole) != len(t.shape):
        raise ValueError(f"An array of shape {tuple(t.shape)} cannot be read as one of {whole}.")
    kind = t.dtype.numpy_dtype if dtype is None else np.dtype(dtypes.named(dtype))

    async def read(index: tuple) -> np.ndarray:
        ranges = [s.indices(extent)[:2] for s, extent in zip(index, whole, strict=True)]
        stops = [min(stop, extent) for (_, stop), extent in zip(ranges, t.shape, strict=True)]
        held = tuple([slice(a, max(a, b)) for (a, _), b in zip(ranges, stops, strict=True)])
        inside = all(s.start < s.stop for s in held)
        part = t[held] if inside else None
        found = np.zeros([b - a for a, b in ranges], kind)
        if part is None:
            return found
        size = estimate_read_memory_footprint(t, part.domain)
        if byte_limiter is not None:
            await byte_limiter.wait_for_bytes(size)
        try:
            values = await part.read()
        finally:
            if byte_limiter is not None:
                await byte_limiter.release_bytes(size)
        found[tuple([slice(0, s.stop - s.start) for s in held])] = values.astype(kind, copy=False)
        return found

    places = sharding.addressable_devices_indices_map(whole).values()
    keys = {_key(index, whole): index for index in places}
    parts = await asyncio.gather(*[read(index) for index in keys.values()])
    by_place = dict(zip(keys, parts, strict=True))
    return make_array_from_callback(whole, sharding, lambda index: by_place[_key(index, whole)])


def _key(index: Any, shape: tuple[int, ...]) -> tuple:
    places = index if index is not None else (slice(None),) * len(shape)
    return tuple([s.indices(extent) for s, extent in zip(places, shape, strict=True)])


def combine_kvstores(
    combined_kvstore: dict[str, Any], kvstores: Sequence[dict[str, Any]], context: Any = None
) -> None:
    """Put the keys of several stores into one, without a copy of what OCDBT databases hold.

    combined_kvstore: the specification of the store that gets them. kvstores: those that have them.
    context: TensorStore's. To be called by one process. Raises ImportError without tensorstore.
    """
    ts = tensorstore()
    within = _context(context)
    target = ts.KvStore.open(combined_kvstore, context=within).result()
    with ts.Transaction(atomic=True) as transaction:
        for spec in kvstores:
            source = ts.KvStore.open(spec, context=within).result()
            source.experimental_copy_range_to(target.with_transaction(transaction)).result()
