"""Compares numjet with JAX on generated calls of every public function.

    python tools/compare.py SEED COUNT [--only NAME] [--case NUMBER] [--jobs N] [--types]
        [--verbose]

Draws COUNT calls (shapes, dtypes, axes, options, weak types, edge values, modes) from SEED, runs
each under numjet and under JAX in another process, eagerly, jitted and differentiated, and prints
what differs beyond the stated tolerances: values, dtypes, weak types, shapes, exceptions' classes.
The groups of differences come with their shortest call. --only: one function (`numpy.sum`, or
`sum`) or those of a module (`numpy.fft.`). --case: this one alone. --types: dtypes, weak types,
shapes and exceptions alone, by JAX's abstract evaluation, which takes a tenth of the time. Exits
with 1 when something differs.

The tables of arguments, tolerances and accepted differences are in tools/comparison/; how to add a
function is told in docs/testing.md. JAX is the Python of NUMJET_ORACLE_PYTHON, or .venvs/oracle.
"""

from __future__ import annotations

import argparse

from comparison.accepted import reason
from comparison.cases import generate
from comparison.judging import differences
from comparison.reporting import Report
from comparison.running import both


def compare(
    seed: int,
    count: int,
    only: str | list[str] | None = None,
    number: int | None = None,
    jobs: int = 1,
    verbose: bool = False,
    types: bool = False,
) -> Report:
    """Run the cases and return the report."""
    cases = generate(seed, count if number is None else number + 1, only, types)
    if number is not None:
        cases = [cases[number]]
    report = Report(len(cases), verbose)

    def judge(case, theirs, ours):
        for kind, text in differences(case, theirs, ours):
            why = reason(case, kind, text)
            if why:
                report.accepted[why] += 1
            else:
                report.add(case, kind, text)
        report.done += 1
        report.progress()

    both(cases, judge, jobs)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--only", help="a function, or a module with a dot at its end")
    parser.add_argument("--case", type=int, help="run the case of this number alone")
    parser.add_argument("--jobs", type=int, default=1, help="pairs of processes side by side")
    parser.add_argument("--types", action="store_true", help="types and exceptions, no values")
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="show the first call of each group as soon as it is found",
    )
    args = parser.parse_args()
    report = compare(
        args.seed, args.count, args.only, args.case, args.jobs, args.verbose, args.types
    )
    print(report)
    raise SystemExit(bool(report.groups))


if __name__ == "__main__":
    main()
