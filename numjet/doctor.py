"""What numjet finds on this machine: `python -m numjet.doctor`.

Lists the platforms, their plugins and devices; where one cannot be used, why and what to do.
"""

from __future__ import annotations

import ctypes.util
import importlib
import importlib.util
import platform
import sys
from collections.abc import Iterator
from typing import Any

from numjet.version import __version__


def report() -> Iterator[str]:
    """The lines that `python -m numjet.doctor` prints."""
    api = importlib.import_module("numjet.api.placement.devices")
    clients = importlib.import_module("numjet.xla.client")
    plugins = importlib.import_module("numjet.xla.plugins")
    pjrt = importlib.import_module("numjet.xla.pjrt")
    yield f"numjet {__version__}, Python {platform.python_version()}, {platform.platform()}"
    yield f"cpu: {len(api.devices('cpu'))} device(s), numjet's own compiler"
    for known in plugins.KNOWN:
        path = plugins.library(known.platform)
        if path is None:
            yield (f"{known.platform}: no plugin is installed. To use such devices: "
                   f"pip install {known.extra}")
            continue
        yield f"{known.platform}: plugin {path}"
        try:
            client = clients.client(known.platform)
        except RuntimeError as error:
            words = str(error).removesuffix(clients.MORE)
            yield f"  cannot be used: {words}"
            yield f"  {_remedy(known, words)}"
            yield from _libraries(known)
            continue
        major, minor = client.plugin.version
        yield f"  PJRT {major}.{minor}, {pjrt.MAJOR}.{pjrt.OLDEST_MINOR} or newer is needed"
        for device in client.devices():
            stats = device.memory_stats() or {}
            limit = stats.get("bytes_limit")
            memory = "" if limit is None else f", {limit / 2**30:.1f} GiB"
            yield f"  {device!r}: {device.device_kind}{memory}"
        yield from _libraries(known)


# By words of an error, the first that fit: what to do.
_REMEDIES = (
    (("lockfile", "already in use"),
     "Another process holds the device: end it, or set ALLOW_MULTIPLE_LIBTPU_LOAD=1."),
    (("cannot open shared object file", "no such file"),
     "The plugin's file is not there, or a library that it needs: {install}. Unset "
     "NUMJET_PJRT_{PLATFORM} if it names another file."),
    (("speaks pjrt", "is no pjrt plugin", "file too short", "invalid elf header"),
     "Install a release of the plugin that numjet knows: {install}."),
    (("driver version is insufficient", "cuda_error_system_driver", "libcuda"),
     "Update the driver, or install the plugin for an older CUDA (cuda12 instead of cuda13)."),
    (("no visible gpu", "no jellyfish", "not found"), "{missing}"),
)
_MISSING = {
    "cuda": "No device was found: check that the driver sees it (nvidia-smi), and that it is "
    "visible to this process (CUDA_VISIBLE_DEVICES, container flags).",
    "tpu": "No device was found: check that this machine has a TPU (ls /dev/accel* /dev/vfio), and "
    "that this process may open it.",
}


def _remedy(known: Any, error: str) -> str:
    """What to do about an error of a platform's plugin."""
    lowered = error.lower()
    for words, remedy in _REMEDIES:
        if any([word in lowered for word in words]):
            return remedy.format(install=f"pip install {known.extra}",
                                 PLATFORM=known.platform.upper(),
                                 missing=_MISSING.get(known.platform, "No device was found."))
    return "Install another release of the plugin, or look for the text above in XLA's issues."


def _libraries(known: Any) -> Iterator[str]:
    """A line where the libraries that NVIDIA's plugin loads are not seen."""
    if known.platform == "cuda" and importlib.util.find_spec("nvidia") is None and (
        ctypes.util.find_library("cublas") is None
    ):
        yield (f"  NVIDIA's libraries (cuBLAS, cuDNN, ...) are not seen: pip install "
               f"{known.extra} brings them")


def main() -> int:
    for line in report():
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
