"""Run a program under MPI as on several hosts: network namespaces, joined by a network of a stated
delay and rate. Needs root, `ip` and /dev/net/tun; the kernel needs no netem.

    python tools/hosts.py --hosts 2 --delay 1e-3 --rate 1e9 python tools/scaling.py --measure

Each host is a namespace whose network is a tunnel to this process, which hands each packet on when
its sender's link has sent it (`rate`, bits a second) and `delay` seconds have passed. This process
takes a part of a core, and some 50 microseconds a packet beside the delay.
"""
from __future__ import annotations

import argparse
import fcntl
import heapq
import os
import select
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

_TUNSETIFF, _TUN, _NO_INFORMATION = 0x400454CA, 0x0001, 0x1000
_MTU = 65000


def tunnel(number: int, namespace: str) -> int:
    """The end, here, of the network of a new namespace, whose address ends with `number` + 1."""
    device = f"njtun{number}"
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, _TUNSETIFF, struct.pack("16sH", device.encode(), _TUN | _NO_INFORMATION))
    for words in (
        f"netns add {namespace}", f"link set {device} netns {namespace}",
        f"-n {namespace} addr add 10.77.0.{number + 1}/24 dev {device}",
        f"-n {namespace} link set lo up", f"-n {namespace} link set {device} mtu {_MTU} up",
        f"-n {namespace} route add default dev {device}",
    ):  # fmt: skip
        subprocess.run(["ip", *words.split()], check=True)
    return end


def relay(ends: list[int], delay: float, rate: float, ended: threading.Event) -> None:
    """Hand packets from tunnel to tunnel until it has `ended`."""
    waiting: list[tuple[float, int, int, bytes]] = []
    free = [0.0] * len(ends)  # when each sender's link is free again
    count = 0
    while not ended.is_set():
        now = time.perf_counter()
        while waiting and waiting[0][0] <= now:
            _, _, to, packet = heapq.heappop(waiting)
            os.write(ends[to], packet)
        rest = waiting[0][0] - now if waiting else 0.05
        for end in select.select(ends, [], [], max(rest - 1e-4, 0.0))[0]:
            sender = ends.index(end)
            packet = os.read(end, _MTU + 64)
            to = packet[19] - 1
            if packet[0] >> 4 != 4 or not 0 <= to < len(ends):
                continue
            start = max(time.perf_counter(), free[sender])
            free[sender] = start + 8 * len(packet) / rate
            count += 1
            heapq.heappush(waiting, (free[sender] + delay, count, to, packet))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--delay", type=float, default=1e-3, help="seconds")
    parser.add_argument("--rate", type=float, default=1e9, help="bits a second")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    names = [f"njhost{os.getpid()}-{i}" for i in range(options.hosts)]
    ended, ends = threading.Event(), []
    code, handing = 1, None
    try:
        for i, name in enumerate(names):
            ends.append(tunnel(i, name))
        handing = threading.Thread(
            target=relay, args=(ends, options.delay, options.rate, ended), daemon=True
        )
        handing.start()
        beside = Path(sys.executable).parent / "mpiexec"
        command = [str(beside) if beside.exists() else "mpiexec"]
        for i, name in enumerate(names):
            command += [":"] * (i > 0)
            command += ["-n", "1", "ip", "netns", "exec", name, *options.command]
        # No shared memory: what one process tells another goes over the network.
        alone = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "FI_PROVIDER": "tcp",
                 "NUMJET_NUM_THREADS": "1"}  # fmt: skip
        code = subprocess.call(command, env={**os.environ, **alone})
    finally:
        ended.set()
        if handing is not None:
            handing.join()  # it reads of the tunnels, which go with their namespaces
        for name in names[: len(ends)]:
            subprocess.run(["ip", "netns", "del", name], check=False)
    sys.exit(code)


if __name__ == "__main__":
    main()
