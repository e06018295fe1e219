"""Arrays on disk while the program runs on: `GlobalAsyncCheckpointManager` and what it is made of.

A manager copies what is to be written and lets it reach the disk in a thread of its own. What would
break it: an array that is donated before it was copied; `serialize` returns when all are.
"""

from __future__ import annotations

import abc
import asyncio
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from numjet.api.placement.devices import process_count, process_index
from numjet.experimental.array_serialization import tensorstore_impl as _store
from numjet.experimental.array_serialization.tensorstore_impl import (
    _LimitInFlightBytes as _LimitInFlightBytes,
    async_deserialize as async_deserialize,
    async_serialize as async_serialize,
)
from numjet.experimental.multihost_utils import sync_global_devices

logger = logging.getLogger("jax.experimental.array_serialization.serialization")
_REMOTE_URL_PREFIXES = ["gs://", "s3://"]
_REMOTE_DRIVERS = ("gcs", "s3")
_GIGABYTE = 10**9


class BarrierTimeoutError(Exception):
    """Processes did not meet in time."""


def __getattr__(name: str) -> Any:
    if name == "TS_CONTEXT":
        return _store._context(None)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _get_metadata(arr: Any) -> dict[str, Any]:
    """An array's metadata for the driver zarr."""
    return _store._metadata(arr, "zarr")


def run(work: Coroutine) -> Any:
    """The result of a coroutine, also where a loop of events runs already in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    found: list[Any] = []

    def apart() -> None:
        try:
            found.append((asyncio.run(work), None))
        except BaseException as error:
            found.append((None, error))

    thread = threading.Thread(target=apart, name="numjet-array-serialization")
    thread.start()
    thread.join()
    result, error = found[0]
    if error is not None:
        raise error
    return result


def get_tensorstore_spec(
    ckpt_path: str | os.PathLike,
    *,
    ocdbt: bool = False,
    process_idx: int | None = None,
    arr: Any = None,
    driver: str = "zarr",
) -> dict[str, Any]:
    """TensorStore's specification of an array at a path: a folder of its own, of the driver zarr.

    ckpt_path, ocdbt, process_idx: as of `tensorstore_impl.get_tensorstore_spec`. arr, driver:
    taken, and not read, as in JAX: that function reads them.

    >>> from numjet.experimental.array_serialization import serialization
    >>> serialization.get_tensorstore_spec("/tmp/a/b")
    {'driver': 'zarr', 'kvstore': {'driver': 'file', 'path': '/tmp/a/b'}}
    """
    return _store.get_tensorstore_spec(ckpt_path, ocdbt, process_idx, driver="zarr")


def is_remote_storage(tspec: dict[str, Any] | str) -> bool:
    """Whether a specification, or a path, means a store in the cloud.

    tspec: a specification of TensorStore's, or a URL.

    >>> from numjet.experimental.array_serialization import serialization
    >>> serialization.is_remote_storage("gs://bucket/a"), serialization.is_remote_storage("/tmp/a")
    (True, False)
    """
    if isinstance(tspec, str):
        return tspec.startswith(tuple(_REMOTE_URL_PREFIXES))
    for key in ("base", "kvstore"):
        if key in tspec:
            return is_remote_storage(tspec[key])
    return tspec.get("driver") in _REMOTE_DRIVERS


def run_serialization(arrays: Sequence[Any], tensorstore_specs: Sequence[Any]) -> None:
    """Write arrays, and wait until they are written.

    arrays: to be written. tensorstore_specs: where, one each. Raises ImportError without
    tensorstore.
    """

    async def write() -> None:
        await asyncio.gather(*map(async_serialize, arrays, tensorstore_specs))

    run(write())


def run_deserialization(
    shardings: Sequence[Any],
    tensorstore_specs: Sequence[Any],
    global_shapes: Sequence[Any] | None = None,
    dtypes: Sequence[Any] | None = None,
    concurrent_gb: int = 32,
) -> list[Any]:
    """Arrays that were written.

    shardings: how each is laid out. tensorstore_specs: where each lies. global_shapes, dtypes: what
    they are to be, if not what they are. concurrent_gb: so many gigabytes are read at once. Raises
    ImportError without tensorstore, ValueError where there is no such array.
    """
    count = len(tensorstore_specs)

    async def read() -> list[Any]:
        limit = _LimitInFlightBytes(concurrent_gb * _GIGABYTE)
        return await asyncio.gather(
            *[
                async_deserialize(sharding, spec, shape, dtype, limit)
                for sharding, spec, shape, dtype in zip(
                    shardings,
                    tensorstore_specs,
                    [None] * count if global_shapes is None else global_shapes,
                    [None] * count if dtypes is None else dtypes,
                    strict=True,
                )
            ]
        )

    return run(read())  # type: ignore[no-any-return]


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """What a manager of checkpoints does, for classes derived from it."""

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raise what went wrong since; without waiting."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Wait until all is written; raise what went wrong."""

    @abc.abstractmethod
    def serialize(
        self, arrays: Any, tensorstore_specs: Any, *, on_commit_callback: Callable[[], None]
    ) -> None:
        """Write arrays, and call back when they are written."""

    @abc.abstractmethod
    def deserialize(
        self,
        shardings: Sequence[Any],
        tensorstore_specs: Sequence[dict[str, Any]],
        global_shapes: Sequence[Any] | None = None,
        dtypes: Sequence[Any] | None = None,
    ) -> Any:
        """Read arrays."""


