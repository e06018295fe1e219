"""What numjet finds on this machine: `python -m numjet.doctor`.

Lists the platforms, their plugins and devices; where one cannot be used, why and what to do.
"""

from __future__ import annotations

import importlib
import platform
import sys
from collections.abc import Iterator

from numjet.version import __version__


def report() -> Iterator[str]:
    """The lines that `python -m numjet.doctor` prints."""
    api = importlib.import_module("numjet.api.devices")
    clients = importlib.import_module("numjet.xla.client")
    plugins = importlib.import_module("numjet.xla.plugins")
    pjrt = importlib.import_module("numjet.xla.pjrt")
    yield f"numjet {__version__}, Python {platform.python_version()}, {platform.platform()}"
    yield f"cpu: {len(api.devices('cpu'))} device(s), numjet's own compiler"
    for known in plugins.KNOWN:
        path = plugins.library(known.platform)
        if path is None:
            yield (f"{known.platform}: no plugin is installed. To use such devices: "
                   f"pip install '{known.extra}'")
            continue
        yield f"{known.platform}: plugin {path}"
        try:
            client = clients.client(known.platform)
        except RuntimeError as error:
            yield f"  cannot be used: {error}"
            yield f"  {_remedy(known.platform, str(error))}"
            continue
        major, minor = client.plugin.version
        yield f"  PJRT {major}.{minor}, {pjrt.MAJOR}.{pjrt.OLDEST_MINOR} or newer is needed"
        for device in client.devices:
            stats = device.memory_stats() or {}
            limit = stats.get("bytes_limit")
            memory = "" if limit is None else f", {limit / 2**30:.1f} GiB"
            yield f"  {device!r}: {device.device_kind}{memory}"


def _remedy(name: str, error: str) -> str:
    if "lockfile" in error or "already in use" in error.lower():
        return "Another process holds the device: end it, or set ALLOW_MULTIPLE_LIBTPU_LOAD=1."
    if "No visible GPU" in error or "no jellyfish" in error.lower() or "No " in error:
        return ("No device was found: check that the driver sees it (nvidia-smi for NVIDIA), and "
                "that it is visible to this process (CUDA_VISIBLE_DEVICES, container flags).")
    if "version" in error:
        return "Install the release of the plugin that fits the driver (cuda12 or cuda13)."
    return "Install another release of the plugin, or look for the text above in XLA's issues."


def main() -> int:
    for line in report():
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
