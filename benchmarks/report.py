"""Verdicts, printing, results.md, results.json and the plot. Called by run.py only."""

from __future__ import annotations

import datetime
import json
import math
import os
import pathlib
import platform
import statistics
from typing import Any

import peers
from registry import GROUP_BARS, ROWS, Row

# Every row's bar: no slower than this times the best peer.
BEST = 1.05


def machine() -> str:
    """One line: processor, cores, system, and how busy the machine was at the start."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
        name = names[0] if names else name
    except OSError:
        pass
    load = os.getloadavg()[0]
    return f"{name}, {len(peers.cores())} cores, {platform.system()}, load {load:.1f} at the start"


def duration(seconds: float) -> str:
    """Three digits with a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def size(count: float) -> str:
    """Bytes: three digits with a unit."""
    for unit, scale in (("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} B"


def amount(row: Row, value: float) -> str:
    """A row's figure in its unit."""
    return size(value) if row.unit == "bytes" else duration(value)


def medians(times: dict[str, list[float]]) -> dict[str, float]:
    return {peer: statistics.median(values) for peer, values in times.items()}


def spread(values: list[float]) -> float:
    """Half the distance between the quartiles over the median."""
    if len(values) < 3:
        return (max(values) - min(values)) / 2 / statistics.median(values)
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / 2 / statistics.median(values)


def limit_of(row: Row, limits: dict[str, float], moved: float) -> float | None:
    """The least time that arithmetic allows and memory, in which the row's bytes were moved in
    `moved` seconds; None for a row without figures."""
    compute = row.flops / limits["flops"] * (2 if row.double else 1)
    return max(moved, compute) or None


def judge(row: Row, outcome: dict) -> None:
    """Add ratios and verdicts to a row's entry; bars are for the first thread count, all cores."""
    entry = outcome["rows"][row.name]
    label = next(iter(outcome["threads"]))
    found = medians(entry["times"][label])
    limit = limit_of(row, outcome["limits"][label], entry["moved"].get(label, 0.0))
    entry["limit"] = limit
    # The same ratios of the fastest repetitions, which other work on the machine disturbs less.
    least = {peer: min(times) for peer, times in entry["times"][label].items()}
    entry["fastest"] = {p: least["numjet"] / t for p, t in least.items() if "numjet" in least}
    ours = found.get("numjet")
    entry["bars"] = []
    if ours is None:
        entry["verdict"] = "FAIL"
        return
    others = {peer: time for peer, time in found.items() if peer != "numjet"}
    entry["ratios"] = {peer: ours / time for peer, time in others.items()}
    best = ours / min(others.values()) if others else None
    entry["best"] = best
    entry["of_limit"] = limit / ours if limit else None
    bars = dict(row.bars)
    # One call of a library from Python has bars of its own.
    if others and "best" not in bars and not row.cold and row.group != "eager":
        bars["best"] = BEST
    for kind, bar in bars.items():
        if kind == "limit":
            value = entry["of_limit"]
            # How far: over 1 is a miss, for every kind of bar.
            distance = bar / value
        else:
            value = _value(kind, ours, others, best, outcome, label)
            if value is None:
                continue
            distance = value / bar
        entry["bars"].append({"kind": kind, "bar": bar, "value": value, "distance": distance})
    worst = max((item["distance"] for item in entry["bars"]), default=0.0)
    entry["distance"] = worst
    entry["verdict"] = "PASS" if worst <= 1.0 else "MISS"


def _value(kind, ours, others, best, outcome, label) -> float | None:
    if kind in ("seconds", "bytes"):
        return ours
    if kind == "best":
        return best
    if kind.startswith("row:"):
        base = outcome["rows"].get(kind[4:])
        if base is None or "numjet" not in base["times"].get(label, {}):
            return None
        return ours / statistics.median(base["times"][label]["numjet"])
    return ours / others[kind] if kind in others else None


def bar_text(item: dict) -> str:
    kind, bar, value = item["kind"], item["bar"], item["value"]
    mark = "" if item["distance"] <= 1 else " ✗"
    if kind == "limit":
        return f"limit {value:.0%} ≥ {bar:.0%}{mark}"
    if kind == "seconds":
        return f"{duration(value)} ≤ {duration(bar)}{mark}"
    if kind == "bytes":
        return f"{size(value)} ≤ {size(bar)}{mark}"
    name = peers.TITLES.get(kind, kind.replace("row:", ""))
    return f"{name} {value:.3g} ≤ {bar:g}{mark}"


def geometric_means(outcome: dict, group: str = "") -> dict[str, tuple[float, int]]:
    """For each peer the geometric mean of the ratios of a group's rows, and how many rows."""
    collected: dict[str, list[float]] = {}
    for name, entry in outcome["rows"].items():
        if group not in ("", ROWS[name].group) or ROWS[name].unit == "bytes":
            continue
        for peer, ratio in entry.get("ratios", {}).items():
            collected.setdefault(peer, []).append(ratio)
        if entry.get("best"):
            collected.setdefault("best", []).append(entry["best"])
    return {
        peer: (math.exp(statistics.fmean(map(math.log, ratios))), len(ratios))
        for peer, ratios in collected.items()
    }


def head_lines(outcome: dict) -> list[str]:
    lines = [outcome["machine"]]
    versions = ", ".join(
        f"{peers.TITLES[peer]} {version}" for peer, version in outcome["versions"].items()
    )
    lines.append(versions)
    for label, count in outcome["threads"].items():
        limits = outcome["limits"][label]
        lines.append(
            f"{count} thread{'s' * (count > 1)}: read {limits['read'] / 1e9:.1f} GB/s, "
            f"copy {limits['copy'] / 1e9:.1f} GB/s, "
            f"float32 multiply-adds {limits['flops'] / 1e9:.0f} GFLOP/s"
        )
    return lines


def print_head(outcome: dict) -> None:
    print("\n".join(head_lines(outcome)))
    print("Times: median ± half the interquartile range, all threads; in brackets one thread.\n")


def print_row(row: Row, outcome: dict) -> None:
    entry = outcome["rows"][row.name]
    labels = list(outcome["threads"])
    cells = []
    for peer in ("numjet", *peers.PEERS):
        values = entry["times"][labels[0]].get(peer)
        if values is None:
            continue
        text = f"{peers.TITLES[peer]} {amount(row, statistics.median(values))}"
        text += f" ±{spread(values):.0%}" if peer == "numjet" else ""
        alone = entry["times"].get("1", {}).get(peer) if len(labels) > 1 else None
        text += f" ({duration(statistics.median(alone))})" if alone else ""
        cells.append(text)
    bars = ", ".join(bar_text(item) for item in entry["bars"])
    print(f"{entry['verdict']} {row.name:18s} {' | '.join(cells)} | {bars}", flush=True)
    for label, failures in entry["failures"].items():
        for peer, text in failures.items():
            print(f"     {peers.TITLES[peer]} failed ({label}): {text[:200]}", flush=True)


def foot_lines(outcome: dict) -> list[str]:
    lines = []
    for peer, (mean, count) in geometric_means(outcome).items():
        name = peers.TITLES.get(peer, "the best peer")
        lines.append(f"Geometric mean against {name} over {count} rows: {mean:.3f}")
    for group, bar in GROUP_BARS.items():
        mean, count = geometric_means(outcome, group).get("jax", (None, 0))
        if mean is not None:
            verdict = "PASS" if mean <= bar else "MISS"
            name = f"the {group} rows" if group else "all rows"
            lines.append(f"{verdict}: {name} against JAX, geometric mean {mean:.3f} ≤ {bar}")
    verdicts = [entry["verdict"] for entry in outcome["rows"].values()]
    lines.append(", ".join(f"{verdicts.count(v)} {v}" for v in ("PASS", "MISS", "FAIL")))
    return lines


def print_foot(outcome: dict) -> None:
    print("\n" + "\n".join(foot_lines(outcome)))


def markdown(outcome: dict) -> str:
    """results.md."""
    labels = list(outcome["threads"])
    today = datetime.date.today().isoformat()
    lines = ["# Benchmark", "", f"Written by `make bench` on {today}.", ""]
    lines += [f"- {line}" for line in head_lines(outcome)]
    if outcome.get("note"):
        lines.append(f"- {outcome['note']}")
    lines += [
        "- Times are medians of alternating repetitions, on all cores, with half the interquartile "
        "range for numjet; in brackets on one. Ratios are numjet's time over the peer's (below 1: "
        "numjet is faster). Limit: the share of what memory and multiply-adds allow; memory's is "
        "to move as many bytes as the row has to, in other memory, timed like a package and in "
        "turn with it (medians, the best of four ways). The bandwidths above are the best of many, "
        "from 256 MB. Each row's results were compared with the peers' before it was timed. "
        "PyTorch runs eagerly.",
        "- A row passes when it meets its bars; every row but start-up and single eager calls also "
        f"has to stay within {BEST} × the best peer.",
        "",
    ]
    lines += [f"**{line}**  " for line in foot_lines(outcome)]
    header = ["row", "numjet", *(peers.TITLES[p] for p in peers.PEERS), "÷ JAX", "÷ best", "limit"]
    header += ["bars", ""]
    group = None
    for name, entry in outcome["rows"].items():
        row = ROWS[name]
        if row.group != group:
            group = row.group
            lines += ["", f"## {group}", "", "| " + " | ".join(header) + " |"]
            lines.append("|" + "---|" * len(header))
        cells = [row.title]
        for peer in ("numjet", *peers.PEERS):
            cells.append(_cell(row, entry, peer, labels))
        ratio = entry.get("ratios", {}).get("jax")
        cells.append(f"{ratio:.3g}" if ratio else "")
        cells.append(f"{entry['best']:.3g}" if entry.get("best") else "")
        cells.append(f"{entry['of_limit']:.0%}" if entry.get("of_limit") else "")
        cells.append(", ".join(bar_text(item) for item in entry["bars"]))
        cells.append(entry["verdict"])
        lines.append("| " + " | ".join(cells) + " |")
    failures = [
        f"- {ROWS[name].title}, {peers.TITLES[peer]}, threads {label}: {text[:300]}"
        for name, entry in outcome["rows"].items()
        for label, failed in entry["failures"].items()
        for peer, text in failed.items()
    ]
    if failures:
        lines += ["", "## What failed", "", *failures]
    return "\n".join(lines) + "\n"


def _cell(row: Row, entry: dict, peer: str, labels: list[str]) -> str:
    values = entry["times"][labels[0]].get(peer)
    if values is None:
        return "fails" if peer in entry["failures"][labels[0]] else ""
    text = amount(row, statistics.median(values))
    if peer == "numjet":
        text += f" ± {spread(values):.0%}"
    alone = entry["times"].get("1", {}).get(peer) if len(labels) > 1 else None
    return text + (f" ({duration(statistics.median(alone))})" if alone else "")


def plot(outcome: dict, path: pathlib.Path) -> None:
    """Ratios to JAX and to the best peer of all rows, on a logarithmic axis."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot

    entries = [(ROWS[n], e) for n, e in outcome["rows"].items() if e.get("ratios")]
    entries = [(row, entry) for row, entry in entries if row.unit == "seconds"]
    figure, axes = pyplot.subplots(figsize=(9, 0.21 * len(entries) + 1.5))
    places = range(len(entries))
    against_jax = [entry["ratios"].get("jax", math.nan) for _, entry in entries]
    colours = ["#2a7f62" if entry["verdict"] == "PASS" else "#c8553d" for _, entry in entries]
    axes.barh(places, [math.log10(r) for r in against_jax], color=colours, height=0.7)
    axes.plot(
        [math.log10(entry["best"]) for _, entry in entries], places, "k|", label="÷ best peer"
    )
    wanted = [(y, row.bars["jax"]) for y, (row, _) in zip(places, entries) if "jax" in row.bars]
    axes.plot(
        [math.log10(bar) for _, bar in wanted],
        [y for y, _ in wanted],
        "o",
        color="#e0a800",
        markersize=3,
        label="bar against JAX",
    )
    axes.set_yticks(list(places), [row.title for row, _ in entries], fontsize=7)
    ticks = range(-4, 2)
    axes.set_xticks(list(ticks), [f"{10.0**t:g}" for t in ticks])
    axes.set_xlim(-4, 1)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    axes.set_xlabel("numjet's time ÷ JAX's time (green: the row's bars are met)")
    axes.legend(loc="lower left", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def write(outcome: dict, folder: pathlib.Path) -> None:
    """Write the three files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.md").write_text(markdown(outcome))
    plain: dict[str, Any] = dict(outcome)
    (folder / "results.json").write_text(json.dumps(plain, indent=1) + "\n")
    plot(outcome, folder / "results.png")
    print(f"wrote {folder / 'results.md'}, results.json and results.png")
