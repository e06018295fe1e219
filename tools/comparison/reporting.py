"""Groups differences by function and kind, and prints each group with its shortest call."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field

from comparison.cases import PRELUDE, Case


@dataclass
class Report:
    """What was run and what differed."""

    total: int
    verbose: bool = False
    done: int = 0
    different: set[int] = field(default_factory=set)
    groups: dict[tuple[str, str], list[tuple[Case, str]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    accepted: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    started: float = field(default_factory=time.monotonic)
    shown: float = 0.0

    def add(self, case: Case, kind: str, text: str) -> None:
        """Note a difference, and show the first of its group at once."""
        self.different.add(case.number)
        group = self.groups[case.name, kind]
        group.append((case, text))
        if len(group) == 1 and self.verbose:
            print(f"{case.name}: {kind}\n    {case}\n      {text}", flush=True)

    def progress(self) -> None:
        """One line on a terminal, a line every half minute elsewhere."""
        now = time.monotonic()
        often = 0.5 if sys.stderr.isatty() else 30
        if now - self.shown < often and self.done < self.total:
            return
        self.shown = now
        line = (
            f"{self.done}/{self.total} cases, {len(self.different)} differ, "
            f"{now - self.started:.0f} s"
        )
        end = "\r" if sys.stderr.isatty() and self.done < self.total else "\n"
        print(line, end=end, file=sys.stderr, flush=True)

    def __str__(self) -> str:
        lines = []
        for (name, kind), found in sorted(self.groups.items()):
            case, text = min(found, key=lambda pair: len(str(pair[0])))
            lines += [f"{name}: {kind} ({len(found)})", f"    {case}", f"      {text}"]
        if lines:
            lines = [
                "Each group's shortest call. It reads:",
                "",
                *PRELUDE.format(library="numjet").splitlines(),
                "",
                *lines,
                "",
            ]
        for reason, count in sorted(self.accepted.items()):
            lines.append(f"accepted {count}: {reason}")
        lines.append(
            f"{self.done} cases in {time.monotonic() - self.started:.0f} s: "
            f"{len(self.different)} differ, in {len(self.groups)} groups of "
            f"{len({name for name, _ in self.groups})} functions"
        )
        return "\n".join(lines)