class AsyncManager:
    """What waits for writing in a thread of its own, and calls back.

    timeout_secs: kept as it is given; processes wait for each other without an end.

    >>> from numjet.experimental.array_serialization import serialization
    >>> serialization.AsyncManager().wait_until_finished()
    """

    def __init__(self, timeout_secs: int = 300) -> None:
        self._timeout_secs = timeout_secs
        self._thread: threading.Thread | None = None
        self._exception: BaseException | None = None
        self._commit_futures: list[Any] = []
        self._on_commit: Callable[[], None] | None = None
        # Of several processes the callback waits for all; they meet when somebody waits here.
        self._open = False

    def check_for_errors(self) -> None:
        """Raise what went wrong since; without waiting."""
        error, self._exception = self._exception, None
        if error is not None:
            raise error

    def wait_until_finished(self) -> None:
        """Wait until all is written; raise what went wrong. Of several processes the first one
        calls back then, when all have come here."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check_for_errors()
        if self._open:
            self._open = False
            sync_global_devices("numjet: arrays are written")
            if process_index() == 0:
                self._call_back()
            sync_global_devices("numjet: arrays are committed")

    def _add_futures(self, futures: Sequence[Any]) -> None:
        self._commit_futures = list(futures)

    def _start_async_commit(self, on_commit_callback: Callable[[], None] | None) -> None:
        self._on_commit, self._open = on_commit_callback, process_count() > 1
        self._thread = threading.Thread(
            target=self._finish, name="numjet-array-serialization-commit", daemon=True
        )
        self._thread.start()

    def _call_back(self) -> None:
        callback, self._on_commit = self._on_commit, None
        if callback is not None:
            callback()

    def _finish(self) -> None:
        try:
            for future in self._commit_futures:
                future.result()
            self._commit_futures = []
            if not self._open:
                self._call_back()
        except BaseException as error:  # raised where somebody asks
            self._exception = error


class GlobalAsyncCheckpointManager(AsyncManager, GlobalAsyncCheckpointManagerBase):
    """Writes arrays while the program runs on, and reads them.

    timeout_secs: kept as it is given.

    `serialize` returns when the arrays are copied; `wait_until_finished` and the next `serialize`
    wait until they are written, and raise what went wrong. Needs the package tensorstore.

    >>> from numjet.experimental.array_serialization import serialization
    >>> manager = serialization.GlobalAsyncCheckpointManager()
    """

    def serialize(
        self,
        arrays: Any,
        tensorstore_specs: Any,
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction: Any = None,
    ) -> None:
        """Write arrays, and call back when they are written.

        arrays: to be written. tensorstore_specs: where, one each. on_commit_callback: is called
        without arguments in the thread that writes; of several processes by the first one, in
        `wait_until_finished`. transaction: TensorStore's, which the caller commits.
        """
        self.wait_until_finished()
        futures: list[list] = [[] for _ in range(len(tensorstore_specs))]

        async def write() -> None:
            await asyncio.gather(
                *[
                    async_serialize(x, spec, commit_future=started, transaction=transaction)
                    for x, spec, started in zip(arrays, tensorstore_specs, futures, strict=True)
                ]
            )

        run(write())
        # What a transaction holds is committed when the caller says so.
        self._add_futures([] if transaction is not None else [f for row in futures for f in row])
        self._start_async_commit(on_commit_callback)

    def serialize_with_paths(
        self,
        arrays: Sequence[Any],
        paths: Sequence[str],
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction: Any = None,
    ) -> None:
        """As `serialize`, into folders.

        arrays: to be written. paths: of a folder each. on_commit_callback, transaction: as of
        `serialize`.
        """
        specs = [get_tensorstore_spec(path) for path in paths]
        self.serialize(
            arrays, specs, on_commit_callback=on_commit_callback, transaction=transaction
        )

    def deserialize(
        self,
        shardings: Sequence[Any],
        tensorstore_specs: Sequence[dict[str, Any]],
        global_shapes: Sequence[Any] | None = None,
        dtypes: Sequence[Any] | None = None,
        concurrent_gb: int = 32,
    ) -> list[Any]:
        """Arrays that were written, as of `run_deserialization`; waits until all is written."""
        self.wait_until_finished()
        return run_deserialization(
            shardings, tensorstore_specs, global_shapes, dtypes, concurrent_gb
        )

    def deserialize_with_paths(
        self,
        shardings: Sequence[Any],
        paths: Sequence[str],
        global_shapes: Sequence[Any] | None = None,
        dtypes: Sequence[Any] | None = None,
        concurrent_gb: int = 32,
    ) -> list[Any]:
        """As `deserialize`, from folders."""
        specs = [get_tensorstore_spec(path) for path in paths]
        return self.deserialize(shardings, specs, global_shapes, dtypes, concurrent_gb)


__all__ = [
    "AsyncManager", "BarrierTimeoutError", "GlobalAsyncCheckpointManager",
    "GlobalAsyncCheckpointManagerBase", "async_deserialize", "async_serialize",
    "get_tensorstore_spec", "is_remote_storage", "logger", "run_deserialization",
    "run_serialization",
]  # fmt: skip
