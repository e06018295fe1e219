"""numjet.checkpoints: pytrees of arrays in files, saved whole or not at all, by one process or
many.

    step = checkpoints.latest("run") or 0
    state = checkpoints.restore("run", state) if step else state
    checkpoints.save("run", state, step)

For users. A checkpoint is a folder `step_N` that appears by one rename, after all processes have
written their parts and these are on disk. Each part says what of the array it is, so that another
number of processes, or another layout, reads it. What would break it: a folder that not all
processes see.
"""
from __future__ import annotations

import json
import os
import re
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from numjet.api.placement.assemble import make_array_from_callback
from numjet.api.placement.devices import place
from numjet.base import tree
from numjet.core import dtypes
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.cluster import Cluster
from numjet.core.sharded import ShardedArray

_NAME = re.compile(r"step_(\d+)")
_FORMAT = 1


def steps(folder: str | os.PathLike) -> list[int]:
    """The steps that were saved in a folder, in order.

    folder: a path. Result: a list of integers.

    >>> from numjet import checkpoints, numpy as jnp
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = checkpoints.save(folder, [jnp.arange(2)], step=7)
    ...     checkpoints.steps(folder)
    [7]
    """
    found = [_NAME.fullmatch(p.name) for p in Path(folder).glob("step_*")]
    return sorted([int(m[1]) for m in found if m])


def latest(folder: str | os.PathLike) -> int | None:
    """The last step that was saved in a folder, or None.

    folder: a path. Of several processes all get the answer of the first.

    >>> from numjet import checkpoints, numpy as jnp
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = checkpoints.save(folder, [jnp.arange(2)], step=7)
    ...     checkpoints.latest(folder)
    7
    """
    found = steps(folder) if Cluster.index == 0 else []
    return _first(found[-1] if found else None)


def save(folder: str | os.PathLike, state: Any, step: int, *, keep: int | None = 3) -> Path:
    """Save a pytree of arrays and numbers as the checkpoint of a step.

    folder: a path, made where it is not there. state: the pytree. step: an integer. keep: how many
    checkpoints stay, older ones are removed (None: all stay). All processes call it. Result: the
    checkpoint's folder. It is there as a whole or not at all. Raises FileExistsError where the step
    was saved before.

    >>> from numjet import checkpoints, numpy as jnp
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = checkpoints.save(folder, {"w": jnp.arange(3.0)}, step=7)
    ...     checkpoints.latest(folder), checkpoints.restore(folder, {"w": jnp.zeros(3)})
    (7, {'w': Array([0., 1., 2.], dtype=float32)})
    """
    target = Path(folder) / f"step_{step}"
    draft = Path(folder) / f".draft_{step}"
    problem = None
    if Cluster.index == 0:
        if target.exists():
            problem = f"checkpoints.save: {target} is there already. Save another, or remove it."
        else:
            shutil.rmtree(draft, ignore_errors=True)  # of a run that was killed
            draft.mkdir(parents=True)
    problem = _first(problem)
    if problem is not None:
        raise FileExistsError(problem)
    entries = _write(draft, state)
    everyone = [entries] if Cluster.transport is None else Cluster.transport.objects(entries)
    if Cluster.index == 0:
        index = {"format": _FORMAT, "step": step, "parts": [e for part in everyone for e in part]}
        _put(draft / "index.json", json.dumps(index).encode())
        _sync(draft)
        os.rename(draft, target)
        _sync(Path(folder))
        for old in steps(folder)[: -keep] if keep else []:
            shutil.rmtree(Path(folder) / f"step_{old}", ignore_errors=True)
    _first(None)  # nobody goes on before it is there
    return target


def _first(value: Any) -> Any:
    return value if Cluster.transport is None else Cluster.transport.objects(value)[0]


def _parts(x: Any) -> tuple[tuple, Any, list[tuple[list, np.ndarray]]]:
    """The shape, the dtype and this process's parts of an array, each written by one process."""
    if type(x) is ShardedArray and not x.is_fully_addressable:
        window = x._sharding.block_index(x.shape)
        if _is_writer(x._sharding, x.shape):
            bounds = [[int(i.start), int(i.stop)] for i in window]
            return x.shape, x.dtype, [(bounds, x._block)]
        return x.shape, x.dtype, []
    array = as_array(x)
    parts = [([[0, n] for n in array.shape], array._value)] if Cluster.index == 0 else []
    return array.shape, array.dtype, parts


def _is_writer(sharding: Any, shape: tuple) -> bool:
    """Whether this is the first of the processes that hold the same block."""
    own = sharding.mesh.processes
    cut = {a for axes in sharding.layout(len(shape)) for a in axes}
    (at,) = np.argwhere(own.ranks == Cluster.index)[:1]
    names = sharding.mesh.axis_names
    return all(name in cut or i == 0 for name, i in zip(names, at, strict=True))


