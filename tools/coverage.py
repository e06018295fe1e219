"""What of JAX's public surface is there: names that are missing, signatures that differ.

    python tools/coverage.py                     figures for each module, and what is missing in all
    python tools/coverage.py jax.lax jax.numpy   these modules, with every name
    python tools/coverage.py --update FILE...    make tools/public_api.csv anew out of the FILEs
    python tools/coverage.py --page              write docs/coverage.md: each name, and its test

The contract is tools/public_api.csv: module, name, kind and signature of JAX's public names, the
signatures without annotations and addresses. A FILE is a CSV of the same columns as
`inspect.signature` prints them. tests/api/test_coverage.py holds every signature to it.

Two signatures agree when their parameters have the same names, order, kinds and defaults. What JAX
has as a callable object without a signature is only looked for by its name. EXCEPTIONS names the
signatures that differ on purpose, each with its reason.
"""
from __future__ import annotations

import argparse
import ast
import csv
import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numjet.as_jax import namespaces

CONTRACT = Path(__file__).with_name("public_api.csv")

# Where a module of JAX stands here under another name: the internal packages hold the plain ones.
ELSEWHERE = {"jax.ops": "numjet.ops.segment", "jax.core": "numjet.extend.jax_core"}

# Parameters that differ from the contract's on purpose: (module, name) -> why.
UFUNC = ("a function of its operands alone: out and where, which the contract's object has and "
         "refuses, would cost every call")
SAYS_MORE = "names an argument that is gone, to say what to write instead"
MADE_HERE = "made by jit, and by nobody else: what it is made of is ours"
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("jax", "pure_callback"): SAYS_MORE,
    ("jax.export", "Exported"): "made by export, and by nobody else: it holds a jaxpr, no HLO",
    **{("jax.experimental.jet", name): "made by jet, and by nobody else: coefficients are computed "
       "when they are asked for" for name in ("JetTrace", "JetTracer")},
    **{("jax.stages", name): MADE_HERE for name in ("Compiled", "Lowered", "Traced", "Wrapped")},
    **{("jax.numpy", name): UFUNC for name in (
        "add", "bitwise_and", "bitwise_or", "bitwise_xor", "logaddexp", "logaddexp2",
        "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
        "subtract")},
}


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, what may be passed to it how, and its default as text."""

    name: str
    kind: str
    default: str | None

    def __str__(self) -> str:
        stars = {"var_positional": "*", "var_keyword": "**"}.get(self.kind, "")
        return f"{stars}{self.name}" + ("" if self.default is None else f"={self.default}")


@dataclass(frozen=True)
class Entry:
    """A row of the contract."""

    module: str
    name: str
    kind: str
    signature: str


def normal_text(signature: str) -> str:
    """A printed signature without annotations, result type and addresses, as Python parses it."""
    text = re.sub(r"<class '([\w.]+)'>", lambda m: m.group(1).rpartition(".")[2], signature)
    text = re.sub(r"<(\w+\.\w+): [^<>]*>", lambda m: m.group(1), text)
    text = re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", text.replace(".<locals>", ""))
    text = re.sub(r"<[^<>]*>", "OBJECT", text)
    # An Enum's signature is that of its functional interface, which Python's version decides.
    if not text.startswith("(") or text.startswith("(value, names=None"):
        return ""
    arguments = ast.parse(f"def f{text}: pass").body[0].args  # type: ignore[attr-defined]
    for argument in ast.walk(arguments):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    return f"({ast.unparse(arguments)})"


def contract_parameters(signature: str) -> list[Parameter] | None:
    """The parameters of a row of the contract; None where it has no signature."""
    if not signature:
        return None
    arguments = ast.parse(f"def f{signature}: pass").body[0].args  # type: ignore[attr-defined]
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    found = []
    for k, (argument, default) in enumerate(zip(plain, defaults, strict=True)):
        kind = "positional_only" if k < len(arguments.posonlyargs) else "positional_or_keyword"
        found.append(Parameter(argument.arg, kind, default and ast.unparse(default)))
    if arguments.vararg:
        found.append(Parameter(arguments.vararg.arg, "var_positional", None))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(Parameter(argument.arg, "keyword_only", default and ast.unparse(default)))
    if arguments.kwarg:
        found.append(Parameter(arguments.kwarg.arg, "var_keyword", None))
    return found


def default_text(value: Any) -> str:
    """A default as the contract writes it: literals as they are, classes and functions by name."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if type(value).__module__ == "numpy" and not isinstance(value, type):
        return repr(value)
    if isinstance(value, type) or inspect.isfunction(value) or hasattr(value, "dtype"):
        return str(getattr(value, "__name__", None) or value)
    try:
        return ast.unparse(ast.parse(re.sub(r"<[^<>]*>", "OBJECT", repr(value)), mode="eval"))
    except SyntaxError:
        return "OBJECT"


