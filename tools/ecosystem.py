"""Runs the tests of JAX's libraries on numjet and on JAX, and writes docs/ecosystem.md.

    python tools/ecosystem.py                every library, both systems, the page (make ecosystem)
    python tools/ecosystem.py optax chex     those alone
    python tools/ecosystem.py --quick        the quick part, numjet alone; fails where
                                             a test fails that is not in REASONS
    python tools/ecosystem.py --sample 12 --files 6 brax
                             twelve tests of six files, chosen by digests of their names (of all
                             files without --files): on numjet with an empty disk cache, again
                             with that cache, and on JAX

It makes two environments, `.venvs/ecosystem` with numjet's alias in JAX's place and
`.venvs/ecosystem-jax` with JAX, and installs the same releases into both. A library is tested by
the tests that its wheel or its source distribution ships; where there are none, by a program of
`tools/ecosystem_programs/` after the library's documented examples. Each run leaves a JUnit file in
`.venvs/ecosystem-results`; the page is made of those, so that a library can be run again alone.
A test that passes on JAX and fails on numjet counts as a failure unless REASONS gives the reason;
tests that JAX fails as well are not counted. Processor time is what the page compares: in what the
clock on the wall says of two runs, whatever else the machine does has its part.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

from ecosystem_programs.ecosystem_plugin import digest

ROOT = Path(__file__).resolve().parents[1]
VENVS = ROOT / ".venvs"
RESULTS = VENVS / "ecosystem-results"
PAGE = ROOT / "docs" / "ecosystem.md"
JAX = "0.10.2"
# What the tests of several libraries import, besides the libraries themselves.
TOOLS = ["pytest>=8", "pytest-timeout", "absl-py", "mock", "dill", "hypothesis", "scikit-learn"]
# Seconds for one test, and for all tests of a library, after which a run is cut off.
TEST_LIMIT, LIBRARY_LIMIT = 120, 1800


@dataclass(frozen=True)
class Library:
    """A library: its release (without a version: this project), where its tests are, and how they
    are run.

    tests: paths below site-packages ("wheel"), below the source distribution ("sdist"), or names of
    programs in tools/ecosystem_programs ("program"). quick: the paths of the quick part. part: what
    tells this part of a release's tests from another.
    """

    release: str
    source: str
    tests: tuple[str, ...]
    options: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    part: str = ""

    @property
    def project(self) -> str:
        return self.release.partition("==")[0]

    @property
    def name(self) -> str:
        return f"{self.project}-{self.part}" if self.part else self.project


LIBRARIES = (
    Library("optax==0.2.8", "wheel", ("optax",),
            quick=("optax/_src/update_test.py", "optax/_src/linear_algebra_test.py",
                   "optax/schedules/_schedule_test.py")),
    Library("chex==0.1.92", "wheel", ("chex",), quick=("chex/_src/dataclass_test.py",
                                                     "chex/_src/warnings_test.py",
                                                     "chex/_src/dimensions_test.py")),
    Library("flax==0.12.8", "sdist", ("tests/nnx",), needs=("einops", "cloudpickle"), part="nnx"),
    Library("flax==0.12.8", "sdist", ("tests/linen", "tests/core"),
            quick=("tests/linen/linen_activation_test.py", "tests/linen/initializers_test.py",
                   "tests/core/core_scope_test.py"), needs=("einops", "cloudpickle")),
    Library("equinox==0.13.8", "program", ("equinox_examples.py",),
            quick=("equinox_examples.py",)),
    Library("dm-haiku==0.0.17", "wheel", ("haiku",),
            quick=("haiku/_src/initializers_test.py", "haiku/_src/pool_test.py",
                   "haiku/_src/layer_norm_test.py", "haiku/_src/bias_test.py")),
    Library("numpyro==0.22.0", "sdist", ("test",)),
    Library("jaxtyping==0.3.11", "program", ("jaxtyping_examples.py",)),
    Library("einops==0.8.2", "wheel", ("einops/tests",)),
    Library("diffrax==0.7.2", "program", ("diffrax_examples.py",),
            quick=("diffrax_examples.py",)),
    Library("lineax==0.1.1", "program", ("lineax_examples.py",)),
    Library("optimistix==0.1.0", "program", ("optimistix_examples.py",)),
    Library("blackjax==1.7.1", "sdist", ("tests",)),
    # One of its modules turns 64 bits on for all that run after it in the process.
    Library("distrax==0.1.9", "wheel", ("distrax",), needs=("tfp-nightly",),
            options=("--ignore-glob=/*float64_test.py",)),
    Library("tfp-nightly==0.26.0.dev20261027", "program", ("tfp_examples.py",)),
    Library("jaxopt==0.8.5", "program", ("jaxopt_examples.py",)),
    Library("jraph==0.0.6.dev0", "wheel", ("jraph/_src",), needs=("pandas",)),
    Library("rlax==0.1.9", "wheel", ("rlax",)),
    Library("mctx==0.0.71", "wheel", ("mctx",)),
    Library("penzai==0.2.5", "sdist", ("tests",)),
    Library("quax==0.4.6", "sdist", ("tests",)),
    Library("tinygp==0.3.1", "sdist", ("tests",)),
    Library("ott-jax==0.6.0", "program", ("ott_examples.py",)),
    Library("flowjax==19.1.2", "sdist", ("tests",)),
    Library("gpjax==1.0.0", "sdist", ("tests",)),
    Library("e3nn-jax==0.21.0", "sdist", ("tests",)),
    Library("orbax-checkpoint==0.12.8", "program", ("orbax_examples.py",)),
    Library("brax==0.14.2", "wheel", ("brax",)),
    Library("netket==3.23.0", "program", ("netket_examples.py",)),
    Library("further", "program", ("further_examples.py",), needs=(
        "dynamax==1.0.3", "evosax==0.3.2", "jaxlie==1.5.0", "jax-md==0.2.29", "gymnax==1.0.1",
        "flashbax==0.1.3", "dm-pix==0.4.5", "quadax==0.3.1", "interpax==0.3.16")),
    # What people write without a library.
    Library("programs", "program", ("user_examples.py",)),
    # Those of `examples/` that are written for JAX and its libraries.
    Library("examples", "program", ("own_examples.py",), quick=("own_examples.py",),
            needs=("numpyro==0.22.0", "matplotlib", "tqdm")),
)

# Tests that pass on JAX and not here, by a pattern of their names, and why.
REASONS: tuple[tuple[str, str, str], ...] = (
    ("optax", r"hlo_equivalence", "compares the text of XLA's programs (HLO), which do not exist"),
    ("chex", r"restrict_backends", "forbids the CPU, the one backend"),
    ("flax", r"test_jit$|test_jit_decorated|test_jit_with_setup_helpers",
     "asks for equal bits of a jitted and an eager product: they differ in the last one"),
    ("flax", r"test_fp8_meta_dtype",
     "makes a dtype with its own zero and addition of JAX's private classes (fp8_meta32)"),
    ("rlax", r"pop_art_test",
     "JAX fails as well: wants four devices in a process that has used one"),
    ("blackjax", r"GaussianRiemannianMetricsTest|test_isokinetic_velocity_verlet",
     "asks a jitted and an eager result to agree within 1 or 10 roundings of float32"),
    ("blackjax", r"test_non_symmetric_proposal",
     "asks for a printed acceptance rate within 2 roundings of float32; here it is 3 off"),
    ("blackjax", r"test_bit_identical_to_uncached_reference",
     "asks for equal bits of two programs of one energy: they differ in the last one"),
    ("distrax", r"test_method_with_inputs_log_survival_function",
     "asks the logarithms of unseeded draws to agree within one rounding of float32"),
    ("penzai", r"test_jit_wrapper",
     "asks for equal bits of a jitted and an eager result: they differ in the last one"),
    ("gpjax", r"test_natgrad_step_replicates", "reads the text of XLA's programs (StableHLO)"),
    ("gpjax", r"test_collapsed_prior_kl", "asks for the sign of a rounding error (4e-16)"),
    ("e3nn-jax", r"test_normalization_integral",
     "SymPy takes longer than a test may on the loaded machine"),
    ("dm-haiku", r"test_precision", "compares the text of XLA's programs (HLO)"),
    ("dm-haiku", r"test_haiku_module",
     "shows names of scopes (named_scope), which equations do not hold here"),
    ("dm-haiku", r"test_resnet_50_apply_equivalence",
     "asks for equal bits of a jitted and an eager result: they differ in the last one"),
    ("einops", r"test_flax_layers", "JAX fails as well: there is no jax.tree_map"),
    ("brax", r"test_fluid", "JAX fails as well: clip knows no a_min"),
    ("brax", r"test_matrix", "JAX fails as well: this release of MuJoCo has no MjData.qM"),
    ("brax", r"dm_env_test|gym_test", "JAX fails as well: its module cannot be imported"),
    ("jraph", r"utils_test", "JAX fails as well: its module cannot be imported"),
    ("brax", r"test_pipeline_ant", "takes longer than a test may on the loaded machine"),
    ("numpyro", r"test_optim_multi_params\[(RMSProp|rmsprop)-",
     "rests on denormal numbers counting as zero"),
    ("numpyro", r"entropy_with_logits_at_boundary",
     "rests on infinity times False being zero (XLA makes a selection of that product)"),
    ("numpyro", r"VonMises.*params274|OrderedLogistic.*params256|test_log1mexp_agrees_with_basic|"
     r"test_scale\[False\]|test_bijective_transforms\[transform15",
     "asks for the last bit of float32, and JAX's happens to be the other"),
)


def python(side: str) -> Path:
    return VENVS / ("ecosystem" if side == "numjet" else "ecosystem-jax") / "bin" / "python"


def call(*arguments: object, **keywords: object) -> subprocess.CompletedProcess:
    return subprocess.run([str(a) for a in arguments], check=True, **keywords)  # type: ignore


def make_environment(side: str, libraries: list[Library]) -> None:
    """The environment of `side` with all libraries; what is there is not installed again."""
    interpreter = python(side)
    if not interpreter.exists():
        call(sys.executable, "-m", "venv", interpreter.parent.parent)
    pip = [interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if side == "numjet":
        call(*pip, "-e", ROOT)
        call(interpreter, "-m", "numjet.as_jax", "install")
    else:
        call(*pip, f"jax=={JAX}", f"jaxlib=={JAX}")
    wanted = [*TOOLS, *[lib.release for lib in libraries if "==" in lib.release]]
    wanted += [need for lib in libraries for need in lib.needs]
    call(*pip, *wanted)


def site(side: str) -> Path:
    folder = python(side).parent.parent
    return next(folder.glob("lib/python*/site-packages"))


def source(library: Library) -> Path:
    """The unpacked source distribution of `library`."""
    folder = VENVS / "ecosystem-sources"
    folder.mkdir(parents=True, exist_ok=True)
    stem = library.release.replace("==", "-").replace("-", "_", library.project.count("-"))
    if not (folder / stem).exists():
        call(python("numjet"), "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
             "--no-deps", "--no-binary", library.project, "--dest", folder, library.release)
        with tarfile.open(next(folder.glob(f"{stem}*.tar.gz"))) as archive:
            archive.extractall(folder, filter="data")
    return folder / stem


def sampled_files(paths: list[Path], count: int) -> list[Path]:
    """The `count` test files below `paths` whose names have the smallest digests."""
    found = {f for path in paths for pattern in ("test_*.py", "*_test.py")
             for f in (path.rglob(pattern) if path.is_dir() else [path])}
    return sorted(found, key=lambda f: (digest(f.name), f))[:count]


def run(library: Library, side: str, tests: tuple[str, ...], sample: int = 0, files: int = 0,
        again: bool = False) -> Path:
    """Run `tests` of a library; returns the JUnit file.

    sample: so many of the tests alone, of so many files; numjet's then begin with an empty disk
    cache, or, with `again`, with that of the run before.
    """
    places = {
        "wheel": lambda: site(side),
        "sdist": lambda: source(library),
        "program": lambda: ROOT / "tools" / "ecosystem_programs",
    }
    base = places[library.source]()
    RESULTS.mkdir(parents=True, exist_ok=True)
    name = f"{library.name}-{side}" + ("-sample" if sample else "") + ("-again" if again else "")
    work = RESULTS / name
    work.mkdir(exist_ok=True)
    report = RESULTS / f"{name}.xml"
    report.unlink(missing_ok=True)
    paths = [base / test for test in tests]
    environment = {**os.environ, "EINOPS_TEST_BACKENDS": "numpy,jax",
                   # Not tools/ itself: its coverage.py would be what numba imports.
                   "PYTHONPATH": str(ROOT / "tools" / "ecosystem_programs")}
    # Sources that cannot be written beside are compiled at every import.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if sample:
        cache = RESULTS / f"{library.name}-cache"
        if not again:
            shutil.rmtree(cache, ignore_errors=True)
        environment["NUMJET_CACHE_DIR"] = str(cache)
        paths = sampled_files(paths, files) if files else paths
    command = [
        python(side), "-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider",
        "-p", "ecosystem_plugin", f"--sample={sample}", "-W", "ignore", "--tb=line",
        f"--timeout={TEST_LIMIT}", f"--session-timeout={LIBRARY_LIMIT}",
        "--continue-on-collection-errors", f"--junitxml={report}", *library.options, *paths,
    ]  # fmt: skip
    with open(work / "log.txt", "w") as log:
        try:
            subprocess.run([str(c) for c in command], cwd=work, stdout=log, stderr=log,
                           timeout=LIBRARY_LIMIT + 5 * TEST_LIMIT, check=False,
                           env=environment)
        except subprocess.TimeoutExpired:
            log.write(f"\ncut off after {LIBRARY_LIMIT} seconds\n")
    return report


def read(report: Path) -> dict[str, tuple[str, float, str]]:
    """Test -> (passed, failed or skipped; processor seconds; message) of a JUnit file; {} without
    one."""
    found: dict[str, tuple[str, float, str]] = {}
    if not report.exists():
        return found
    for case in ElementTree.parse(report).iter("testcase"):
        # Under another folder the same test has another prefix.
        place = str(case.get("classname")).split("site-packages.")[-1].split("programs.")[-1]
        name = f"{place.split('.lib.python')[-1]}::{case.get('name')}"
        outcome, message = "passed", ""
        for child in case:
            if child.tag in ("failure", "error"):
                outcome, message = "failed", (child.get("message") or "").strip().split("\n")[0]
            elif child.tag == "skipped":
                outcome = "skipped"
        if found.get(name, ("",))[0] != "failed":
            told = {p.get("name"): p.get("value") for p in case.iter("property")}
            seconds = told.get("processor_seconds") or case.get("time") or 0
            found[name] = (outcome, float(seconds), message)
    return found


def reason(library: str, test: str) -> str | None:
    for name, pattern, why in REASONS:
        if name == library and re.search(pattern, test):
            return why
    return None


def sample_rows(libraries: tuple[Library, ...], before: list[str]) -> list[str]:
    """The table of the samples' times: what was measured now, else the rows of `before`."""
    rows = []
    for library in libraries:
        first, again, theirs = [read(RESULTS / f"{library.name}-{run}.xml") for run in (
            "numjet-sample", "numjet-sample-again", "jax-sample")]
        good = [t for t, (outcome, _, _) in theirs.items() if outcome == "passed"]
        both = [t for t in good if first.get(t, ("",))[0] == again.get(t, ("",))[0] == "passed"]
        if not both:
            rows += [line for line in before if line.startswith(f"| {library.name} ") and
                     line.count("|") == 9]
            continue
        times = [sum(found[t][1] for t in both) for found in (first, again, theirs)]
        failed = sum(first.get(t, ("",))[0] == "failed" for t in good)
        rows.append(f"| {library.name} | {len(both)} | {failed} | {times[0]:.2f} | {times[1]:.2f} "
                    f"| {times[2]:.2f} | {times[0] / times[2]:.2f} | {times[1] / times[2]:.2f} |")
    return rows


