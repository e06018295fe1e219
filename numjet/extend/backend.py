"""The one backend, the CPU, as libraries ask for it: a client with its platform and devices.

For programs that read `jax.extend.backend`; numjet itself asks `api.placement.devices`. The client
says "cpu" of itself, whatever platform its devices are of.
"""

from __future__ import annotations

from typing import Any

from numjet.api.compiled.jit import clear_caches
from numjet.api.placement import devices as _devices
from numjet.version import __version__


class Client:
    """The CPU: `platform`, `platform_version`, `devices()`."""

    platform = "cpu"
    runtime_type = "numjet"
    platform_version = f"numjet {__version__}"

    def devices(self) -> list[Any]:
        """The devices of this process."""
        return list(_devices.devices())

    local_devices = devices

    def device_count(self) -> int:
        """How many there are."""
        return len(self.devices())

    local_device_count = device_count

    def process_index(self) -> int:
        """0: there is one process."""
        return 0

    def live_arrays(self) -> list[Any]:
        """Not known: Python's memory management owns arrays."""
        raise NotImplementedError("Client.live_arrays: arrays are Python objects; use gc.")


_client = Client()


def get_backend(platform: Any = None) -> Client:
    """The client of a platform.

    platform: "cpu" or None; RuntimeError for another.

    >>> from numjet.extend import backend
    >>> backend.get_backend().platform
    'cpu'
    """
    if platform not in (None, "cpu") and platform is not _client:
        raise RuntimeError(f"Unknown backend {platform!r}: numjet has 'cpu' alone.")
    return _client


def backends() -> dict[str, Client]:
    """The clients of all platforms, by name: the CPU's.

    >>> from numjet.extend import backend
    >>> list(backend.backends())
    ['cpu']
    """
    return {"cpu": _client}


def get_default_device() -> Any:
    """The device that new arrays are put on.

    >>> from numjet.extend import backend
    >>> backend.get_default_device().platform
    'cpu'
    """
    return _devices.devices()[0]


def backend_xla_version(platform: Any = None) -> int | None:
    """None: there is no XLA.

    platform: as JAX's takes.

    >>> from numjet.extend import backend
    >>> print(backend.backend_xla_version())
    None
    """
    get_backend(platform)
    return None


def clear_backends() -> None:
    """Forget every compiled function; arrays and devices stay.

    >>> from numjet.extend import backend
    >>> backend.clear_backends()
    """
    clear_caches()


def clear_in_memory_compilation_cache() -> None:
    """Forget every compiled function; the cache on disk stays.

    >>> from numjet.extend import backend
    >>> backend.clear_in_memory_compilation_cache()
    """
    clear_caches()


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Nothing to do: backends are never cleared, as arrays and the CPU stay.

    cache: an object whose `cache_clear()` JAX would call; for_what: its name.

    >>> import functools
    >>> from numjet.extend import backend
    >>> backend.register_backend_cache(functools.cache(len), "lengths")
    """


def register_backend_factory(name: str, factory: Any, **_: Any) -> None:
    """Not there: raises NotImplementedError. Programs run on the CPU, or on a device of a PJRT
    plugin.

    name, factory: what JAX's takes.

    >>> from numjet.extend import backend
    >>> backend.register_backend_factory("mine", None)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    raise NotImplementedError(f"register_backend_factory({name!r}): numjet has 'cpu' alone.")


def get_compile_options(*_: Any, **__: Any) -> Any:
    """Not there: raises NotImplementedError. The compiler takes no options.

    >>> from numjet.extend import backend
    >>> backend.get_compile_options()  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    raise NotImplementedError("get_compile_options: numjet's compiler takes no options of XLA.")
