"""The differential fuzzer: programs drawn at random, run in ways that have to agree.

    python tools/fuzz.py SEED COUNT [--levels x86-64-v2,x86-64-v3,native] [--jobs N] [--jax EVERY]
    python tools/fuzz.py SEED COUNT --platform xla_cpu
    python tools/fuzz.py SEED COUNT --small
    python tools/fuzz.py --show SEED

Program k of a run has the seed SEED + k. Each is run operation by operation and compiled, under two
transformations, with arguments that lie oddly in memory or are donated, by both code generators
where there are two, and once for each width of vectors (a level of the architecture is a process of
its own); of every EVERYth program JAX gives its opinion. With --platform each is compiled for a
device of that platform instead; with --small what the compiler does to large arrays alone it does
to small ones (fuzzing/sizes.py). A difference is made smaller and printed as a script. A crash is
found too: a process ends with the seed that it had announced. Ends with 1 where anything differs.
docs/testing.md says which seeds have been run.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEVELS = ("native", "x86-64-v3", "x86-64-v2")
BATCH = 200  # programs of one process


def work(level: str, seed: int, count: int, jax: int, small: int, platform: str) -> None:
    """Run programs in this process, announcing each."""
    from fuzzing import judge, oracle, shrink, sizes
    from fuzzing.drawer import draw

    import numjet as nj
    from numjet.cpu.link import link

    warnings.simplefilter("ignore")
    faulthandler.register(signal.SIGUSR1)  # where a program is that does not end
    if small:
        sizes.lower()
    direct = link.direct()
    found = []
    for k in range(seed, seed + count):
        print(f"seed {k}", flush=True)
        program = draw(k)
        difference = judge.check(program, direct, platform=platform)
        if difference is not None:
            found.append(difference)
        if k % 20 == 19:
            nj.clear_caches()
    if jax:
        found += oracle.differences([draw(k) for k in range(seed, seed + count) if k % jax == 0])
    for difference in found:
        small, way = difference.program, difference.way
        if way != "JAX":
            small = shrink.shrunk(small, lambda p, d=difference: d.shown_by(p, direct))
        print("difference", flush=True)
        print(shrink.reproducer(small, way, difference.what, level), flush=True)
    print("done", flush=True)


def batch(
    level: str, seed: int, count: int, jax: int, small: int, platform: str
) -> list[str]:
    """The differences that a process finds; after a crash the rest goes to another process."""
    found: list[str] = []
    end = seed + count
    while seed < end:
        command = [sys.executable, __file__, "--work", level, str(seed), str(end - seed), str(jax),
                   str(small), platform]  # fmt: skip
        environment = os.environ | {"NUMJET_CPU": level, "NUMJET_DISK_CACHE": "0"}
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(ROOT), str(ROOT / "tools"), os.environ.get("PYTHONPATH", "")])  # fmt: skip
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True,
                                  timeout=60 + 20 * count)  # fmt: skip
            out, err, code = done.stdout, done.stderr, done.returncode
        except subprocess.TimeoutExpired as late:
            out, err, code = (late.stdout or b"").decode(), "it does not end", -1
        head, *scripts = out.split("difference\n")
        found += [script.removesuffix("done\n") for script in scripts]
        if out.endswith("done\n"):
            break
        last = int(head.rpartition("seed ")[2].split()[0]) if "seed " in head else seed
        found.append(f"the process of seed {last} at {level} ended with {code}: {err[-2000:]}\n")
        seed = last + 1
    return found


def main() -> None:
    """Read the command line; run; end with 1 where something differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("seed", type=int, nargs="?", default=int(time.time()) // 86400 * 1000)
    parser.add_argument("count", type=int, nargs="?", default=200)
    parser.add_argument("--levels", default=",".join(LEVELS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--jax", type=int, default=0, help="ask JAX about every EVERYth program")
    parser.add_argument("--platform", default="", help="compare with a device of this platform")
    parser.add_argument("--small", action="store_true", help="small arrays as if they were large")
    parser.add_argument("--show", type=int, help="print the program of a seed")
    parser.add_argument("--work", nargs=6, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        level, *numbers, platform = given.work
        work(level, *map(int, numbers), platform)
        return
    if given.show is not None:
        sys.path[:0] = [str(ROOT), str(ROOT / "tools")]
        from fuzzing.drawer import draw

        print(draw(given.show).text())
        return
    import on_level

    levels = []
    for level in ["native"] if given.platform else given.levels.split(","):
        reason = None if level == "native" else on_level.left_out(level)
        if reason is None:
            levels.append(level)
        else:
            print(f"{level} is left out: {reason}", flush=True)
    if not levels:
        sys.exit("no program was run: name a level that this processor can be, or native")
    print(f"programs {given.seed} to {given.seed + given.count - 1} at {', '.join(levels)}",
          flush=True)  # fmt: skip
    end = given.seed + given.count
    jobs = [
        (level, start, min(BATCH, end - start), given.jax if level == "native" else 0,
         int(given.small), given.platform)
        for start in range(given.seed, end, BATCH) for level in levels
    ]  # fmt: skip
    found = 0
    with ThreadPoolExecutor(given.jobs) as pool:
        for (level, start, count, *_), scripts in zip(jobs, pool.map(lambda j: batch(*j), jobs)):
            for script in scripts:
                found += 1
                print(f"-------- {found}\n{script}", flush=True)
            print(f"{level} {start}..{start + count - 1}: {len(scripts)}", flush=True)
    print(f"{given.count} programs, {found} differences")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