def own_parameters(value: Any) -> list[Parameter] | None:
    """The parameters of an object of ours; None where Python knows no signature."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    return [Parameter(p.name, p.kind.name.lower(),
                      None if p.default is p.empty else default_text(p.default))
            for p in signature.parameters.values()]


# Defaults of the contract that mean `not given`: None says so as well.
MARKERS = ("OBJECT", "Deprecated", "UnspecifiedValue", "jax.sharding.Infer")


def same_default(ours: str | None, theirs: str | None) -> bool:
    """Equal, or both objects whose text says nothing (markers of `not given`)."""
    if ours is None or theirs is None or ours == theirs:
        return ours == theirs
    if theirs in MARKERS and ours in ("None", "Infer"):
        return True
    try:
        return bool(ast.literal_eval(ours) == ast.literal_eval(theirs))
    except (ValueError, SyntaxError):
        return "OBJECT" in theirs and not ours.isnumeric()


def same_parameter(ours: Parameter, theirs: Parameter) -> bool:
    """Alike for every caller: the name of a positional-only parameter is nobody's to write."""
    named = ours.name == theirs.name or theirs.kind == "positional_only"
    return named and ours.kind == theirs.kind and same_default(ours.default, theirs.default)


def in_order(parameters: list[Parameter]) -> list[Parameter]:
    """Those by keyword alone by their names, as their order is nobody's to rely on."""
    named = sorted([p for p in parameters if p.kind == "keyword_only"], key=lambda p: p.name)
    return [p for p in parameters if p.kind != "keyword_only"] + named


def difference(value: Any, entry: Entry) -> str | None:
    """How the signature of `value` differs from the contract's; None where it does not."""
    theirs = contract_parameters(entry.signature)
    if theirs is None or (entry.module, entry.name) in EXCEPTIONS:
        return None
    ours = own_parameters(value)
    if ours is not None and len(ours) == len(theirs) and all(
            map(same_parameter, in_order(ours), in_order(theirs))):
        return None
    return f"({', '.join(map(str, ours))})" if ours is not None else "no signature"


def own_module(module: str) -> str:
    return ELSEWHERE.get(module, re.sub(r"^jax\b", "numjet", module))


def find(entry: Entry) -> Any:
    """Our object of this name. Raises AttributeError where there is none."""
    name = own_module(entry.module)
    try:
        if entry.kind == "module" and f"{entry.module}.{entry.name}" in ELSEWHERE:
            return importlib.import_module(ELSEWHERE[f"{entry.module}.{entry.name}"])
        module = importlib.import_module(name)
        if hasattr(module, entry.name):
            return getattr(module, entry.name)
        place = namespaces.names(entry.module).get(entry.name)
        if place is not None:
            home, _, attribute = place.partition(":")
            found = importlib.import_module(own_module(home))
            return getattr(found, attribute) if attribute else found
        if entry.kind == "module":
            return importlib.import_module(f"{name}.{entry.name}")
        return getattr(module, entry.name)
    except ModuleNotFoundError as error:
        raise AttributeError(f"no module {error.name}") from error


def contract() -> list[Entry]:
    with CONTRACT.open(newline="") as file:
        return [Entry(**row) for row in csv.DictReader(file)]


@dataclass
class Coverage:
    """One module: how many names the contract has, which are missing, which differ in how."""

    names: int
    missing: list[str]
    different: dict[str, tuple[str, str]]


def coverage(entries: list[Entry]) -> dict[str, Coverage]:
    found: dict[str, Coverage] = {}
    for entry in entries:
        module = found.setdefault(entry.module, Coverage(0, [], {}))
        module.names += 1
        try:
            value = find(entry)
        except AttributeError:
            module.missing.append(entry.name)
            continue
        how = difference(value, entry) if entry.kind in ("function", "class") else None
        if how is not None:
            module.different[entry.name] = (how, entry.signature)
    return found