def _write(draft: Path, state: Any) -> list[dict]:
    """Write this process's parts; what the index says of them."""
    entries = []
    for number, (path, leaf) in enumerate(tree.tree_flatten_with_path(state)[0]):
        shape, dtype, parts = _parts(leaf)
        for k, (window, block) in enumerate(parts):
            data = np.ascontiguousarray(block).reshape(-1).view(np.uint8).tobytes()
            name = f"{number}_{Cluster.index}_{k}.bin"
            _put(draft / name, data)
            entries.append({
                "leaf": number, "path": tree.keystr(path), "shape": [int(n) for n in shape],
                "dtype": dtype.name, "window": window, "file": name, "crc": zlib.crc32(data),
            })
    _sync(draft)
    return entries


def _put(path: Path, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Have the names in a folder on disk, where the system does that."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # folders cannot be opened everywhere
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def restore(folder: str | os.PathLike, like: Any, step: int | None = None) -> Any:
    """The pytree that was saved for a step.

    folder: a path. like: a pytree of the same structure, whose arrays (or ShapeDtypeStructs) say
    shapes, dtypes and where the results go: to their shardings. step: the last one unless given.
    Raises FileNotFoundError where nothing was saved, ValueError where the structure, a shape or a
    dtype differs, or a file is damaged.

    >>> from numjet import checkpoints, numpy as jnp
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = checkpoints.save(folder, [jnp.arange(2)], step=7)
    ...     checkpoints.restore(folder, [jnp.zeros(2, int)])
    [Array([0, 1], dtype=int32)]
    """
    number = latest(folder) if step is None else step
    where = Path(folder) / f"step_{number}"
    if number is None or not (where / "index.json").exists():
        raise FileNotFoundError(f"checkpoints.restore: there is no checkpoint {where}.")
    index = json.loads((where / "index.json").read_text())
    by_leaf: dict[int, list[dict]] = {}
    for entry in index["parts"]:
        by_leaf.setdefault(entry["leaf"], []).append(entry)
    leaves = tree.tree_flatten_with_path(like)[0]
    saved = {n: entries[0]["path"] for n, entries in by_leaf.items()}
    wanted = {n: tree.keystr(path) for n, (path, _) in enumerate(leaves)}
    if saved != wanted:
        differ = sorted(set(saved.values()) ^ set(wanted.values())) or ["the order of leaves"]
        raise ValueError(
            f"checkpoints.restore: the structure of {where} differs from `like`: {differ[:5]}."
        )
    made = [_restored(where, by_leaf[n], leaf) for n, (_, leaf) in enumerate(leaves)]
    return tree.tree_unflatten(tree.tree_structure(like), made)


def _restored(where: Path, entries: list[dict], like: Any) -> Any:
    first = entries[0]
    wanted = like if hasattr(like, "shape") and hasattr(like, "dtype") else as_array(like)
    if tuple(first["shape"]) != tuple(wanted.shape) or first["dtype"] != wanted.dtype.name:
        raise ValueError(
            f"checkpoints.restore: {first['path']} is {first['dtype']}{first['shape']} in {where}, "
            f"`like` says {wanted.dtype.name}{list(wanted.shape)}."
        )
    dtype = dtypes.physical(wanted.dtype)
    shape = tuple(first["shape"])
    sharding = getattr(like, "sharding", None)

    def part(index: tuple) -> np.ndarray:
        window = [i.indices(n)[:2] for i, n in zip(index, shape, strict=True)]
        out = np.empty([b - a for a, b in window], dtype)
        for entry in entries:
            overlap = [
                (max(a, c), min(b, d)) for (a, b), (c, d) in zip(window, entry["window"])
            ]
            if any(a >= b for a, b in overlap):
                continue
            block = _read(where, entry, dtype)
            into = tuple([slice(a - w[0], b - w[0]) for (a, b), w in zip(overlap, window)])
            out_of = tuple([
                slice(a - w[0], b - w[0]) for (a, b), w in zip(overlap, entry["window"])
            ])
            out[into] = block[out_of]
        return out

    whole = getattr(sharding, "is_fully_addressable", True)
    if not whole:
        return make_array_from_callback(shape, sharding, part, dtype=wanted.dtype)
    value = ArrayImpl(part(tuple([slice(None)] * len(shape))), ShapedArray(shape, wanted.dtype))
    known = isinstance(like, Array) and like._sharding is not None  # type: ignore[attr-defined]
    return place(value, sharding) if known or (
        sharding is not None and not isinstance(like, Array)) else value


def _read(where: Path, entry: dict, dtype: Any) -> np.ndarray:
    data = (where / entry["file"]).read_bytes()
    if zlib.crc32(data) != entry["crc"]:
        raise ValueError(f"checkpoints.restore: {where / entry['file']} is damaged.")
    shape = [b - a for a, b in entry["window"]]
    return np.frombuffer(data, np.uint8).view(dtype).reshape(shape)


__all__ = ["latest", "restore", "save", "steps"]
