"""Where the results of operations lie that are told a device: `array`, `asarray`, `astype`. For
`numjet.numpy`. What would break it: an array with a sharding that nobody gave it and that binds.
"""
from __future__ import annotations

from typing import Any

from numjet.api.placement.devices import device_put
from numjet.core.remote import Device
from numjet.core.trace import Tracer


def computed_on(x: Any, device: Any) -> Any:
    """`device_put` of what an operation makes: of an array that somebody put on devices it is made
    there, and nowhere else (ValueError)."""
    own = getattr(x, "_sharding", None)
    if own is not None and own.binds and not isinstance(x, Tracer):
        there = {device} if isinstance(device, Device) else getattr(device, "device_set", None)
        if there is not None and there != own.device_set:
            ids = [sorted([d.id for d in found]) for found in (own.device_set, there)]
            raise ValueError(
                "Received incompatible devices for jitted computation. Got an argument with shape "
                f"{x.aval.str_short()} and device ids {ids[0]}, and a result with device ids "
                f"{ids[1]}. Move the array with numjet.device_put."
            )
    return device_put(x, device)