def lines(found: dict[str, Coverage], detailed: bool) -> Iterator[str]:
    yield f"{'module':36s} {'names':>6s} {'there':>6s} {'signature differs':>18s}"
    for name, module in found.items():
        there = module.names - len(module.missing)
        yield f"{name:36s} {module.names:6d} {there:6d} {len(module.different):18d}"
    total = sum(m.names for m in found.values())
    there = total - sum(len(m.missing) for m in found.values())
    yield f"{'all':36s} {total:6d} {there:6d} {sum(len(m.different) for m in found.values()):18d}"
    for name, module in found.items() if detailed else ():
        if module.missing:
            yield f"\n{name} has no {', '.join(module.missing)}"
        for one, (ours, theirs) in module.different.items():
            yield f"\n{name}.{one}\n  is        {ours}\n  should be {theirs}"


def update(sources: list[Path]) -> None:
    """Write the contract anew out of CSVs of printed signatures."""
    with CONTRACT.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["module", "name", "kind", "signature"])
        for source in sources:
            with source.open(newline="") as file:
                for row in csv.DictReader(file):
                    writer.writerow([row["module"], row["name"], row["kind"],
                                     normal_text(row["signature"])])


# What tests call a module by, where that is not its last name.
CALLED = {
    "jax": ("nj", "numjet", "jax"), "jax.numpy": ("jnp",), "jax.numpy.linalg": ("jnp.linalg",),
    "jax.numpy.fft": ("jnp.fft",), "jax.lax.linalg": ("lax.linalg", "linalg"),
}  # fmt: skip
PAGE = CONTRACT.parents[1] / "docs" / "coverage.md"
HEAD = """# Coverage

Each public name of JAX 0.10.2, and the first file of tests that calls it, found by reading the
tests: written by `python tools/coverage.py --page`. Where none does by this module's name, the name
is only looked for and its signature compared (`tests/api/test_coverage.py`): functions that have
several names are tested by one of them.
"""


def test_texts() -> dict[str, str]:
    """The texts of the tests, by path."""
    root = CONTRACT.parents[1]
    files = sorted((root / "tests").rglob("*.py"))
    return {str(f.relative_to(root)): f.read_text() for f in files}


def called_in(module: str, name: str, uses: dict[str, str]) -> str | None:
    """The first file of tests with `module.name`; uses: what is called by which file."""
    for alias in CALLED.get(module, (module.rpartition(".")[2], module.removeprefix("jax."))):
        found = uses.get(f"{alias}.{name}")
        if found is not None:
            return found
    return None


def page(entries: list[Entry]) -> str:
    """docs/coverage.md."""
    uses: dict[str, str] = {}
    for path, text in test_texts().items():
        for use in re.findall(r"(?:[A-Za-z_]\w*\.)+\w+", text):
            parts = use.split(".")
            for k in range(len(parts) - 1):
                uses.setdefault(f"{parts[k]}.{parts[k + 1]}", path)
                if k + 2 < len(parts):
                    uses.setdefault(".".join(parts[k : k + 3]), path)
    modules: dict[str, dict[str, list[str]]] = {}
    for entry in entries:
        try:
            find(entry)
            where = called_in(entry.module, entry.name, uses) or "no test by this name"
        except AttributeError:
            where = "not there"
        modules.setdefault(entry.module, {}).setdefault(where, []).append(entry.name)
    out = [HEAD]
    for module, places in modules.items():
        out.append(f"\n## {module}\n")
        for where in sorted(places):
            out.append(f"- {where}: {', '.join(f'`{name}`' for name in places[where])}")
    return "\n".join(out) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="What of JAX's public surface is there.")
    parser.add_argument("modules", nargs="*", help="show every name of these alone")
    parser.add_argument("--update", type=Path, nargs="+", metavar="FILE",
                        help="make the contract anew")
    parser.add_argument("--page", action="store_true", help="write docs/coverage.md")
    options = parser.parse_args()
    if options.page:
        PAGE.write_text(page(contract()))
        return
    if options.update:
        update(options.update)
    entries = [e for e in contract() if not options.modules or e.module in options.modules]
    print("\n".join(lines(coverage(entries), bool(options.modules))))


if __name__ == "__main__":
    main()
