"""The one backend, the CPU, as libraries ask for it."""

from __future__ import annotations

from typing import Any

from numjet.api import devices as _devices
from numjet.api.jit import clear_caches
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
    """The CPU. Raises RuntimeError for another platform."""
    if platform not in (None, "cpu") and platform is not _client:
        raise RuntimeError(f"Unknown backend {platform!r}: numjet has 'cpu' alone.")
    return _client


def backends() -> dict[str, Client]:
    """{"cpu": the CPU}."""
    return {"cpu": _client}


def get_default_device() -> Any:
    """The device that new arrays are put on."""
    return _devices.devices()[0]


def backend_xla_version(platform: Any = None) -> int | None:
    """None: there is no XLA."""
    get_backend(platform)
    return None


def clear_backends() -> None:
    """Forget every compiled function."""
    clear_caches()


def clear_in_memory_compilation_cache() -> None:
    """Forget every compiled function."""
    clear_caches()


def register_backend_cache(cache: Any, for_what: str) -> None:
    """`cache.cache_clear()` would run when backends are cleared; they never are, as arrays and the
    CPU stay: nothing to do."""


def register_backend_factory(name: str, factory: Any, **_: Any) -> None:
    """Not there: programs run on the CPU."""
    raise NotImplementedError(f"register_backend_factory({name!r}): numjet has 'cpu' alone.")


def get_compile_options(*_: Any, **__: Any) -> Any:
    """Not there: the compiler takes no options."""
    raise NotImplementedError("get_compile_options: numjet's compiler takes no options of XLA.")
