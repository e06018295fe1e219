"""A pytree of arrays in a folder: `save` and `load`.

A folder holds `pytreedef.json`, the structure and what each leaf is, and `array_store`, an OCDBT
database in which each array has the number of its leaf as name; JAX's has the same. Several
processes write databases of their own, which the first one joins. For large programs there is
orbax, which is made for checkpoints. What would break it: processes that name different folders.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from numjet.api.placement.devices import process_count, process_index
from numjet.api.placement.layout import Format
from numjet.api.placement.placements import Sharding
from numjet.api.placement.shape_struct import ShapeDtypeStruct
from numjet.base import tree
from numjet.core import dtypes
from numjet.experimental.array_serialization import (
    pytree_serialization_utils as utils,
    serialization,
    tensorstore_impl as store,
)
from numjet.experimental.multihost_utils import sync_global_devices

_PYTREEDEF, _ARRAYS = "pytreedef.json", "array_store"
_ARRAY = re.compile(r"Array\(([a-zA-Z0-9_]+)\[([0-9, ]*)\]\)$")
# One after the other: what was asked for first is on the disk first.
_executor = ThreadPoolExecutor(1, "numjet-pytree-serialization")


def _is_none(x: Any) -> bool:
    return x is None


def _described(leaf: Any) -> str | None:
    if leaf is None:
        return None
    return f"Array({leaf.dtype.name}[{', '.join(map(str, leaf.shape))}])"


def _stub(text: str | None) -> Any:
    """What a leaf was, by its description."""
    found = _ARRAY.match(text) if text is not None else None
    if found is None:
        return text
    shape = tuple([int(n) for n in found[2].split(",") if n.strip()])
    return ShapeDtypeStruct(shape, dtypes.native(found[1]))


def _together(what: str) -> None:
    if process_count() > 1:
        sync_global_devices(f"numjet: {what}")


def _broadcast(name: str, prefix: Any, structure: Any, is_leaf: Callable) -> list[Any]:
    """A leaf of a tree, which may be a prefix, for each leaf of a structure."""
    if is_leaf(prefix):
        return [prefix] * structure.num_leaves
    numbered = tree.tree_unflatten(structure, [0] * structure.num_leaves)
    found: list[Any] = []

    def repeat(leaf: Any, part: Any) -> None:
        found.extend([leaf] * tree.tree_structure(part, is_leaf=_is_none).num_leaves)

    try:
        tree.tree_map(repeat, prefix, numbered, is_leaf=is_leaf)
    except ValueError as error:
        raise ValueError(f"{name} is no prefix of the saved tree: {error}") from error
    return found


def _flattened(data: Any) -> tuple[list[Any], Any]:
    leaves, structure = tree.tree_flatten(data, is_leaf=_is_none)
    for x in leaves:
        if x is not None and not (hasattr(x, "shape") and hasattr(x, "dtype")):
            raise ValueError(
                "For serialization, all leaves must be either None or jax.Array-like objects. Got "
                f"{x!r}."
            )
        if x is not None and dtypes.is_key(x.dtype):
            raise TypeError("PRNG keys cannot be written: write random.key_data(keys).")
    return leaves, structure


def _prepare(folder: str, overwrite: bool) -> None:
    """Make an empty folder. Raises ValueError where there are files that have to stay."""
    if store.is_remote_path(folder):
        return
    if os.path.exists(folder):
        held = os.listdir(folder) if os.path.isdir(folder) else [folder]
        if held and not overwrite:
            raise ValueError(
                f"Files already exist at path: `{folder}`, but you specified `overwrite=False`"
            )
        if held and not {_PYTREEDEF, _ARRAYS}.issuperset(held):
            raise RuntimeError(
                f"{folder} holds files that are no saved pytree, which stay: "
                f"{', '.join(sorted(held)[:3])}. Name another folder."
            )
        shutil.rmtree(folder)
    os.makedirs(folder)


def _write_file(folder: str, name: str, text: str) -> None:
    if store.is_remote_path(folder):
        ts = store.tensorstore()
        ts.KvStore.open(f"{folder}/").result().write(name, text.encode()).result()
        return
    place = os.path.join(folder, name)
    with open(f"{place}.part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{place}.part", place)


def _read_file(folder: str, name: str) -> str:
    if store.is_remote_path(folder):
        ts = store.tensorstore()
        found = ts.KvStore.open(f"{folder}/").result().read(name).result()
        return str(found.value.decode())
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def _save(leaves: list[Any], structure: Any, folder: str, overwrite: bool, specs: list) -> None:
    several = process_count() > 1
    if process_index() == 0:
        _prepare(folder, overwrite)
    _together(f"the folder {folder} is there")
    arrays = f"{folder}/{_ARRAYS}"
    mine = process_index() if several else None
    pairs = []
    for i, (x, spec) in enumerate(zip(leaves, specs, strict=True)):
        if x is not None:
            made = store.get_tensorstore_spec(f"{arrays}/{i}", True, mine, arr=x)
            if spec is not None:
                made = store.merge_nested_ts_specs(made, spec)
                store.verify_tensorstore_spec(made, x, arrays, True)
            pairs.append((x, made))
    serialization.run_serialization([x for x, _ in pairs], [spec for _, spec in pairs])
    _together(f"the arrays of {folder} are there")
    if process_index() == 0:
        if several and pairs:
            _join(arrays)
        told = utils.serialize_pytreedef(structure)
        told[utils._LEAF_IDS_KEY] = [*map(_described, leaves)]
        _write_file(folder, _PYTREEDEF, json.dumps(told, indent=2))
    _together(f"{folder} is written")


def _join(arrays: str) -> None:
    """Join the databases of the processes to one."""
    whole = {"driver": "ocdbt", "base": f"{_url(arrays)}/"}
    parts = [
        {"driver": "ocdbt", "base": f"{_url(arrays)}/process_{i}/"} for i in range(process_count())
    ]
    store.combine_kvstores(whole, parts)


def _url(path: str) -> str:
    return path if store.is_remote_path(path) else f"file://{path}"


def _folder(directory: Any) -> str:
    path = os.fspath(directory)
    return path.rstrip("/") if store.is_remote_path(path) else os.path.abspath(path)


def _is_spec(x: Any) -> bool:
    return store.is_tensorstore_spec_leaf(x)


def save(
    data: Any, directory: str | os.PathLike, *, overwrite: bool = True, ts_specs: Any = None
) -> None:
    """Write a pytree of arrays into a folder.

    data: a pytree of arrays and None; its nodes are tuples, lists, dicts with string keys, and
    those that are registered with `export.register_pytree_node_serialization`. directory: a folder,
    or one in a bucket (gs://, s3://). overwrite: a tree that is there goes first. ts_specs: a
    pytree of what TensorStore's specifications say else, or None.

    Raises ValueError for other leaves and nodes and where files have to stay, ImportError without
    tensorstore.
    """
    nonblocking_save(data, directory, overwrite=overwrite, ts_specs=ts_specs).result()


def nonblocking_save(
    data: Any, directory: str | os.PathLike, *, overwrite: bool = True, ts_specs: Any = None
) -> utils.PyTreeFuture:
    """As `save`, in a thread of its own: a future, whose result is None.

    data, directory, overwrite, ts_specs: as of `save`. The future's `pytree` are ShapeDtypeStructs.
    Raises ValueError for other leaves and nodes.
    """
    leaves, structure = _flattened(data)
    utils.serialize_pytreedef(structure)  # nodes that cannot be written are told of at once
    folder = _folder(directory)
    specs = _broadcast("ts_specs", ts_specs, structure, _is_spec)
    stubs = [None if x is None else ShapeDtypeStruct(x.shape, x.dtype) for x in leaves]
    if process_count() > 1:  # processes meet in the order of their programs
        future: Any = _done(lambda: _save(leaves, structure, folder, overwrite, specs))
    else:
        future = _executor.submit(_save, leaves, structure, folder, overwrite, specs)
    made = utils.PyTreeFuture(future)
    made.pytree = tree.tree_unflatten(structure, stubs)
    return made


def _done(work: Callable[[], Any]) -> Any:
    """A future of what is done at once."""
    future: Future = Future()
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)
    return future


def _told(folder: str) -> tuple[list[Any], Any]:
    """The stubs of the leaves, and the structure, of a folder."""
    if not store.is_remote_path(folder) and not os.path.isdir(folder):
        raise AssertionError(f"Checkpoint directory {folder} does not exist")
    told = json.loads(_read_file(folder, _PYTREEDEF))
    return [*map(_stub, told[utils._LEAF_IDS_KEY])], utils.deserialize_pytreedef(told)


def load_pytreedef(directory: str | os.PathLike) -> Any:
    """The pytree in a folder, with ShapeDtypeStructs in the arrays' places.

    directory: as of `save`. Raises AssertionError where there is no such folder.
    """
    stubs, structure = _told(_folder(directory))
    return tree.tree_unflatten(structure, stubs)


def _is_place(x: Any) -> bool:
    return x is None or isinstance(x, Sharding | Format) or hasattr(x, "sharding")


def load(
    directory: str | os.PathLike, shardings: Any, *, mask: Any = None, ts_specs: Any = None
) -> Any:
    """The pytree in a folder.

    directory: as of `save`. shardings: how arrays are laid out: a sharding, a `Format` or a
    ShapeDtypeStruct with one (whose dtype the result has), or a pytree of these, of which a part
    may stand for a whole subtree. mask: a pytree of booleans; what is False is None in the result.
    ts_specs: as of `save`.

    Raises AssertionError where there is no such folder, ValueError for trees that do not fit,
    ImportError without tensorstore.
    """
    return nonblocking_load(directory, shardings, mask=mask, ts_specs=ts_specs).result()


def nonblocking_load(
    directory: str | os.PathLike, shardings: Any, *, mask: Any = None, ts_specs: Any = None
) -> utils.PyTreeFuture:
    """As `load`, in a thread of its own: a future, whose result is the pytree.

    directory, shardings, mask, ts_specs: as of `load`. The future's `pytree` are ShapeDtypeStructs.
    Raises AssertionError where there is no such folder, ValueError for trees that do not fit.
    """
    folder = _folder(directory)
    _executor.submit(int).result()  # what is being written comes first
    stubs, structure = _told(folder)
    places = _broadcast("shardings", shardings, structure, _is_place)
    wanted = [True] * len(stubs)
    if mask is not None:
        wanted = _broadcast("mask", mask, structure, lambda x: isinstance(x, bool))
    specs = _broadcast("ts_specs", ts_specs, structure, _is_spec)
    stubs = [x if keep else None for x, keep in zip(stubs, wanted, strict=True)]

    def read() -> Any:
        which = [i for i, x in enumerate(stubs) if isinstance(x, ShapeDtypeStruct)]
        found = [
            store.merge_nested_ts_specs(
                store.get_tensorstore_spec(f"{folder}/{_ARRAYS}/{i}", True), specs[i]
            )
            for i in which
        ]
        asked = [_laid_out(places[i], stubs[i]) for i in which]
        arrays = serialization.run_deserialization(asked, found)
        leaves = list(stubs)
        for i, x in zip(which, arrays, strict=True):
            leaves[i] = x
        return tree.tree_unflatten(structure, leaves)

    made = utils.PyTreeFuture(_executor.submit(read) if process_count() == 1 else _done(read))
    made.pytree = tree.tree_unflatten(structure, stubs)
    return made


def _laid_out(place: Any, stub: ShapeDtypeStruct) -> Any:
    """The layout and the dtype of a leaf; the shape is the saved one's."""
    if isinstance(place, ShapeDtypeStruct):
        return ShapeDtypeStruct(stub.shape, place.dtype, sharding=place.sharding)
    return place


__all__ = ["load", "load_pytreedef", "nonblocking_load", "nonblocking_save", "save"]