def kept_section(title: str, before: list[str]) -> list[str]:
    """The lines of a section that is written by hand, as `before` has them."""
    if title not in before:
        return []
    rest = before[before.index(title) :]
    return rest[: next((i for i, x in enumerate(rest) if i and x.startswith("## ")), len(rest))]


def page(libraries: tuple[Library, ...]) -> str:
    """The text of docs/ecosystem.md, of the results that are there."""
    rows, failures = [], []
    before = PAGE.read_text().splitlines() if PAGE.exists() else []
    for library in libraries:
        ours = read(RESULTS / f"{library.name}-numjet.xml")
        theirs = read(RESULTS / f"{library.name}-jax.xml")
        if not ours:  # what an earlier run told of it stays
            rows += [line for line in before if line.startswith(f"| {library.name} ") and
                     line.count("|") == 10]
            failures += [line for line in before if line.startswith(f"| {library.name} ") and
                         line.count("|") == 5]
            continue
        kind = {"wheel": "tests in the wheel", "sdist": "tests in the source distribution",
                "program": "documented examples"}[library.source]
        passed = [t for t, (outcome, _, _) in ours.items() if outcome == "passed"]
        failed = [t for t, (outcome, _, _) in ours.items() if outcome == "failed"]
        jax_passed = {t for t, (outcome, _, _) in theirs.items() if outcome == "passed"}
        counted = [t for t in failed if t in jax_passed]
        both = [t for t in passed if t in jax_passed]
        seconds = [sum(found[t][1] for t in both) for found in (ours, theirs)] if both else None
        told = f"{len(passed)} | {len(failed)}"
        if theirs:
            jax_failed = sum(outcome == "failed" for outcome, _, _ in theirs.values())
            told += f" | {len(counted)} | {len(jax_passed)} | {jax_failed}"
        else:
            told += " | | | "
        times = f"{seconds[0]:.1f} | {seconds[1]:.1f}" if seconds else " | "
        if not theirs:
            times = f"{sum(ours[t][1] for t in passed):.1f} | "
        version = library.release.removeprefix(library.project).replace("==", " ")
        rows.append(f"| {library.name}{version} | {kind} | {told} | {times} |")
        groups: dict[str, list[str]] = {}
        for test in counted if theirs else failed:
            why = reason(library.name, test) or f"open: {ours[test][2][:110]}"
            groups.setdefault(why, []).append(test)
        for why, tests in sorted(groups.items(), key=lambda item: -len(item[1])):
            example = tests[0].rpartition("::")[2]
            failures.append(f"| {library.name} | {len(tests)} | {example} | "
                            f"{why.replace('|', '/')} |")
    return "\n".join([
        "# Libraries",
        "",
        "Made by `make ecosystem` (`tools/ecosystem.py`): the tests that JAX's libraries ship, or "
        "programs after",
        "their documented examples (`tools/ecosystem_programs/`), on numjet under JAX's name and "
        f"on JAX {JAX}.",
        "Of the tests that fail, those count that pass on JAX. The seconds are those inside of the "
        "tests that pass on both, with",
        "numjet's disk cache on, by the clock on the wall in rows that were made on a loaded "
        "machine: processor times are",
        "below. Where JAX's columns are empty its run was not made: all failures are listed, and "
        "the seconds are of",
        "the tests that pass. A run is cut off after half an hour: then JAX's columns are of the "
        "tests that it",
        "finished, and the seconds of those that both did.",
        "",
        "| library | what runs | passed | failed | of these pass on JAX | JAX passed | JAX failed "
        "| seconds | JAX's seconds |",
        "|---|---|---|---|---|---|---|---|---|",
        *rows,
        "",
        "## Time beside JAX",
        "",
        "Processor seconds inside of tests that pass on both, of a sample chosen by digests of the "
        "tests' names",
        "(`tools/ecosystem.py --sample`): on numjet with an empty disk cache, again with what that "
        "run left there, and on JAX. An empty cache lacks numjet's own runtime as well, which the "
        "first test waits for;",
        "orbax-checkpoint's time goes into files and its own threads on both sides (of 0.2 s, "
        "0.01 is numjet's).",
        "",
        "| library | tests | fail here alone | first run | again | JAX | first / JAX "
        "| again / JAX |",
        "|---|---|---|---|---|---|---|---|",
        *sample_rows(libraries, before),
        "",
        *kept_section("## Other packages", before),
        "## Tests that fail",
        "",
        "| library | tests | for example | why |",
        "|---|---|---|---|",
        *failures,
        "",
    ])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("libraries", nargs="*", help="names; all without any")
    parser.add_argument("--quick", action="store_true", help="the quick part, numjet alone")
    parser.add_argument("--side", choices=("numjet", "jax", "both"), default="both")
    parser.add_argument("--sample", type=int, default=0, help="so many tests, for their times")
    parser.add_argument("--files", type=int, default=0, help="of so many files")
    parser.add_argument("--page", action="store_true", help="write the page of what is there")
    options = parser.parse_args()
    unknown = set(options.libraries) - {lib.name for lib in LIBRARIES}
    if unknown:
        parser.error(f"unknown libraries: {', '.join(sorted(unknown))}")
    chosen = [lib for lib in LIBRARIES if lib.name in options.libraries or not options.libraries]
    if options.quick:
        sys.exit(quick([lib for lib in chosen if lib.quick]))
    if not options.page:
        sides = ("numjet", "jax") if options.side == "both" else (options.side,)
        for side in sides:
            make_environment(side, chosen)
        for library in chosen if options.sample else ():
            for side in sides:
                for again in (False, True) if side == "numjet" else (False,):
                    found = read(run(library, side, library.tests, options.sample, options.files,
                                     again))
                    passed = sum(outcome == "passed" for outcome, _, _ in found.values())
                    print(f"{library.name} on {side}: {passed} of {len(found)} passed, "
                          f"{sum(s for _, s, _ in found.values()):.2f} s", flush=True)
        for library in chosen if not options.sample else ():
            for side in sides:
                began = time.perf_counter()
                found = read(run(library, side, library.tests))
                outcomes = [outcome for outcome, _, _ in found.values()]
                print(f"{library.name} on {side}: {outcomes.count('passed')} passed, "
                      f"{outcomes.count('failed')} failed, {time.perf_counter() - began:.0f} s",
                      flush=True)  # fmt: skip
    PAGE.write_text(page(LIBRARIES))


def quick(libraries: list[Library]) -> int:
    """Run the quick part on numjet; the number of libraries with a failure that has no reason."""
    make_environment("numjet", libraries)
    wrong = 0
    for library in libraries:
        found = read(run(library, "numjet", library.quick))
        failed = [test for test, (outcome, _, _) in found.items() if outcome == "failed"]
        open_ones = [test for test in failed if reason(library.name, test) is None]
        print(f"{library.name}: {len(found)} tests, {len(open_ones)} failed", *open_ones,
              sep="\n  ", flush=True)
        wrong += bool(open_ones) or not found
    return wrong


if __name__ == "__main__":
    main()
